/* Collectives of a data-parallel group on one lane: rings over several channels, and the hierarchical all-reduce. */
#ifndef LONGHAUL_COLLECTIVE_H
#define LONGHAUL_COLLECTIVE_H

#include "sim/training/group.h"
#include "sim/training/ring.h"
#include "sim/training/transport.h"

/* Channels that a collective may use: `channels` of them from `channel` on; two collectives that may run at once need
 * different lanes. */
struct lane {
    int channel, channels, slices; /* channels >= 1, slices >= 1 */
};

/* A ring collective, its bytes split evenly over the lane's channels, each on a stream of its own. 0 or -ENOMEM. */
int collective_ring(struct stream *stream, const struct group *group, enum ring_kind kind, struct span span,
                    const struct lane *lane);

/* Reduce-scatter inside each site, all-reduce of every shard across the sites, all-gather inside each site.
 * n ranks a site, M sites: (n-1)(a + S/(n B)) + 2(M-1)(aw + S/(n M bw)) + (n-1)(a + S/(n B)) with bw the WAN rate of
 * one of the n pairs; each site sends 2 (M-1)/M S, which is S for two. Every channel goes through the three phases on
 * its own. Needs groups->cross. 0 or -ENOMEM. */
int collective_hierarchical(struct stream *stream, const struct groups *groups, struct span span,
                            const struct lane *lane);

/* Its first two thirds: what a sharded optimiser needs. This rank ends with its shard summed over all sites. */
int collective_hierarchical_reduce(struct stream *stream, const struct groups *groups, struct span span,
                                   const struct lane *lane);

#endif
