/* From a wish (which prefixes get which impairment on which device) to netlink messages, and to the tc commands that
 * say the same. Pure: nothing is sent and nothing is read here.
 *
 * The tree, for a device D (or the ifb device that D's ingress is redirected to):
 *   root      htb, handle PLAN_HANDLE, default 0: what no filter matches leaves unshaped and unqueued by us
 *   class k   one per path, htb class PLAN_HANDLE:k with a rate far above every link (it only sorts)
 *   leaf k    netem, handle PLAN_HANDLE + k
 *   filters   u32 on the destination (egress) or source (ingress) prefix: IPv4 and IPv6 have priorities of their own,
 *             the longest prefix is tried first
 *
 * Filters are tried one after the other, also for packets that none matches: 5 to 10 ns each (measured on a virtual
 * machine), so that 1000 prefixes cost every packet of the device 5 to 10 us of processor time.
 */
#ifndef LONGHAUL_PLAN_H
#define LONGHAUL_PLAN_H

#include <netlink/msg.h>
#include <stdbool.h>
#include <stdio.h>

#include "configs/prefix.h"
#include "emu/shape/impairment.h"

/* Reserved majors of this project's qdiscs: root and leaves 1..PLAN_PATHS_MAX ("10a0:" and on). */
#define PLAN_HANDLE 0x10a0u
enum { PLAN_PATHS_MAX = 64, PLAN_PRIO_IPV4 = 41760, PLAN_PRIO_IPV6 = 41761 };
#define PLAN_IFB_PREFIX "lhifb" /* the ifb of interface index 7 is "lhifb7" */

enum plan_at { PLAN_EGRESS, PLAN_INGRESS };

struct path {
    char *name; /* owned: "west -> east", or the prefix */
    size_t prefix_count;
    struct prefix *prefixes; /* owned; no two paths hold the same prefix */
    struct impairment impairment;
};

/* Everything that apply needs to know of one device. */
struct wish {
    char device[16]; /* IFNAMSIZ */
    enum plan_at at;
    bool gso_off; /* switch segmentation offload off while applied, so that loss hits single packets */
    size_t path_count;
    struct path *paths; /* owned */
};
void wish_free(struct wish *wish);
bool wish_equal(const struct wish *a, const struct wish *b);

struct step {
    struct nl_msg *message; /* owned; complete but for sequence number and port */
    char *tc;               /* owned: the same as a tc or ip command, without newline */
    const char *what;       /* literal: "root qdisc", "class", "netem", "filter", "ifb device", ... */
};
struct plan {
    size_t count;
    struct step *steps; /* in the order to send; owned */
};

/* ifindex: of the device; ifb_ifindex: of the existing ifb device for PLAN_INGRESS (the host layer creates it first),
 * else 0. The steps assume that the device's root (egress) or ingress qdisc is free. 0, -EINVAL, -ENOMEM. */
int plan_build(const struct wish *wish, int ifindex, int ifb_ifindex, struct plan *plan, struct err *err);
void plan_free(struct plan *plan);

#endif
