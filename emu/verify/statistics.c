#include "emu/verify/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void moments_add(struct moments *moments, double sample)
{
    double distance = sample - moments->mean;
    moments->count++;
    moments->mean += distance / (double)moments->count;
    moments->squares += distance * (sample - moments->mean);
}

double moments_sd(const struct moments *moments)
{
    return moments->count < 2 ? 0 : sqrt(moments->squares / (double)(moments->count - 1));
}

double quantile_of_sorted(const int64_t *sorted, size_t count, double q)
{
    double place = q * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return (double)sorted[count - 1];
    return (double)sorted[below] + (place - (double)below) * (double)(sorted[below + 1] - sorted[below]);
}

/* The beta function is the one thing here that a library has: GSL. Its licence (GPL) would become that of a program it
 * is linked into, and this one is meant to be copied to every node; so it is thirty lines of our own. */
static double away_from_zero(double value)
{
    const double least = 1e-300;
    return fabs(value) < least ? least : value;
}

/* Continued fraction of I_x(a, b), DLMF 8.17.22, by Lentz's method; converges fast where x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    enum { TURNS_MAX = 10000 }; /* about sqrt(max(a, b)) are needed */
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m <= TURNS_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        value *= c * d;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        value *= c * d;
        if (fabs(c * d - 1) < 1e-15)
            break;
    }
    return value;
}

/* lgamma without its global sign. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double incomplete_beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x > 0;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The x with I_x(a, b) = share, by bisection. */
static double beta_quantile(double a, double b, double share)
{
    enum { HALVINGS = 100 }; /* far below any ratio that can be measured: 2^-100 */
    double low = 0, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (incomplete_beta(a, b, middle) < share)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

void binomial_interval(double hits, double trials, double confidence, double *low, double *high)
{
    double outside = (1 - confidence) / 2;
    *low = hits > 0 ? beta_quantile(hits, trials - hits + 1, outside) : 0;
    *high = hits < trials ? beta_quantile(hits + 1, trials - hits, 1 - outside) : 1;
}

int arrivals_init(struct arrivals *arrivals, uint32_t room)
{
    *arrivals = (struct arrivals){.room = room, .seen = calloc((size_t)room / 8 + 1, 1)};
    return arrivals->seen ? 0 : -ENOMEM;
}

void arrivals_free(struct arrivals *arrivals)
{
    free(arrivals->seen);
    *arrivals = (struct arrivals){0};
}

static bool has(const struct arrivals *arrivals, uint32_t number)
{
    return arrivals->seen[number / 8] >> number % 8 & 1;
}

bool arrivals_add(struct arrivals *arrivals, uint32_t number)
{
    if (number >= arrivals->room)
        return false;
    if (has(arrivals, number)) {
        arrivals->duplicated++;
        return false;
    }
    arrivals->seen[number / 8] |= (uint8_t)(1u << number % 8);
    arrivals->arrived++;
    if (number < arrivals->next)
        arrivals->reordered++;
    else
        arrivals->next = number + 1;
    return true;
}

void arrivals_missing(const struct arrivals *arrivals, uint32_t sent, uint64_t *missing, uint64_t *runs)
{
    bool before = true;
    *missing = *runs = 0;
    for (uint32_t i = 0; i < sent && i < arrivals->room; i++) {
        bool here = has(arrivals, i);
        *missing += !here;
        *runs += before && !here;
        before = here;
    }
}
