#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ring_oracle.h"

enum { RANKS_MAX = 64 };

static const double nic = 50e9, lan_s = 5e-6, wan_s = 10.5e-3; /* byte/s and one way, of FACTS.md's grid */

/* A ring and what it points to. */
struct case_ring {
    struct ring_oracle ring;
    double rate[RANKS_MAX], latency[RANKS_MAX], start[RANKS_MAX];
};

/* All hops alike; all ranks start at 0. */
static void uniform(struct case_ring *c, int ranks, double bytes, double rate, double latency_s)
{
    c->ring = (struct ring_oracle){.ranks = ranks, .steps = 2 * (ranks - 1), .slices = 1, .bytes = bytes};
    c->ring.rate_byte_per_s = c->rate;
    c->ring.latency_s = c->latency;
    c->ring.start_s = c->start;
    for (int i = 0; i < ranks; i++) {
        c->rate[i] = rate;
        c->latency[i] = latency_s;
        c->start[i] = 0;
    }
}

/* Two equal sites in contiguous order: hops N/2-1 and N-1 cross the WAN. */
static void two_sites(struct case_ring *c, int ranks, double bytes, double wan_rate)
{
    uniform(c, ranks, bytes, nic, lan_s);
    c->rate[ranks / 2 - 1] = c->rate[ranks - 1] = wan_rate;
    c->latency[ranks / 2 - 1] = c->latency[ranks - 1] = wan_s;
}

static void expect_close(double got, double want)
{
    ck_assert_msg(fabs(got - want) <= 1e-10 * fabs(want) + 1e-18, "got %.17g, expected %.17g", got, want);
}

static const int ring_sizes[] = {2, 3, 12, 17, 64};

/* Unsliced: steps (a + S / (N B)), for every rank. */
START_TEST(test_uniform)
{
    struct case_ring c;
    double arrived[RANKS_MAX], sent[RANKS_MAX];
    int ranks = ring_sizes[_i];

    for (double bytes = 0; bytes <= 1e9; bytes = bytes * 10 + 1e3) {
        uniform(&c, ranks, bytes, nic, lan_s);
        for (c.ring.steps = ranks - 1; c.ring.steps <= 2 * (ranks - 1); c.ring.steps += ranks - 1) {
            double want = c.ring.steps * (lan_s + bytes / (ranks * nic));

            ck_assert_int_eq(ring_oracle_times(&c.ring, arrived, sent), 0);
            for (int i = 0; i < ranks; i++) {
                expect_close(arrived[i], want);
                expect_close(sent[i], want - lan_s);
            }
            expect_close(ring_oracle_last(&c.ring), want);
        }
    }
}
END_TEST

/* Sliced: with T = S / (N B) a step lasts max(T, T/k + a), the last one T + a. */
START_TEST(test_uniform_sliced)
{
    struct case_ring c;
    int ranks = ring_sizes[_i];

    for (int slices = 1; slices <= 16; slices *= 2)
        for (double bytes = 1e4; bytes <= 1e9; bytes *= 10) {
            double segment_s = bytes / (ranks * nic), step_s = fmax(segment_s, segment_s / slices + lan_s);

            uniform(&c, ranks, bytes, nic, lan_s);
            c.ring.slices = slices;
            expect_close(ring_oracle_last(&c.ring), (c.ring.steps - 1) * step_s + segment_s + lan_s);
        }
}
END_TEST

/* The closed form of FACTS.md for two equal sites, unsliced, alone on the link. */
static double two_sites_formula(int ranks, double bytes, double wan_rate)
{
    double m = bytes / ranks, hop_s = lan_s + m / nic, f = 3 * (ranks / 2 - 1), r = ranks / 2 - 3;

    return fmax(wan_s + 2 * (ranks - 1) * m / wan_rate,
                4 * wan_s + 4 * m / wan_rate + f * hop_s + r * fmax(m / wan_rate, hop_s));
}

