#include "emu/mpi/sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { ETHERNET_HEADER_BYTES = 14 };

static bool to_prefix(const struct sockaddr_storage *address, struct prefix *prefix)
{
    *prefix = (struct prefix){.family = address->ss_family, .length = address->ss_family == AF_INET ? 32 : 128};
    if (address->ss_family == AF_INET) {
        memcpy(prefix->address, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->ss_family == AF_INET6) {
        const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
        bool mapped = IN6_IS_ADDR_V4MAPPED(in6);
        memcpy(prefix->address, in6->s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
        if (mapped)
            prefix->family = AF_INET, prefix->length = 32;
    } else {
        return false;
    }
    return true;
}

/* The site that an address belongs to; the number of sites where it is of none. */
static size_t site_of(const struct scenario *scenario, const struct prefix *address)
{
    for (size_t i = 0; i < scenario->emu_site_count; i++)
        for (size_t k = 0; k < scenario->emu_sites[i].prefix_count; k++)
            if (prefix_contains(&scenario->emu_sites[i].prefixes[k], address))
                return scenario->emu_sites[i].site;
    return scenario->site_count;
}

static void count_one(const struct scenario *scenario, size_t own, int fd, struct sockets *sockets, double *to_site)
{
    struct sockaddr_storage address;
    struct prefix peer;
    struct tcp_info info = {0};
    socklen_t size = sizeof address, info_size = sizeof info;
    if (getpeername(fd, (struct sockaddr *)&address, &size) || !to_prefix(&address, &peer) ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_size))
        return;
    size_t site = site_of(scenario, &peer);
    if (site == own || site == scenario->site_count)
        return;
    double segment = info.tcpi_snd_mss > 0 ? info.tcpi_snd_mss : 1, frame = info.tcpi_pmtu + ETHERNET_HEADER_BYTES;
    sockets->connections++;
    sockets->sent_bytes += (double)info.tcpi_bytes_sent;
    sockets->wire_bytes += (double)info.tcpi_bytes_sent * frame / segment;
    sockets->retransmits += info.tcpi_total_retrans;
    to_site[site] += (double)info.tcpi_bytes_sent;
}

void sockets_count(const struct scenario *scenario, size_t own, struct sockets *sockets, double *to_site)
{
    DIR *directory = opendir("/proc/self/fd");
    *sockets = (struct sockets){0};
    for (size_t i = 0; i < scenario->site_count; i++)
        to_site[i] = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.')
            count_one(scenario, own, atoi(entry->d_name), sockets, to_site);
    if (directory)
        closedir(directory);
}
