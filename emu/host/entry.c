#include "emu/host/entry.h"

#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_mirred.h>
#include <math.h>
#include <netlink/attr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Since Linux 6.7 and 5.6; older headers lack them. */
enum { MATCHALL_PCNT = 4, FLOWER_IN_HW_COUNT = 86, ACT_USED_HW_STATS = 9, ACT_IN_HW_COUNT = 10 };

typedef int clean_fn(struct nl_msg *out, const struct nlattr *options);

static int put_as_is(struct nl_msg *out, const struct nlattr *attribute)
{
    return nla_put(out, attribute->nla_type, nla_len(attribute), nla_data(attribute));
}

/* Appends a copy of a nest, each member through member(); the nest keeps its type. */
static int put_nest(struct nl_msg *out, const struct nlattr *nest,
                    int (*member)(struct nl_msg *, const struct nlattr *))
{
    struct nlattr *start = nla_nest_start(out, nest->nla_type);
    int rc = start ? 0 : -1, rest = nla_len(nest);
    for (struct nlattr *one = nla_data(nest); !rc && nla_ok(one, rest); one = nla_next(one, &rest))
        rc = member(out, one);
    if (!rc)
        nla_nest_end(out, start);
    return rc;
}

/* A dump says 0x30011 where a set wants 3; direct_pkts is a counter. */
static int htb_member(struct nl_msg *out, const struct nlattr *one)
{
    if (nla_type(one) != TCA_HTB_INIT || nla_len(one) < (int)sizeof(struct tc_htb_glob))
        return put_as_is(out, one);
    struct tc_htb_glob global;
    memcpy(&global, nla_data(one), sizeof global);
    global.version = TC_HTB_PROTOVER;
    global.direct_pkts = 0;
    return nla_put(out, TCA_HTB_INIT, sizeof global, &global);
}

static int htb_clean(struct nl_msg *out, const struct nlattr *options)
{
    return put_nest(out, options, htb_member);
}

/* The kernel keeps these times in units of 1024 ns and dumps whole us, both rounded down: one more gives the same
 * unit back, whatever it was. */
static int fq_codel_member(struct nl_msg *out, const struct nlattr *one)
{
    int type = nla_type(one);
    if (type != TCA_FQ_CODEL_TARGET && type != TCA_FQ_CODEL_INTERVAL && type != TCA_FQ_CODEL_CE_THRESHOLD)
        return put_as_is(out, one);
    return nla_put_u32(out, type, nla_get_u32(one) + 1);
}

static int fq_codel_clean(struct nl_msg *out, const struct nlattr *options)
{
    return put_nest(out, options, fq_codel_member);
}

/* Bytes that take this many ticks (64 ns, rounded down) at a rate: the middle of what they may have been; exact up to
 * 125 Mb/s, within 32 ns above. 0 where the kernel's own arithmetic must do. */
static uint32_t burst_bytes(uint32_t ticks, const struct tc_ratespec *rate, const struct nlattr *rate64)
{
    double byte_per_s = rate64 ? (double)nla_get_u64(rate64) : rate->rate;
    double bytes = nearbyint(((double)ticks * 64 + 32) * byte_per_s / 1e9) - rate->overhead;
    bool simple = (rate->linklayer & TC_LINKLAYER_MASK) != TC_LINKLAYER_ATM && rate->mpu == 0;
    return simple && bytes >= 1 && bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
}

