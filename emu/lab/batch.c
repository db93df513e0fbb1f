#include "emu/lab/batch.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 1024 };

void batch_add(struct batch *batch, struct nl_msg *message)
{
    if (message && batch->count == batch->room) {
        size_t room = batch->room ? 2 * batch->room : 64;
        struct nl_msg **messages = reallocarray(batch->messages, room, sizeof(struct nl_msg *));
        if (!messages) {
            nlmsg_free(message);
            message = NULL;
        } else {
            batch->messages = messages;
            batch->room = room;
        }
    }
    if (message)
        batch->messages[batch->count++] = message;
    else
        batch->short_of_memory = true;
}

int batch_send(struct batch *batch, struct netlink *netlink, struct err *err)
{
    int rc = batch->short_of_memory ? err_set(err, ENOMEM, "out of memory")
                                    : netlink_send(netlink, batch->messages, batch->count, NULL, err);
    for (size_t i = 0; i < batch->count; i++)
        nlmsg_free(batch->messages[i]);
    free(batch->messages);
    *batch = (struct batch){0};
    return rc;
}

struct nl_msg *batch_message(int type, int flags, const void *header, size_t size)
{
    struct nl_msg *message = nlmsg_alloc_size(MESSAGE_BYTES);
    if (!message)
        return NULL;
    nlmsg_put(message, NL_AUTO_PORT, NL_AUTO_SEQ, type, 0, NLM_F_REQUEST | flags);
    if (nlmsg_append(message, (void *)header, size, NLMSG_ALIGNTO)) {
        nlmsg_free(message);
        return NULL;
    }
    return message;
}

void batch_add_whole(struct batch *batch, struct nl_msg *message, bool whole)
{
    if (!whole && message) {
        nlmsg_free(message);
        message = NULL;
    }
    batch_add(batch, message);
}

static bool put(struct nl_msg *message, int type, const void *data, size_t size)
{
    return message && nla_put(message, type, (int)size, data) == 0;
}

static bool put_address(struct nl_msg *message, int type, const struct prefix *prefix)
{
    return put(message, type, prefix->address, prefix->family == AF_INET ? 4 : 16);
}

static bool put_end(struct nl_msg *message, const struct end *end)
{
    return put(message, IFLA_IFNAME, end->device, strlen(end->device) + 1) &&
           put(message, IFLA_ADDRESS, end->mac, sizeof end->mac);
}

void batch_cable(struct batch *batch, const struct end *here, const struct end *there, int peer_space)
{
    const struct ifinfomsg header = {0};
    struct nl_msg *message = batch_message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &header, sizeof header);
    bool whole = put_end(message, here);
    struct nlattr *info = whole ? nla_nest_start(message, IFLA_LINKINFO) : NULL;
    whole = info && put(message, IFLA_INFO_KIND, "veth", sizeof "veth");
    struct nlattr *data = whole ? nla_nest_start(message, IFLA_INFO_DATA) : NULL;
    struct nlattr *peer = data ? nla_nest_start(message, VETH_INFO_PEER) : NULL;
    whole = peer && nlmsg_append(message, (void *)&header, sizeof header, NLMSG_ALIGNTO) == 0 &&
            put_end(message, there) && put(message, IFLA_NET_NS_FD, &peer_space, sizeof peer_space);
    if (whole) {
        nla_nest_end(message, peer);
        nla_nest_end(message, data);
        nla_nest_end(message, info);
    }
    batch_add_whole(batch, message, whole);
}

void batch_up(struct batch *batch, int ifindex)
{
    const struct ifinfomsg header = {.ifi_index = ifindex, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    batch_add(batch, batch_message(RTM_NEWLINK, 0, &header, sizeof header));
}

static void add_address(struct batch *batch, int ifindex, const struct prefix *address)
{
    bool four = address->family == AF_INET;
    const struct ifaddrmsg header = {.ifa_family = (uint8_t)address->family,
                                     .ifa_prefixlen = four ? CABLE_LENGTH4 : CABLE_LENGTH6,
                                     .ifa_flags = four ? 0 : IFA_F_NODAD,
                                     .ifa_index = (uint32_t)ifindex};
    struct nl_msg *message = batch_message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &header, sizeof header);
    batch_add_whole(batch, message,
                    put_address(message, IFA_LOCAL, address) && put_address(message, IFA_ADDRESS, address));
}

static void add_neighbour(struct batch *batch, int ifindex, const struct prefix *address, const uint8_t mac[6])
{
    const struct ndmsg header = {
        .ndm_family = (uint8_t)address->family, .ndm_ifindex = ifindex, .ndm_state = NUD_PERMANENT};
    struct nl_msg *message = batch_message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &header, sizeof header);
    batch_add_whole(batch, message, put_address(message, NDA_DST, address) && put(message, NDA_LLADDR, mac, 6));
}

void batch_port(struct batch *batch, int ifindex, const struct end *own, const struct end *neighbour)
{
    batch_up(batch, ifindex);
    add_address(batch, ifindex, &own->ipv4);
    add_address(batch, ifindex, &own->ipv6);
    add_neighbour(batch, ifindex, &neighbour->ipv4, neighbour->mac);
    add_neighbour(batch, ifindex, &neighbour->ipv6, neighbour->mac);
}

void batch_route(struct batch *batch, int ifindex, const struct prefix *to, const struct prefix *gateway)
{
    const struct rtmsg header = {.rtm_family = (uint8_t)to->family,
                                 .rtm_dst_len = (uint8_t)to->length,
                                 .rtm_table = RT_TABLE_MAIN,
                                 .rtm_protocol = RTPROT_STATIC,
                                 .rtm_scope = RT_SCOPE_UNIVERSE,
                                 .rtm_type = RTN_UNICAST};
    struct nl_msg *message = batch_message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &header, sizeof header);
    bool whole = (to->length == 0 || put_address(message, RTA_DST, to)) && put_address(message, RTA_GATEWAY, gateway) &&
                 put(message, RTA_OIF, &ifindex, sizeof ifindex);
    batch_add_whole(batch, message, whole);
}
