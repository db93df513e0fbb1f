/* The traffic control of one device as it stands: qdiscs, classes, filters as the kernel dumps them, to be put back
 * exactly.
 *
 * What the driver chose by itself (handle 0) needs no entry: it comes back when the root is deleted. */
#ifndef LONGHAUL_SNAPSHOT_H
#define LONGHAUL_SNAPSHOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/host/netlink.h"

enum entry_kind { ENTRY_QDISC, ENTRY_CLASS, ENTRY_FILTER };

struct entry {
    enum entry_kind kind;
    uint32_t handle, parent, info; /* of struct tcmsg */
    char name[16];                 /* TCA_KIND */
    size_t size;
    uint8_t *attributes; /* owned: those of the dump that are settings, in the form in which they can be set again */
};
struct snapshot {
    unsigned parts; /* which of enum snapshot_part were read; nothing else is compared or restored */
    size_t count;
    struct entry *entries; /* owned; qdiscs, then classes, then filters, in the kernel's order */
};

enum snapshot_part {
    SNAPSHOT_EGRESS = 1,  /* the tree at the root */
    SNAPSHOT_INGRESS = 2, /* the ingress or clsact qdisc and its filters */
};

/* The named parts of a device's traffic control. */
int snapshot_take(struct netlink *netlink, int ifindex, unsigned parts, struct snapshot *snapshot, struct err *err);
void snapshot_free(struct snapshot *snapshot);
/* Equal as settings: order within a kind and counters left out. where (may be NULL): the first difference, for people.
 */
bool snapshot_equal(const struct snapshot *a, const struct snapshot *b, char *where, size_t size);

/* The root's kind and handle; NULL where the driver's own (handle 0) stands. Same for ingress. */
const struct entry *snapshot_root(const struct snapshot *snapshot);
const struct entry *snapshot_ingress(const struct snapshot *snapshot);
/* Can every qdisc here be put back exactly? (Not netem: no kernel dumps its jitter table. Not kinds that were never
 * tried.) -ENOTSUP names the first that cannot. */
int snapshot_restorable(const struct snapshot *snapshot, struct err *err);

/* Makes the parts of the device that the snapshot holds as they were: replaces what stands, reads it again and
 * compares. -EIO with the difference where it is not the same. Where it is the same already, nothing is sent. */
int snapshot_restore(struct netlink *netlink, int ifindex, const struct snapshot *snapshot, struct err *err);

json_t *snapshot_to_json(const struct snapshot *snapshot); /* NULL out of memory */
int snapshot_from_json(const json_t *json, struct snapshot *snapshot, struct err *err);

#endif
