/* Network devices of this machine. */
#ifndef LONGHAUL_DEVICE_H
#define LONGHAUL_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "configs/prefix.h"
#include "emu/host/netlink.h"

struct device {
    int ifindex;
    char name[16];
    uint32_t mtu; /* byte */
};

/* -ENOENT: no such device (the message lists those that exist). */
int device_find(struct netlink *netlink, const char *name, struct device *device, struct err *err);
/* The device by which the kernel would send to an address of this prefix (RTM_GETROUTE). -ENOENT: no route. */
int device_towards(struct netlink *netlink, const struct prefix *prefix, struct device *device, struct err *err);
/* This machine's own addresses (full-length prefixes), loopback left out. Caller frees *addresses. */
int device_addresses(struct netlink *netlink, struct prefix **addresses, size_t *count, struct err *err);
/* Names of RDMA devices whose traffic never meets a qdisc (/sys/class/infiniband), separated by spaces; "" for none.
 * Those of this network device first. */
void device_rdma(const char *name, char *buffer, size_t size);
/* Creates the ifb device that this device's ingress is redirected to (PLAN_IFB_PREFIX and ifindex), up; finds it where
 * it exists. And removes it (absent is fine). */
int device_ifb_open(struct netlink *netlink, const struct device *device, int *ifb_ifindex, struct err *err);
/* -ENOENT: there is none. */
int device_ifb_find(struct netlink *netlink, const struct device *device, int *ifb_ifindex, struct err *err);
int device_ifb_close(struct netlink *netlink, const struct device *device, struct err *err);

/* Segmentation offloads that make one packet of many: GSO and TSO, by ETHTOOL ioctls. */
struct offloads {
    bool known; /* the driver answers */
    bool gso, tso;
};
int device_offloads(const char *name, struct offloads *offloads, struct err *err);
int device_set_offloads(const char *name, const struct offloads *offloads, struct err *err);

#endif
