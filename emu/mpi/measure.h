/* Steps of one strategy on real ranks, measured. Internal to emu/mpi. */
#ifndef LONGHAUL_MPI_MEASURE_H
#define LONGHAUL_MPI_MEASURE_H

#include <stdio.h>

#include "emu/mpi/process.h"
#include "sim/report/result.h"

struct measure_options {
    int steps;         /* >= 1 measured; one more comes first: it opens the connections, and its values are checked */
    bool check_all;    /* check values in every step: where computing costs no time */
    bool open_windows; /* one more step last, with TCP's restart after idle off (needs to be root of the network) */
    bool progress;     /* rank 0 says which step begins, on standard error */
    FILE *timeline;    /* of the last measured step; rank 0's; NULL: none */
};

/* Collective; fills *result on rank 0. Returns the same on all ranks: 0; -EINVAL for what the strategy cannot be here;
 * -EIO where values or bytes are not what they should be; -ENOMEM. */
int measure(struct process *process, const struct strategy *strategy, const struct measure_options *options,
            struct strategy_result *result, struct err *err);

#endif
