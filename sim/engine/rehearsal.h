/* What TCP connections are like when a step begins depends on the step before: so that one runs first, in a process of
 * its own, and leaves them here. Internal to sim/engine. */
#ifndef LONGHAUL_REHEARSAL_H
#define LONGHAUL_REHEARSAL_H

#include <stdio.h>

#include "sim/engine/sim.h"

struct rehearsal {
    size_t count;
    struct pair_tcp *pairs; /* sorted by from and to; owned */
};

/* Writes the run's connections; its step ended at step_s. */
void rehearsal_write(const struct sim *sim, double step_s, FILE *out);
/* Reads them as they are when the next step begins. 0 or a negative errno. */
int rehearsal_read(struct rehearsal *rehearsal, const struct scenario *scenario, FILE *in);
void rehearsal_free(struct rehearsal *rehearsal);

/* False where there was none between these ranks, or no rehearsal at all (NULL). */
bool rehearsal_find(const struct rehearsal *rehearsal, int from, int to, struct tcp *tcp);

#endif
