/* Rings in bulk against message level: within 1 % for every rank's completion, counted from the moment it starts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/engine/rig.h"

static const double agree = 0.01;
enum { MOST_RANKS = 64 };

static double skewed(int i, int n, double skew_s)
{
    return skew_s * (i * 37 % n) / n;
}

/* Runs the rings at both fidelities and compares rank by rank. */
static void compare(const struct scenario *scenario, struct rig_ring *rings, int count, const char *what)
{
    double *bulk[4], *messages[4];
    struct engine_outcome outcome;
    for (int r = 0; r < count; r++)
        rings[r].done_s = bulk[r] = rig_shared((size_t)rings[r].count * sizeof(double));
    rig_run_rings(scenario, 0, rings, count, &outcome);
    ck_assert_msg(outcome.used_bulk, "%s: not in bulk", what);
    for (int r = 0; r < count; r++)
        rings[r].done_s = messages[r] = rig_shared((size_t)rings[r].count * sizeof(double));
    rig_run_rings(scenario, INFINITY, rings, count, NULL);
    double worst = 0;
    int ring = 0, rank = 0;
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < rings[r].count; i++) {
            double start_s = rings[r].start_s ? rings[r].start_s[i] : rings[r].start_all_s;
            double error = fabs(bulk[r][i] - messages[r][i]) / (messages[r][i] - start_s);
            if (error > worst) {
                worst = error;
                ring = r;
                rank = i;
            }
        }
    }
    if (getenv("VERBOSE"))
        printf("%-60s worst %.5f %%\n", what, 100 * worst);
    ck_assert_msg(worst <= agree, "%s: ring %d position %d: %.9g s in bulk, %.9g s in messages, %.3f %%", what, ring,
                  rank, bulk[ring][rank], messages[ring][rank], 100 * worst);
    for (int r = 0; r < count; r++) {
        engine_unshare(bulk[r], (size_t)rings[r].count * sizeof(double));
        engine_unshare(messages[r], (size_t)rings[r].count * sizeof(double));
    }
}

static const double nic = 50e9, hop_s = 5e-6, rtt_s = 21e-3;
static const int rank_counts[] = {16, 32, 64};
static const double sizes[] = {1e6, 1e7, 1e8, 1e9}, wan_parts[] = {1, 10, 100};

/* ---- one ring over two sites */
enum { ALONE = 3 * 3 * 2 };

START_TEST(alone)
{
    if (rig_skips(_i))
        return;
    int n = rank_counts[_i / 6], slices = _i % 2 + 1;
    struct scenario scenario;
    rig_scenario(&(struct rig){2, n / 2, nic, hop_s, nic / wan_parts[_i / 2 % 3], rtt_s}, &scenario);
    for (int s = 0; s < 4; s++) {
        for (int skew = 0; skew < 3; skew++) {
            double start_s[MOST_RANKS];
            char what[96];
            for (int i = 0; i < n; i++)
                start_s[i] = skewed(i, n, skew == 0 ? 0 : skew == 1 ? 1e-3 : 50e-3);
            struct rig_ring ring = {
                .count = n, .kind = RING_ALL_REDUCE, .bytes = (uint64_t)sizes[s], .slices = slices, .start_s = start_s};
            snprintf(what, sizeof what, "N %d, %g B, WAN 1/%g, %d slices, skew %d", n, sizes[s], wan_parts[_i / 2 % 3],
                     slices, skew);
            compare(&scenario, &ring, 1, what);
        }
    }
    scenario_free(&scenario);
}
END_TEST

/* ---- two rings on different ranks that share the WAN */

static const struct pair {
    double first, second, offset_s; /* bytes; the second starts later by */
} pairs[] = {{1e6, 1e6, 0},    {1e8, 1e8, 0},    {1e9, 1e9, 0},    {1e8, 1e7, 0},
             {1e9, 1e7, 5e-3}, {1e7, 1e7, 3e-3}, {1e8, 1e8, 30e-3}};
enum { PAIRS = sizeof pairs / sizeof *pairs, SHARED = PAIRS * 3 * 2 };

static void split_ranks(int n, int *even, int *odd)
{
    for (int i = 0; i < n; i++)
        (i % 2 ? odd : even)[i / 2] = i;
}

