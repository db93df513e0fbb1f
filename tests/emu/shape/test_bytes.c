/* Our netlink messages beside those of tc for the same wish, attribute by attribute: tc runs the words that the plan
 * prints, an nlmon device records what it sends. Needs root and a kernel with netem and nlmon: the lab. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <math.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "emu/shape/plan.h"
#include "tests/report/runner.h"

enum { CAPTURE_BYTES = 1 << 17, SKIPPED = 77 };

static void shell(const char *command)
{
    ck_assert_msg(system(command) == 0, "%s", command);
}

static void two_devices_and_a_monitor(void)
{
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    shell("ip link add name dev0 type veth peer name dev1 && ip link set dev0 up && ip link add name mon type nlmon && "
          "ip link set mon up && ip link add name lhifb0 type ifb && ip link set lhifb0 up");
}

static int monitor_open(void)
{
    struct timeval patience = {.tv_sec = 1};
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("mon")};
    int monitor = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
    ck_assert_int_ge(monitor, 0);
    ck_assert_int_eq(bind(monitor, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(setsockopt(monitor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    return monitor;
}

static bool is_wish(const struct nlmsghdr *message)
{
    return (message->nlmsg_flags & (NLM_F_REQUEST | NLM_F_CREATE)) == (NLM_F_REQUEST | NLM_F_CREATE) &&
           (message->nlmsg_type == RTM_NEWQDISC || message->nlmsg_type == RTM_NEWTCLASS ||
            message->nlmsg_type == RTM_NEWTFILTER);
}

/* The next message that asks for a qdisc, class or filter. */
static struct nlmsghdr *next_wish(int monitor, char *buffer)
{
    for (;;) {
        ssize_t length = recv(monitor, buffer, CAPTURE_BYTES, 0);
        ck_assert_msg(length > 0, "tc sent no message that asks for anything");
        struct nlmsghdr *message = (struct nlmsghdr *)(void *)buffer;
        if (nlmsg_ok(message, (int)length) && is_wish(message))
            return message;
    }
}

static bool is_zero(const struct nlattr *attribute)
{
    const char *data = nla_data(attribute);
    for (int i = 0; i < nla_len(attribute); i++)
        if (data[i])
            return false;
    return true;
}

enum scope { SCOPE_TOP, SCOPE_NETEM, SCOPE_LOSS, SCOPE_HTB, SCOPE_U32, SCOPE_ACTIONS, SCOPE_ACTION, SCOPE_MIRRED };

/* We always send all of netem's attributes, so that a second apply resets what the first had set. tc sends rate tables,
 * which kernels since 3.8 compute themselves. Our seed has no word in tc 6.1. */
static bool ours_alone(enum scope scope, const struct nlattr *attribute)
{
    int type = nla_type(attribute);
    if (scope != SCOPE_NETEM)
        return false;
    return type == 14 || type == TCA_NETEM_LATENCY64 || type == TCA_NETEM_JITTER64 ||
           ((type == TCA_NETEM_CORR || type == TCA_NETEM_REORDER || type == TCA_NETEM_CORRUPT ||
             type == TCA_NETEM_SLOT || type == TCA_NETEM_ECN) &&
            is_zero(attribute));
}

static bool tcs_alone(enum scope scope, const struct nlattr *attribute)
{
    int type = nla_type(attribute);
    return scope == SCOPE_HTB && (type == TCA_HTB_RTAB || type == TCA_HTB_CTAB);
}

static const struct nlattr *find(const struct nlattr *first, int length, int type)
{
    int rest = length;
    for (const struct nlattr *it = first; nla_ok(it, rest); it = nla_next(it, &rest))
        if (nla_type(it) == type)
            return it;
    return NULL;
}

static void compare(enum scope scope, const struct nlattr *ours, int our_length, const struct nlattr *tcs,
                    int tc_length, const char *what);

