/* Folded runs, one rank per site, against runs of every rank, within 0.1 %, where all start together. */
#include <math.h>
#include <stdlib.h>

#include "sim/engine/bench.h"
#include "tests/engine/rig.h"

static const double agree = 0.001;

static const struct shape {
    const char *name;
    enum bench_op op;
    enum allreduce algorithm;
    enum ring_order order;
    bool all_cross; /* every replica of a site has a hop to another, not only the last */
} shapes[] = {
    {"contiguous ring", BENCH_ALL_REDUCE, ALLREDUCE_RING, ORDER_CONTIGUOUS, false},
    {"interleaved ring", BENCH_ALL_REDUCE, ALLREDUCE_RING, ORDER_INTERLEAVED, true},
    {"hierarchical", BENCH_ALL_REDUCE, ALLREDUCE_HIERARCHICAL, ORDER_CONTIGUOUS, true},
    {"reduce-scatter", BENCH_REDUCE_SCATTER, ALLREDUCE_RING, ORDER_CONTIGUOUS, false},
    {"all-gather", BENCH_ALL_GATHER, ALLREDUCE_RING, ORDER_CONTIGUOUS, false},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const struct rig rigs[] = {
    {1, 16, 50e9, 5e-6},
    {1, 17, 1e9, 1e-3, .slices = 3},
    {2, 8, 50e9, 5e-6, 50e9, 21e-3},
    {2, 16, 50e9, 5e-6, 5e9, 21e-3, .slices = 2},
    {2, 32, 50e9, 5e-6, 0.5e9, 21e-3},
    {2, 8, 1e9, 5e-5, 1e8, 1e-3, .slices = 4, .channels = 2},
    {3, 8, 50e9, 5e-6, 5e9, 21e-3},
    {4, 6, 50e9, 5e-6, 0.5e9, 5e-3, .slices = 2},
};
enum { RIGS = sizeof rigs / sizeof *rigs };

static double run(const struct rig *rig, const struct shape *shape, uint64_t bytes, bool fold, double *site_s,
                  double *wan)
{
    struct scenario scenario;
    struct err err = {""};
    rig_scenario(rig, &scenario);
    struct bench *bench = rig_shared(sizeof *bench);
    int rc = bench_init(bench, &scenario, shape->op, shape->algorithm, shape->order, bytes, 0, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    struct engine_job *job = &bench->job;
    job->fold = fold;
    job->wan_flows = shape->all_cross ? rig->nodes : 1;
    job->bulk_above = fold ? ENGINE_BULK_ABOVE : INFINITY;
    rc = engine_run(&job, 1, 1, NULL, NULL, &err);
    ck_assert_msg(rc == 0, "%s, fold %d: %s", shape->name, fold, err.text);
    double step_s = job->outcomes->step_s;
    for (int s = 0; s < rig->sites; s++)
        for (int i = 0; i < rig->nodes; i++)
            site_s[s] = fmax(i ? site_s[s] : 0,
                             isnan(bench->done_s[s * rig->nodes + i]) ? 0 : bench->done_s[s * rig->nodes + i]);
    if (fold && isnan(bench->done_s[(rig->sites - 1) * rig->nodes])) /* the mirror image of the first site */
        site_s[1] = site_s[0];
    *wan = scenario.wan_count ? job->wan[0].bytes : 0;
    bench_free(bench);
    scenario_free(&scenario);
    return step_s;
}

START_TEST(folded_is_unfolded)
{
    if (rig_skips(_i))
        return;
    static const double sizes[] = {1e6, 1e8, 1e9};
    const struct rig *rig = &rigs[_i / SHAPES];
    const struct shape *shape = &shapes[_i % SHAPES];
    for (int s = 0; s < 3; s++) {
        double site_s[4], folded_site_s[4], wan, folded_wan;
        double unit = 4.0 * 12 * rig->sites * rig->nodes, bytes = unit * ceil(sizes[s] / unit);
        double step_s = run(rig, shape, (uint64_t)bytes, false, site_s, &wan);
        double folded_s = run(rig, shape, (uint64_t)bytes, true, folded_site_s, &folded_wan);
        rig_assert_close(folded_s, step_s, agree, "%s, rig %d, %g B: folded %.9g, unfolded %.9g", shape->name,
                         _i / SHAPES, bytes, folded_s, step_s);
        for (int site = 0; site < rig->sites && folded_site_s[site] > 0; site++) /* 0: the other site stands for it */
            rig_assert_close(folded_site_s[site], site_s[site], agree,
                             "%s, rig %d, %g B, site %d: folded %.9g, unfolded %.9g", shape->name, _i / SHAPES, bytes,
                             site, folded_site_s[site], site_s[site]);
        rig_assert_close(folded_wan, wan, agree, "%s, rig %d: folded %.9g WAN bytes, unfolded %.9g", shape->name,
                         _i / SHAPES, folded_wan, wan);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("fold");
    tcase_add_loop_test(tests, folded_is_unfolded, 0, RIGS * SHAPES);
    return rig_main("engine-fold", tests);
}
