/* What the kernel says is set and counted on a device of ours. */
#ifndef LONGHAUL_READBACK_H
#define LONGHAUL_READBACK_H

#include "emu/host/netlink.h"
#include "emu/shape/plan.h"

struct path_state {
    bool present; /* its netem stands */
    struct impairment impairment;
    uint64_t sent_bytes, sent_packets, dropped_packets, overlimits, backlog_bytes, backlog_packets;
};

/* States of the wish's paths, in its order, as found on the device that holds the tree (the device, or its ifb).
 * impairment starts as asked, because no kernel dumps the jitter table; free each with impairment_free. -ENOMEM,
 * -ENODEV and so on. */
int readback_paths(struct netlink *netlink, int ifindex, const struct wish *wish, struct path_state *states,
                   struct err *err);
/* Are the filters of all the wish's prefixes there? -EIO says how many are. */
int readback_filters(struct netlink *netlink, int ifindex, const struct wish *wish, struct err *err);
/* Is it set as asked, in the kernel's own resolution? difference (may be NULL): the first that is not, for people. */
bool readback_same(const struct impairment *asked, const struct path_state *state, char *difference, size_t size);

#endif
