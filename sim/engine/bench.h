/* One collective over all ranks of a scenario, alone on the network: what nccl-tests measures. */
#ifndef LONGHAUL_BENCH_H
#define LONGHAUL_BENCH_H

#include "sim/engine/engine.h"
#include "sim/training/collective.h"

enum bench_op { BENCH_ALL_REDUCE, BENCH_REDUCE_SCATTER, BENCH_ALL_GATHER, BENCH_SEND_RECEIVE, BENCH_OP_COUNT };

struct bench {
    struct scenario scenario; /* a shallow copy with every tensor-parallel group in one data-parallel group */
    enum bench_op op;
    enum allreduce algorithm; /* hierarchical: all-reduce only */
    enum ring_order order;
    uint64_t bytes;
    double skew_s; /* ranks start at seeded moments in [0, skew_s) */
    struct placement placement;
    struct groups *groups; /* [ranks]; owned */
    int ranks;
    double *done_s; /* [ranks], shared with the run; NAN for ranks that a fold left out */
    int failure;
    struct engine_job job;
};

/* Prepares a run. fold: one rank per site where that is exact (no skew; else ignored). Returns 0, -EINVAL, -ENOMEM.
 * bench must stay where it is until bench_free. */
int bench_init(struct bench *bench, const struct scenario *scenario, enum bench_op op, enum allreduce algorithm,
               enum ring_order order, uint64_t bytes, double skew_s, struct err *err);
void bench_free(struct bench *bench);

/* What no schedule of the algorithm can beat: latency chain, NIC, WAN; s. */
double bench_floor(const struct bench *bench);
/* Bytes that one site sends to another by formula, [from * sites + to]. */
void bench_wan_bytes(const struct bench *bench, double *bytes);
/* Bus bandwidth / algorithm bandwidth (nccl-tests doc/PERFORMANCE.md): 2(N-1)/N, (N-1)/N, 1. */
double bench_bus_factor(const struct bench *bench);

#endif
