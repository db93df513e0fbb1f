#include "configs/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/suggest.h"

/* One unit is factor x 10^exponent of the SI unit. Decimal powers are joined to the number's text before it is read, so
 * that "21.3 ms" is the double nearest to 0.0213 and what units_format writes reads back exactly. */
struct unit {
    const char *name;
    int exponent;
    double factor;
    int written; /* units_format may choose it; those come first, in rising order */
};

#define WRITTEN(name, exponent)                                                                                        \
    {                                                                                                                  \
        name, exponent, 1, 1                                                                                           \
    }
#define READ(name, exponent, factor)                                                                                   \
    {                                                                                                                  \
        name, exponent, factor, 0                                                                                      \
    }

static const struct unit time_units[] = {
    WRITTEN("ns", -9),  WRITTEN("us", -6),  WRITTEN("ms", -3),   WRITTEN("s", 0),
    READ("min", 0, 60), READ("h", 0, 3600), READ("d", 0, 86400),
};
static const struct unit byte_units[] = {
    WRITTEN("B", 0),        WRITTEN("kB", 3),       WRITTEN("MB", 6),       WRITTEN("GB", 9),
    WRITTEN("TB", 12),      WRITTEN("PB", 15),      READ("KiB", 0, 0x1p10), READ("MiB", 0, 0x1p20),
    READ("GiB", 0, 0x1p30), READ("TiB", 0, 0x1p40), READ("PiB", 0, 0x1p50),
};
static const struct unit rate_units[] = {
    WRITTEN("b/s", 0), WRITTEN("kb/s", 3), WRITTEN("Mb/s", 6), WRITTEN("Gb/s", 9), WRITTEN("Tb/s", 12),
    READ("B/s", 0, 8), READ("kB/s", 3, 8), READ("MB/s", 6, 8), READ("GB/s", 9, 8), READ("TB/s", 12, 8),
};
static const struct unit byte_rate_units[] = {
    WRITTEN("B/s", 0),      WRITTEN("kB/s", 3),      WRITTEN("MB/s", 6),     WRITTEN("GB/s", 9),
    WRITTEN("TB/s", 12),    READ("b/s", 0, 0.125),   READ("kb/s", 3, 0.125), READ("Mb/s", 6, 0.125),
    READ("Gb/s", 9, 0.125), READ("Tb/s", 12, 0.125),
};
static const struct unit ratio_units[] = {WRITTEN("%", -2)};
static const struct unit flops_units[] = {
    WRITTEN("GF", 9),   WRITTEN("TF", 12),   WRITTEN("PF", 15),
    READ("GF/s", 9, 1), READ("TF/s", 12, 1), READ("PF/s", 15, 1),
};
static const struct unit power_units[] = {WRITTEN("W", 0), WRITTEN("kW", 3), WRITTEN("MW", 6)};
static const struct unit price_units[] = {WRITTEN("$/GB", -9), READ("$/TB", -12, 1)};

struct scale {
    const char *what;
    const char *zero_unit;  /* how 0 is written */
    const char *usual_unit; /* for the example, beside the number the user gave */
    const char *example;
    const struct unit *units;
    size_t count;
    int endless; /* "inf" is a value */
};

#define UNITS(list) .units = (list), .count = sizeof(list) / sizeof(list)[0]

static const struct scale scales[DIM_COUNT] = {
    [DIM_TIME] = {"a time", "s", "ms", "21.3 ms", UNITS(time_units)},
    [DIM_BYTES] = {"a size", "B", "MB", "64 MB", UNITS(byte_units), .endless = 1},
    [DIM_RATE] = {"a rate", "b/s", "Gb/s", "100 Gb/s", UNITS(rate_units), .endless = 1},
    [DIM_BYTE_RATE] = {"a rate", "B/s", "GB/s", "450 GB/s", UNITS(byte_rate_units), .endless = 1},
    [DIM_RATIO] = {"a ratio", "%", "%", "51 %", UNITS(ratio_units)},
    [DIM_FLOPS] = {"a compute rate", "GF", "TF", "989 TF", UNITS(flops_units)},
    [DIM_POWER] = {"a power", "W", "W", "700 W", UNITS(power_units)},
    [DIM_PRICE_PER_BYTE] = {"a price per byte", "$/GB", "$/GB", "0.02 $/GB", UNITS(price_units)},
};