/* Without the burst in bytes, which is not dumped, a set rounds it down by up to 64 ns worth. */
static int tbf_clean(struct nl_msg *out, const struct nlattr *options)
{
    struct nlattr *parameters = nla_find(nla_data(options), nla_len(options), TCA_TBF_PARMS);
    struct nlattr *rate64 = nla_find(nla_data(options), nla_len(options), TCA_TBF_RATE64);
    struct nlattr *peak64 = nla_find(nla_data(options), nla_len(options), TCA_TBF_PRATE64);
    struct nlattr *nest = nla_nest_start(out, options->nla_type);
    struct tc_tbf_qopt tbf = {0};
    if (!nest || !parameters || nla_len(parameters) < (int)sizeof tbf)
        return -1;
    memcpy(&tbf, nla_data(parameters), sizeof tbf);
    uint32_t burst = burst_bytes(tbf.buffer, &tbf.rate, rate64);
    uint32_t peak = tbf.peakrate.rate ? burst_bytes(tbf.mtu, &tbf.peakrate, peak64) : 0;
    int rc = nla_put(out, TCA_TBF_PARMS, sizeof tbf, &tbf);
    rc = rc || !rate64 ? rc : put_as_is(out, rate64);
    rc = rc || !peak64 ? rc : put_as_is(out, peak64);
    rc = rc || !burst ? rc : nla_put_u32(out, TCA_TBF_BURST, burst);
    rc = rc || !peak ? rc : nla_put_u32(out, TCA_TBF_PBURST, peak);
    nla_nest_end(out, nest);
    return rc;
}

static int sfq_clean(struct nl_msg *out, const struct nlattr *options)
{
    struct tc_sfq_qopt_v1 sfq = {0};
    if (nla_len(options) < (int)sizeof sfq)
        return put_as_is(out, options);
    memcpy(&sfq, nla_data(options), sizeof sfq);
    memset(&sfq.stats, 0, sizeof sfq.stats);
    /* A limit that is set caps the flows: where it does not, it is the default, which only leaving it out gives. */
    if (sfq.v0.flows > sfq.v0.limit)
        sfq.v0.limit = 0;
    return nla_put(out, options->nla_type, sizeof sfq, &sfq);
}

/* Counts of users and times of use are no settings. */
static int mirred_member(struct nl_msg *out, const struct nlattr *one)
{
    if (nla_type(one) == TCA_MIRRED_TM || nla_type(one) == TCA_MIRRED_PAD)
        return 0;
    if (nla_type(one) != TCA_MIRRED_PARMS || nla_len(one) < (int)sizeof(struct tc_mirred))
        return put_as_is(out, one);
    struct tc_mirred mirred;
    memcpy(&mirred, nla_data(one), sizeof mirred);
    mirred.refcnt = mirred.bindcnt = 0;
    return nla_put(out, TCA_MIRRED_PARMS, sizeof mirred, &mirred);
}

static int action_member(struct nl_msg *out, const struct nlattr *one)
{
    switch (nla_type(one)) {
    case TCA_ACT_STATS:
    case TCA_ACT_PAD:
    case ACT_USED_HW_STATS:
    case ACT_IN_HW_COUNT:
        return 0;
    case TCA_ACT_OPTIONS: /* mirred's; filters with others are refused */
        return put_nest(out, one, mirred_member);
    default:
        return put_as_is(out, one);
    }
}

static int one_action(struct nl_msg *out, const struct nlattr *action)
{
    return put_nest(out, action, action_member);
}

/* Whether hardware took the filter is for the kernel to say; that it did is kept, as a reason to refuse. */
static int put_filter_flags(struct nl_msg *out, const struct nlattr *one)
{
    uint32_t flags = nla_get_u32(one) & ~(uint32_t)TCA_CLS_FLAGS_NOT_IN_HW;
    return flags ? nla_put_u32(out, nla_type(one), flags) : 0;
}

static int u32_member(struct nl_msg *out, const struct nlattr *one)
{
    switch (nla_type(one)) {
    case TCA_U32_PCNT:
    case TCA_U32_PAD:
        return 0;
    case TCA_U32_FLAGS:
        return put_filter_flags(out, one);
    case TCA_U32_ACT:
        return put_nest(out, one, one_action);
    case TCA_U32_MARK: {
        struct tc_u32_mark mark;
        memcpy(&mark, nla_data(one), sizeof mark);
        mark.success = 0;
        return nla_put(out, TCA_U32_MARK, sizeof mark, &mark);
    }
    default:
        return put_as_is(out, one);
    }
}

static int u32_clean(struct nl_msg *out, const struct nlattr *options)
{
    return put_nest(out, options, u32_member);
}

