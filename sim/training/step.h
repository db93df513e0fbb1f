/* One training step as a program of every rank, written against transport.h: pipeline, gradient and parameter
 * collectives.
 *
 * A step begins just after an optimiser update: sharded parameters are gathered first (overlapped with the first
 * forward where the strategy overlaps), gradients are reduced as their backward ends, and the step is over when every
 * rank has its reduced gradients. Embedding and output layer are spread evenly over the stages, in time and in bytes.
 * The optimiser's own arithmetic is part of the calibrated compute.
 */
#ifndef LONGHAUL_STEP_H
#define LONGHAUL_STEP_H

#include "sim/training/collective.h"
#include "sim/training/group.h"
#include "sim/training/schedule.h"

/* What a backend with real buffers does with their values: it makes them up before a collective and checks them after.
 * Called on the stream that runs the collective; not in the simulator. */
struct step_values {
    /* This rank's gradients of the span exist now. */
    void (*produced)(struct stream *stream, struct span span);
    /* This part of them holds the sum over the ranks of a group. */
    void (*reduced)(struct stream *stream, struct span part, const struct group *over);
    /* Of the parameters in the span this rank has only some parts: first cleared, then owned one by one. */
    void (*cleared)(struct stream *stream, struct span span);
    void (*owned)(struct stream *stream, struct span part);
    /* All of them are here. */
    void (*gathered)(struct stream *stream, struct span span);
};

struct step_plan {
    const struct scenario *scenario;
    const struct strategy *strategy;
    struct placement placement;
    struct schedule_shape shape;
    double forward_s, backward_s;             /* one model chunk, one micro-batch, in the site with the slowest GPU */
    double *site_speed;                       /* [sites]: 1 for the slowest GPU, less for a faster one; owned */
    uint64_t gradient_bytes, parameter_bytes; /* of one stage */
    uint64_t activation_bytes;                /* of one message between stages */
    long units;                               /* pieces that a stage's bytes are reduced in: 1 without overlap */
    bool free_pipeline;                       /* stages do not exchange activations (what-if: no bubble) */
    struct op **ops;                          /* [stages]; owned */
    size_t op_count;                          /* of each stage */
    const struct step_values *values;         /* NULL: bytes are only counted */
    int failure;                              /* negative errno of the first rank that failed */
    struct step_rank **ranks;                 /* [all ranks], made when they start; owned */
};

/* Flop/s per GPU that the kernels reach is efficiency x peak of the compute dtype. Returns 0, -EINVAL (what this
 * strategy cannot do on this scenario), -ENOMEM. The scenario and strategy must outlive the plan. */
int step_plan_init(struct step_plan *plan, const struct scenario *scenario, const struct strategy *strategy,
                   double kernel_efficiency, struct err *err);
void step_plan_free(struct step_plan *plan);

/* The program of a rank; argument is the plan. */
void step_main(struct stream *stream, void *argument);

/* A strategy's channels are 0 to one less. */
int step_channels(const struct scenario *scenario, const struct strategy *strategy);

/* Between two steps of a measurement every rank hears that all have ended and when to begin again: s. The simulator's
 * connections are idle for as long. */
double step_gap_s(const struct scenario *scenario);

/* Seconds that the busiest rank computes in a step. */
double step_compute_s(const struct step_plan *plan);

/* The step with free communication, and if ready_s is not NULL, when each unit of each stage can be reduced at the
 * earliest: [stage * units + unit]. 0 or a negative errno. */
int step_free(const struct step_plan *plan, double *end_s, double *ready_s, struct err *err);

/* Bytes that one site sends to another in a step by the strategy's formula, [from * sites + to], into the caller's
 * arrays of sites x sites: gradients, and parameters. n positions in the ring, M sites, m micro-batches (see
 * traffic.c). 0 or -ENOMEM. */
int step_wan_bytes(const struct step_plan *plan, double *gradient, double *parameter, struct err *err);

/* Whether every replica of a site does the same at the same time, so that one may stand for all; and how many real WAN
 * flows one of its flows then stands for. */
bool step_foldable(const struct step_plan *plan, long *wan_flows);

#endif
