/* Shared by the two programs of a rank: pipeline (pipeline.c) and sharded parameters (sharded.c). Internal to
 * sim/training.
 */
#ifndef LONGHAUL_STEP_INTERNAL_H
#define LONGHAUL_STEP_INTERNAL_H

#include "sim/training/step.h"

enum { CHANNEL_FORWARD, CHANNEL_BACKWARD, CHANNEL_COLLECTIVES };

struct step_rank {
    struct step_plan *plan;
    struct groups groups;
    long stage;
    double speed; /* factor on compute times: below 1 where this site's GPUs are faster */
    struct job *gathers, *reduces;
};

/* One unit's collective on a stream of its own. */
struct job {
    struct step_rank *rank;
    long number; /* counts jobs of a kind; number % depth picks the lane */
    long unit;
    bool cross; /* reduce across sites too */
    struct stream *stream;
};

/* This rank's share (of its rail) of a unit of the stage's bytes. */
struct span step_unit_span(const struct step_rank *rank, enum region region, long unit, long units);
/* Lane of the k-th collective that may run at once; gathers and reduces have different ones. */
struct lane step_lane(const struct step_rank *rank, bool gather, long number);

/* Gathers a unit's parameters, or reduces its gradients, as the strategy says; blocks. */
void step_gather(struct stream *stream, struct step_rank *rank, struct span span, const struct lane *lane);
void step_reduce(struct stream *stream, struct step_rank *rank, struct span span, const struct lane *lane, bool cross);
void step_failed(struct step_plan *plan, int rc);

/* Programs. */
void pipeline_main(struct stream *stream, struct step_rank *rank);
void sharded_main(struct stream *stream, struct step_rank *rank);

#endif
