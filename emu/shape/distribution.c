#include "emu/shape/distribution.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1 << 20 }; /* 16384 numbers of at most 6 characters fit many times over */

/* Inverse of the normal distribution function Phi(x) = erfc(-x / sqrt 2) / 2, by bisection. */
static double normal_quantile(double share)
{
    double low = -8, high = 8;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        *(0.5 * erfc(-middle / M_SQRT2) < share ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

/* Pareto with shape 3, the one of tc's pareto.dist (iproute2 netem/pareto.c): F(x) = 1 - x^-3, so x = (1 - F)^(-1/3).
 */
static double pareto_quantile(double share)
{
    return pow(1 - share, -1.0 / 3) - 1.5; /* the mean is 3/2 */
}

/* A quarter normal, three quarters pareto (iproute2 netem/paretonormal.c), both at unit standard deviation: that of the
 * Pareto is sqrt(3)/2. */
static double paretonormal_quantile(double share)
{
    return 0.25 * normal_quantile(share) + 0.75 * pareto_quantile(share) / (sqrt(3) / 2);
}

static double uniform_quantile(double share)
{
    return sqrt(3) * (2 * share - 1);
}

static double (*const quantiles[])(double share) = {
    [JITTER_NORMAL] = normal_quantile,
    [JITTER_PARETO] = pareto_quantile,
    [JITTER_PARETONORMAL] = paretonormal_quantile,
    [JITTER_UNIFORM] = uniform_quantile,
};

/* table = round((shift + scale x value) x 8192), clipped to 16 bits. */
static void quantise(const double *values, double shift, double scale, struct distribution *distribution)
{
    for (size_t i = 0; i < distribution->count; i++) {
        double entry = DISTRIBUTION_SCALE * (shift + scale * values[i]);
        distribution->table[i] = (int16_t)lrint(fmin(INT16_MAX, fmax(-INT16_MAX, entry)));
    }
}

int distribution_of_shape(enum jitter_shape shape, struct distribution *distribution, struct err *err)
{
    double values[DISTRIBUTION_COUNT];
    *distribution = (struct distribution){.count = DISTRIBUTION_COUNT};
    distribution->table = calloc(DISTRIBUTION_COUNT, sizeof *distribution->table);
    if (!distribution->table)
        return err_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < DISTRIBUTION_COUNT; i++)
        values[i] = quantiles[shape]((i + 0.5) / DISTRIBUTION_COUNT);
    /* Clipping moves mean and deviation; a few rounds put them back. */
    double shift = 0, scale = 1;
    for (int round = 0; round < 60; round++) {
        double mean, sd;
        quantise(values, shift, scale, distribution);
        distribution_moments(distribution, &mean, &sd);
        scale /= sd;
        shift = (shift - mean) / sd;
    }
    quantise(values, shift, scale, distribution);
    return 0;
}

void distribution_moments(const struct distribution *distribution, double *mean, double *sd)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < distribution->count; i++)
        sum += distribution->table[i];
    double middle = sum / distribution->count;
    for (size_t i = 0; i < distribution->count; i++)
        squares += (distribution->table[i] - middle) * (distribution->table[i] - middle);
    *mean = middle / DISTRIBUTION_SCALE;
    *sd = sqrt(squares / distribution->count) / DISTRIBUTION_SCALE;
}

void distribution_free(struct distribution *distribution)
{
    free(distribution->table);
    *distribution = (struct distribution){0};
}

/* One number at *text; moves *text behind it. */
static int read_number(const char *path, size_t line, const char *start, const char **text, int16_t *number,
                       struct err *err)
{
    char *end;
    size_t column = (size_t)(*text - start) + 1;
    long value = strtol(*text, &end, 10);
    if (end == *text || !strchr(" \t\r\n#", *end))
        return err_set(err, EINVAL, "%s:%zu:%zu: '%.20s' is no whole number; a table holds numbers like -4096 8192",
                       path, line, column, *text);
    if (value < INT16_MIN || value > INT16_MAX)
        return err_set(err, EINVAL, "%s:%zu:%zu: %.20s is outside 16 bits; 8192 is one standard deviation", path, line,
                       column, *text);
    *number = (int16_t)value;
    *text = end;
    return 0;
}

static int read_line(const char *path, size_t line, const char *start, struct distribution *distribution,
                     struct err *err)
{
    for (const char *text = start;;) {
        text += strspn(text, " \t\r\n");
        if (!*text || *text == '#')
            return 0;
        if (distribution->count == DISTRIBUTION_COUNT_MAX)
            return err_set(err, EINVAL, "%s:%zu:%zu: more than %d numbers; the kernel takes no more", path, line,
                           (size_t)(text - start) + 1, DISTRIBUTION_COUNT_MAX);
        int rc = read_number(path, line, start, &text, &distribution->table[distribution->count], err);
        if (rc)
            return rc;
        distribution->count++;
    }
}

int distribution_read(const char *path, struct distribution *distribution, struct err *err)
{
    int rc = 0;
    char *line = NULL;
    size_t size = 0, number = 0;
    FILE *file = fopen(path, "r");
    *distribution = (struct distribution){0};
    if (!file)
        return err_set(err, errno == ENOMEM ? ENOMEM : ENOENT, "%s: %s", path, strerror(errno));
    distribution->table = calloc(DISTRIBUTION_COUNT_MAX, sizeof *distribution->table);
    if (!distribution->table)
        rc = err_set(err, ENOMEM, "out of memory");
    while (!rc) {
        ssize_t length = getline(&line, &size, file);
        if (length < 0)
            break;
        number++;
        rc = length > LINE_MAX_BYTES || strlen(line) != (size_t)length
                 ? err_set(err, EINVAL, "%s:%zu:1: no line of text", path, number)
                 : read_line(path, number, line, distribution, err);
    }
    if (!rc && ferror(file))
        rc = err_set(err, EIO, "%s: reading failed", path);
    if (!rc && distribution->count < 2)
        rc = err_set(err, EINVAL, "%s:%zu:1: %zu numbers; a table needs at least 2", path, number ? number : 1,
                     distribution->count);
    fclose(file);
    free(line);
    if (rc)
        distribution_free(distribution);
    return rc;
}
