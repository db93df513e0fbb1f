/* Talking rtnetlink with this machine's kernel, in the network namespace of the caller. */
#ifndef LONGHAUL_NETLINK_H
#define LONGHAUL_NETLINK_H

#include <netlink/msg.h>
#include <stddef.h>

#include "configs/err.h"

struct netlink; /* a route socket with NETLINK_EXT_ACK and NETLINK_CAP_ACK on, large buffers */

/* NULL with a message on failure. */
struct netlink *netlink_open(struct err *err);
void netlink_close(struct netlink *netlink); /* NULL is fine */

/* Sends count messages in batches and waits for the answer to each (their sequence numbers and NLM_F_ACK are set here).
 * Stops at the first that the kernel refuses: its place is in *failed (count when none; may be NULL), the message in
 * err is the kernel's own text after what was asked for ("setting qdisc netem (10a1:): ..."). Those behind it in the
 * same batch may have been carried out. -EPERM says that root or CAP_NET_ADMIN is needed; -ENOTSUP: the kernel has no
 * such qdisc or device kind (the message names the module to load). 0 or a negative errno. */
int netlink_send(struct netlink *netlink, struct nl_msg *const *messages, size_t count, size_t *failed,
                 struct err *err);

/* A non-zero return of take ends the walk and is returned. */
typedef int netlink_take(const struct nlmsghdr *answer, void *context, struct err *err);
/* Sends one dump request (NLM_F_DUMP is added) and hands every answer to take. A dump that the kernel marks as
 * interrupted is asked for again before take sees anything of it. */
int netlink_dump(struct netlink *netlink, struct nl_msg *request, netlink_take *take, void *context, struct err *err);
/* Sends one request that is no dump and hands its answer to take. */
int netlink_ask(struct netlink *netlink, struct nl_msg *request, netlink_take *take, void *context, struct err *err);

#endif
