#include "emu/lab/topology.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* One byte of the address each; 10.255 is the links' own. */
enum { SITES_MAX = 254, WANS_MAX = 256, DEVICE_MAX = 15 };

/* ---- names */

/* A site's name as a host name may be: letters, digits, '-'; others become '-'. */
static void plain_label(const struct scenario *scenario, size_t site, char label[64])
{
    snprintf(label, 64, "%.48s", scenario->sites[site].name);
    for (char *c = label; *c; c++)
        *c = (char)(isalnum((unsigned char)*c) ? tolower((unsigned char)*c) : '-');
}

/* "a b" and "a-b" are two sites. */
static void site_label(const struct scenario *scenario, size_t site, char label[64])
{
    char before[64];
    plain_label(scenario, site, label);
    for (size_t other = 0; other < site; other++) {
        plain_label(scenario, other, before);
        if (strcmp(label, before) != 0)
            continue;
        size_t length = strlen(label);
        snprintf(label + length, 64 - length, "--%u", (unsigned)site % 1000);
        return;
    }
}

char *topology_router(const struct scenario *scenario, size_t site, char *name, size_t size)
{
    char label[64];
    site_label(scenario, site, label);
    snprintf(name, size, "%s-router", label);
    return name;
}

/* "wan-PEER", or "wan-PEER.LINK" where two links lead to one peer, or "wanLINK" where that is too long for a device. */
static void name_wan_device(const struct scenario *scenario, size_t link, size_t end, char device[16])
{
    const struct wan_link *wan = &scenario->wan[link];
    char label[64], name[96];
    size_t parallel = 0;
    site_label(scenario, wan->between[!end], label);
    for (size_t i = 0; i < scenario->wan_count; i++) {
        const size_t *ends = scenario->wan[i].between;
        parallel += (ends[0] == wan->between[0] && ends[1] == wan->between[1]) ||
                    (ends[1] == wan->between[0] && ends[0] == wan->between[1]);
    }
    int length = parallel > 1 ? snprintf(name, sizeof name, "wan-%s.%zu", label, link)
                              : snprintf(name, sizeof name, "wan-%s", label);
    if (length <= DEVICE_MAX)
        memcpy(device, name, (size_t)length + 1);
    else
        snprintf(device, 16, "wan%zu", link % WANS_MAX);
}

/* ---- addresses */

static struct prefix ipv4(unsigned second, unsigned third, unsigned last, unsigned length)
{
    return (struct prefix){AF_INET, {10, (uint8_t)second, (uint8_t)third, (uint8_t)last}, length};
}

static struct prefix ipv6(unsigned site, unsigned net, unsigned last, unsigned length)
{
    struct prefix prefix = {AF_INET6, {0xfd, 0x10}, length};
    prefix.address[5] = (uint8_t)site;
    prefix.address[7] = (uint8_t)net;
    prefix.address[15] = (uint8_t)last;
    return prefix;
}

struct prefix topology_site_prefix(size_t site, int family)
{
    return family == AF_INET ? ipv4((unsigned)site + 1, 0, 0, 16) : ipv6((unsigned)site + 1, 0, 0, 48);
}

static void place_host(const struct scenario *scenario, size_t site, size_t index, struct lab_host *host)
{
    char label[64];
    unsigned second = (unsigned)site + 1, third = (unsigned)index + 1;
    site_label(scenario, site, label);
    snprintf(host->name, sizeof host->name, "%.60s-%u", label, (unsigned)index);
    host->site = site;
    host->gateway4 = ipv4(second, third, 1, 32), host->ipv4 = ipv4(second, third, 2, 32);
    host->gateway6 = ipv6(second, third, 1, 128), host->ipv6 = ipv6(second, third, 2, 128);
}

static void place_wan(const struct scenario *scenario, size_t link, struct lab_wan *wan)
{
    wan->link = link;
    for (unsigned end = 0; end < 2; end++) {
        name_wan_device(scenario, link, end, wan->device[end]);
        wan->ipv4[end] = ipv4(255, (unsigned)link, 1 + end, 32);
        wan->ipv6[end] = ipv6(0, (unsigned)link, 1 + end, 128);
    }
}

