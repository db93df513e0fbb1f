#include "emu/shape/plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <stdlib.h>
#include <string.h>

#include "emu/shape/distribution.h"
#include "emu/shape/netem.h"

/* The class only sorts: 8 Tb/s, buckets of 1 ms, which is 15625 ticks of 64 ns. */
#define CLASS_BYTE_PER_S UINT64_C(1000000000000)
enum {
    CLASS_BUCKET_TICKS = 15625,
    CLASS_QUANTUM = 200000,
    DIRECT_QUEUE = 10000,
    HTB_VERSION = 3,
    RATE_TO_QUANTUM = 10
};
/* Room for a message: a netem carries a table of up to 32 KiB. */
enum { SMALL_MESSAGE = 1024, NETEM_MESSAGE = 65536 };
/* u32 numbers the filters of a priority from 1 to 0xfff. */
enum { FILTERS_MAX = 4095 };
#define INGRESS_HANDLE 0xffff0000u

enum { IPV4_SOURCE = 12, IPV4_DESTINATION = 16, IPV6_SOURCE = 8, IPV6_DESTINATION = 24 };

static uint32_t handle(uint32_t major, uint32_t minor)
{
    return major << 16 | minor;
}

static void paths_free(struct path *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(paths[i].name);
        free(paths[i].prefixes);
        impairment_free(&paths[i].impairment);
    }
    free(paths);
}

void wish_free(struct wish *wish)
{
    paths_free(wish->paths, wish->path_count);
    *wish = (struct wish){0};
}

static bool prefix_equal(const struct prefix *a, const struct prefix *b)
{
    return a->length == b->length && prefix_contains(a, b);
}

static bool path_equal(const struct path *a, const struct path *b)
{
    if (strcmp(a->name, b->name) || a->prefix_count != b->prefix_count)
        return false;
    for (size_t i = 0; i < a->prefix_count; i++)
        if (!prefix_equal(&a->prefixes[i], &b->prefixes[i]))
            return false;
    return impairment_equal(&a->impairment, &b->impairment);
}

bool wish_equal(const struct wish *a, const struct wish *b)
{
    if (strcmp(a->device, b->device) || a->at != b->at || a->gso_off != b->gso_off || a->path_count != b->path_count)
        return false;
    for (size_t i = 0; i < a->path_count; i++)
        if (!path_equal(&a->paths[i], &b->paths[i]))
            return false;
    return true;
}

/* One prefix of one path, to be sorted. */
struct match {
    const struct prefix *prefix;
    size_t path;
};

struct build {
    const struct wish *wish;
    struct plan *plan;
    int ifindex;        /* that carries the htb tree */
    const char *device; /* its name */
    char ifb[IF_NAMESIZE];
    struct match *matches; /* of both families; longest first, so that the first match is the most exact */
    size_t match_count;
    struct err *err;
};

static int no_memory(struct build *build)
{
    return err_set(build->err, ENOMEM, "out of memory");
}

