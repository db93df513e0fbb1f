/* What is computed from samples: moments, quantiles, binomial intervals, losses in a row, reordering. */
#ifndef LONGHAUL_STATISTICS_H
#define LONGHAUL_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Mean and standard deviation without keeping the samples (Welford 1962). Zeroed is empty. */
struct moments {
    uint64_t count;
    double mean, squares; /* squares: sum of squared distances from the mean */
};
void moments_add(struct moments *moments, double sample);
double moments_sd(const struct moments *moments); /* of the population the samples come from (n - 1); 0 below 2 */

/* Quantile q in [0, 1] of count >= 1 samples in ascending order, linear between them (definition 7 of Hyndman and Fan
 * 1996). */
double quantile_of_sorted(const int64_t *sorted, size_t count, double q);

/* I_x(a, b), the regularised incomplete beta function, for a, b > 0 and x in [0, 1]; to about 1e-12. */
double incomplete_beta(double a, double b, double x);

/* Interval of Clopper and Pearson (1934) for the ratio behind hits out of trials: low = the a-quantile of
 * Beta(hits, trials - hits + 1), high = the (1-a)-quantile of Beta(hits + 1, trials - hits), a = (1 - confidence) / 2.
 * Need not be whole: dependent trials are worth fewer independent ones. 0 <= hits <= trials; no trials: 0 to 1. */
void binomial_interval(double hits, double trials, double confidence, double *low, double *high);

/* Which of the packets numbered 0, 1, 2, ... arrived, and how. */
struct arrivals {
    uint32_t room; /* numbers below it are taken */
    uint8_t *seen; /* owned: a bit for each number */
    uint64_t arrived, duplicated;
    uint64_t reordered; /* RFC 4737, 3.3: arrived with a number below one that had arrived */
    uint32_t next;      /* highest number that arrived, and 1 */
};
int arrivals_init(struct arrivals *arrivals, uint32_t room); /* 0, -ENOMEM */
void arrivals_free(struct arrivals *arrivals);
/* Did this number arrive for the first time? Numbers out of room are not counted. */
bool arrivals_add(struct arrivals *arrivals, uint32_t number);
/* Of the first sent numbers: how many are missing, and in how many runs without a gap. */
void arrivals_missing(const struct arrivals *arrivals, uint32_t sent, uint64_t *missing, uint64_t *runs);

#endif
