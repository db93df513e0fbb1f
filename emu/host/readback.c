#include "emu/host/readback.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/gen_stats.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <math.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "emu/shape/netem.h"

struct reading {
    int ifindex;
    const struct wish *wish;
    struct path_state *states;
};

static void take_counters(const struct nlattr *statistics, struct path_state *state)
{
    struct gnet_stats_basic basic = {0};
    struct gnet_stats_queue queue = {0};
    struct nlattr *found = nla_find(nla_data(statistics), nla_len(statistics), TCA_STATS_BASIC);
    struct nlattr *wide = nla_find(nla_data(statistics), nla_len(statistics), TCA_STATS_PKT64);
    if (found)
        nla_memcpy(&basic, found, sizeof basic);
    found = nla_find(nla_data(statistics), nla_len(statistics), TCA_STATS_QUEUE);
    if (found)
        nla_memcpy(&queue, found, sizeof queue);
    state->sent_bytes = basic.bytes;
    state->sent_packets = wide ? nla_get_u64(wide) : basic.packets;
    state->dropped_packets = queue.drops;
    state->overlimits = queue.overlimits;
    state->backlog_bytes = queue.backlog;
    state->backlog_packets = queue.qlen;
}

static int take_qdisc(const struct nlmsghdr *answer, void *context, struct err *err)
{
    struct reading *reading = context;
    const struct tcmsg *tc = nlmsg_data(answer);
    uint32_t major = TC_H_MAJ(tc->tcm_handle) >> 16;
    if (tc->tcm_ifindex != reading->ifindex || major <= PLAN_HANDLE || major > PLAN_HANDLE + reading->wish->path_count)
        return 0;
    struct nlattr *kind = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *tc, TCA_KIND);
    struct nlattr *options = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *tc, TCA_OPTIONS);
    struct nlattr *statistics = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *tc, TCA_STATS2);
    if (!kind || nla_strcmp(kind, "netem") || !options)
        return 0;
    struct path_state *state = &reading->states[major - PLAN_HANDLE - 1];
    state->present = true;
    if (statistics)
        take_counters(statistics, state);
    return netem_parse(options, &state->impairment, err);
}

static int start_as_asked(const struct impairment *asked, struct path_state *state, struct err *err)
{
    *state = (struct path_state){.impairment = *asked};
    if (!asked->table_file)
        return 0;
    state->impairment.table_file = strdup(asked->table_file);
    return state->impairment.table_file ? 0 : err_set(err, ENOMEM, "out of memory");
}

int readback_paths(struct netlink *netlink, int ifindex, const struct wish *wish, struct path_state *states,
                   struct err *err)
{
    struct tcmsg tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex};
    struct reading reading = {ifindex, wish, states};
    int rc = 0;
    memset(states, 0, wish->path_count * sizeof *states);
    for (size_t i = 0; !rc && i < wish->path_count; i++)
        rc = start_as_asked(&wish->paths[i].impairment, &states[i], err);
    struct nl_msg *request = rc ? NULL : nlmsg_alloc_simple(RTM_GETQDISC, 0);
    if (!rc && (!request || nlmsg_append(request, &tc, sizeof tc, NLMSG_ALIGNTO)))
        rc = err_set(err, ENOMEM, "out of memory");
    rc = rc ? rc : netlink_dump(netlink, request, take_qdisc, &reading, err);
    nlmsg_free(request);
    for (size_t i = 0; rc && i < wish->path_count; i++)
        impairment_free(&states[i].impairment);
    return rc;
}

static int count_filter(const struct nlmsghdr *answer, void *context, struct err *err)
{
    (void)err;
    size_t *count = context;
    const struct tcmsg *tc = nlmsg_data(answer);
    uint32_t priority = tc->tcm_info >> 16;
    bool ours = priority == PLAN_PRIO_IPV4 || priority == PLAN_PRIO_IPV6;
    *count += ours && TC_U32_NODE(tc->tcm_handle) != 0; /* neither a priority nor a hash table */
    return 0;
}

static int check_filters(struct netlink *netlink, int ifindex, uint32_t parent, const struct wish *wish,
                         struct err *err)
{
    struct tcmsg tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_parent = parent};
    size_t wanted = 0, found = 0;
    for (size_t i = 0; i < wish->path_count; i++)
        wanted += wish->paths[i].prefix_count;
    struct nl_msg *request = nlmsg_alloc_simple(RTM_GETTFILTER, 0);
    int rc =
        request && !nlmsg_append(request, &tc, sizeof tc, NLMSG_ALIGNTO) ? 0 : err_set(err, ENOMEM, "out of memory");
    rc = rc ? rc : netlink_dump(netlink, request, count_filter, &found, err);
    nlmsg_free(request);
    if (!rc && found != wanted)
        rc = err_set(err, EIO, "%s: %zu of %zu filters are there", wish->device, found, wanted);
    return rc;
}

int readback_filters(struct netlink *netlink, int ifindex, const struct wish *wish, struct err *err)
{
    int rc = check_filters(netlink, ifindex, PLAN_HANDLE << 16, wish, err);
    if (rc || wish->at != PLAN_INGRESS)
        return rc;
    return check_filters(netlink, (int)if_nametoindex(wish->device), TC_H_MAJ(TC_H_INGRESS), wish, err);
}

/* The kernel keeps probabilities in 2^-32. What follows from several of them (a burst loss's mean) is not compared. */
static bool close_ratio(double a, double b)
{
    return fabs(a - b) <= 0x1p-31;
}

static bool same_loss(const struct loss *a, const struct loss *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == LOSS_INDEPENDENT)
        return close_ratio(a->ratio, b->ratio);
    return a->kind == LOSS_NONE || (close_ratio(a->p, b->p) && close_ratio(a->r, b->r) &&
                                    close_ratio(a->lost_bad, b->lost_bad) && close_ratio(a->lost_good, b->lost_good));
}

bool readback_same(const struct impairment *asked, const struct path_state *state, char *difference, size_t size)
{
    const struct impairment *got = &state->impairment;
    const struct {
        const char *what;
        bool same;
    } parts[] = {
        {"nothing is set", state->present},
        {"another one-way delay", asked->delay_ns == got->delay_ns},
        {"another jitter", asked->jitter_ns == got->jitter_ns},
        {"another correlation", close_ratio(asked->correlation, got->correlation)},
        {"another loss", same_loss(&asked->loss, &got->loss)},
        {"another reordering", close_ratio(asked->reorder, got->reorder)},
        {"another duplication", close_ratio(asked->duplicate, got->duplicate)},
        {"another corruption", close_ratio(asked->corrupt, got->corrupt)},
        {"another rate", asked->rate_byte_per_s == got->rate_byte_per_s},
        {"another queue limit", asked->limit_packets == got->limit_packets},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!parts[i].same) {
            char *text = state->present && difference ? impairment_text(got) : NULL;
            if (difference)
                snprintf(difference, size, "%s%s%s", parts[i].what, text ? "; the kernel has " : "", text ? text : "");
            free(text);
            return false;
        }
    return true;
}
