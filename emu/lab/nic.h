/* A host's NIC: its rate in both directions, and the fabric's latency towards hosts of its own site. What crosses the
 * WAN has the link's RTT from host to host; the fabric adds nothing to it. */
#ifndef LONGHAUL_LAB_NIC_H
#define LONGHAUL_LAB_NIC_H

#include "emu/lab/batch.h"
#include "emu/lab/topology.h"

/* On the host's device: all it sends leaves at the NIC's rate, flow by flow. */
void nic_host(struct batch *batch, int ifindex, const struct topology *topology);
/* On the router's device towards the host: what it receives comes at the NIC's rate, and what stays in the site waits
 * for the fabric. */
void nic_gateway(struct batch *batch, int ifindex, const struct topology *topology, size_t site);
/* A netem that does little, to see whether a kernel has it. */
void nic_probe(struct batch *batch, int ifindex);

#endif
