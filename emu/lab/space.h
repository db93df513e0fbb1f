/* Named network namespaces, as iproute2 keeps them. */
#ifndef LONGHAUL_LAB_SPACE_H
#define LONGHAUL_LAB_SPACE_H

#include <stdbool.h>

#include "configs/err.h"

/* /run/netns, as `ip netns add` would make it. */
int space_folder(struct err *err);
/* Makes a namespace with lo up and the settings of a host (long fat pipes, no duplicate address detection) or a router
 * (forwarding), and leaves this process in it. *fd: the namespace, owned by the caller. */
int space_new(const char *prefix, const char *name, bool router, int *fd, struct err *err);
/* True when it was there. */
bool space_remove(const char *prefix, const char *name);

#endif
