#include "emu/lab/nic.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <math.h>
#include <netlink/attr.h>
#include <string.h>
#include <sys/socket.h>

#include "emu/shape/netem.h"

/* What a host sends:    tbf 1: (rate) > fq_codel 2:
 * What a host receives: netem 1: (rate) > prio 2: > band 1: netem 3: (fabric latency), band 2: the rest, chosen by
 * filters on the source's prefix.
 *
 * A real host never has much of its own data in the queue of its NIC: TCP keeps the rest back (TCP small queues,
 * net/ipv4/tcp_output.c, tcp_small_queue_check), and the system's default queue (fq_codel) gives flows their turns. A
 * netem takes packets off their socket's account when they enter (skb_orphan_partial, net/sched/sch_netem.c), so that
 * megabytes would gather there, and with them the acknowledgements of what comes in. */
enum { RATE_MAJOR = 1, TURNS_MAJOR = 2, SORT_MAJOR = 2, FABRIC_MAJOR = 3 };
enum { QUEUE_PACKETS = 1000000, FILTER_IPV4 = 1, FILTER_IPV6 = 2 };

/* One segmentation-offload packet, 64 KiB and the headers of its 45 segments, must fit, else it is cut up here; what an
 * idle NIC lets go at once is as little. */
enum { BURST_BYTES = 70000 };

static uint32_t handle(uint32_t major, uint32_t minor)
{
    return major << 16 | minor;
}

static struct nl_msg *message_new(int type, int ifindex, uint32_t own, uint32_t parent, uint32_t info)
{
    const struct tcmsg header = {
        .tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_handle = own, .tcm_parent = parent, .tcm_info = info};
    return batch_message(type, NLM_F_CREATE | NLM_F_EXCL, &header, sizeof header);
}

static void add_netem(struct batch *batch, int ifindex, uint32_t own, uint32_t parent, double rate_bit_per_s,
                      double delay_s)
{
    struct impairment impairment;
    struct nl_msg *message = message_new(RTM_NEWQDISC, ifindex, own, parent, 0);
    impairment_init(&impairment);
    if (isfinite(rate_bit_per_s))
        impairment.rate_byte_per_s = (uint64_t)llround(fmax(rate_bit_per_s / 8, 1));
    impairment.delay_ns = (uint64_t)llround(delay_s * 1e9);
    impairment.limit_packets = QUEUE_PACKETS;
    batch_add_whole(batch, message, message && netem_put(message, &impairment, NULL, NULL) == 0);
    impairment_free(&impairment);
}

static void add_sorter(struct batch *batch, int ifindex)
{
    struct tc_prio_qopt options = {.bands = 2};
    struct nl_msg *message = message_new(RTM_NEWQDISC, ifindex, handle(SORT_MAJOR, 0), handle(RATE_MAJOR, 1), 0);
    memset(options.priomap, 1, sizeof options.priomap);
    batch_add_whole(batch, message,
                    message && nla_put(message, TCA_KIND, sizeof "prio", "prio") == 0 &&
                        nla_put(message, TCA_OPTIONS, sizeof options, &options) == 0);
}

static void add_rate(struct batch *batch, int ifindex, double rate_bit_per_s)
{
    uint64_t byte_per_s = (uint64_t)llround(fmax(rate_bit_per_s / 8, 1));
    uint32_t burst = BURST_BYTES;
    struct tc_tbf_qopt options = {.limit = UINT32_MAX};
    struct nl_msg *message = message_new(RTM_NEWQDISC, ifindex, handle(RATE_MAJOR, 0), TC_H_ROOT, 0);
    options.rate.linklayer = TC_LINKLAYER_ETHERNET;
    options.rate.rate = byte_per_s < UINT32_MAX ? (uint32_t)byte_per_s : UINT32_MAX;
    bool whole = message && nla_put(message, TCA_KIND, sizeof "tbf", "tbf") == 0;
    struct nlattr *nest = whole ? nla_nest_start(message, TCA_OPTIONS) : NULL;
    whole = nest && nla_put(message, TCA_TBF_PARMS, sizeof options, &options) == 0 &&
            nla_put(message, TCA_TBF_BURST, sizeof burst, &burst) == 0 &&
            (byte_per_s < UINT32_MAX || nla_put(message, TCA_TBF_RATE64, sizeof byte_per_s, &byte_per_s) == 0);
    if (whole)
        nla_nest_end(message, nest);
    batch_add_whole(batch, message, whole);
}

