/* Requested beside measured, line by line. */
#ifndef LONGHAUL_VERIFY_JUDGE_H
#define LONGHAUL_VERIFY_JUDGE_H

#include <jansson.h>
#include <stdio.h>

#include "emu/verify/expect.h"

enum { JUDGE_CHECKS_MAX = 32 };

enum check_unit { CHECK_TIME, CHECK_RATIO, CHECK_RATE, CHECK_PACKETS, CHECK_UNIT_COUNT };

/* One line. All figures in s, 1, bit/s or packets. */
struct check {
    const char *what;   /* "RTT mean", "loss out" ... literal */
    const char *remark; /* why it is not judged, or what the figures mean; literal or NULL */
    enum check_unit unit;
    double requested; /* NAN: nothing was requested, shown only */
    double measured;
    bool of_sample; /* low to high is the confidence interval of measured; else what is tolerated of it */
    double low, high;
    bool judged, good;
};

struct judgement {
    size_t count;
    struct check checks[JUDGE_CHECKS_MAX];
};

/* Adds lines for a path that shall do this in each direction. relative: factor of the relative tolerances, > 0; 1:
 * RTT mean 1 % + 0.1 ms, sd 10 % (0.05 ms where that is more), goodput 5 %, length of bursts 10 %. Each is widened to 5
 * deviations of the sampling error where that is more. Ratios: requested inside the 99 % interval of the sample.
 * interval_s: between probes. */
void judge_path(const struct measured *measured, const struct expected expected[2], double interval_s, double relative,
                struct judgement *judgement);
/* Adds lines for a path that shall be left alone: half of its RTTs at most rtt_s, no loss. */
void judge_bystander(const struct measured *measured, double rtt_s, struct judgement *judgement);
/* Is nothing out of tolerance? */
bool judgement_good(const struct judgement *judgement);

/* A table for people. */
void judgement_print(FILE *out, const struct judgement *judgement, bool colour);
json_t *judgement_json(const struct judgement *judgement); /* a list; NULL out of memory */
json_t *measured_json(const struct measured *measured);    /* in SI units; NULL out of memory */

#endif