/* ---- */

int topology_build(const struct scenario *scenario, struct topology *topology, struct err *err)
{
    *topology = (struct topology){.scenario = scenario};
    if (scenario->site_count > SITES_MAX || scenario->wan_count > WANS_MAX)
        return err_set(err, EINVAL, "the lab takes up to %d sites and %d WAN links; here are %zu and %zu", SITES_MAX,
                       WANS_MAX, scenario->site_count, scenario->wan_count);
    size_t hosts = (size_t)scenario->lab.hosts;
    topology->hosts = calloc(scenario->site_count * hosts, sizeof *topology->hosts);
    topology->wans = calloc(scenario->wan_count + 1, sizeof *topology->wans);
    if (!topology->hosts || !topology->wans) {
        topology_free(topology);
        return err_set(err, ENOMEM, "out of memory");
    }
    for (size_t site = 0; site < scenario->site_count; site++)
        for (size_t h = 0; h < hosts; h++)
            place_host(scenario, site, h, &topology->hosts[topology->host_count++]);
    for (size_t link = 0; link < scenario->wan_count; link++)
        place_wan(scenario, link, &topology->wans[topology->wan_count++]);
    const struct fabric *fabric = &scenario->fabric;
    topology->nic_bit_per_s = (double)fabric->nics_per_node * fabric->nic_bit_per_s / (double)scenario->lab.divide;
    topology->fabric_latency_s = fabric->latency_s;
    return 0;
}

void topology_free(struct topology *topology)
{
    free(topology->hosts);
    free(topology->wans);
    *topology = (struct topology){0};
}

const struct lab_host *topology_host(const struct topology *topology, const char *name)
{
    for (size_t i = 0; i < topology->host_count; i++)
        if (!strcmp(topology->hosts[i].name, name))
            return &topology->hosts[i];
    return NULL;
}

/* ---- ways */

struct way {
    double rtt_s;
    size_t hops;
};

static bool shorter(struct way a, struct way b)
{
    return a.rtt_s < b.rtt_s || (a.rtt_s == b.rtt_s && a.hops < b.hops);
}

/* The way over one link and on; INFINITY where the link does not leave `from`. */
static struct way over(const struct wan_link *link, size_t from, const struct way *ways, size_t *peer)
{
    *peer = link->between[link->between[0] == from];
    if (link->between[0] != from && link->between[1] != from)
        return (struct way){INFINITY, 0};
    return (struct way){link->rtt_s + ways[*peer].rtt_s, 1 + ways[*peer].hops};
}

/* The way from every site to one (Bellman-Ford: as many rounds as a way can have links). */
static void ways_to(const struct scenario *scenario, size_t to, struct way *ways)
{
    for (size_t site = 0; site < scenario->site_count; site++)
        ways[site] = (struct way){site == to ? 0 : INFINITY, 0};
    for (size_t round = 1; round < scenario->site_count; round++)
        for (size_t i = 0; i < scenario->wan_count; i++)
            for (size_t end = 0; end < 2; end++) {
                size_t from = scenario->wan[i].between[end], peer;
                struct way way = over(&scenario->wan[i], from, ways, &peer);
                if (shorter(way, ways[from]))
                    ways[from] = way;
            }
}

size_t topology_next_link(const struct topology *topology, size_t from, size_t to)
{
    const struct scenario *scenario = topology->scenario;
    struct way ways[SITES_MAX], best = {INFINITY, 0};
    size_t chosen = 0, best_peer = SIZE_MAX;
    ways_to(scenario, to, ways);
    for (size_t i = 0; i < scenario->wan_count; i++) {
        size_t peer;
        struct way way = over(&scenario->wan[i], from, ways, &peer);
        bool same = way.rtt_s == best.rtt_s && way.hops == best.hops;
        if (isfinite(way.rtt_s) && (shorter(way, best) || (same && peer < best_peer))) {
            best = way;
            best_peer = peer;
            chosen = i;
        }
    }
    return chosen;
}

size_t topology_next(const struct topology *topology, size_t from, size_t to)
{
    const size_t *ends = topology->scenario->wan[topology_next_link(topology, from, to)].between;
    return ends[ends[0] == from];
}
