/* From a scenario to a result: which runs to make, and what they say together. */
#ifndef LONGHAUL_ANALYSIS_H
#define LONGHAUL_ANALYSIS_H

#include "sim/report/result.h"

enum analysis_fidelity { ANALYSIS_AUTO, ANALYSIS_MESSAGE, ANALYSIS_BULK, ANALYSIS_FOLDED };

struct analysis_options {
    /* AUTO: folded where symmetry holds, else message level with large rings in bulk. MESSAGE: every message.
     * BULK: every replica, rings in bulk wherever possible. FOLDED: refused where symmetry does not hold. */
    enum analysis_fidelity fidelity;
    int workers;                                                /* processes at once, >= 1 */
    FILE *timeline;                                             /* NULL: none */
    size_t timeline_strategy;                                   /* whose */
    void (*progress)(void *context, size_t done, size_t total); /* may be NULL */
    void *context;
};

/* The scenario at the scale of the lab, its compute calibrated at full scale (configs/scenario.h). 0 or as
 * analysis_run.
 */
int analysis_lab_scale(const struct scenario *scenario, int workers, struct scenario *scaled, struct err *err);

/* Calibrates, runs every strategy, its baseline and its what-ifs, checks the invariants. Fills *result (result_free
 * it); scenario must outlive it. Returns 0; -EINVAL for what the scenario asks and cannot be (one line); -EIO for a
 * broken invariant or run. */
int analysis_run(const struct scenario *scenario, const struct analysis_options *options, struct result *result,
                 struct err *err);

#endif
