/* Whole collectives as `longhaul collective` runs them: formula, bytes on the WAN, floor, and what latency and rate do.
 */
#include <math.h>
#include <stdlib.h>

#include "sim/engine/bench.h"
#include "tests/engine/rig.h"

static const double exact = 1e-6;

static const struct shape {
    enum allreduce algorithm;
    enum ring_order order;
} shapes[] = {
    {ALLREDUCE_RING, ORDER_CONTIGUOUS},
    {ALLREDUCE_RING, ORDER_INTERLEAVED},
    {ALLREDUCE_HIERARCHICAL, ORDER_CONTIGUOUS},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct bench *run(const struct scenario *scenario, const struct shape *shape, uint64_t bytes)
{
    struct bench *bench = rig_shared(sizeof *bench);
    struct err err = {""};
    int rc = bench_init(bench, scenario, BENCH_ALL_REDUCE, shape->algorithm, shape->order, bytes, 0, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    struct engine_job *jobs = &bench->job;
    rc = engine_run(&jobs, 1, 1, NULL, NULL, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    return bench;
}

static double step_of(const struct rig *rig, const struct shape *shape, uint64_t bytes)
{
    struct scenario scenario;
    rig_scenario(rig, &scenario);
    struct bench *bench = run(&scenario, shape, bytes);
    double step_s = bench->job.outcomes->step_s, floor_s = bench_floor(bench);
    ck_assert_msg(step_s >= floor_s * (1 - exact), "%.12g s is below the floor of %.12g s", step_s, floor_s);
    bench_free(bench);
    scenario_free(&scenario);
    return step_s;
}

static const struct rig rigs[] = {
    {2, 4, 1e9, 5e-5, 1e9, 21e-3},  {2, 8, 50e9, 5e-6, 1e9, 21e-3}, {3, 4, 1e9, 5e-5, 1e9, 21e-3},
    {4, 3, 1e9, 5e-5, 0.5e9, 5e-3}, {4, 1, 1e9, 5e-5, 1e9, 5e-3},   {2, 16, 1e9, 5e-5, 1e7, 21e-3},
};
enum { RIGS = sizeof rigs / sizeof *rigs };

/* n pairs share the WAN link, so each has 1/n of it where that is less than a NIC. Sites form a ring, so all of a
 * site's traffic to the next shares one link. */
START_TEST(hierarchical_formula)
{
    const struct rig *rig = &rigs[_i];
    double n = rig->nodes, sites = rig->sites, bytes = 4 * n * sites * 100000;
    double wan = fmin(rig->nic_byte_per_s, rig->wan_byte_per_s / n), a = rig->latency_s, aw = a + rig->wan_rtt_s / 2;
    double expected_s =
        2 * (n - 1) * (a + bytes / n / rig->nic_byte_per_s) + 2 * (sites - 1) * (aw + bytes / n / sites / wan);
    double step_s = step_of(rig, &shapes[2], (uint64_t)bytes);
    rig_assert_close(step_s, expected_s, exact, "rig %d: %.12g, formula %.12g", _i, step_s, expected_s);
}
END_TEST

static double formula_bytes(const struct rig *rig, const struct shape *shape, double bytes)
{
    double n = rig->nodes * rig->sites, per_hop = 2 * (n - 1) / n * bytes;
    if (shape->algorithm == ALLREDUCE_HIERARCHICAL)
        return 2.0 * (rig->sites - 1) / rig->sites * bytes;
    return shape->order == ORDER_INTERLEAVED ? rig->nodes * per_hop : per_hop;
}

/* Every link of the ring of sites carries the same; of two sites' one link, each direction. */
START_TEST(wan_bytes)
{
    if (rig_skips(_i))
        return;
    const struct rig *rig = &rigs[_i / SHAPES];
    const struct shape *shape = &shapes[_i % SHAPES];
    struct scenario scenario;
    double bytes = 4.0 * rig->nodes * rig->sites * 10000, formula[16];
    rig_scenario(rig, &scenario);
    struct bench *bench = run(&scenario, shape, (uint64_t)bytes);
    bench_wan_bytes(bench, formula);
    for (int site = 0; site < rig->sites; site++) {
        int to = (site + 1) % rig->sites, link = rig->sites == 2 ? 0 : site, way = rig->sites == 2 ? site : 0;
        double got = bench->job.wan[2 * link + way].bytes, expected = formula_bytes(rig, shape, bytes);
        rig_assert_close(got, expected, exact, "case %d, from site %d: %.12g bytes, formula %.12g", _i, site, got,
                         expected);
        rig_assert_close(formula[site * rig->sites + to], expected, exact,
                         "case %d: bench_wan_bytes says %.12g, not %.12g", _i, formula[site * rig->sites + to],
                         expected);
    }
    bench_free(bench);
    scenario_free(&scenario);
}
END_TEST

/* The peers' mistakes (FACTS.md): a flat ring that ignores the WAN, chunks that do not share the link. */
START_TEST(latency_and_rate_count)
{
    if (rig_skips(_i))
        return;
    const struct rig *rig = &rigs[_i / SHAPES];
    const struct shape *shape = &shapes[_i % SHAPES];
    uint64_t bytes = 40000000;
    double base_s = step_of(rig, shape, bytes), last_s = 0;
    struct rig far = *rig, slow = *rig;
    far.wan_rtt_s *= 1000;
    slow.wan_byte_per_s /= 1000;
    double far_s = step_of(&far, shape, bytes), slow_s = step_of(&slow, shape, bytes);
    ck_assert_msg(far_s > 5 * base_s, "case %d: %g s at %g s RTT, %g s at 1000 times that", _i, base_s, rig->wan_rtt_s,
                  far_s);
    ck_assert_msg(slow_s > 10 * base_s, "case %d: %g s at %g B/s, %g s at 1/1000", _i, base_s, rig->wan_byte_per_s,
                  slow_s);
    for (int i = 0; i < 5; i++) {
        struct rig at = *rig;
        at.wan_rtt_s *= i / 2.0;
        double step_s = step_of(&at, shape, bytes);
        ck_assert_msg(step_s >= last_s * (1 - exact), "case %d: faster at a longer RTT: %g s, %g s", _i, last_s,
                      step_s);
        last_s = step_s;
    }
}
END_TEST

/* However a collective is cut, its bytes still cross the link: never below the floor (checked in step_of). */
START_TEST(cuts_share_the_link)
{
    if (rig_skips(_i))
        return;
    static const long cuts[][2] = {{1, 1}, {1, 2}, {1, 8}, {2, 1}, {4, 2}, {8, 4}};
    const struct rig *rig = &rigs[_i / SHAPES];
    struct rig slow = *rig;
    slow.wan_byte_per_s = rig->nic_byte_per_s / 100;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        slow.channels = cuts[i][0];
        slow.slices = cuts[i][1];
        step_of(&slow, &shapes[_i % SHAPES], 40000000);
    }
}
END_TEST

/* A WAN with no delay and no limit is the one site: the fabric's latency is all that a hop costs. */
START_TEST(free_wan_is_one_site)
{
    const struct shape *shape = &shapes[_i];
    struct rig one = {1, 16, 1e9, 5e-5}, two = {2, 8, 1e9, 5e-5, INFINITY, 0};
    uint64_t bytes = 16 * 4 * 100000;
    double one_s = step_of(&one, &shapes[0], bytes), two_s = step_of(&two, shape, bytes);
    if (shape->algorithm == ALLREDUCE_RING)
        rig_assert_close(two_s, one_s, exact, "%.12g in two sites, %.12g in one", two_s, one_s);
    else
        rig_assert_close(two_s, one_s - 14 * one.latency_s, exact, "%.12g in two sites, %.12g in one", two_s, one_s);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("collective");
    tcase_add_loop_test(tests, hierarchical_formula, 0, RIGS);
    tcase_add_loop_test(tests, wan_bytes, 0, RIGS * SHAPES);
    tcase_add_loop_test(tests, latency_and_rate_count, 0, RIGS * SHAPES);
    tcase_add_loop_test(tests, cuts_share_the_link, 0, RIGS * SHAPES);
    tcase_add_loop_test(tests, free_wan_is_one_site, 0, SHAPES);
    return rig_main("engine-collective", tests);
}
