/* What this process's TCP connections to other sites have carried, as the kernel counts it (tcp(7), TCP_INFO). */
#ifndef LONGHAUL_MPI_SOCKETS_H
#define LONGHAUL_MPI_SOCKETS_H

#include "configs/scenario.h"

struct sockets {
    int connections;    /* to other sites */
    double sent_bytes;  /* payload, retransmissions included */
    double wire_bytes;  /* the same with headers: (MTU + 14) / MSS of each connection */
    double retransmits; /* segments */
};

/* All of this process's at this moment. to_site: [sites], payload bytes sent to each; own: this process's site. Needs
 * the scenario's emu.sites. */
void sockets_count(const struct scenario *scenario, size_t own, struct sockets *sockets, double *to_site);

#endif
