/* The two backends, run as programs. */
#ifndef LONGHAUL_COMPARE_RUN_H
#define LONGHAUL_COMPARE_RUN_H

#include "sim/report/compare.h"

struct compare_request {
    const char *scenario;
    size_t set_count;
    const char *const *sets; /* KEY=VALUE of all points */
    const char *steps;       /* to measure; NULL: the lab's own number */
    double timeout_s;        /* of one run of a backend; INFINITY: none */
};

/* Fills the results and the lab's scenario of every point. *signal: the one that interrupted it, with -EINTR. Errors,
 * one line that names the point and the backend: -EINVAL where it refused the scenario, -ENOTSUP where it is not
 * available here, -EINTR, others where it failed or its answer is no result of the scenario. */
int compare_run(struct compare *compare, const struct compare_request *request, int *signal, struct err *err);

#endif
