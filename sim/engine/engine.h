/* Runs programs of ranks on SimGrid. SimGrid's engine is global, so every run is a process of its own, forked from this
 * one. */
#ifndef LONGHAUL_ENGINE_H
#define LONGHAUL_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/engine/layout.h"
#include "sim/engine/platform.h"
#include "sim/training/transport.h"

/* Messages of one collective above which it is simulated in bulk. */
enum { ENGINE_BULK_ABOVE = 100000 };

struct engine_wan {
    double bytes, utilisation, peak_utilisation; /* of one link and direction */
};

/* What a run leaves; lives in memory shared with the process of the run. */
struct engine_outcome {
    bool finished;     /* every rank reached its end */
    int failure;       /* negative errno of the first failure inside, or 0 */
    char text[128];    /* what failed; "": a rank's program */
    int unfinished;    /* streams that did not end */
    double step_s;     /* when the last rank ended */
    uint64_t messages; /* sent */
    uint64_t arrived;
    double sent_bytes, received_bytes;
    bool used_bulk;
};

/* What-ifs of the WAN, all from one run that is split where the first byte enters the WAN. */
enum engine_probe { PROBE_BASE, PROBE_WAN_RATE, PROBE_WAN_LATENCY, PROBE_WINDOW, PROBE_SLOW_START, PROBE_COUNT };

struct engine_job {
    const struct scenario *scenario;
    bool fold;
    long wan_flows;    /* >= 1; see layout_init */
    double bulk_above; /* ENGINE_BULK_ABOVE, INFINITY: never, 0: wherever possible */
    struct ideal ideal;
    stream_function *main; /* of every simulated rank */
    void *argument;
    const int *failure; /* negative errno that the program leaves when it fails; NULL: it cannot */
    double cost;        /* of the run beside others, in any unit; for whoever orders jobs */
    bool repeats;       /* the same ran before: TCP's connections are as that left them, else fresh */
    bool probe_wan;     /* also fill outcomes[PROBE_WAN_*] and slack_s */
    FILE *timeline;     /* where the base run writes its timeline; NULL: none */

    /* Results; set up by engine_job_init, released by engine_job_free. */
    struct engine_outcome *outcomes; /* [PROBE_COUNT]; without probe_wan only the first is filled */
    struct engine_wan *wan;          /* [2 * link + direction], of the base run */
    double *slack_s;                 /* with probe_wan; INFINITY where nothing crosses the WAN */
    size_t shared_bytes;
};

/* Allocates the shared results. Returns 0 or -ENOMEM. */
int engine_job_init(struct engine_job *job, struct err *err);
void engine_job_free(struct engine_job *job);

/* Memory that a run's process and its children write into and this process reads; engine_unshare it. NULL when out of
 * memory. */
void *engine_share(size_t bytes);
void engine_unshare(void *memory, size_t bytes);

/* Runs the jobs, `workers` at a time. step(context) is called as each ends; NULL is fine.
 * Returns 0, or a negative errno with a message when a process could not be made, ended by a signal, or a rank did not
 * finish. */
int engine_run(struct engine_job *const *jobs, size_t count, int workers, void (*step)(void *context), void *context,
               struct err *err);

/* CPUs that may be used at once. */
int engine_workers(void);

#endif
