/* Quantities as people write them: a number, a space or none, a unit; case-exact ("21.3 ms", "100 Gb/s", "2 PB", "0.02
 * $/GB").
 *
 * Factors such as 1e9 or 8 live in units.c and nowhere else. A bare number is an error, except 0 (all dimensions), inf
 * (the dimensions that say so) and ratios. Decimal prefixes are powers of 1000 (GB = 1e9), binary ones of 1024 (GiB =
 * 2^30). b is bit, B is byte. Numbers are decimal: digits, one point, an exponent ("1.5e3"); no sign.
 */
#ifndef LONGHAUL_UNITS_H
#define LONGHAUL_UNITS_H

#include <stddef.h>

#include "configs/err.h"

enum dimension {
    DIM_TIME,           /* s: ns us ms s min h d */
    DIM_BYTES,          /* byte: B kB MB GB TB PB, KiB MiB GiB TiB PiB; "inf" allowed */
    DIM_RATE,           /* bit/s: b/s kb/s Mb/s Gb/s Tb/s, and B/s kB/s MB/s GB/s TB/s; "inf" allowed */
    DIM_BYTE_RATE,      /* byte/s: the same spellings as DIM_RATE; "inf" allowed */
    DIM_RATIO,          /* 1: "51 %", or a plain number from 0 to 1 */
    DIM_FLOPS,          /* flop/s: GF TF PF (also GF/s TF/s PF/s) */
    DIM_POWER,          /* W: W kW MW */
    DIM_PRICE_PER_BYTE, /* $/byte: $/GB $/TB */
    DIM_COUNT
};

/* Parses text into SI. Rejects negative, NaN, overflow, trailing text, unknown and wrong-case units (naming the unit
 * meant). Returns 0 or -EINVAL; the message says what is wrong and shows a valid spelling, without file:line:column. */
int units_parse(const char *text, enum dimension dimension, double *value, struct err *err);

/* Writes value (>= 0) with the unit that gives 1 <= number < 1000 and at most `digits` (1 to 17) significant digits, no
 * trailing zeros ("21.3 ms", "5 us"). digits 0: as few as parse back to exactly the same value. Returns buffer. */
char *units_format(double value, enum dimension dimension, int digits, char *buffer, size_t size);

#endif
