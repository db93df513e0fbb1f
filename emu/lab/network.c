#include "emu/lab/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/host/device.h"
#include "emu/lab/batch.h"
#include "emu/lab/nic.h"
#include "emu/lab/space.h"

struct network {
    const struct topology *topology;
    const char *prefix;
    int home;    /* the namespace we came from */
    int *spaces; /* hosts, then routers */
    size_t count;
};

static size_t router_space(const struct network *network, size_t site)
{
    return network->topology->host_count + site;
}

/* ---- cables */

/* Locally administered, the same in every run: 02:SECOND:THIRD:0:0:LAST of the IPv4 address. */
static struct end end_of(const char *device, const struct prefix *ipv4, const struct prefix *ipv6)
{
    struct end end = {.device = device, .ipv4 = *ipv4, .ipv6 = *ipv6};
    const uint8_t mac[6] = {2, ipv4->address[1], ipv4->address[2], 0, 0, ipv4->address[3]};
    memcpy(end.mac, mac, sizeof mac);
    return end;
}

static struct end host_end(const struct lab_host *host)
{
    return end_of("eth0", &host->ipv4, &host->ipv6);
}

/* The router's device is named after the host, or by its number where the name is too long for a device. */
static struct end gateway_end(const struct topology *topology, size_t i, char device[IF_NAMESIZE])
{
    const struct lab_host *host = &topology->hosts[i];
    if (strlen(host->name) < IF_NAMESIZE)
        memcpy(device, host->name, strlen(host->name) + 1);
    else
        snprintf(device, IF_NAMESIZE, "host%u", (unsigned)i);
    return end_of(device, &host->gateway4, &host->gateway6);
}

static struct end wan_end(const struct lab_wan *wan, size_t end)
{
    return end_of(wan->device[end], &wan->ipv4[end], &wan->ipv6[end]);
}

/* Cables that start at this site's router: to its hosts, and the links it is the first end of. */
static void plug(const struct network *network, size_t site, struct batch *batch)
{
    const struct topology *topology = network->topology;
    for (size_t i = 0; i < topology->host_count; i++) {
        char device[IF_NAMESIZE];
        struct end host = host_end(&topology->hosts[i]), gateway = gateway_end(topology, i, device);
        if (topology->hosts[i].site == site)
            batch_cable(batch, &gateway, &host, network->spaces[i]);
    }
    for (size_t i = 0; i < topology->wan_count; i++) {
        const struct lab_wan *wan = &topology->wans[i];
        const size_t *between = topology->scenario->wan[wan->link].between;
        struct end here = wan_end(wan, 0), there = wan_end(wan, 1);
        if (between[0] == site)
            batch_cable(batch, &here, &there, network->spaces[router_space(network, between[1])]);
    }
}

/* ---- what stands in each namespace */

static void set_up_host(const struct topology *topology, size_t i, struct batch *batch)
{
    char device[IF_NAMESIZE];
    const struct lab_host *host = &topology->hosts[i];
    struct end own = host_end(host), gateway = gateway_end(topology, i, device);
    int ifindex = (int)if_nametoindex(own.device);
    const struct prefix all4 = {.family = AF_INET}, all6 = {.family = AF_INET6};
    batch_port(batch, ifindex, &own, &gateway);
    batch_route(batch, ifindex, &all4, &host->gateway4);
    batch_route(batch, ifindex, &all6, &host->gateway6);
    nic_host(batch, ifindex, topology);
}

static void set_up_wan(const struct topology *topology, size_t site, struct batch *batch)
{
    for (size_t i = 0; i < topology->wan_count; i++) {
        const struct lab_wan *wan = &topology->wans[i];
        const size_t *between = topology->scenario->wan[wan->link].between;
        for (size_t end = 0; end < 2; end++) {
            struct end own = wan_end(wan, end), peer = wan_end(wan, !end);
            if (between[end] == site)
                batch_port(batch, (int)if_nametoindex(own.device), &own, &peer);
        }
    }
}

static void set_up_routes(const struct topology *topology, size_t site, struct batch *batch)
{
    static const int families[] = {AF_INET, AF_INET6};
    for (size_t to = 0; to < topology->scenario->site_count; to++) {
        if (to == site)
            continue;
        size_t link = topology_next_link(topology, site, to);
        const struct lab_wan *wan = &topology->wans[link];
        size_t own = topology->scenario->wan[link].between[0] == site ? 0 : 1;
        int ifindex = (int)if_nametoindex(wan->device[own]);
        for (size_t f = 0; f < 2; f++) {
            struct prefix prefix = topology_site_prefix(to, families[f]);
            batch_route(batch, ifindex, &prefix, families[f] == AF_INET ? &wan->ipv4[!own] : &wan->ipv6[!own]);
        }
    }
}

static void set_up_router(const struct topology *topology, size_t site, struct batch *batch)
{
    for (size_t i = 0; i < topology->host_count; i++) {
        char device[IF_NAMESIZE];
        if (topology->hosts[i].site != site)
            continue;
        struct end own = gateway_end(topology, i, device), host = host_end(&topology->hosts[i]);
        int ifindex = (int)if_nametoindex(device);
        batch_port(batch, ifindex, &own, &host);
        nic_gateway(batch, ifindex, topology, site);
    }
    set_up_wan(topology, site, batch);
    set_up_routes(topology, site, batch);
}