static int matchall_member(struct nl_msg *out, const struct nlattr *one)
{
    switch (nla_type(one)) {
    case MATCHALL_PCNT:
        return 0;
    case TCA_MATCHALL_FLAGS:
        return put_filter_flags(out, one);
    case TCA_MATCHALL_ACT:
        return put_nest(out, one, one_action);
    default:
        return put_as_is(out, one);
    }
}

static int matchall_clean(struct nl_msg *out, const struct nlattr *options)
{
    return put_nest(out, options, matchall_member);
}

static int flower_member(struct nl_msg *out, const struct nlattr *one)
{
    switch (nla_type(one)) {
    case FLOWER_IN_HW_COUNT:
        return 0;
    case TCA_FLOWER_FLAGS:
        return put_filter_flags(out, one);
    case TCA_FLOWER_ACT:
        return put_nest(out, one, one_action);
    default:
        return put_as_is(out, one);
    }
}

static int flower_clean(struct nl_msg *out, const struct nlattr *options)
{
    return put_nest(out, options, flower_member);
}

/* What their defaults say again by themselves: options in the dump that no set takes. */
static int drop(struct nl_msg *out, const struct nlattr *options)
{
    (void)out, (void)options;
    return 0;
}

/* Every kind here was tried: what stood before and after a restore was the same dump. */
static const struct kind {
    enum entry_kind entry;
    const char *name;
    clean_fn *clean;
    int actions, flags; /* of a filter: attributes inside TCA_OPTIONS */
    bool own_classes;
} kinds[] = {
    {ENTRY_QDISC, "bfifo", put_as_is},
    {ENTRY_QDISC, "clsact", drop},
    {ENTRY_QDISC, "fq", put_as_is},
    {ENTRY_QDISC, "fq_codel", fq_codel_clean},
    {ENTRY_QDISC, "htb", htb_clean, .own_classes = true},
    {ENTRY_QDISC, "ingress", drop},
    {ENTRY_QDISC, "mq", drop},
    {ENTRY_QDISC, "noqueue", drop},
    {ENTRY_QDISC, "pfifo", put_as_is},
    {ENTRY_QDISC, "pfifo_fast", drop},
    {ENTRY_QDISC, "prio", put_as_is},
    {ENTRY_QDISC, "sfq", sfq_clean},
    {ENTRY_QDISC, "tbf", tbf_clean},
    {ENTRY_CLASS, "htb", put_as_is},
    {ENTRY_FILTER, "flower", flower_clean, TCA_FLOWER_ACT, TCA_FLOWER_FLAGS},
    {ENTRY_FILTER, "matchall", matchall_clean, TCA_MATCHALL_ACT, TCA_MATCHALL_FLAGS},
    {ENTRY_FILTER, "u32", u32_clean, TCA_U32_ACT, TCA_U32_FLAGS},
};

static const struct kind *find_kind(enum entry_kind entry, const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].entry == entry && !strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

bool entry_has_own_classes(const struct entry *qdisc)
{
    const struct kind *kind = find_kind(ENTRY_QDISC, qdisc->name);
    return kind && kind->own_classes;
}

static int clean_attribute(struct nl_msg *out, const struct nlattr *one, const struct kind *kind)
{
    switch (nla_type(one)) {
    case TCA_OPTIONS:
        return kind ? kind->clean(out, one) : put_as_is(out, one);
    case TCA_STAB:
    case TCA_HW_OFFLOAD:
    case TCA_CHAIN:
    case TCA_INGRESS_BLOCK:
    case TCA_EGRESS_BLOCK:
        return put_as_is(out, one);
    default: /* the name, statistics, padding */
        return 0;
    }
}

static int clean_all(const struct nlmsghdr *answer, struct entry *entry, struct err *err)
{
    const struct kind *kind = find_kind(entry->kind, entry->name);
    struct nlattr *first = nlmsg_attrdata(answer, sizeof(struct tcmsg));
    int rc = 0, rest = nlmsg_attrlen(answer, sizeof(struct tcmsg));
    struct nl_msg *out = nlmsg_alloc_size(answer->nlmsg_len + 256);
    struct nlmsghdr *header = out ? nlmsg_put(out, 0, 0, 0, 0, 0) : NULL;
    for (struct nlattr *one = first; header && !rc && nla_ok(one, rest); one = nla_next(one, &rest))
        rc = clean_attribute(out, one, kind);
    entry->size = header && !rc ? (size_t)nlmsg_datalen(header) : 0;
    entry->attributes = header && !rc ? malloc(entry->size + 1) : NULL;
    if (entry->attributes)
        memcpy(entry->attributes, nlmsg_data(header), entry->size);
    nlmsg_free(out);
    return entry->attributes ? 0 : err_set(err, ENOMEM, "out of memory while reading %s", entry->name);
}

