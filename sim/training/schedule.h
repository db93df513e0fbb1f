/* The order in which a pipeline stage works: 1F1B and its interleaved form (arXiv 2104.04473, section 2.2), as a list of operations. */
#ifndef LONGHAUL_SCHEDULE_H
#define LONGHAUL_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include "configs/err.h"

struct schedule_shape {
    long stages;        /* p >= 1 */
    long chunks;        /* v >= 1 model chunks per stage; v > 1 needs micro_batches to be a multiple of stages when stages > 1 */
    long micro_batches; /* m >= 1 */
};

struct op {
    bool backward;
    bool last_of_chunk; /* backward of the last micro-batch of this chunk on this stage: its gradients are ready */
    int chunk;          /* 0 .. v-1; virtual stage = chunk * p + stage */
    int micro_batch;    /* 0 .. m-1 */
};

/* Operations of one stage in order: 2 * m * v of them. Caller frees *ops with free(). Returns 0, -EINVAL, -ENOMEM. */
int schedule_build(const struct schedule_shape *shape, long stage, struct op **ops, size_t *count, struct err *err);

/* Virtual stage (chunk, stage) that an op takes its input from / gives its output to, as a stage index and chunk.
 * Returns false where there is none (the first forward, the last forward's output, ...). */
bool schedule_source(const struct schedule_shape *shape, long stage, const struct op *op, long *from_stage, int *from_chunk);
bool schedule_target(const struct schedule_shape *shape, long stage, const struct op *op, long *to_stage, int *to_chunk);

/* The step with free communication: plain dependency graph, an op starts when its stage is idle and its input is done.
 * forward_s, backward_s: one chunk, one micro-batch. hop_s: added between stages (0 here; CrossPipe's rows use it).
 * ready_s, if not NULL, receives stages * chunks times at [stage * chunks + chunk] when gradients of that chunk are ready.
 * Returns the end of the last op, or a negative value when out of memory. */
double schedule_evaluate(const struct schedule_shape *shape, double forward_s, double backward_s, double hop_s,
                         double *ready_s);

#endif