/* What an attribute's own attributes are; SCOPE_TOP where it has none. */
static enum scope inside(enum scope scope, int type)
{
    static const struct {
        enum scope scope;
        int type;
        enum scope inside;
    } nests[] = {{SCOPE_NETEM, TCA_NETEM_LOSS, SCOPE_LOSS},
                 {SCOPE_U32, TCA_U32_ACT, SCOPE_ACTIONS},
                 {SCOPE_ACTIONS, 1, SCOPE_ACTION},
                 {SCOPE_ACTION, TCA_ACT_OPTIONS, SCOPE_MIRRED}};
    for (size_t i = 0; i < sizeof nests / sizeof *nests; i++)
        if (nests[i].scope == scope && nests[i].type == type)
            return nests[i].inside;
    return SCOPE_TOP;
}

/* tc takes percentages and times through floating point: at most one unit of 2^-32, and whole microseconds. */
static bool same_words(const struct nlattr *a, const struct nlattr *b)
{
    if (nla_len(a) != nla_len(b) || nla_len(a) % 4)
        return false;
    for (int i = 0; i < nla_len(a); i += 4) {
        uint32_t left, right;
        memcpy(&left, (char *)nla_data(a) + i, 4);
        memcpy(&right, (char *)nla_data(b) + i, 4);
        if (left - right + 1 > 2)
            return false;
    }
    return true;
}

/* cell_log and cell_align describe the rate tables that only tc sends. */
static bool same_class(const struct nlattr *ours, const struct nlattr *tcs)
{
    struct tc_htb_opt a, b;
    if (nla_len(ours) != sizeof a || nla_len(tcs) != sizeof b)
        return false;
    memcpy(&a, nla_data(ours), sizeof a);
    memcpy(&b, nla_data(tcs), sizeof b);
    b.rate.cell_log = b.ceil.cell_log = 0;
    b.rate.cell_align = b.ceil.cell_align = 0;
    return !memcmp(&a, &b, sizeof a);
}

/* Distance from decile 5 to 9 over that from 1 to 5, which no scale and no middle changes. */
static double skew(const struct nlattr *table)
{
    const int16_t *entries = nla_data(table);
    int count = nla_len(table) / (int)sizeof *entries;
    double low = entries[count / 10], middle = entries[count / 2], high = entries[count * 9 / 10];
    return (high - middle) / (middle - low);
}

/* tc's own tables were drawn; ours are computed, and scaled to a deviation of 1. */
static bool same_shape(const struct nlattr *ours, const struct nlattr *tcs)
{
    return nla_len(ours) == nla_len(tcs) && fabs(skew(ours) / skew(tcs) - 1) < 0.02;
}

static bool same(enum scope scope, const struct nlattr *ours, const struct nlattr *tcs)
{
    int type = nla_type(ours);
    if ((scope == SCOPE_TOP && type == TCA_KIND) || (scope == SCOPE_ACTION && type == TCA_ACT_KIND))
        return !strcmp(nla_get_string((struct nlattr *)ours), nla_get_string((struct nlattr *)tcs));
    if (scope == SCOPE_NETEM && type == TCA_NETEM_DELAY_DIST)
        return same_shape(ours, tcs);
    if (scope == SCOPE_NETEM && (type == TCA_NETEM_LATENCY64 || type == TCA_NETEM_JITTER64))
        return llabs((long long)(nla_get_u64((struct nlattr *)ours) - nla_get_u64((struct nlattr *)tcs))) < 1000;
    if (scope == SCOPE_HTB && type == TCA_HTB_PARMS)
        return same_class(ours, tcs);
    if (nla_len(ours) == nla_len(tcs) && !memcmp(nla_data(ours), nla_data(tcs), (size_t)nla_len(ours)))
        return true;
    return (scope == SCOPE_NETEM || scope == SCOPE_LOSS) && same_words(ours, tcs);
}

static void compare(enum scope scope, const struct nlattr *ours, int our_length, const struct nlattr *tcs,
                    int tc_length, const char *what)
{
    int rest = our_length;
    for (const struct nlattr *it = ours; nla_ok(it, rest); it = nla_next(it, &rest)) {
        const struct nlattr *other = find(tcs, tc_length, nla_type(it));
        if (scope == SCOPE_TOP && nla_type(it) == TCA_OPTIONS)
            continue;
        if (!other)
            ck_assert_msg(ours_alone(scope, it), "%s: only we send attribute %d", what, nla_type(it));
        else if (inside(scope, nla_type(it)) != SCOPE_TOP)
            compare(inside(scope, nla_type(it)), nla_data(it), nla_len(it), nla_data(other), nla_len(other), what);
        else
            ck_assert_msg(same(scope, it, other), "%s: attribute %d differs", what, nla_type(it));
    }
    rest = tc_length;
    for (const struct nlattr *it = tcs; nla_ok(it, rest); it = nla_next(it, &rest))
        if (!find(ours, our_length, nla_type(it)))
            ck_assert_msg(tcs_alone(scope, it), "%s: only tc sends attribute %d", what, nla_type(it));
}

