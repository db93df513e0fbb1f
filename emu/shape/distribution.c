#include "emu/shape/distribution.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
enum { FILE_BYTES_MAX = 1 << 20 }; /* 16384 numbers of at most 6 characters fit many times over */

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

/* A quarter of a normal and three quarters of a Pareto that is scaled by 4/3 (iproute2 netem/paretonormal.c, pareto.c).
 */
static double paretonormal_quantile(double share)
{
    return 0.25 * normal_quantile(share) + 0.75 * (4.0 / 3) * pareto_quantile(share);
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

/* Where in a table's text one is. */
struct place {
    const char *name;
    size_t line;
    const char *start; /* of the line */
};

static int fail_at(const struct place *place, const char *text, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fail_at(const struct place *place, const char *text, struct err *err, const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return err_set(err, EINVAL, "%s:%zu:%zu: %s", place->name, place->line, (size_t)(text - place->start) + 1, why);
}

/* One number at *text; moves *text behind it. */
static int parse_number(const struct place *place, const char **text, int16_t *number, struct err *err)
{
    enum { SHOWN = 20 };
    char *end;
    size_t length = strcspn(*text, BLANKS "#");
    int shown = length < SHOWN ? (int)length : SHOWN;
    long value = strtol(*text, &end, 10);
    if (end != *text + length)
        return fail_at(place, *text, err, "'%.*s' is no whole number; a table holds numbers like -4096 8192", shown,
                       *text);
    if (value < INT16_MIN || value > INT16_MAX)
        return fail_at(place, *text, err, "%.*s is outside 16 bits; 8192 is one standard deviation", shown, *text);
    *number = (int16_t)value;
    *text = end;
    return 0;
}

/* Moves *text past blanks, ends of lines and comments. */
static void skip_blanks(struct place *place, const char **text)
{
    for (;; ++*text) {
        if (**text == '#')
            *text += strcspn(*text, "\n");
        if (!**text || !strchr(BLANKS, **text))
            return;
        if (**text == '\n') {
            place->line++;
            place->start = *text + 1;
        }
    }
}

static int parse_numbers(struct place *place, const char *text, struct distribution *distribution, struct err *err)
{
    for (skip_blanks(place, &text); *text; skip_blanks(place, &text)) {
        if (distribution->count == DISTRIBUTION_COUNT_MAX)
            return fail_at(place, text, err, "more than %d numbers; the kernel takes no more", DISTRIBUTION_COUNT_MAX);
        int rc = parse_number(place, &text, &distribution->table[distribution->count], err);
        if (rc)
            return rc;
        distribution->count++;
    }
    if (distribution->count < 2)
        return fail_at(place, text, err, "%zu numbers; a table needs at least 2", distribution->count);
    return 0;
}

int distribution_parse(const char *name, const char *text, struct distribution *distribution, struct err *err)
{
    struct place place = {name, 1, text};
    *distribution = (struct distribution){.table = calloc(DISTRIBUTION_COUNT_MAX, sizeof *distribution->table)};
    int rc =
        distribution->table ? parse_numbers(&place, text, distribution, err) : err_set(err, ENOMEM, "out of memory");
    if (rc)
        distribution_free(distribution);
    return rc;
}

/* The whole file, ended by a 0; the caller frees it. A device without end is not read to its end. */
static int read_text(const char *path, FILE *file, char **text, struct err *err)
{
    *text = malloc(FILE_BYTES_MAX + 1);
    if (!*text)
        return err_set(err, ENOMEM, "out of memory");
    errno = 0;
    size_t length = fread(*text, 1, FILE_BYTES_MAX + 1, file);
    if (ferror(file))
        return err_set(err, EINVAL, "%s: %s", path, strerror(errno));
    if (length > FILE_BYTES_MAX || memchr(*text, '\0', length))
        return err_set(err, EINVAL, "%s is no table; one is a text of at most %d numbers like -4096 8192", path,
                       DISTRIBUTION_COUNT_MAX);
    (*text)[length] = '\0';
    return 0;
}

int distribution_read(const char *path, struct distribution *distribution, struct err *err)
{
    char *text = NULL;
    FILE *file = fopen(path, "re");
    *distribution = (struct distribution){0};
    if (!file)
        return err_set(err, errno == ENOMEM ? ENOMEM : ENOENT, "%s: %s", path, strerror(errno));
    int rc = read_text(path, file, &text, err);
    rc = rc ? rc : distribution_parse(path, text, distribution, err);
    free(text);
    fclose(file);
    return rc;
}