enum { NUMBER_MAX = 64, SHOWN = 40, EXPONENT_MAX = 9999 };

/* The parts of "1.5e3 GB": mantissa text, exponent, and where the unit starts. */
struct reading {
    char mantissa[NUMBER_MAX];
    long exponent;
    const char *unit;
};

static const char *skip_spaces(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

static const char *skip_digits(const char *text)
{
    while (isdigit((unsigned char)*text))
        text++;
    return text;
}

/* 0 where text starts with a number, else -1. */
static int read_number(const char *text, struct reading *reading)
{
    const char *whole = skip_digits(text);
    const char *end = whole;
    if (*whole == '.')
        end = skip_digits(whole + 1);
    if (whole == text && end <= whole + 1)
        return -1;
    size_t length = (size_t)(end - text);
    if (length >= sizeof reading->mantissa)
        return -1;
    memcpy(reading->mantissa, text, length);
    reading->mantissa[length] = '\0';
    reading->exponent = 0;
    if (*end == 'e' || *end == 'E') {
        const char *digits = end + 1 + (end[1] == '+' || end[1] == '-');
        if (isdigit((unsigned char)*digits)) {
            reading->exponent = strtol(end + 1, NULL, 10);
            end = skip_digits(digits);
        }
    }
    reading->unit = skip_spaces(end);
    return 0;
}

static const struct unit *find_unit(const struct scale *scale, const char *name)
{
    for (size_t i = 0; i < scale->count; i++)
        if (!strcmp(scale->units[i].name, name))
            return &scale->units[i];
    return NULL;
}

static int is_zero(const char *mantissa)
{
    return mantissa[strspn(mantissa, "0.")] == '\0';
}

static int finish(const char *text, const struct reading *reading, const struct unit *unit, double *value,
                  struct err *err)
{
    char number[NUMBER_MAX + 16];
    long exponent = reading->exponent;
    if (labs(exponent) > EXPONENT_MAX)
        exponent = exponent > 0 ? EXPONENT_MAX : -EXPONENT_MAX;
    snprintf(number, sizeof number, "%se%ld", reading->mantissa, exponent + unit->exponent);
    double result = strtod(number, NULL) * unit->factor;
    if (!isfinite(result))
        return err_set(err, EINVAL, "'%.*s' is too large", SHOWN, text);
    if (result < 0x1p-1022 && !is_zero(reading->mantissa))
        return err_set(err, EINVAL, "'%.*s' is too small; write 0", SHOWN, text);
    *value = result;
    return 0;
}

static int wrong_unit(const char *text, const struct scale *scale, const char *unit, struct err *err)
{
    char phrase[64], list[160];
    suggest_phrase(unit, scale->units, scale->count, sizeof scale->units[0], phrase, sizeof phrase);
    suggest_list(scale->units, scale->count, sizeof scale->units[0], list, sizeof list);
    return err_set(err, EINVAL, "'%.*s': '%.*s' is no unit for %s%s; units (upper and lower case differ): %s", SHOWN,
                   text, SHOWN, unit, scale->what, phrase, list);
}

static int no_unit(const char *text, const struct scale *scale, const struct reading *reading, double *value,
                   struct err *err)
{
    static const struct unit plain = {"", 0, 1, 0};
    if (is_zero(reading->mantissa)) {
        *value = 0;
        return 0;
    }
    if (scale->units == ratio_units) {
        double ratio = 0;
        int rc = finish(text, reading, &plain, &ratio, err);
        if (rc)
            return rc;
        if (ratio > 1)
            return err_set(err, EINVAL, "'%.*s' has no unit and is above 1; a ratio is written like '%s' or '0.51'",
                           SHOWN, text, scale->example);
        *value = ratio;
        return 0;
    }
    return err_set(err, EINVAL, "'%.*s' has no unit; %s is written like '%.*s %s'", SHOWN, text, scale->what, SHOWN,
                   text, scale->usual_unit);
}

int units_parse(const char *text, enum dimension dimension, double *value, struct err *err)
{
    const struct scale *scale = &scales[dimension];
    char trimmed[NUMBER_MAX * 2];
    text = skip_spaces(text);
    size_t length = strlen(text);
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    if (length >= sizeof trimmed)
        return err_set(err, EINVAL, "'%.*s...' is too long; %s is written like '%s'", SHOWN, text, scale->what,
                       scale->example);
    memcpy(trimmed, text, length);
    trimmed[length] = '\0';
    if (scale->endless && !strcmp(trimmed, "inf")) {
        *value = INFINITY;
        return 0;
    }
    if (trimmed[0] == '-')
        return err_set(err, EINVAL, "'%.*s' is negative; %s is 0 or more, like '%s'", SHOWN, trimmed, scale->what,
                       scale->example);
    struct reading reading;
    if (read_number(trimmed, &reading))
        return err_set(err, EINVAL, "'%.*s' is not %s; write it like '%s'", SHOWN, trimmed, scale->what,
                       scale->example);
    if (!*reading.unit)
        return no_unit(trimmed, scale, &reading, value, err);
    const struct unit *unit = find_unit(scale, reading.unit);
    if (!unit)
        return wrong_unit(trimmed, scale, reading.unit, err);
    return finish(trimmed, &reading, unit, value, err);
}

/* The largest written unit not above 10^exponent, else the smallest. */
static const struct unit *fitting_unit(const struct scale *scale, long exponent)
{
    const struct unit *best = &scale->units[0];
    for (size_t i = 0; i < scale->count && scale->units[i].written; i++)
        if (scale->units[i].exponent <= exponent)
            best = &scale->units[i];
    return best;
}

/* "d.ddd" with its point moved right by `shift` places, trailing zeros dropped. */
static void shifted(const char *digits, long shift, char *out, size_t size)
{
    size_t count = strlen(digits);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    if (shift < -3 || shift > 17) {
        snprintf(out, size, "%c%s%.*se%ld", digits[0], count > 1 ? "." : "", (int)count - 1, digits + 1, shift);
        return;
    }
    size_t used = 0;
    if (shift < 0)
        used = (size_t)snprintf(out, size, "0.%.*s", (int)-shift - 1, "000");
    for (size_t i = 0; (i < count || (long)i <= shift) && used + 2 < size; i++) {
        if (shift >= 0 && (long)i == shift + 1)
            out[used++] = '.';
        out[used++] = i < count ? digits[i] : '0';
    }
    out[used] = '\0';
}

static void format_digits(double value, const struct scale *scale, int digits, char *buffer, size_t size)
{
    char scientific[48], plain[24], number[48];
    snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
    size_t used = 0;
    const char *at = scientific;
    for (; *at && *at != 'e' && used + 1 < sizeof plain; at++)
        if (isdigit((unsigned char)*at))
            plain[used++] = *at;
    plain[used] = '\0';
    long exponent = *at == 'e' ? strtol(at + 1, NULL, 10) : 0;
    const struct unit *unit = fitting_unit(scale, exponent);
    shifted(plain, exponent - unit->exponent, number, sizeof number);
    snprintf(buffer, size, "%s %s", number, unit->name);
}

char *units_format(double value, enum dimension dimension, int digits, char *buffer, size_t size)
{
    const struct scale *scale = &scales[dimension];
    if (isinf(value) || isnan(value))
        snprintf(buffer, size, isinf(value) ? "inf" : "nan");
    else if (value <= 0)
        snprintf(buffer, size, "0 %s", scale->zero_unit);
    else if (digits > 0)
        format_digits(value, scale, digits > 17 ? 17 : digits, buffer, size);
    else
        for (int tried = 1; tried <= 17; tried++) {
            double back;
            format_digits(value, scale, tried, buffer, size);
            if (!units_parse(buffer, dimension, &back, NULL) && back >= value && back <= value)
                break;
        }
    return buffer;
}