int entry_of_dump(const struct nlmsghdr *answer, struct entry *entry, struct err *err)
{
    const struct tcmsg *tc = nlmsg_data(answer);
    struct nlattr *name = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *tc, TCA_KIND);
    *entry = (struct entry){.kind = answer->nlmsg_type == RTM_NEWQDISC    ? ENTRY_QDISC
                                    : answer->nlmsg_type == RTM_NEWTCLASS ? ENTRY_CLASS
                                                                          : ENTRY_FILTER,
                            .handle = tc->tcm_handle,
                            .parent = tc->tcm_parent};
    if (entry->kind == ENTRY_FILTER)
        entry->info = tc->tcm_info; /* of a qdisc: how many hold it; of a class: its leaf, which has its own entry */
    if (name)
        nla_strlcpy(entry->name, name, sizeof entry->name);
    return clean_all(answer, entry, err);
}

void entry_free(struct entry *entry)
{
    free(entry->attributes);
    *entry = (struct entry){0};
}

static void handle_text(uint32_t handle, char text[16])
{
    if (TC_H_MIN(handle))
        snprintf(text, 16, "%x:%x", TC_H_MAJ(handle) >> 16, TC_H_MIN(handle));
    else
        snprintf(text, 16, "%x:", TC_H_MAJ(handle) >> 16);
}

void entry_text(const struct entry *entry, char *text, size_t size)
{
    char handle[16], parent[16];
    handle_text(entry->handle, handle);
    handle_text(entry->parent, parent);
    if (entry->kind == ENTRY_FILTER)
        snprintf(text, size, "filter %s %x of %s priority %u", entry->name, entry->handle, parent, entry->info >> 16);
    else
        snprintf(text, size, "%s %s %s", entry->kind == ENTRY_QDISC ? "qdisc" : "class", entry->name, handle);
}

static const struct nlattr *attribute(const struct entry *entry, int type)
{
    return nla_find((const struct nlattr *)entry->attributes, (int)entry->size, type);
}

static uint32_t number(const struct entry *entry, int type)
{
    const struct nlattr *found = attribute(entry, type);
    uint32_t value = 0;
    if (found)
        memcpy(&value, nla_data(found), (size_t)nla_len(found) < sizeof value ? (size_t)nla_len(found) : sizeof value);
    return value;
}

/* The first action that is not one of those tried, or NULL. */
static const char *foreign_action(const struct nlattr *actions)
{
    int rest = nla_len(actions);
    for (struct nlattr *one = nla_data(actions); nla_ok(one, rest); one = nla_next(one, &rest)) {
        struct nlattr *kind = nla_find(nla_data(one), nla_len(one), TCA_ACT_KIND);
        if (!kind || nla_strcmp(kind, "mirred"))
            return kind ? nla_get_string(kind) : "without a name";
    }
    return NULL;
}

static int filter_restorable(const struct entry *entry, const struct kind *kind, const char *text, struct err *err)
{
    const struct nlattr *options = attribute(entry, TCA_OPTIONS);
    if (!options)
        return 0;
    const struct nlattr *actions = nla_find(nla_data(options), nla_len(options), kind->actions);
    const struct nlattr *flags = nla_find(nla_data(options), nla_len(options), kind->flags);
    const char *action = actions ? foreign_action(actions) : NULL;
    if (action)
        return err_set(err, ENOTSUP, "%s has an action (%s) that could not be put back exactly", text, action);
    if (flags && nla_get_u32(flags) & TCA_CLS_FLAGS_IN_HW)
        return err_set(err, ENOTSUP, "%s is offloaded to hardware and could not be put back exactly", text);
    return 0;
}

