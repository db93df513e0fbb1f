/* Ring collectives at message level against their formula and against the oracle of tests/support. */
#include <math.h>
#include <stdlib.h>

#include "tests/engine/rig.h"
#include "tests/support/ring_oracle.h"

static const double exact = 1e-6;

/* Bytes near S that cut into whole elements of 4 bytes. */
static uint64_t even(double bytes, int ranks, int slices)
{
    double unit = 4.0 * ranks * slices;
    return (uint64_t)(unit * fmax(1, round(bytes / unit)));
}

static const struct formula {
    int ranks;
    double bytes, latency_s, rate;
} formulas[] = {
    {2, 1e6, 5e-6, 50e9},  {3, 1e9, 1e-3, 1e9},   {12, 128e6, 5e-3, 125e6}, {17, 1e6, 0, 1.25e9},
    {64, 1e8, 5e-6, 50e9}, {100, 1e9, 1e-2, 1e9}, {100, 4e3, 1e-6, 400e9},  {17, 100, 1e-5, 1e9},
};
static const int formula_count = sizeof formulas / sizeof *formulas;

START_TEST(one_site_formula)
{
    const struct formula *f = &formulas[_i / 3];
    enum ring_kind kind = (enum ring_kind)(_i % 3);
    struct scenario scenario;
    rig_scenario(&(struct rig){1, f->ranks, f->rate, f->latency_s, .slices = 1}, &scenario);
    uint64_t bytes = even(f->bytes, f->ranks, 1);
    struct rig_ring ring = {.count = f->ranks,
                            .kind = kind,
                            .bytes = bytes,
                            .slices = 1,
                            .done_s = rig_shared((size_t)f->ranks * sizeof(double))};
    rig_run_rings(&scenario, INFINITY, &ring, 1, NULL);
    double steps = kind == RING_ALL_REDUCE ? 2 * (f->ranks - 1) : f->ranks - 1;
    double expected_s = steps * (f->latency_s + (double)bytes / f->ranks / f->rate);
    for (int i = 0; i < f->ranks; i++)
        rig_assert_close(ring.done_s[i], expected_s, exact, "N %d kind %d rank %d: %.12g, formula %.12g", f->ranks,
                         kind, i, ring.done_s[i], expected_s);
    scenario_free(&scenario);
}
END_TEST

static const struct oracle_case {
    int sites, nodes, slices;
    double bytes, nic, latency_s, wan, rtt_s, skew_s;
    enum ring_kind kind;
} cases[] = {
    {1, 12, 2, 128e6, 125e6, 1e-3, 1, 0, 0, RING_ALL_REDUCE},
    {1, 17, 4, 1e6, 1e9, 1e-4, 1, 0, 0, RING_ALL_REDUCE},
    {1, 16, 1, 1e7, 1e9, 1e-5, 1, 0, 5e-3, RING_ALL_REDUCE},
    {1, 16, 3, 1e7, 1e9, 1e-4, 1, 0, 2e-2, RING_ALL_REDUCE},
    {1, 16, 2, 1e7, 1e9, 1e-3, 1, 0, 1e-1, RING_REDUCE_SCATTER},
    {2, 8, 1, 1e6, 50e9, 5e-6, 50e9, 21e-3, 0, RING_ALL_REDUCE},
    {2, 32, 1, 1e7, 50e9, 5e-6, 0.5e9, 21e-3, 0, RING_ALL_REDUCE},
    {2, 8, 2, 1e8, 50e9, 5e-6, 5e9, 21e-3, 0, RING_ALL_REDUCE},
    {2, 4, 4, 1e9, 1e9, 5e-5, 1e8, 21e-3, 0, RING_ALL_GATHER},
    {2, 8, 2, 1e7, 1e9, 5e-5, 1e8, 21e-3, 1e-3, RING_ALL_REDUCE},
    {2, 8, 1, 1e7, 1e9, 5e-5, 1e9, 21e-3, 5e-2, RING_ALL_REDUCE},
    {2, 8, 1, 1e6, 50e9, 5e-6, 50e9, 21e-3, 5e-2, RING_ALL_REDUCE},
    {2, 8, 2, 1e6, 50e9, 5e-6, 5e9, 21e-3, 5e-2, RING_ALL_REDUCE},
    {2, 8, 1, 1e7, 1e9, 5e-5, 1e8, 21e-3, 2, RING_ALL_REDUCE},
    {3, 4, 1, 1e7, 1e9, 5e-5, 1e9, 21e-3, 0, RING_ALL_REDUCE},
    {3, 4, 2, 1e8, 1e9, 5e-5, 1e8, 21e-3, 1e-3, RING_ALL_REDUCE},
    {4, 3, 2, 1e7, 1e9, 5e-5, 1e8, 5e-3, 0, RING_ALL_REDUCE},
    {4, 3, 1, 1e7, 1e9, 5e-5, 1e8, 5e-3, 1e-2, RING_REDUCE_SCATTER},
    {3, 1, 1, 1e7, 1e9, 5e-5, 1e9, 21e-3, 0, RING_ALL_REDUCE},
};

static void expect(const struct oracle_case *c, uint64_t bytes, const double *start_s, double *done_s)
{
    int n = c->sites * c->nodes;
    double rate[256], latency_s[256], arrived_s[256], sent_s[256];
    for (int i = 0; i < n; i++) {
        bool crosses = c->sites > 1 && i % c->nodes == c->nodes - 1;
        rate[i] = crosses ? fmin(c->nic, c->wan) : c->nic;
        latency_s[i] = c->latency_s + (crosses ? c->rtt_s / 2 : 0);
    }
    struct ring_oracle ring = {.ranks = n,
                               .steps = ring_steps(c->kind, n),
                               .slices = c->slices,
                               .bytes = (double)bytes,
                               .rate_byte_per_s = rate,
                               .latency_s = latency_s,
                               .start_s = start_s,
                               .rendezvous = true};
    ck_assert_int_eq(ring_oracle_times(&ring, arrived_s, sent_s), 0);
    for (int i = 0; i < n; i++)
        done_s[i] = fmax(arrived_s[i], sent_s[i]);
}

START_TEST(follows_the_oracle)
{
    const struct oracle_case *c = &cases[_i];
    int n = c->sites * c->nodes;
    double start_s[256], expected_s[256];
    for (int i = 0; i < n; i++)
        start_s[i] = c->skew_s * (i * 37 % n) / n;
    struct scenario scenario;
    rig_scenario(&(struct rig){c->sites, c->nodes, c->nic, c->latency_s, c->wan, c->rtt_s}, &scenario);
    uint64_t bytes = even(c->bytes, n, c->slices);
    struct rig_ring ring = {.count = n,
                            .kind = c->kind,
                            .bytes = bytes,
                            .slices = c->slices,
                            .start_s = start_s,
                            .done_s = rig_shared((size_t)n * sizeof(double))};
    rig_run_rings(&scenario, INFINITY, &ring, 1, NULL);
    expect(c, bytes, start_s, expected_s);
    for (int i = 0; i < n; i++)
        rig_assert_close(ring.done_s[i], expected_s[i], exact, "case %d rank %d: %.12g, oracle %.12g", _i, i,
                         ring.done_s[i], expected_s[i]);
    scenario_free(&scenario);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("ring");
    tcase_add_loop_test(tests, one_site_formula, 0, 3 * formula_count);
    tcase_add_loop_test(tests, follows_the_oracle, 0, (int)(sizeof cases / sizeof *cases));
    return rig_main("engine-ring", tests);
}
