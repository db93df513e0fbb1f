/* A prediction and a measurement of the same scenario side by side. No process is started here (compare_run.h). */
#ifndef LONGHAUL_COMPARE_H
#define LONGHAUL_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/report/result.h"

/* What a step is made of, for either backend. */
enum part_of_step {
    PART_COMPUTE,    /* compute_s */
    PART_SLOW_START, /* slow_start_s */
    PART_BANDWIDTH,  /* wan_busy_s */
    PART_WAIT,       /* the step less those three; negative where communication hides behind computation */
    PART_COUNT
};
const char *part_name(enum part_of_step part); /* "compute", "slow start", "bandwidth", "wait" */

/* Fills the parts, s; NAN where the strategy is NULL or the figure not known. */
void compare_split(const struct strategy_result *strategy, double part_s[PART_COUNT]);

/* One key and the values it takes (--vary). */
struct vary {
    const char *key;
    size_t count;
    char **values; /* owned, each too */
};

/* "KEY=V1,V2,...", split at commas outside of brackets and quotes. -EINVAL with one line, -ENOMEM. */
int vary_parse(const char *text, struct vary *vary, struct err *err);
void vary_free(struct vary *vary);

/* A strategy at a point. Pointers into the point's results, NULL where one has none of that strategy. */
struct compare_row {
    const struct strategy_result *predicted, *measured, *full;
    double error; /* predicted / measured - 1; NAN: not known */
    double predicted_part_s[PART_COUNT], measured_part_s[PART_COUNT];
    enum part_of_step arises; /* whose difference is the largest; PART_COUNT: not known or below 0.1 % */
};

/* One scenario: the user's with the values of this point. Its results point into it: it must not move. */
struct compare_point {
    size_t set_count; /* as many as keys vary */
    char **sets;      /* KEY=VALUE; owned, each too */
    struct scenario full, lab;
    struct result predicted, measured; /* of lab */
    bool scaled;                       /* lab differs from full, and full_predicted is of full; else it is empty */
    struct result full_predicted;
    size_t row_count;
    struct compare_row *rows; /* owned */
};

struct compare {
    size_t vary_count;
    const struct vary *varies; /* borrowed */
    size_t point_count;
    struct compare_point *points; /* owned */
};

/* Makes the points, the cross product of the varied keys, the first key slowest, and loads the scenario of each, so
 * that what is wrong with any is known before one is run. sets: those of all points. Errors as scenario_load. */
int compare_points(struct compare *compare, const char *scenario, const char *const *sets, size_t set_count,
                   struct err *err);
void compare_free(struct compare *compare);

/* Fills the point's rows from its results: strategies in the scenario's order, all of them, or those named. 0 or
 * -ENOMEM. */
int compare_rows(struct compare_point *point, const char *const *names, size_t name_count, struct err *err);

/* Over all rows whose error is known. */
struct compare_summary {
    size_t count;
    double median_error; /* of the magnitudes; NAN where count is 0 */
    double worst_error;  /* the one of the largest magnitude, with its sign; NAN where count is 0 */
    size_t worst_point;
    const struct compare_row *worst_row; /* NULL where count is 0 */
};
/* -ENOMEM. */
int compare_summarise(const struct compare *compare, struct compare_summary *summary, struct err *err);

/* JSON, schema longhaul.compare/1 (README.md beside this file). Caller owns; NULL when out of memory. */
json_t *compare_to_json(const struct compare *compare, const struct compare_summary *summary);

/* The tables and the words. width 0: 100 columns. */
void compare_print(const struct compare *compare, const struct compare_summary *summary, FILE *out, bool colour,
                   int width);

#endif