/* The fixed part of netem's options; its times are in ticks of 64 ns, and we send them as 64-bit attributes instead. */
static void compare_netem_header(const struct nlattr *ours, const struct nlattr *tcs, const char *what)
{
    struct tc_netem_qopt a, b;
    memcpy(&a, nla_data(ours), sizeof a);
    memcpy(&b, nla_data(tcs), sizeof b);
    ck_assert_msg(a.limit == b.limit && a.gap == b.gap, "%s: limit or gap differs", what);
    ck_assert_msg(a.loss - b.loss + 1 <= 2 && a.duplicate - b.duplicate + 1 <= 2, "%s: loss or duplicate", what);
    const struct nlattr *delay =
        find((struct nlattr *)((char *)nla_data(ours) + sizeof a), nla_len(ours) - (int)sizeof a, TCA_NETEM_LATENCY64);
    ck_assert_msg(!b.latency ||
                      llabs((long long)b.latency * 64 - (long long)nla_get_u64((struct nlattr *)delay)) < 1000,
                  "%s: delay differs", what);
}

static enum scope scope_of(const struct nlmsghdr *message)
{
    const struct nlattr *kind = nlmsg_find_attr((struct nlmsghdr *)message, sizeof(struct tcmsg), TCA_KIND);
    const char *name = nla_get_string((struct nlattr *)kind);
    return !strcmp(name, "netem") ? SCOPE_NETEM : !strcmp(name, "htb") ? SCOPE_HTB : SCOPE_U32;
}

static void compare_options(const struct nlmsghdr *ours, const struct nlmsghdr *tcs, const char *what)
{
    const struct nlattr *a = nlmsg_find_attr((struct nlmsghdr *)ours, sizeof(struct tcmsg), TCA_OPTIONS);
    const struct nlattr *b = nlmsg_find_attr((struct nlmsghdr *)tcs, sizeof(struct tcmsg), TCA_OPTIONS);
    enum scope scope = scope_of(ours);
    int skip = scope == SCOPE_NETEM ? (int)sizeof(struct tc_netem_qopt) : 0;
    ck_assert_msg(!a == !b, "%s: options on one side only", what);
    if (!a)
        return;
    if (skip)
        compare_netem_header(a, b, what);
    compare(scope, (struct nlattr *)((char *)nla_data(a) + skip), nla_len(a) - skip,
            (struct nlattr *)((char *)nla_data(b) + skip), nla_len(b) - skip, what);
}

static void compare_messages(const struct nlmsghdr *ours, const struct nlmsghdr *tcs, const char *what)
{
    const struct tcmsg *a = nlmsg_data(ours), *b = nlmsg_data(tcs);
    ck_assert_msg(ours->nlmsg_type == tcs->nlmsg_type, "%s: message type", what);
    ck_assert_msg(ours->nlmsg_flags == tcs->nlmsg_flags, "%s: flags %x, tc's %x", what, ours->nlmsg_flags,
                  tcs->nlmsg_flags);
    ck_assert_msg(a->tcm_ifindex == b->tcm_ifindex && a->tcm_handle == b->tcm_handle && a->tcm_info == b->tcm_info,
                  "%s: handle %x, tc's %x; info %x, tc's %x", what, a->tcm_handle, b->tcm_handle, a->tcm_info,
                  b->tcm_info);
    ck_assert_msg(a->tcm_parent == b->tcm_parent, "%s: parent %x, tc's %x", what, a->tcm_parent, b->tcm_parent);
    compare(SCOPE_TOP, nlmsg_attrdata(ours, sizeof *a), nlmsg_attrlen(ours, sizeof *a), nlmsg_attrdata(tcs, sizeof *b),
            nlmsg_attrlen(tcs, sizeof *b), what);
    compare_options(ours, tcs, what);
}

