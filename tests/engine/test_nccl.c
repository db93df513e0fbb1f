/* Measured NCCL on AWS V100 nodes (repository BinhangYuan/tc_cluster_setting; FACTS.md) against the preset nccl-aws:
 * one transport setting for all rows. 128 MB is read as MiB. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/bench.h"
#include "tests/engine/rig.h"

enum { MIB = 1 << 20 };

static double run(int nodes, const char *delay, const char *rate, enum bench_op op, uint64_t bytes, double *floor_s)
{
    struct scenario scenario;
    struct err err = {""};
    char sets[3][64];
    const char *set[] = {sets[0], sets[1], sets[2]};
    snprintf(sets[0], sizeof sets[0], "datacenters.nodes=%d", nodes);
    snprintf(sets[1], sizeof sets[1], "fabric.latency=%s", delay);
    snprintf(sets[2], sizeof sets[2], "fabric.nic_rate=%s", rate);
    int rc = scenario_load("nccl-aws", set, 3, &scenario, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    struct bench *bench = rig_shared(sizeof *bench);
    rc = bench_init(bench, &scenario, op, ALLREDUCE_RING, ORDER_CONTIGUOUS, bytes, 0, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    struct engine_job *job = &bench->job;
    rc = engine_run(&job, 1, 1, NULL, NULL, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    double step_s = job->outcomes->step_s;
    *floor_s = bench_floor(bench);
    bench_free(bench);
    scenario_free(&scenario);
    return step_s;
}

static const struct row {
    int nodes;
    const char *delay, *rate;
    enum bench_op op;
    double measured_ms, within;
} rows[] = {
    {8, "1 ms", "5 Gb/s", BENCH_ALL_REDUCE, 383, .05},     {8, "5 ms", "2 Gb/s", BENCH_ALL_REDUCE, 970, .05},
    {8, "10 ms", "1 Gb/s", BENCH_ALL_REDUCE, 1940, .05},   {32, "1 ms", "5 Gb/s", BENCH_ALL_REDUCE, 434, .05},
    {32, "5 ms", "2 Gb/s", BENCH_ALL_REDUCE, 1071, .05},   {32, "10 ms", "1 Gb/s", BENCH_ALL_REDUCE, 2141, .05},
    {2, "5 ms", "10 Gb/s", BENCH_SEND_RECEIVE, 134, .15},  {2, "10 ms", "10 Gb/s", BENCH_SEND_RECEIVE, 171, .15},
    {2, "10 ms", "1 Gb/s", BENCH_SEND_RECEIVE, 1083, .15},
};

START_TEST(measured)
{
    const struct row *row = &rows[_i];
    double floor_s, step_s = run(row->nodes, row->delay, row->rate, row->op, 128 * MIB, &floor_s);
    double error = 1e3 * step_s / row->measured_ms - 1;
    printf("%s, %2d nodes, %5s, %7s: %7.1f ms, measured %4.0f ms, %+.1f %%\n",
           row->op == BENCH_ALL_REDUCE ? "all-reduce" : "send      ", row->nodes, row->delay, row->rate, 1e3 * step_s,
           row->measured_ms, 100 * error);
    ck_assert_msg(fabs(error) <= row->within, "row %d: %.1f ms, measured %.0f ms", _i, 1e3 * step_s, row->measured_ms);
}
END_TEST

/* Any number of ranks and any size: never below the floor, and not above what sending segments whole would take. */
START_TEST(any_count)
{
    if (rig_skips(_i))
        return;
    static const int nodes[] = {2, 12, 17, 100};
    static const uint64_t sizes[] = {1024, MIB, 128 * MIB, 1024 * MIB};
    int n = nodes[_i / 4];
    uint64_t bytes = sizes[_i % 4];
    double floor_s, step_s = run(n, "1 ms", "5 Gb/s", BENCH_ALL_REDUCE, bytes, &floor_s);
    double handshakes_s = (double)bytes / n / 2 > 8 * MIB ? 4e-3 : 0; /* of every message, at most */
    double whole_s = 2 * (n - 1) * (1e-3 + handshakes_s + ceil((double)bytes / n / 4) * 4 / 625e6);
    ck_assert_msg(step_s >= floor_s * (1 - 1e-6) && step_s <= whole_s * (1 + 1e-6),
                  "N %d, %lu B: %.9g s, floor %.9g s, whole %.9g s", n, (unsigned long)bytes, step_s, floor_s, whole_s);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("nccl");
    tcase_add_loop_test(tests, measured, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_loop_test(tests, any_count, 0, 16);
    return rig_main("engine-nccl", tests);
}
