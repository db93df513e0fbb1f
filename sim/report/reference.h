/* References of a scenario beside what was predicted; what the table and the JSON both show. */
#ifndef LONGHAUL_REFERENCE_H
#define LONGHAUL_REFERENCE_H

#include "sim/report/result.h"

struct comparison {
    const struct reference *reference;
    enum flops_convention convention; /* for mfu: the one predicted under; UNSTATED for other metrics */
    double predicted;                 /* NAN where the metric is not known or the strategy has no result */
    double error;                     /* predicted / reference - 1 */
};

/* How many comparisons a reference gives: 2 for an MFU whose convention is not stated, else 1. */
size_t reference_readings(const struct reference *reference);

/* Comparison number `reading` (0 .. reference_readings - 1) of a reference. */
struct comparison reference_compare(const struct result *result, const struct reference *reference, size_t reading);

/* "gqa", "mha", "unstated". */
const char *convention_name(enum flops_convention convention);

#endif
