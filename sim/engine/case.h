/* One strategy on one machine: its plan and the runs made of it. Internal to sim/engine. */
#ifndef LONGHAUL_CASE_H
#define LONGHAUL_CASE_H

#include "sim/engine/analysis.h"
#include "sim/engine/engine.h"
#include "sim/training/step.h"

/* The same GPUs in one site, all like the slowest, with the NICs of the fullest nodes. The copy borrows everything from
 * the scenario. */
struct one_site {
    struct scenario scenario;
    struct site site;
};
void one_site_init(struct one_site *one, const struct scenario *scenario);
/* Makes it hold exactly this many GPUs: where nodes do not divide them the nodes become smaller, and their NICs with
 * them, so that a GPU keeps its share. */
void one_site_resize(struct one_site *one, long gpus);

enum case_run { CASE_MAIN, CASE_FULL, CASE_COMPUTE, CASE_BUBBLE, CASE_FABRIC, CASE_RUNS };

struct run_case {
    struct step_plan plan;
    struct step_plan no_bubble; /* the plan without activations; borrows from plan */
    bool folds;
    long wan_flows;
    struct engine_job jobs[CASE_RUNS];
    bool made[CASE_RUNS];
};

/* Builds the plan of a strategy. bench must stay where it is until case_free. */
int case_init(struct run_case *run, const struct scenario *scenario, const struct strategy *strategy,
              double kernel_efficiency, struct err *err);
void case_free(struct run_case *run);

/* Makes one of its runs ready: MAIN (folded where possible, with the WAN what-ifs if probe), FULL (every replica at the
 * fidelity asked for), or a what-if. */
int case_make(struct run_case *run, enum case_run which, enum analysis_fidelity fidelity, bool probe, struct err *err);

/* The run that gives a case its step: FULL where made, else MAIN. */
const struct engine_job *case_step(const struct run_case *run);

/* Checks of every run: bytes sent = received = formula. 0 or -EIO with the explanation. */
int case_check(const struct run_case *run, struct err *err);

/* What no schedule of the strategy can beat, s, and which resource that is. 0 or a negative errno. */
int case_floor(const struct run_case *run, double *floor_s, enum bound *bound, struct err *err);

#endif