/* Appends a step with a started message; *step is valid until the next one. */
static int step_new(struct build *build, const char *what, uint16_t type, const struct tcmsg *header, size_t size,
                    struct step **step)
{
    struct plan *plan = build->plan;
    *step = &plan->steps[plan->count];
    **step = (struct step){.what = what, .message = nlmsg_alloc_size(size)};
    if (!(*step)->message)
        return no_memory(build);
    plan->count++;
    struct nlmsghdr *put = nlmsg_put((*step)->message, NL_AUTO_PORT, NL_AUTO_SEQ, type, 0,
                                     NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    if (!put || nlmsg_append((*step)->message, (void *)header, sizeof *header, NLMSG_ALIGNTO))
        return no_memory(build);
    return 0;
}

static struct tcmsg tc_header(int ifindex, uint32_t parent, uint32_t own, uint32_t info)
{
    return (struct tcmsg){
        .tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_parent = parent, .tcm_handle = own, .tcm_info = info};
}

static int say(struct build *build, struct step *step, int length)
{
    if (length < 0) {
        step->tc = NULL;
        return no_memory(build);
    }
    return 0;
}

static int add_root(struct build *build)
{
    const struct tcmsg header = tc_header(build->ifindex, TC_H_ROOT, handle(PLAN_HANDLE, 0), 0);
    const struct tc_htb_glob settings = {.version = HTB_VERSION, .rate2quantum = RATE_TO_QUANTUM};
    struct step *step;
    int rc = step_new(build, "root qdisc", RTM_NEWQDISC, &header, SMALL_MESSAGE, &step);
    if (rc)
        return rc;
    struct nlattr *options;
    if (nla_put_string(step->message, TCA_KIND, "htb") || !(options = nla_nest_start(step->message, TCA_OPTIONS)) ||
        nla_put(step->message, TCA_HTB_INIT, sizeof settings, &settings) ||
        nla_put_u32(step->message, TCA_HTB_DIRECT_QLEN, DIRECT_QUEUE) || nla_nest_end(step->message, options))
        return no_memory(build);
    return say(build, step,
               asprintf(&step->tc, "tc qdisc add dev %s root handle %x: htb default 0 direct_qlen %d", build->device,
                        PLAN_HANDLE, DIRECT_QUEUE));
}

static int add_class(struct build *build, size_t path)
{
    const struct tcmsg header =
        tc_header(build->ifindex, handle(PLAN_HANDLE, 0), handle(PLAN_HANDLE, (uint32_t)path + 1), 0);
    const struct tc_ratespec rate = {.rate = UINT32_MAX, .linklayer = TC_LINKLAYER_ETHERNET};
    const struct tc_htb_opt settings = {.rate = rate,
                                        .ceil = rate,
                                        .buffer = CLASS_BUCKET_TICKS,
                                        .cbuffer = CLASS_BUCKET_TICKS,
                                        .quantum = CLASS_QUANTUM};
    struct step *step;
    int rc = step_new(build, "class", RTM_NEWTCLASS, &header, SMALL_MESSAGE, &step);
    if (rc)
        return rc;
    struct nlattr *options;
    if (nla_put_string(step->message, TCA_KIND, "htb") || !(options = nla_nest_start(step->message, TCA_OPTIONS)) ||
        nla_put_u64(step->message, TCA_HTB_RATE64, CLASS_BYTE_PER_S) ||
        nla_put_u64(step->message, TCA_HTB_CEIL64, CLASS_BYTE_PER_S) ||
        nla_put(step->message, TCA_HTB_PARMS, sizeof settings, &settings) || nla_nest_end(step->message, options))
        return no_memory(build);
    return say(build, step,
               asprintf(&step->tc,
                        "tc class add dev %s parent %x: classid %x:%zx htb rate %" PRIu64 "bps ceil %" PRIu64
                        "bps burst %" PRIu64 " cburst %" PRIu64 " quantum %d",
                        build->device, PLAN_HANDLE, PLAN_HANDLE, path + 1, CLASS_BYTE_PER_S, CLASS_BYTE_PER_S,
                        CLASS_BYTE_PER_S / 1000, CLASS_BYTE_PER_S / 1000, CLASS_QUANTUM));
}

/* What print writes, allocated; NULL out of memory. */
static char *words_of(void (*print)(FILE *out, const struct impairment *impairment),
                      const struct impairment *impairment)
{
    char *words = NULL;
    size_t size;
    FILE *out = open_memstream(&words, &size);
    if (!out)
        return NULL;
    print(out, impairment);
    if (fclose(out)) {
        free(words);
        return NULL;
    }
    return words;
}

static int read_table(struct build *build, const struct impairment *impairment, struct distribution *distribution)
{
    *distribution = (struct distribution){0};
    if (!impairment->jitter_ns)
        return 0;
    return impairment->table_file ? distribution_read(impairment->table_file, distribution, build->err)
                                  : distribution_of_shape(impairment->jitter_shape, distribution, build->err);
}

static int add_netem(struct build *build, size_t path)
{
    const struct impairment *impairment = &build->wish->paths[path].impairment;
    uint32_t own = PLAN_HANDLE + (uint32_t)path + 1;
    const struct tcmsg header = tc_header(build->ifindex, handle(PLAN_HANDLE, (uint32_t)path + 1), handle(own, 0), 0);
    struct step *step;
    struct distribution distribution;
    int rc = read_table(build, impairment, &distribution);
    rc = rc ? rc : step_new(build, "netem", RTM_NEWQDISC, &header, NETEM_MESSAGE, &step);
    rc = rc ? rc : netem_put(step->message, impairment, distribution.table ? &distribution : NULL, build->err);
    distribution_free(&distribution);
    if (rc)
        return rc;
    char *words = words_of(netem_print_tc, impairment);
    char *environment = words_of(netem_print_tc_environment, impairment);
    rc = !words || !environment ? no_memory(build)
                                : say(build, step,
                                      asprintf(&step->tc, "%stc qdisc add dev %s parent %x:%zx handle %x: %s",
                                               environment, build->device, PLAN_HANDLE, path + 1, own, words));
    free(environment);
    free(words);
    return rc;
}

/* The words of a prefix, 32 bits each, from where the address stands in its header; those that no bit fixes are left
 * out but the first of IPv4, as tc does. */
static uint8_t put_keys(const struct prefix *prefix, enum plan_at at, struct tc_u32_key *keys)
{
    bool wide = prefix->family == AF_INET6;
    int offset = wide ? (at == PLAN_INGRESS ? IPV6_SOURCE : IPV6_DESTINATION)
                      : (at == PLAN_INGRESS ? IPV4_SOURCE : IPV4_DESTINATION);
    uint8_t count = 0;
    for (unsigned bit = 0; bit < prefix->length || (!wide && bit == 0); bit += 32) {
        unsigned fixed = prefix->length > bit + 32 ? 32 : prefix->length - bit;
        struct tc_u32_key *key = &keys[count++];
        *key = (struct tc_u32_key){.mask = fixed ? htonl(UINT32_MAX << (32 - fixed)) : 0, .off = offset + (int)bit / 8};
        memcpy(&key->val, prefix->address + bit / 8, sizeof key->val);
    }
    return count;
}

static int put_selector(struct nl_msg *message, const struct prefix *prefix, enum plan_at at)
{
    struct tc_u32_key keys[4];
    struct tc_u32_sel head = {.flags = TC_U32_TERMINAL, .nkeys = put_keys(prefix, at, keys)};
    size_t keys_bytes = head.nkeys * sizeof *keys;
    struct nlattr *selector = nla_reserve(message, TCA_U32_SEL, (int)(sizeof head + keys_bytes));
    if (!selector)
        return -ENOMEM;
    memcpy(nla_data(selector), &head, sizeof head);
    memcpy((char *)nla_data(selector) + sizeof head, keys, keys_bytes);
    return 0;
}

/* The action that hands what matches to another device, as if it were sent there. */
static int put_redirect(struct nl_msg *message, int ifindex)
{
    const struct tc_mirred settings = {
        .action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = (uint32_t)ifindex};
    struct nlattr *actions = nla_nest_start(message, TCA_U32_ACT), *action, *options;
    if (!actions || !(action = nla_nest_start(message, 1)) || nla_put_string(message, TCA_ACT_KIND, "mirred") ||
        !(options = nla_nest_start(message, TCA_ACT_OPTIONS)) ||
        nla_put(message, TCA_MIRRED_PARMS, sizeof settings, &settings) || nla_nest_end(message, options) ||
        nla_nest_end(message, action))
        return -ENOMEM;
    return nla_nest_end(message, actions);
}

static uint32_t filter_info(const struct prefix *prefix)
{
    bool wide = prefix->family == AF_INET6;
    return (uint32_t)(wide ? PLAN_PRIO_IPV6 : PLAN_PRIO_IPV4) << 16 | htons(wide ? ETH_P_IPV6 : ETH_P_IP);
}

static void match_words(const struct prefix *prefix, enum plan_at at, char *words, size_t size)
{
    char text[PREFIX_TEXT_MAX];
    bool wide = prefix->family == AF_INET6;
    prefix_format(prefix, text, sizeof text);
    snprintf(words, size, "protocol %s prio %d u32 match %s %s %s%s", wide ? "ipv6" : "ip",
             wide ? PLAN_PRIO_IPV6 : PLAN_PRIO_IPV4, wide ? "ip6" : "ip", at == PLAN_INGRESS ? "src" : "dst", text,
             strchr(text, '/') ? ""
             : wide            ? "/128"
                               : "/32");
}

/* Into the class of the path. */
static int add_filter(struct build *build, const struct match *match)
{
    const struct tcmsg header = tc_header(build->ifindex, handle(PLAN_HANDLE, 0), 0, filter_info(match->prefix));
    char words[160];
    struct step *step;
    int rc = step_new(build, "filter", RTM_NEWTFILTER, &header, SMALL_MESSAGE, &step);
    if (rc)
        return rc;
    struct nlattr *options;
    if (nla_put_string(step->message, TCA_KIND, "u32") || !(options = nla_nest_start(step->message, TCA_OPTIONS)) ||
        nla_put_u32(step->message, TCA_U32_CLASSID, handle(PLAN_HANDLE, (uint32_t)match->path + 1)) ||
        put_selector(step->message, match->prefix, build->wish->at) || nla_nest_end(step->message, options))
        return no_memory(build);
    match_words(match->prefix, build->wish->at, words, sizeof words);
    return say(build, step,
               asprintf(&step->tc, "tc filter add dev %s parent %x: %s flowid %x:%zx", build->device, PLAN_HANDLE,
                        words, PLAN_HANDLE, match->path + 1));
}

/* From the device's ingress to its ifb. */
static int add_redirect(struct build *build, const struct match *match, int ifindex)
{
    const struct tcmsg header = tc_header(ifindex, INGRESS_HANDLE, 0, filter_info(match->prefix));
    char words[160];
    struct step *step;
    int rc = step_new(build, "redirecting filter", RTM_NEWTFILTER, &header, SMALL_MESSAGE, &step);
    if (rc)
        return rc;
    struct nlattr *options;
    if (nla_put_string(step->message, TCA_KIND, "u32") || !(options = nla_nest_start(step->message, TCA_OPTIONS)) ||
        put_redirect(step->message, build->ifindex) || put_selector(step->message, match->prefix, PLAN_INGRESS) ||
        nla_nest_end(step->message, options))
        return no_memory(build);
    match_words(match->prefix, PLAN_INGRESS, words, sizeof words);
    return say(build, step,
               asprintf(&step->tc, "tc filter add dev %s parent ffff: %s action mirred egress redirect dev %s",
                        build->wish->device, words, build->ifb));
}

static int add_ingress(struct build *build, int ifindex)
{
    const struct tcmsg header = tc_header(ifindex, TC_H_INGRESS, INGRESS_HANDLE, 0);
    struct step *step;
    int rc = step_new(build, "ingress qdisc", RTM_NEWQDISC, &header, SMALL_MESSAGE, &step);
    if (rc)
        return rc;
    if (nla_put_string(step->message, TCA_KIND, "ingress"))
        return no_memory(build);
    return say(build, step, asprintf(&step->tc, "tc qdisc add dev %s handle ffff: ingress", build->wish->device));
}

static int add_redirects(struct build *build, int ifindex)
{
    int rc = add_ingress(build, ifindex);
    for (size_t i = 0; !rc && i < build->match_count; i++)
        rc = add_redirect(build, &build->matches[i], ifindex);
    return rc;
}

/* IPv4 before IPv6, longer before shorter, then as given. */
static int compare_matches(const void *left, const void *right)
{
    const struct match *a = left, *b = right;
    if (a->prefix->family != b->prefix->family)
        return a->prefix->family == AF_INET ? -1 : 1;
    if (a->prefix->length != b->prefix->length)
        return a->prefix->length > b->prefix->length ? -1 : 1;
    int order = memcmp(a->prefix->address, b->prefix->address, sizeof a->prefix->address);
    return order ? order : (a->path > b->path) - (a->path < b->path);
}

static int check_matches(struct build *build)
{
    char text[PREFIX_TEXT_MAX];
    size_t counts[2] = {0};
    for (size_t i = 0; i < build->match_count; i++) {
        const struct match *match = &build->matches[i];
        bool wide = match->prefix->family == AF_INET6;
        if (i && prefix_equal(match->prefix, build->matches[i - 1].prefix))
            return err_set(build->err, EINVAL, "%s is listed twice; a destination has one path",
                           prefix_format(match->prefix, text, sizeof text));
        if (++counts[wide] > FILTERS_MAX)
            return err_set(build->err, EINVAL, "more than %d %s prefixes on one device; join them into larger ones",
                           FILTERS_MAX, wide ? "IPv6" : "IPv4");
    }
    return 0;
}

static int collect_matches(struct build *build)
{
    const struct wish *wish = build->wish;
    size_t total = 0;
    for (size_t i = 0; i < wish->path_count; i++)
        total += wish->paths[i].prefix_count;
    if (!total)
        return err_set(build->err, EINVAL, "no destination for %s; name one, like --to 10.2.0.0/16", wish->device);
    build->matches = calloc(total, sizeof *build->matches);
    if (!build->matches)
        return no_memory(build);
    for (size_t i = 0; i < wish->path_count; i++)
        for (size_t j = 0; j < wish->paths[i].prefix_count; j++)
            build->matches[build->match_count++] = (struct match){&wish->paths[i].prefixes[j], i};
    qsort(build->matches, total, sizeof *build->matches, compare_matches);
    return check_matches(build);
}

static int add_tree(struct build *build)
{
    int rc = add_root(build);
    for (size_t i = 0; !rc && i < build->wish->path_count; i++) {
        rc = add_class(build, i);
        rc = rc ? rc : add_netem(build, i);
    }
    for (size_t i = 0; !rc && i < build->match_count; i++)
        rc = add_filter(build, &build->matches[i]);
    return rc;
}

int plan_build(const struct wish *wish, int ifindex, int ifb_ifindex, struct plan *plan, struct err *err)
{
    bool ingress = wish->at == PLAN_INGRESS;
    struct build build = {.wish = wish, .plan = plan, .ifindex = ingress ? ifb_ifindex : ifindex, .err = err};
    *plan = (struct plan){0};
    if (wish->path_count < 1 || wish->path_count > PLAN_PATHS_MAX)
        return err_set(err, EINVAL, "%zu paths on %s; 1 to %d are possible", wish->path_count, wish->device,
                       PLAN_PATHS_MAX);
    snprintf(build.ifb, sizeof build.ifb, PLAN_IFB_PREFIX "%d", ifindex);
    build.device = ingress ? build.ifb : wish->device;
    int rc = collect_matches(&build);
    if (!rc) {
        plan->steps = calloc(2 + 2 * wish->path_count + 2 * build.match_count, sizeof *plan->steps);
        rc = plan->steps ? add_tree(&build) : no_memory(&build);
    }
    /* Last: from here on packets go through the tree. */
    if (!rc && ingress)
        rc = add_redirects(&build, ifindex);
    free(build.matches);
    if (rc)
        plan_free(plan);
    return rc;
}

void plan_free(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        nlmsg_free(plan->steps[i].message);
        free(plan->steps[i].tc);
    }
    free(plan->steps);
    *plan = (struct plan){0};
}
