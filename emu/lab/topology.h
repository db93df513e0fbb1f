/* A scenario's network as hosts, routers and links, with addresses: what the lab builds out of namespaces. Pure.
 *
 *   host WEST-0 ... --- router "west-router" === WAN === "east-router" --- EAST-0 ...
 *
 * Site s (0..), host h: 10.(s+1).h'.x/30 and fd10:0:s+1:h::/64; site prefix 10.(s+1).0.0/16, fd10:0:s+1::/48. WAN link
 * w: 10.255.w.0/30 and fd10:0:0:w::/64. A host's network number h' is h + 1; .1 is the router, .2 the host.
 * Names are those of the sites; every host has one NIC, a veth "eth0"; a router has "wan-PEER" per link and a device
 * named after every host. Figures are already divided by the scenario's lab scale: rates, not times. */
#ifndef LONGHAUL_TOPOLOGY_H
#define LONGHAUL_TOPOLOGY_H

#include <stddef.h>

#include "configs/scenario.h"

struct lab_host {
    char name[72]; /* "west-0" */
    size_t site;
    struct prefix ipv4, ipv6, gateway4, gateway6; /* full length */
};
struct lab_wan {
    size_t link;        /* index into the scenario's wan */
    char device[2][16]; /* name at either end's router */
    struct prefix ipv4[2], ipv6[2];
};
struct topology {
    const struct scenario *scenario; /* borrowed; its lab scale applies */
    size_t host_count, wan_count;
    struct lab_host *hosts;
    struct lab_wan *wans;
    double nic_bit_per_s;    /* of a host: nics_per_node x nic_rate / divide; INFINITY allowed */
    double fabric_latency_s; /* one way between two hosts of a site */
};

int topology_build(const struct scenario *scenario, struct topology *topology, struct err *err);
void topology_free(struct topology *topology);
/* The next site on the way from one site to another, by the smallest RTT; ties: fewest links, then lowest index. */
size_t topology_next(const struct topology *topology, size_t from, size_t to);
/* The link that is taken for it: index into the scenario's wan. */
size_t topology_next_link(const struct topology *topology, size_t from, size_t to);
/* "west-router". Returns name. */
char *topology_router(const struct scenario *scenario, size_t site, char *name, size_t size);
const struct lab_host *topology_host(const struct topology *topology, const char *name); /* NULL: none */
struct prefix topology_site_prefix(size_t site, int family);

/* A scenario file (YAML) for the programs inside: rates divided, `emu:` set to the prefixes above. Caller frees. */
char *topology_scenario(const struct topology *topology, struct err *err);

#endif
