/* What a run keeps for its report: bytes and occupancy of the WAN links, and the timeline. Internal to sim/engine. */
#ifndef LONGHAUL_RECORD_H
#define LONGHAUL_RECORD_H

#include "sim/engine/sim.h"

/* A message has left the sender. */
void record_message(struct sim *sim, const struct message *message);
/* A stream exists; it has waited for a message since start_s; it has computed since start_s. */
void record_stream(struct stream *stream);
void record_wait(const struct stream *stream, const struct message *message, double start_s);
void record_compute(const struct stream *stream, double start_s);

/* The load of WAN link i / 2 in direction i % 2; where only one direction is simulated, the other has the same. */
const struct wan_load *record_load(const struct sim *sim, size_t i);

/* Mean utilisation (0..1) of a WAN link and direction over [0, step_s], and over its busiest 1/1000. */
void record_utilisation(const struct wan_load *load, double rate_byte_per_s, double step_s, double *mean, double *peak);

/* Writes the load of every WAN link and direction into the timeline, as counters over 1000 equal slices of the step;
 * a message counts evenly over its time on the wire, never above the rate of the link. */
int record_wan_tracks(struct sim *sim, double step_s);

#endif