static void run_both(const struct wish *wish)
{
    struct plan plan;
    struct err err = {""};
    char *buffer = malloc(CAPTURE_BYTES);
    int monitor = monitor_open();
    ck_assert_msg(!plan_build(wish, (int)if_nametoindex("dev0"), (int)if_nametoindex("lhifb0"), &plan, &err), "%s",
                  err.text);
    for (size_t i = 0; i < plan.count; i++) {
        char *command = strdup(plan.steps[i].tc), *name = strstr(command, PLAN_IFB_PREFIX);
        if (name) /* the device that this test made, whatever the interface's index */
            memmove(name + strlen(PLAN_IFB_PREFIX "0"), name + strcspn(name, " "),
                    strlen(name + strcspn(name, " ")) + 1),
                name[strlen(PLAN_IFB_PREFIX)] = '0';
        shell(command);
        compare_messages(nlmsg_hdr(plan.steps[i].message), next_wish(monitor, buffer), command);
        free(command);
    }
    printf("%zu messages are tc's\n", plan.count);
    close(monitor);
    free(buffer);
    plan_free(&plan);
}

static const struct {
    enum plan_at at;
    struct impairment it;
    const char *prefixes[3];
} wishes[] = {
    {PLAN_EGRESS, {.delay_ns = 10650000, .rate_byte_per_s = IMPAIRMENT_RATE_NONE}, {"10.2.0.0/16"}},
    {PLAN_EGRESS,
     {.delay_ns = 10650000, .jitter_ns = 495000, .correlation = 0.25, .rate_byte_per_s = 125000000},
     {"10.2.0.0/16", "fd00:2::/33", "10.2.3.4"}},
    {PLAN_EGRESS,
     {.delay_ns = UINT64_C(60000000000),
      .jitter_ns = 495000,
      .jitter_shape = JITTER_PARETONORMAL,
      .loss = {.kind = LOSS_INDEPENDENT, .ratio = 0.0005},
      .reorder = 0.05,
      .corrupt = 1e-6,
      .rate_byte_per_s = UINT64_C(100000000000),
      .seed_given = true,
      .seed = 5},
     {"0.0.0.0/0", "fd00:2::1", "::/0"}},
    {PLAN_EGRESS,
     {.delay_ns = 1000000,
      .loss = {LOSS_GILBERT_ELLIOTT, 0.01, 0.0101, 0.1, 0.9, 0.0001},
      .duplicate = 0.01,
      .rate_byte_per_s = 12500},
     {"10.2.0.0/15"}},
    {PLAN_EGRESS,
     {.delay_ns = 10650000, .jitter_ns = 495000, .jitter_shape = JITTER_PARETO, .rate_byte_per_s = 125000000},
     {"10.2.0.0/16"}},
    {PLAN_INGRESS, {.delay_ns = 10650000, .rate_byte_per_s = 125000000}, {"10.2.0.0/16", "fd00:2::/33"}},
};

START_TEST(what_tc_sends_for_the_same_words)
{
    struct err err = {""};
    struct prefix prefixes[3];
    struct path path = {.name = (char *)"a -> b", .prefixes = prefixes, .impairment = wishes[_i].it};
    struct wish wish = {.device = "dev0", .at = wishes[_i].at, .path_count = 1, .paths = &path};
    for (; path.prefix_count < 3 && wishes[_i].prefixes[path.prefix_count]; path.prefix_count++)
        ck_assert_int_eq(prefix_parse(wishes[_i].prefixes[path.prefix_count], &prefixes[path.prefix_count], &err), 0);
    impairment_limit(&path.impairment);
    ck_assert_msg(!impairment_check(&path.impairment, &err), "%s", err.text);
    two_devices_and_a_monitor();
    run_both(&wish);
}
END_TEST