START_TEST(test_two_sites)
{
    struct case_ring c;
    int cases = 0;

    for (int ranks = 16; ranks <= 64; ranks += 8)
        for (double bytes = 1e6; bytes <= 1e9; bytes *= 10)
            for (double slower = 1; slower < 101; slower *= sqrt(10.0), cases++) {
                two_sites(&c, ranks, bytes, nic / slower);
                expect_close(ring_oracle_last(&c.ring), two_sites_formula(ranks, bytes, nic / slower));
            }
    ck_assert_int_eq(cases, 7 * 4 * 5);
}
END_TEST

/* The figures FACTS.md quotes for a FIFO wire, to their printed digits. */
START_TEST(test_two_sites_quoted)
{
    struct case_ring c;

    two_sites(&c, 64, 1e6, nic);
    ck_assert_double_eq_tol(ring_oracle_last(&c.ring) * 1e3, 42.6, 0.05);
    two_sites(&c, 64, 1e7, nic / 100);
    ck_assert_double_eq_tol(ring_oracle_last(&c.ring) * 1e3, 53.1, 0.05);
}
END_TEST

/* Rank 3 of a reduce-scatter starts late by D. What it sends late reaches the rank p hops on at D + (N-1) T + p a, be
 * it in one hop of its own backlog or in many; with rendezvous its upstream wire is as late, one hop more of latency.
 */
START_TEST(test_one_late_rank)
{
    const double late_s = 1, bytes = 1e8;
    struct case_ring c;
    double arrived[RANKS_MAX];
    int ranks = ring_sizes[_i], late = 3 % ring_sizes[_i];

    uniform(&c, ranks, bytes, nic, lan_s);
    c.start[late] = late_s;
    c.ring.steps = ranks - 1;
    for (int rendezvous = 0; rendezvous <= 1; rendezvous++) {
        c.ring.rendezvous = rendezvous;
        ck_assert_int_eq(ring_oracle_times(&c.ring, arrived, NULL), 0);
        for (int p = 0; p < ranks; p++) {
            int hops = p + rendezvous < ranks ? p + rendezvous : ranks - 1;
            double work_s = hops ? (ranks - 1) * bytes / (ranks * nic) : 0;

            expect_close(arrived[(late + p) % ranks], late_s + work_s + hops * lan_s);
        }
    }
}
END_TEST

/* An infinite rate costs latency only; a later start of all shifts all. */
START_TEST(test_limits)
{
    struct case_ring c;

    uniform(&c, 8, 1e9, INFINITY, lan_s);
    expect_close(ring_oracle_last(&c.ring), 14 * lan_s);
    for (int i = 0; i < 8; i++)
        c.start[i] = 2;
    expect_close(ring_oracle_last(&c.ring), 2 + 14 * lan_s);
    c.ring.start_s = NULL;
    expect_close(ring_oracle_last(&c.ring), 14 * lan_s);
}
END_TEST

START_TEST(test_out_of_range)
{
    struct case_ring c;

    uniform(&c, 8, 1e9, nic, lan_s);
    c.rate[7] = 0;
    ck_assert_int_eq(ring_oracle_times(&c.ring, NULL, NULL), -EINVAL);
    uniform(&c, 8, 1e9, nic, NAN);
    ck_assert_int_eq(ring_oracle_times(&c.ring, NULL, NULL), -EINVAL);
    uniform(&c, 8, -1, nic, lan_s);
    ck_assert_double_eq(ring_oracle_last(&c.ring), -EINVAL);
    uniform(&c, 1, 1e9, nic, lan_s);
    ck_assert_double_eq(ring_oracle_last(&c.ring), -EINVAL);
}
END_TEST

int main(void)
{
    const int sizes = sizeof ring_sizes / sizeof *ring_sizes;
    Suite *suite = suite_create("ring_oracle");
    TCase *tcase = tcase_create("formulas");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(tcase, test_uniform, 0, sizes);
    tcase_add_loop_test(tcase, test_uniform_sliced, 0, sizes);
    tcase_add_test(tcase, test_two_sites);
    tcase_add_test(tcase, test_two_sites_quoted);
    tcase_add_loop_test(tcase, test_one_late_rank, 0, sizes);
    tcase_add_test(tcase, test_limits);
    tcase_add_test(tcase, test_out_of_range);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
