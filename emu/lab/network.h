/* A topology as network namespaces of the running kernel: /run/netns/PREFIXwest-0, so that `ip netns exec` finds them.
 */
#ifndef LONGHAUL_LAB_NETWORK_H
#define LONGHAUL_LAB_NETWORK_H

#include <stdbool.h>
#include <stdio.h>

#include "emu/lab/topology.h"

#define NETWORK_FOLDER "/run/netns"

/* Largest TCP buffers of hosts: 4.8 times what is in flight at 10 Gb/s and 21.3 ms. */
enum { NETWORK_TCP_BUFFER_BYTES = 128 << 20 };

/* Can this process do it here? -EPERM: needs root; -ENOTSUP: the kernel lacks namespaces or netem (named). */
int network_probe(struct err *err);
/* Hosts, routers, addresses, routes, NICs with rate and fabric latency. All or nothing. prefix: "" or "longhaul-".
 * -EEXIST: one of the namespaces is there already; -EPERM: needs root. */
int network_build(const struct topology *topology, const char *prefix, struct err *err);
/* Shapes the WAN's links: runs `shaper apply SCENARIO ...` at both ends of each. */
int network_shape(const struct topology *topology, const char *prefix, const char *shaper, const char *scenario_path,
                  struct err *err);
/* Takes all of it away, whatever part is there; count: namespaces that were. */
int network_remove(const struct topology *topology, const char *prefix, const char *shaper, size_t *count,
                   struct err *err);

/* Moves this process into the namespace of a host or router. */
int network_enter(const char *prefix, const char *name, struct err *err);
/* Lines for /etc/hosts: every host by its addresses. */
void network_print_hosts(const struct topology *topology, FILE *out);

#endif
