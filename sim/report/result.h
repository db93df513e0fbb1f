/* A result of either backend: one struct, one JSON schema ("longhaul.result/1"), one table. No SimGrid, no MPI.
 *
 * Words as in README: baseline = same strategy on the same GPUs in one site; efficiency = baseline step / step;
 * exposed = step - step with free communication; slack = largest extra one-way WAN delay that leaves the step
 * unchanged; bound by = the resource whose idealisation shortens the step most; floor = what no schedule of the
 * strategy can beat.
 */
#ifndef LONGHAUL_RESULT_H
#define LONGHAUL_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "configs/scenario.h"
#include "sim/training/model.h"

enum bound { BOUND_COMPUTE, BOUND_BUBBLE, BOUND_WAN_RATE, BOUND_WAN_LATENCY, BOUND_WINDOW, BOUND_FABRIC, BOUND_COUNT };
/* "compute", "bubble", "WAN rate", "WAN latency", "window", "fabric"; BOUND_COUNT: "unknown". */
const char *bound_name(enum bound bound);

enum fidelity { FIDELITY_MESSAGE, FIDELITY_BULK, FIDELITY_FOLDED, FIDELITY_MEASURED };
const char *fidelity_name(enum fidelity fidelity); /* "message", "bulk", "folded", "measured" */

struct wan_result {
    size_t from, to;               /* site indices; one entry per link and direction */
    double bytes;                  /* per step */
    double utilisation;            /* mean over the step, 0..1 */
    double peak_utilisation;       /* mean over the busiest 1/1000 of the step, 0..1 */
    double rate_per_gpu_bit_per_s; /* bytes * 8 / step / GPUs of the sending site */
};

/* Of real ranks; steps 0 where the step was simulated. */
struct measured {
    int steps; /* measured; step_s is their median */
    double least_s, most_s;
    double retransmits; /* TCP segments sent again across the WAN, a step on average; NAN: not known */
    double
        wan_wire_bytes;   /* that TCP sent across the WAN a step, all sites, retransmissions included; NAN: not known */
    double checked_bytes; /* of gradients and parameters whose values were checked */
};

struct step_result {
    double step_s;
    double tokens_per_s;
    double mfu[2]; /* [FLOPS_GQA], [FLOPS_MHA] */
    enum fidelity fidelity;
    uint64_t messages;
};

/* Fills it from what was simulated or measured: tokens/s and MFU of the scenario's batch and GPUs. */
void step_result_fill(struct step_result *result, const struct scenario *scenario, double step_s,
                      enum fidelity fidelity, uint64_t messages);

/* Where a figure is not known to the backend it is NAN, a bound BOUND_COUNT: measurements have no what-ifs. */
struct strategy_result {
    size_t strategy; /* index into scenario->strategies */
    struct step_result step;
    struct step_result baseline;
    double efficiency;     /* baseline step / step */
    double free_step_s;    /* step with free communication */
    double bubble_s;       /* free step - compute */
    double compute_s;      /* what the busiest rank computes */
    double exposed_comm_s; /* >= 0 */
    double slack_s;        /* >= 0, one way; INFINITY when nothing crosses the WAN */
    double floor_s;
    enum bound floor_bound; /* which term of the floor is the largest */
    enum bound bound_by;
    double gain_s[BOUND_COUNT]; /* step - step with that resource ideal, >= 0 */
    double slow_start_s;        /* step - step on connections whose windows are open when it begins and stay so, >= 0 */
    double wan_busy_s;          /* what the busiest WAN link and direction needs for its bytes, headers included */
    struct measured measured;
    size_t wan_count;
    struct wan_result *wan; /* owned */
    struct memory memory;
};

/* How the compute time was found. */
struct calibration_result {
    bool calibrated;                  /* false: kernel_efficiency was used */
    enum flops_convention convention; /* under which the measured MFU was read; UNSTATED when a step time was given */
    double measured_step_s;           /* that the calibration reproduces */
    double forward_s;                 /* one layer, one micro-batch, one tensor-parallel group */
    double kernel_efficiency;         /* share of peak that the compute alone reaches (GQA-aware flops) */
    int runs;
};

struct result {
    const struct scenario *scenario; /* not owned */
    const char *backend;             /* "sim" or "emu" */
    struct calibration_result calibration;
    size_t strategy_count;
    struct strategy_result *strategies; /* owned */
    size_t note_count;
    char **notes; /* owned, each too; one sentence per approximation the backend made; printed under the table */
    /* Where the calibration's source does not state its flops convention: the same scenario read the other way, for the
     * strategies that a measured or published figure exists for. NULL otherwise. Owned. */
    struct result *other_reading;
};

void result_free(struct result *result); /* frees what it owns, not the struct; NULL is fine */

/* The strategy with the shortest step among those that fit in memory (ties: the first); NULL when none fits. Points
 * into result. */
const struct strategy_result *result_best(const struct result *result);

/* Was any of it measured on real ranks? */
bool result_measured(const struct result *result);

/* JSON, schema longhaul.result/1 (README.md beside this file); byte-identical for the same result. Figures that are not
 * finite become null. Caller owns; NULL when out of memory. */
json_t *result_to_json(const struct result *result);

/* A strategy's entry in it. */
json_t *result_strategy_to_json(const struct result *result, const struct strategy_result *strategy);

/* The inverse of result_to_json: fills *result (result_free it) from the JSON of a run of `scenario`, which must
 * outlive it; result_to_json then gives the same document again. What the JSON derives from the rest or from the
 * scenario is not read; memory.stage and memory.shards, which it lacks, are 0; null is NAN, but INFINITY for the slack
 * of a simulated step, and a bound that is null BOUND_COUNT. -EINVAL with one line that tells apart: no
 * longhaul.result, another version of the schema or of longhaul, a result of another scenario (by hash), a key that is
 * missing or of the wrong type; -ENOMEM. *result is then empty. */
int result_from_json(const json_t *json, const struct scenario *scenario, struct result *result, struct err *err);

/* Writes result_to_json's document with 17 significant digits and a newline at the end. 0, -ENOMEM or -EIO. */
int result_dump_json(const struct result *result, FILE *out, struct err *err);

/* The table, the references, the sentence. colour: ANSI colours (only for terminals). width: columns of the terminal, 0
 * for 100. One line per row where that fits (about 150 columns), two below. */
void result_print(const struct result *result, FILE *out, bool colour, int width);

#endif
