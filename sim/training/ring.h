/* Ring collectives (Patarasuk & Yuan, "Bandwidth optimal all-reduce", JPDC 2009; NCCL's ring).
 *
 * N ranks, S bytes, one-way latency a, rate B, one slice per segment:
 *   reduce-scatter, all-gather:  (N-1) (a + S/(N B)),   each rank sends (N-1)/N S
 *   all-reduce:                2 (N-1) (a + S/(N B)),   each rank sends 2 (N-1)/N S
 * k slices per segment let a hop forward the first slice while the next is still arriving; see
 * tests/support/ring_oracle.h.
 */
#ifndef LONGHAUL_RING_H
#define LONGHAUL_RING_H

#include "sim/training/group.h"
#include "sim/training/transport.h"

/* Steps that every rank takes: N-1 or 2(N-1). */
int ring_steps(enum ring_kind kind, int count);

/* The i-th of n nearly equal parts of a span (differing by at most one element of 4 bytes). */
struct span ring_segment(struct span span, int n, int i);

/* The segment that the rank at a position owns after the reduce-scatter, and gives in the all-gather. */
struct span ring_owned(const struct group *group, struct span span);

/* Runs the collective on this stream; returns when this rank's part is complete and its sends have left.
 * slices >= 1 per segment. A group of one returns at once. Returns 0 or -ENOMEM. */
int ring_run(struct stream *stream, const struct group *group, enum ring_kind kind, struct span span, int channel,
             int slices);

/* Bytes that one rank sends to the next over the collective, at most. */
double ring_bytes_per_hop(enum ring_kind kind, int count, double bytes);

#endif
