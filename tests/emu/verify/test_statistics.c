/* Statistics against closed forms and published tables. */
#include <math.h>
#include <stdlib.h>

#include "emu/verify/statistics.h"
#include "tests/report/runner.h"

START_TEST(intervals_of_clopper_and_pearson)
{
    /* 95 % rows: Clopper & Pearson 1934 / R's binom.test; 0 of n and n of n by the closed form 1 - (a/2)^(1/n). */
    static const struct {
        double hits, trials, confidence, low, high;
    } rows[] = {
        {1, 10, 0.95, 0.002528579, 0.4450161}, {5, 10, 0.95, 0.1870860, 0.8129140},
        {7, 20, 0.95, 0.1539092, 0.5921885},   {10, 100, 0.95, 0.04900469, 0.1762226},
        {0, 10, 0.95, 0, 0.3084971},           {10, 10, 0.95, 0.6915029, 1},
        {0, 100000, 0.99, 0, 5.298177e-05},    {1, 1, 0.99, 0.005, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double low, high;
        binomial_interval(rows[i].hits, rows[i].trials, rows[i].confidence, &low, &high);
        ck_assert_msg(fabs(low - rows[i].low) < 1e-7 && fabs(high - rows[i].high) < 1e-7, "%g of %g: %.9g to %.9g",
                      rows[i].hits, rows[i].trials, low, high);
    }
}
END_TEST

/* P(X <= k) of the binomial distribution, term by term. */
static double binomial_cdf(int k, int n, double p)
{
    double sum = 0;
    for (int i = 0; i <= k; i++)
        sum += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) + (n - i) * log1p(-p));
    return sum;
}

/* What the interval means: at its ends, what was seen is as unlikely as (1 - confidence) / 2. */
START_TEST(interval_ends_have_their_tails)
{
    static const int rows[][2] = {{1, 1000}, {100, 100000}, {71, 100000}, {3, 11000}, {50000, 100000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int hits = rows[i][0], trials = rows[i][1];
        double low, high;
        binomial_interval(hits, trials, 0.99, &low, &high);
        ck_assert(fabs(1 - binomial_cdf(hits - 1, trials, low) - 0.005) < 1e-7);
        ck_assert(fabs(binomial_cdf(hits, trials, high) - 0.005) < 1e-7);
    }
}
END_TEST

START_TEST(incomplete_beta_closed_forms)
{
    /* I_x(1, b) = 1 - (1-x)^b; I_x(a, 1) = x^a; symmetry I_x(a, b) = 1 - I_{1-x}(b, a); I_{1/2}(a, a) = 1/2. */
    for (double x = 0.01; x < 1; x += 0.07) {
        ck_assert(fabs(incomplete_beta(1, 7, x) - (1 - pow(1 - x, 7))) < 1e-12);
        ck_assert(fabs(incomplete_beta(3.5, 1, x) - pow(x, 3.5)) < 1e-12);
        ck_assert(fabs(incomplete_beta(12, 90, x) + incomplete_beta(90, 12, 1 - x) - 1) < 1e-12);
    }
    ck_assert(fabs(incomplete_beta(40000, 40000, 0.5) - 0.5) < 1e-9);
    ck_assert(incomplete_beta(2, 3, 0) == 0 && incomplete_beta(2, 3, 1) == 1);
}
END_TEST

START_TEST(moments_and_quantiles)
{
    struct moments moments = {0};
    int64_t sorted[1001];
    for (int i = 0; i <= 1000; i++) {
        sorted[i] = 1000000000000 + i;
        moments_add(&moments, (double)sorted[i]);
    }
    /* Variance of 0..N as a sample: (N + 1)(N + 2) / 12 */
    ck_assert(fabs(moments.mean - 1000000000500.0) < 1e-3);
    ck_assert(fabs(moments_sd(&moments) - sqrt(1001.0 * 1002 / 12)) < 1e-6);
    ck_assert(quantile_of_sorted(sorted, 1001, 0.5) == 1000000000500.0);
    ck_assert(quantile_of_sorted(sorted, 1001, 1) == 1000000001000.0);
    ck_assert(fabs(quantile_of_sorted(sorted, 2, 0.25) - 1000000000000.25) < 1e-3);
    ck_assert(quantile_of_sorted(sorted, 1, 0.9) == 1000000000000.0);
    ck_assert(moments_sd(&(struct moments){.count = 1}) == 0);
}
END_TEST

START_TEST(missing_in_a_row)
{
    struct arrivals arrivals;
    uint64_t missing, runs;
    static const uint32_t came[] = {1, 2, 5, 6, 7, 11};
    ck_assert_int_eq(arrivals_init(&arrivals, 20), 0);
    for (size_t i = 0; i < sizeof came / sizeof *came; i++)
        ck_assert(arrivals_add(&arrivals, came[i]));
    arrivals_missing(&arrivals, 14, &missing, &runs); /* 0; 3 4; 8 9 10; 12 13 */
    ck_assert_uint_eq(missing, 8);
    ck_assert_uint_eq(runs, 4);
    arrivals_missing(&arrivals, 0, &missing, &runs);
    ck_assert(missing == 0 && runs == 0);
    ck_assert(!arrivals_add(&arrivals, 20)); /* no room: not counted */
    ck_assert_uint_eq(arrivals.arrived, 6);
    arrivals_free(&arrivals);
}
END_TEST

/* The example of RFC 4737, section 3.3 and 7: 1 2 3 7 8 9 10 4 5 6 has three reordered packets (4, 5, 6), although
 * four overtook; a late single one is one, whatever it is late by; duplicates are none. */
START_TEST(reordered_by_rfc_4737)
{
    static const struct {
        uint32_t came[12];
        size_t count;
        uint64_t reordered, duplicated;
    } rows[] = {
        {{1, 2, 3, 7, 8, 9, 10, 4, 5, 6}, 10, 3, 0},
        {{0, 1, 2, 3}, 4, 0, 0},
        {{1, 0, 3, 2}, 4, 2, 0},
        {{5, 1, 1, 5, 6}, 5, 1, 2},
        {{0, 9, 1, 2, 3}, 5, 3, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arrivals arrivals;
        ck_assert_int_eq(arrivals_init(&arrivals, 16), 0);
        for (size_t k = 0; k < rows[i].count; k++)
            arrivals_add(&arrivals, rows[i].came[k]);
        ck_assert_uint_eq(arrivals.reordered, rows[i].reordered);
        ck_assert_uint_eq(arrivals.duplicated, rows[i].duplicated);
        arrivals_free(&arrivals);
    }
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("statistics");
    tcase_add_test(cases, intervals_of_clopper_and_pearson);
    tcase_add_test(cases, interval_ends_have_their_tails);
    tcase_add_test(cases, incomplete_beta_closed_forms);
    tcase_add_test(cases, moments_and_quantiles);
    tcase_add_test(cases, missing_in_a_row);
    tcase_add_test(cases, reordered_by_rfc_4737);
    return run_cases("emu-statistics", cases);
}
