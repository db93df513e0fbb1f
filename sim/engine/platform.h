/* A scenario as a SimGrid platform file (version 4.1).
 *
 * One host per rank (a tensor-parallel group), with an up and a down link for its NICs; one zone per site; WAN links
 * are SPLITDUPLEX, so the two directions do not share. The waves of a link are one SimGrid link of their total rate: a
 * hash over hundreds of flows fills waves evenly. What the connections of one pair of ranks can carry, connections x
 * min(wave rate, window / RTT), is held by the transport, which paces messages; for other programs it is a FATPIPE link
 * in each inter-site route (SimGrid's cost of one is quadratic in its flows).
 */
#ifndef LONGHAUL_PLATFORM_H
#define LONGHAUL_PLATFORM_H

#include <stdio.h>

#include "sim/engine/layout.h"

/* What a what-if run idealises. */
struct ideal {
    bool compute;             /* takes no time */
    bool bubble;              /* stages do not wait for each other's activations */
    bool fabric;              /* no latency, no limit inside sites */
    bool wan_rate;            /* no limit of the link or of a wave */
    bool wan_latency;         /* 0; what a window lets through stays as it is */
    bool window;              /* no limit */
    bool slow_start;          /* of TCP: every window is open */
    double extra_wan_delay_s; /* >= 0, one way, on every path between sites */
};

/* Rate in byte/s that stands for "no limit" (SimGrid has no infinity here): 10^18. */
double platform_unlimited(void);

/* Rate of a WAN link, one direction, as simulated, and the cap of one pair's connections across a path; byte/s. */
double platform_wan_rate(const struct layout *layout, const struct ideal *ideal, long link);
double platform_pair_cap(const struct layout *layout, const struct ideal *ideal, size_t from, size_t to);
/* Names of SimGrid objects; buffer of at least LAYOUT_HOST_MAX * 2. */
const char *platform_wan_name(const struct scenario *scenario, long link, char *buffer);

/* Writes the XML. latencies: put them into the links (for other SimGrid programs, smpirun among them); the transport of
 * this folder asks for none and adds them itself, because SimGrid shares a link by latency. Returns 0 or -EIO. */
int platform_write(const struct layout *layout, const struct ideal *ideal, bool latencies, FILE *out, struct err *err);

#endif