static uint32_t mirred_index(const struct nlattr *action)
{
    struct nlattr *options = nla_find(nla_data(action), nla_len(action), TCA_ACT_OPTIONS);
    struct nlattr *parameters = options ? nla_find(nla_data(options), nla_len(options), TCA_MIRRED_PARMS) : NULL;
    struct tc_mirred mirred = {0};
    if (parameters && nla_len(parameters) >= (int)sizeof mirred)
        memcpy(&mirred, nla_data(parameters), sizeof mirred);
    return mirred.index;
}

size_t entry_mirreds(const struct entry *filter, uint32_t *indices, size_t room)
{
    const struct kind *kind = find_kind(filter->kind, filter->name);
    const struct nlattr *options = attribute(filter, TCA_OPTIONS);
    const struct nlattr *actions =
        kind && kind->actions && options ? nla_find(nla_data(options), nla_len(options), kind->actions) : NULL;
    size_t count = 0;
    int rest = actions ? nla_len(actions) : 0;
    for (struct nlattr *one = actions ? nla_data(actions) : NULL; count < room && nla_ok(one, rest);
         one = nla_next(one, &rest))
        indices[count++] = mirred_index(one);
    return count;
}

int entry_restorable(const struct entry *entry, struct err *err)
{
    char text[96];
    entry_text(entry, text, sizeof text);
    const struct kind *kind = find_kind(entry->kind, entry->name);
    if (!strcmp(entry->name, "netem"))
        return err_set(err, ENOTSUP, "%s could not be put back exactly: no kernel tells its jitter table", text);
    if (!kind)
        return err_set(err, ENOTSUP, "%s could not be put back exactly: its kind was never tried", text);
    if (attribute(entry, TCA_STAB))
        return err_set(err, ENOTSUP, "%s has a size table (stab), which no kernel tells", text);
    if (number(entry, TCA_HW_OFFLOAD))
        return err_set(err, ENOTSUP, "%s is offloaded to hardware and could not be put back exactly", text);
    if (number(entry, TCA_CHAIN) || number(entry, TCA_INGRESS_BLOCK) || number(entry, TCA_EGRESS_BLOCK))
        return err_set(err, ENOTSUP, "%s uses chains or shared blocks, which could not be put back exactly", text);
    return entry->kind == ENTRY_FILTER ? filter_restorable(entry, kind, text, err) : 0;
}

struct nl_msg *entry_bare_message(const struct entry *entry, int type, int flags, int ifindex)
{
    struct tcmsg tc = {.tcm_family = AF_UNSPEC,
                       .tcm_ifindex = ifindex,
                       .tcm_handle = entry->handle,
                       .tcm_parent = entry->parent,
                       .tcm_info = entry->info};
    struct nl_msg *message = nlmsg_alloc_size(NLMSG_HDRLEN + sizeof tc + 64 + entry->size);
    if (message && nlmsg_put(message, 0, 0, type, 0, flags) && !nlmsg_append(message, &tc, sizeof tc, NLMSG_ALIGNTO) &&
        !nla_put_string(message, TCA_KIND, entry->name))
        return message;
    nlmsg_free(message);
    return NULL;
}

struct nl_msg *entry_message(const struct entry *entry, int ifindex)
{
    static const int types[] = {
        [ENTRY_QDISC] = RTM_NEWQDISC, [ENTRY_CLASS] = RTM_NEWTCLASS, [ENTRY_FILTER] = RTM_NEWTFILTER};
    int flags = NLM_F_CREATE | (entry->kind == ENTRY_QDISC ? NLM_F_REPLACE : NLM_F_EXCL);
    struct nl_msg *message = entry_bare_message(entry, types[entry->kind], flags, ifindex);
    const struct nlattr *one = (const struct nlattr *)entry->attributes;
    int failed = message ? 0 : 1;
    for (int rest = (int)entry->size; !failed && nla_ok(one, rest); one = nla_next(one, &rest))
        failed = nla_type(one) == TCA_HW_OFFLOAD ? 0 : put_as_is(message, one);
    if (!failed)
        return message;
    nlmsg_free(message);
    return NULL;
}
