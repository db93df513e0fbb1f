/* The simulated machine: which ranks are simulated, on which host each sits, which WAN links join two sites. */
#ifndef LONGHAUL_LAYOUT_H
#define LONGHAUL_LAYOUT_H

#include "configs/route.h"
#include "sim/training/group.h"

struct layout {
    const struct scenario *scenario; /* not owned */
    struct placement placement;
    bool folded; /* one replica per site stands for the `fold` identical ones there */
    long fold;   /* 1 where every replica is simulated */
    /* Real flows that one simulated WAN flow stands for: shared WAN rates are divided by it. Equals fold where every
     * replica crosses (hierarchical, interleaved), the number of rails where only the last of a site does (contiguous
     * ring). */
    long wan_flows;
    /* Folded, two sites, and no NIC in their routes: the sites are each other's mirror image. Only the first is
     * simulated; what it sends to the second it also receives from there, and the WAN's other direction carries the
     * same. */
    bool mirrored;
    int count;             /* simulated ranks */
    double payload_share;  /* of what a wire carries: 1, or less with TCP's headers */
    double nic_byte_per_s; /* payload of one rank, one direction: nics_per_node x nic_rate x tensor / gpus_per_node,
                              slowest site */
    double hop_latency_s; /* one way between two ranks of a site: fabric, plus NVLink inside the node where rails > 1 */
    /* Flows between sites leave the ranks' NICs out where one of them gets at most 1/16 of a NIC when all that the
     * strategy sends at once share the WAN evenly: the links of a site then do not depend on the WAN's, and SimGrid
     * need not solve all of them at every event. What such flows take of a NIC is missing there. */
    bool wan_skips_nic;
    struct routes routes;
};

/* wan_flows (>= 1): flows that the ranks of one stage and site send across the WAN at once.
 * fold: simulate one replica per site, or of two (the caller has checked that replicas and sites are identical).
 * Returns 0 or a negative errno. */
int layout_init(struct layout *layout, const struct scenario *scenario, bool fold, long wan_flows, struct err *err);
void layout_free(struct layout *layout);

/* Index of the simulated rank that stands for a rank, and back. */
int layout_index(const struct layout *layout, int rank);
int layout_rank(const struct layout *layout, int index);

/* "ord-17": site name and place within the site. buffer of at least LAYOUT_HOST_MAX. */
enum { LAYOUT_HOST_MAX = 96 };
const char *layout_host(const struct layout *layout, int rank, char *buffer);

#endif