START_TEST(two_share_the_wan)
{
    if (rig_skips(_i))
        return;
    const struct pair *pair = &pairs[_i / 6];
    int slices = _i % 2 + 1, even[MOST_RANKS], odd[MOST_RANKS];
    char what[96];
    for (int n = 16; n <= 32; n *= 2) {
        struct scenario scenario;
        rig_scenario(&(struct rig){2, n, nic, hop_s, nic / wan_parts[_i / 2 % 3], rtt_s}, &scenario);
        split_ranks(2 * n, even, odd);
        struct rig_ring rings[] = {
            {.count = n, .ranks = even, .bytes = (uint64_t)pair->first},
            {.count = n, .ranks = odd, .bytes = (uint64_t)pair->second, .start_all_s = pair->offset_s}};
        for (int r = 0; r < 2; r++) {
            rings[r].kind = RING_ALL_REDUCE;
            rings[r].slices = slices;
        }
        snprintf(what, sizeof what, "2 x N %d, %g + %g B, WAN 1/%g, %d slices, %g s later", n, pair->first,
                 pair->second, wan_parts[_i / 2 % 3], slices, pair->offset_s);
        compare(&scenario, rings, 2, what);
        scenario_free(&scenario);
    }
}
END_TEST

/* ---- inside one site */

static const struct in_site {
    const char *what;
    int ranks, slices, rings;             /* rings: on the same ranks, so on the same NICs */
    double bytes, skew_s, later_s, share; /* the second ring starts later, with this share of the bytes */
    double latency_s;
} in_sites[] = {
    {"alone", 16, 1, 1, 1e7, 0, 0, 1, 5e-6},
    {"sliced", 32, 2, 1, 1e8, 0, 0, 1, 5e-6},
    {"small", 64, 1, 1, 1e4, 0, 0, 1, 5e-6},
    {"some skew", 16, 1, 1, 1e8, 1e-3, 0, 1, 5e-6},
    {"more skew than ring", 16, 1, 1, 1e6, 1e-2, 0, 1, 5e-6},
    {"more skew than ring, sliced", 64, 4, 1, 1e6, 1e-2, 0, 1, 5e-6},
    {"skew and long latency", 16, 2, 1, 1e9, 1e-2, 0, 1, 1e-3},
    {"two rings", 16, 1, 2, 1e9, 0, 0, 1, 5e-6},
    {"two rings, sliced", 16, 2, 2, 1e9, 0, 0, 1, 5e-6},
    {"two rings, half as large", 16, 1, 2, 1e9, 0, 0, .5, 5e-6},
    {"two rings, one later", 16, 2, 2, 1e9, 0, 1e-2, 1, 5e-6},
    {"two rings with more skew than ring", 16, 1, 2, 1e7, 1e-2, 0, 1, 5e-6},
    {"two rings with skew", 16, 2, 2, 1e9, 1e-3, 0, 1, 5e-6},
};

START_TEST(in_one_site)
{
    if (rig_skips(_i))
        return;
    const struct in_site *c = &in_sites[_i];
    double start_s[2][MOST_RANKS];
    struct rig_ring rings[2];
    struct scenario scenario;
    rig_scenario(&(struct rig){1, c->ranks, nic, c->latency_s}, &scenario);
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < c->ranks; i++)
            start_s[r][i] = skewed(i, c->ranks, c->skew_s) + r * c->later_s;
        rings[r] = (struct rig_ring){.count = c->ranks,
                                     .kind = RING_ALL_REDUCE,
                                     .slices = c->slices,
                                     .channel = r,
                                     .bytes = (uint64_t)(c->bytes * (r ? c->share : 1)),
                                     .start_s = start_s[r]};
    }
    compare(&scenario, rings, c->rings, c->what);
    scenario_free(&scenario);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("bulk");
    tcase_add_loop_test(tests, alone, 0, ALONE);
    tcase_add_loop_test(tests, two_share_the_wan, 0, SHARED);
    tcase_add_loop_test(tests, in_one_site, 0, (int)(sizeof in_sites / sizeof *in_sites));
    return rig_main("engine-bulk", tests);
}
