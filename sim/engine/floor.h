/* Lower bounds that no schedule can beat, from the layout alone. */
#ifndef LONGHAUL_FLOOR_H
#define LONGHAUL_FLOOR_H

#include "sim/engine/layout.h"
#include "sim/training/ring.h"

/* One-way latency between two ranks, s. */
double floor_latency(const struct layout *layout, int from, int to);

/* Seconds that the busiest WAN link and direction needs for bytes[from * sites + to], each pair on its path of least
 * RTT. */
double floor_wan_rate(const struct layout *layout, const double *bytes);

/* Seconds that one rank's NICs need for some bytes. */
double floor_nic(const struct layout *layout, double bytes);

/* The latency of the chain of messages that any piece of a ring collective passes through: the least over all places to
 * begin, s. */
double floor_ring_latency(const struct layout *layout, const struct group *group, enum ring_kind kind);

#endif
