/* longhaul-lab run --strategies: longhaul-rank on all hosts of the lab, and its result. */
#ifndef LONGHAUL_LAB_STRATEGIES_H
#define LONGHAUL_LAB_STRATEGIES_H

#include "emu/lab/prepare.h"

struct strategies {
    const char *json, *timeline, *strategy, *steps; /* of the command line; NULL: not given */
    int output[2];                                  /* files in memory that take what the ranks print */
    time_t start;
    bool shown; /* progress was */
    char *words[24];
};

/* What the calibration of a scenario gives, as the simulator finds it; 0 where it has none. Runs longhaul-sim. */
int strategies_efficiency(const struct request *request, double *efficiency, struct err *err);
/* Fills output and words, the command. -ENOTSUP: mpirun or longhaul-rank is not here. */
int strategies_open(struct strategies *strategies, bool progress, struct err *err);
void strategies_close(struct strategies *strategies);

/* What the ranks of a scenario at lab scale need at most: bytes. */
int strategies_memory(const struct scenario *scenario, double *bytes, struct err *err);

/* On a terminal after two seconds: which step is measured. argument: struct strategies. */
void strategies_tick(void *argument);

/* Prints what the ranks found, or says in err why they did not: code is mpirun's. */
int strategies_report(struct strategies *strategies, const struct scenario *scenario, int code, struct err *err);

#endif
