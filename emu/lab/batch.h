/* rtnetlink messages that make hosts and routers, collected and then sent in one go. */
#ifndef LONGHAUL_LAB_BATCH_H
#define LONGHAUL_LAB_BATCH_H

#include <netlink/msg.h>
#include <stdbool.h>
#include <stdint.h>

#include "configs/prefix.h"
#include "emu/host/netlink.h"

struct batch {
    size_t count, room;
    struct nl_msg **messages; /* owned */
    bool short_of_memory;     /* told by batch_send */
};

/* One end of a cable. */
struct end {
    const char *device;
    uint8_t mac[6];
    struct prefix ipv4, ipv6; /* own addresses, full length */
};
enum { CABLE_LENGTH4 = 30, CABLE_LENGTH6 = 64 };

/* Takes the message; NULL counts as out of memory. */
void batch_add(struct batch *batch, struct nl_msg *message);
/* A message that makes something new, with its fixed header. NULL out of memory. */
struct nl_msg *batch_message(int type, int flags, const void *header, size_t size);
/* Adds a message whose attributes went in without trouble; whole is false otherwise. */
void batch_add_whole(struct batch *batch, struct nl_msg *message, bool whole);
/* Sends all in the namespace of netlink and empties the batch, whatever comes of it. */
int batch_send(struct batch *batch, struct netlink *netlink, struct err *err);

/* A veth pair: one end here, the other in the namespace peer_space (a file descriptor). */
void batch_cable(struct batch *batch, const struct end *here, const struct end *there, int peer_space);
/* Device up. */
void batch_up(struct batch *batch, int ifindex);
/* Up, with addresses, and its neighbour known for ever: no ARP or neighbour discovery delays a first packet. */
void batch_port(struct batch *batch, int ifindex, const struct end *own, const struct end *neighbour);
/* Route to a prefix (length 0: default) by a gateway on a device. */
void batch_route(struct batch *batch, int ifindex, const struct prefix *to, const struct prefix *gateway);

#endif