/* Turns only: with these figures it drops nothing. */
static void add_turns(struct batch *batch, int ifindex)
{
    static const struct {
        uint16_t type;
        uint32_t value;
    } options[] = {{TCA_FQ_CODEL_LIMIT, QUEUE_PACKETS},
                   {TCA_FQ_CODEL_TARGET, 1000000000},   /* us */
                   {TCA_FQ_CODEL_INTERVAL, 1000000000}, /* us */
                   {TCA_FQ_CODEL_ECN, 0},
                   {TCA_FQ_CODEL_MEMORY_LIMIT, UINT32_MAX}};
    struct nl_msg *message = message_new(RTM_NEWQDISC, ifindex, handle(TURNS_MAJOR, 0), handle(RATE_MAJOR, 1), 0);
    bool whole = message && nla_put(message, TCA_KIND, sizeof "fq_codel", "fq_codel") == 0;
    struct nlattr *nest = whole ? nla_nest_start(message, TCA_OPTIONS) : NULL;
    whole = nest != NULL;
    for (size_t i = 0; i < sizeof options / sizeof *options && whole; i++)
        whole = nla_put(message, options[i].type, sizeof options[i].value, &options[i].value) == 0;
    if (whole)
        nla_nest_end(message, nest);
    batch_add_whole(batch, message, whole);
}

/* u32 on the source: 32 bits a key. */
static void add_filter(struct batch *batch, int ifindex, const struct prefix *from)
{
    enum { KEYS_MAX = 4, IPV4_SOURCE = 12, IPV6_SOURCE = 8 };
    union {
        struct tc_u32_sel head;
        char room[sizeof(struct tc_u32_sel) + KEYS_MAX * sizeof(struct tc_u32_key)];
    } selector = {.head.flags = TC_U32_TERMINAL};
    bool four = from->family == AF_INET;
    struct tc_u32_key *keys = (struct tc_u32_key *)(void *)(selector.room + sizeof(struct tc_u32_sel));
    for (unsigned done = 0; done < from->length; done += 32, selector.head.nkeys++) {
        struct tc_u32_key *key = &keys[selector.head.nkeys];
        unsigned left = from->length - done;
        key->mask = htonl(left >= 32 ? UINT32_MAX : ~(UINT32_MAX >> left));
        memcpy(&key->val, from->address + done / 8, sizeof key->val);
        key->off = (int)((four ? IPV4_SOURCE : IPV6_SOURCE) + done / 8);
    }
    uint32_t info = (uint32_t)(four ? FILTER_IPV4 : FILTER_IPV6) << 16 | htons(four ? ETH_P_IP : ETH_P_IPV6);
    uint32_t class = handle(SORT_MAJOR, 1);
    size_t size = sizeof(struct tc_u32_sel) + selector.head.nkeys * sizeof *keys;
    struct nl_msg *message = message_new(RTM_NEWTFILTER, ifindex, 0, handle(SORT_MAJOR, 0), info);
    bool whole = message && nla_put(message, TCA_KIND, sizeof "u32", "u32") == 0;
    struct nlattr *options = whole ? nla_nest_start(message, TCA_OPTIONS) : NULL;
    whole = options && nla_put(message, TCA_U32_CLASSID, sizeof class, &class) == 0 &&
            nla_put(message, TCA_U32_SEL, (int)size, &selector) == 0;
    if (whole)
        nla_nest_end(message, options);
    batch_add_whole(batch, message, whole);
}

void nic_host(struct batch *batch, int ifindex, const struct topology *topology)
{
    if (!isfinite(topology->nic_bit_per_s))
        return;
    add_rate(batch, ifindex, topology->nic_bit_per_s);
    add_turns(batch, ifindex);
}

void nic_gateway(struct batch *batch, int ifindex, const struct topology *topology, size_t site)
{
    static const int families[] = {AF_INET, AF_INET6};
    if (!isfinite(topology->nic_bit_per_s) && topology->fabric_latency_s <= 0)
        return;
    add_netem(batch, ifindex, handle(RATE_MAJOR, 0), TC_H_ROOT, topology->nic_bit_per_s, 0);
    if (topology->fabric_latency_s <= 0)
        return;
    add_sorter(batch, ifindex);
    add_netem(batch, ifindex, handle(FABRIC_MAJOR, 0), handle(SORT_MAJOR, 1), INFINITY, topology->fabric_latency_s);
    for (size_t f = 0; f < 2; f++) {
        struct prefix own_site = topology_site_prefix(site, families[f]);
        add_filter(batch, ifindex, &own_site);
    }
}

void nic_probe(struct batch *batch, int ifindex)
{
    add_netem(batch, ifindex, handle(RATE_MAJOR, 0), TC_H_ROOT, INFINITY, 1e-3);
}