/* ---- */

static bool loses(const struct scenario *scenario)
{
    bool any = false;
    for (size_t i = 0; i < scenario->wan_count; i++)
        any |= scenario->wan[i].loss_ratio > 0;
    return any;
}

/* A packet that segmentation offload made of 45 is lost as one: where a link loses, hosts send single packets. */
static int send_single_packets(struct err *err)
{
    const struct offloads none = {.known = true};
    return device_set_offloads("eth0", &none, err);
}

/* In the namespace i: plugs cables (plugging), or sets up what stands there. */
static int visit(const struct network *network, size_t i, bool plugging, struct err *err)
{
    const struct topology *topology = network->topology;
    struct batch batch = {0};
    if (setns(network->spaces[i], CLONE_NEWNET))
        return err_set(err, errno, "no way into a network namespace: %s", strerror(errno));
    struct netlink *netlink = netlink_open(err);
    if (!netlink)
        return -EIO;
    if (plugging)
        plug(network, i - topology->host_count, &batch);
    else if (i < topology->host_count)
        set_up_host(topology, i, &batch);
    else
        set_up_router(topology, i - topology->host_count, &batch);
    int rc = batch_send(&batch, netlink, err);
    if (!rc && !plugging && i < topology->host_count && loses(topology->scenario))
        rc = send_single_packets(err);
    netlink_close(netlink);
    return rc;
}

static int build(struct network *network, struct err *err)
{
    const struct topology *topology = network->topology;
    size_t all = topology->host_count + topology->scenario->site_count;
    int rc = space_folder(err);
    for (; !rc && network->count < all; network->count += !rc) {
        char router[96];
        size_t i = network->count;
        const char *name = i < topology->host_count
                               ? topology->hosts[i].name
                               : topology_router(topology->scenario, i - topology->host_count, router, sizeof router);
        rc = space_new(network->prefix, name, i >= topology->host_count, &network->spaces[i], err);
    }
    for (size_t i = topology->host_count; i < all && !rc; i++)
        rc = visit(network, i, true, err);
    for (size_t i = 0; i < all && !rc; i++)
        rc = visit(network, i, false, err);
    return rc;
}

/* Takes away the namespaces that this call made. */
static void unbuild(const struct network *network)
{
    const struct topology *topology = network->topology;
    for (size_t i = 0; i < network->count; i++) {
        char router[96];
        (void)space_remove(network->prefix,
                           i < topology->host_count
                               ? topology->hosts[i].name
                               : topology_router(topology->scenario, i - topology->host_count, router, sizeof router));
    }
}

int network_probe(struct err *err)
{
    enum { LOOPBACK = 1 };
    struct batch batch = {0};
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        return err_set(err, ENOTSUP, "/proc/self/ns/net: %s", strerror(errno));
    int rc = unshare(CLONE_NEWNET) ? err_set(err, errno == EPERM ? EPERM : ENOTSUP, "no network namespace: %s%s",
                                             strerror(errno), errno == EPERM ? "; root is needed" : "")
                                   : 0;
    if (!rc) {
        struct netlink *netlink = netlink_open(err);
        nic_probe(&batch, LOOPBACK);
        rc = netlink ? batch_send(&batch, netlink, err) : -EIO;
        netlink_close(netlink);
        (void)setns(home, CLONE_NEWNET);
    }
    close(home);
    return rc;
}

int network_build(const struct topology *topology, const char *prefix, struct err *err)
{
    struct network network = {.topology = topology, .prefix = prefix};
    network.spaces = calloc(topology->host_count + topology->scenario->site_count, sizeof *network.spaces);
    network.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int rc = network.spaces ? 0 : err_set(err, ENOMEM, "out of memory");
    if (!rc && network.home < 0)
        rc = err_set(err, errno, "/proc/self/ns/net: %s", strerror(errno));
    if (!rc)
        rc = build(&network, err);
    if (network.home >= 0 && setns(network.home, CLONE_NEWNET) && !rc)
        rc = err_set(err, errno, "no way back into the network namespace: %s", strerror(errno));
    if (rc)
        unbuild(&network);
    for (size_t i = 0; i < network.count; i++)
        close(network.spaces[i]);
    free(network.spaces);
    if (network.home >= 0)
        close(network.home);
    return rc;
}

void network_print_hosts(const struct topology *topology, FILE *out)
{
    fputs("127.0.0.1 localhost\n::1 localhost\n", out);
    for (size_t i = 0; i < topology->host_count; i++) {
        const struct lab_host *host = &topology->hosts[i];
        char text[PREFIX_TEXT_MAX];
        fprintf(out, "%s %s\n", prefix_format(&host->ipv4, text, sizeof text), host->name);
        fprintf(out, "%s %s\n", prefix_format(&host->ipv6, text, sizeof text), host->name);
    }
}