enum { PATHS = 8 };
/* The path that each address goes by is the one of the longest prefix that holds it. */
static const struct {
    const char *prefix, *address;
} paths[PATHS] = {
    {"0.0.0.0/0", "192.0.2.1"},
    {"10.1.0.0/16", "10.1.9.9"},
    {"10.1.2.3", "10.1.2.3"},
    {"10.0.0.0/7", "11.255.0.1"},
    {"fd00::/8", "fd01::1"},
    {"fd00:1::/33", "fd00:1:7fff::1"},
    {"fd00:1:0:0:8000::/65", "fd00:1::8000:0:0:1"},
    {"fd00:1::5", "fd00:1::5"},
};

static void send_one(const char *address)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(9)};
    bool wide = strchr(address, ':');
    int sock = socket(wide ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(inet_pton(wide ? AF_INET6 : AF_INET, address, wide ? (void *)&six.sin6_addr : &four.sin_addr), 1);
    ssize_t sent = wide ? sendto(sock, "x", 1, 0, (struct sockaddr *)&six, sizeof six)
                        : sendto(sock, "x", 1, 0, (struct sockaddr *)&four, sizeof four);
    ck_assert_msg(sent == 1, "%s: %s", address, strerror(errno));
    close(sock);
}

static long packets_of_class(size_t path)
{
    char command[128], line[256];
    long packets = -1;
    snprintf(command, sizeof command, "tc -s class show dev dev0 classid %x:%zx", PLAN_HANDLE, path + 1);
    FILE *tc = popen(command, "re");
    ck_assert_ptr_nonnull(tc);
    while (fgets(line, sizeof line, tc))
        sscanf(line, " Sent %*s bytes %ld pkt", &packets);
    pclose(tc);
    return packets;
}

static void run_all(const struct wish *wish)
{
    struct plan plan;
    struct err err = {""};
    ck_assert_msg(!plan_build(wish, (int)if_nametoindex("dev0"), 0, &plan, &err), "%s", err.text);
    for (size_t i = 0; i < plan.count; i++)
        shell(plan.steps[i].tc);
    plan_free(&plan);
}

/* Addresses in turn: the k-th gets k + 1 packets. */
START_TEST(the_longest_prefix_wins)
{
    struct err err = {""};
    struct prefix prefixes[PATHS];
    struct path all[PATHS];
    struct wish wish = {.device = "dev0", .path_count = PATHS, .paths = all};
    for (size_t i = 0; i < PATHS; i++) {
        ck_assert_int_eq(prefix_parse(paths[i].prefix, &prefixes[i], &err), 0);
        all[i] = (struct path){.name = (char *)paths[i].prefix, .prefix_count = 1, .prefixes = &prefixes[i]};
        impairment_init(&all[i].impairment);
    }
    two_devices_and_a_monitor();
    shell("sysctl -q -w net.ipv6.conf.dev0.router_solicitations=0; ip link set dev1 up && ip link set dev0 arp off && "
          "ip addr add 198.51.100.1/24 dev dev0 && ip route add default dev dev0 && "
          "ip addr add fd99::1/64 dev dev0 nodad && ip -6 route add default dev dev0");
    run_all(&wish);
    for (size_t i = 0; i < PATHS; i++)
        for (size_t k = 0; k <= i; k++)
            send_one(paths[i].address);
    for (size_t i = 0; i < PATHS; i++)
        ck_assert_msg(packets_of_class(i) == (long)i + 1, "%s: %ld packets of %zu", paths[i].prefix,
                      packets_of_class(i), i + 1);
}
END_TEST

static bool possible(void)
{
    return geteuid() == 0 && system("ip link add name lhmon type nlmon 2>/dev/null && ip link del lhmon") == 0 &&
           system("ip link add name lhtry type ifb 2>/dev/null && tc qdisc add dev lhtry root netem delay 1ms "
                  "2>/dev/null; code=$?; ip link del lhtry 2>/dev/null; exit $code") == 0;
}

int main(void)
{
    if (unshare(CLONE_NEWNET) || !possible()) {
        puts("skipped: needs root, iproute2 and a kernel with netem, ifb and nlmon");
        return SKIPPED;
    }
    TCase *tests = tcase_create("bytes");
    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, what_tc_sends_for_the_same_words, 0, sizeof wishes / sizeof *wishes);
    tcase_add_test(tests, the_longest_prefix_wins);
    return run_cases("emu-bytes", tests);
}
