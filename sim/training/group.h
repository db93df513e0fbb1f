/* Who talks to whom: the ranks of a run, the sites and nodes they sit in, and the rings they form. */
#ifndef LONGHAUL_GROUP_H
#define LONGHAUL_GROUP_H

#include <stdbool.h>

#include "configs/scenario.h"

/* An ordered set of ranks, seen from one of them. */
struct group {
    int count;
    const int *ranks; /* not owned */
    int position;     /* of this rank in ranks */
};

/* Where ranks sit. rank = stage * replicas + replica; replicas are numbered site by site. */
struct placement {
    long stages;
    long replicas; /* over all sites */
    size_t sites;
    long *site_first; /* sites + 1 entries: first replica of each site; owned */
    /* Replicas of a stage that share a node (g). They form g rails: ring k links the k-th of every node, each over its
     * own NICs, and carries 1/g of the bytes; inside the node NVLink passes them on (NCCL's rings with one channel per
     * NIC). 1 where a rank fills a node, or where replicas do not fill nodes evenly. */
    long rails;
};

/* Fills a placement (placement_free it). Returns 0 or -ENOMEM. */
int placement_init(struct placement *placement, const struct scenario *scenario, struct err *err);
void placement_free(struct placement *placement);

int placement_rank(const struct placement *placement, long stage, long replica);
long placement_stage(const struct placement *placement, int rank);
long placement_replica(const struct placement *placement, int rank);
size_t placement_site(const struct placement *placement, int rank);

/* The rings and cross-site groups of one (stage, replica); all arrays owned, freed by groups_free. */
struct groups {
    struct group all;   /* same stage, same rail, all sites, in the order asked for */
    struct group site;  /* same stage, same rail, same site */
    struct group cross; /* same stage, same place within the site, one of each site */
    int *ranks;         /* storage of the three */
};
/* ORDER_CONTIGUOUS: site by site. ORDER_INTERLEAVED: one of each site in turn, so that every hop crosses.
 * cross is empty (count 0) where sites hold different numbers of replicas. Returns 0 or -ENOMEM. */
int groups_init(struct groups *groups, const struct placement *placement, int rank, enum ring_order order,
                struct err *err);
void groups_free(struct groups *groups);

#endif
