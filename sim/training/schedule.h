/* The order in which a pipeline stage works: 1F1B and its interleaved form (arXiv 2104.04473, section 2.2; Megatron-LM
 * core/pipeline_parallel/schedules.py), as a list of operations. */
#ifndef LONGHAUL_SCHEDULE_H
#define LONGHAUL_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "configs/err.h"

enum { SCHEDULE_OPS_MAX = 1 << 28 }; /* of all stages together: 2 p v m */

struct schedule_shape {
    long stages; /* p >= 1 */
    long chunks; /* v >= 1 model chunks per stage; v > 1 needs micro_batches to be a multiple of stages when stages > 1
                  */
    long micro_batches; /* m >= 1 */
};

struct op {
    bool backward;
    bool last_of_chunk; /* backward of the last micro-batch of this chunk on this stage: its gradients are ready */
    int chunk;          /* 0 .. v-1; virtual stage = chunk * p + stage */
    int micro_batch;    /* 0 .. m-1 */
};

/* 0, or -EINVAL with a message when a shape is out of the ranges above. */
int schedule_check(const struct schedule_shape *shape, struct err *err);

/* Forwards a stage runs before its first backward-after-forward pair; this plus one (at most m v) is how many chunks'
 * activations it holds at once. Shape checked, 0 <= stage < p. */
long schedule_warm_up(const struct schedule_shape *shape, long stage);

/* Operations of one stage in order: 2 * m * v of them. Caller frees *ops with free(). Returns 0, -EINVAL, -ENOMEM. */
int schedule_build(const struct schedule_shape *shape, long stage, struct op **ops, size_t *count, struct err *err);

/* Virtual stage (chunk, stage) that an op takes its input from / gives its output to, as a stage index and chunk.
 * Returns false where there is none (the first forward, the last forward's output, ...). With one stage the other end
 * is the same stage: nothing to send. */
bool schedule_source(const struct schedule_shape *shape, long stage, const struct op *op, long *from_stage,
                     int *from_chunk);
bool schedule_target(const struct schedule_shape *shape, long stage, const struct op *op, long *to_stage,
                     int *to_chunk);

/* What one message between neighbouring stages costs. Each direction is a link of its own. */
struct schedule_hop {
    double latency_s;   /* >= 0; passes after the message has left, messages overlap in it */
    double occupancy_s; /* >= 0; bytes / rate: messages of one direction leave one after the other; the GPU works on */
};

struct schedule_cost {
    double forward_s, backward_s; /* >= 0: one chunk, one micro-batch */
    const struct schedule_hop
        *hops; /* NULL: communication is free; else p of them: [i] joins stages i and (i+1) mod p */
};

/* When a plain dependency graph ends: an op starts when its stage is idle and its input has arrived.
 * Cost linear in the ops.
 * end_s receives the end of the last op. ready_s, if not NULL, receives p * v times at [stage * v + chunk] when the
 * gradients of that chunk are ready. Returns 0, -EINVAL, -ENOMEM. */
int schedule_evaluate(const struct schedule_shape *shape, const struct schedule_cost *cost, double *end_s,
                      double *ready_s, struct err *err);

#endif
