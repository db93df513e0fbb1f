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
    uint8_t *attributes; /* owned: all attributes of the dump, statistics left out */
};
struct snapshot {
    size_t count;
    struct entry *entries; /* owned; qdiscs, then classes, then filters, in the kernel's order */
};

/* Egress tree of the device, and its ingress or clsact qdisc with filters. */
int snapshot_take(struct netlink *netlink, int ifindex, struct snapshot *snapshot, struct err *err);
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

/* Makes the device as in the snapshot: deletes the root (and ingress) that stands, puts back what stood, reads it again
 * and compares. -EIO with the difference where it is not the same. */
int snapshot_restore(struct netlink *netlink, int ifindex, const struct snapshot *snapshot, struct err *err);

json_t *snapshot_to_json(const struct snapshot *snapshot); /* NULL out of memory */
int snapshot_from_json(const json_t *json, struct snapshot *snapshot, struct err *err);

#endif
