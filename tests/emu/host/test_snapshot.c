/* Whatever stood before stands again, byte for byte in the kernel's dumps, after the tree was replaced and restored. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/host/snapshot.h"
#include "tests/emu/host/rig.h"

static const struct setup {
    const char *name, *commands;
    unsigned parts;
} setups[] = {
    {"driver default", "true", SNAPSHOT_EGRESS},
    {"noqueue by hand", "tc qdisc add dev e0 root noqueue", SNAPSHOT_EGRESS},
    {"mq by hand", "tc qdisc add dev e0 root handle 8001: mq", SNAPSHOT_EGRESS},
    {"mq with children on some queues",
     "tc qdisc add dev e0 root handle 1: mq && tc qdisc add dev e0 parent 1:1 handle 11: fq quantum 9000 &&"
     "tc qdisc add dev e0 parent 1:3 handle 13: pfifo limit 77 && tc qdisc add dev e0 parent 1:4 fq_codel target 3ms",
     SNAPSHOT_EGRESS},
    {"fq by default", "tc qdisc add dev e0 root fq", SNAPSHOT_EGRESS},
    {"fq with parameters",
     "tc qdisc add dev e0 root handle 5: fq limit 20000 flow_limit 200 buckets 2048 quantum 3000 initial_quantum 30000 "
     "maxrate 9gbit refill_delay 30ms orphan_mask 511 low_rate_threshold 1mbit ce_threshold 2ms timer_slack 20us "
     "horizon 5s horizon_cap nopacing",
     SNAPSHOT_EGRESS},
    {"fq without a rate limit of its own", "tc qdisc add dev e0 root fq pacing ce_threshold 0", SNAPSHOT_EGRESS},
    {"fq_codel by default", "tc qdisc add dev e0 root handle 9: fq_codel", SNAPSHOT_EGRESS},
    {"fq_codel with parameters",
     "tc qdisc add dev e0 root fq_codel limit 2000 flows 512 target 7777us interval 123457us quantum 3028 noecn "
     "ce_threshold 1234us memory_limit 3000000 drop_batch 32",
     SNAPSHOT_EGRESS},
    {"tbf", "tc qdisc add dev e0 root handle 2: tbf rate 777kbit burst 4321 limit 98765", SNAPSHOT_EGRESS},
    {"tbf, fast, with a peak and a child",
     "tc qdisc add dev e0 root handle 2: tbf rate 40gbit burst 900123 latency 12ms peakrate 45gbit mtu 65000 &&"
     "tc qdisc add dev e0 parent 2:1 handle 20: sfq quantum 2000",
     SNAPSHOT_EGRESS},
    {"prio",
     "tc qdisc add dev e0 root handle 3: prio bands 4 priomap 3 2 1 0 1 1 1 1 1 1 1 1 1 1 1 1 &&"
     "tc qdisc add dev e0 parent 3:2 handle 32: pfifo limit 9 &&"
     "tc qdisc add dev e0 parent 3:4 bfifo limit 12345 &&"
     "tc filter add dev e0 parent 3: prio 7 protocol ip u32 match ip dport 22 0xffff flowid 3:1",
     SNAPSHOT_EGRESS},
    {"sfq",
     "tc qdisc add dev e0 root handle 4: sfq quantum 3000 perturb 10 limit 500 divisor 2048 flows 200 depth 60 "
     "headdrop",
     SNAPSHOT_EGRESS},
    {"sfq with red",
     "tc qdisc add dev e0 root sfq limit 3000 depth 80 min 8000 max 60000 probability 0.12 ecn redflowlimit "
     "100000 harddrop",
     SNAPSHOT_EGRESS},
    {"htb with classes, leaves and filters",
     "tc qdisc add dev e0 root handle 1: htb default 20 r2q 7 direct_qlen 555 &&"
     "tc class add dev e0 parent 1: classid 1:1 htb rate 90gbit ceil 100gbit burst 2mb &&"
     "tc class add dev e0 parent 1:1 classid 1:10 htb rate 1gbit ceil 5gbit prio 2 quantum 60000 burst 1mb cburst 2mb "
     "&&"
     "tc class add dev e0 parent 1:1 classid 1:20 htb rate 777kbit mpu 64 overhead 14 &&"
     "tc class add dev e0 parent 1:20 classid 1:200 htb rate 100kbit && "
     "tc qdisc add dev e0 parent 1:10 handle 10: fq && tc qdisc add dev e0 parent 1:200 handle 100: fq_codel &&"
     "tc filter add dev e0 parent 1: prio 5 protocol ip u32 match ip dst 10.2.0.0/16 flowid 1:10 &&"
     "tc filter add dev e0 parent 1: prio 5 protocol ip u32 match ip src 10.9.0.0/16 match ip tos 8 0xff flowid 1:200 "
     "&&"
     "tc filter add dev e0 parent 1: prio 6 protocol ipv6 u32 match ip6 dst fd00:2::/32 flowid 1:10",
     SNAPSHOT_EGRESS},
    {"u32 with hash tables, links, a lost priority",
     "tc qdisc add dev e0 root handle 1: htb default 1 && tc class add dev e0 parent 1: classid 1:1 htb rate 1gbit &&"
     "tc filter add dev e0 parent 1: prio 3 protocol ip u32 match u32 0 0 flowid 1:1 &&"
     "tc filter add dev e0 parent 1: prio 4 protocol ip handle 2: u32 divisor 256 &&"
     "tc filter add dev e0 parent 1: prio 4 protocol ip u32 divisor 16 &&"
     "tc filter add dev e0 parent 1: prio 4 protocol ip u32 ht 2:7b: match ip src 1.2.0.123 flowid 1:1 &&"
     "tc filter add dev e0 parent 1: prio 4 protocol ip u32 ht 2:7c: match ip src 1.2.0.124 flowid 1:1 &&"
     "tc filter add dev e0 parent 1: prio 4 protocol ip u32 ht 801:: match ip src 1.2.0.0/16 hashkey mask 0x000000ff "
     "at "
     "12 link 2: &&"
     "tc filter add dev e0 parent 1: prio 9 protocol ip u32 match ip dport 80 0xffff flowid 1:1 &&"
     "tc filter add dev e0 parent 1: prio 9 protocol ip handle ::123 u32 match ip dport 81 0xffff flowid 1:1 &&"
     "tc filter del dev e0 parent 1: prio 3",
     SNAPSHOT_EGRESS},
    {"u32 at a class, with a mirror",
     "tc qdisc add dev e0 root handle 1: htb && tc class add dev e0 parent 1: classid 1:1 htb rate 1gbit &&"
     "tc class add dev e0 parent 1:1 classid 1:2 htb rate 1gbit &&"
     "tc filter add dev e0 parent 1: prio 1 protocol ip u32 match u32 0 0 flowid 1:1 &&"
     "tc filter add dev e0 parent 1:1 prio 2 protocol ip u32 match u32 0 0 flowid 1:2 action mirred egress mirror dev "
     "e1",
     SNAPSHOT_EGRESS},
    {"matchall and flower",
     "tc qdisc add dev e0 root handle 1: prio && tc filter add dev e0 parent 1: prio 9 matchall classid 1:2 &&"
     "tc filter add dev e0 parent 1: prio 2 protocol ip flower dst_ip 10.2.0.0/16 ip_proto tcp dst_port 80 classid 1:1",
     SNAPSHOT_EGRESS},
    {"no ingress", "true", SNAPSHOT_INGRESS},
    {"ingress with filters",
     "tc qdisc add dev e0 ingress && tc filter add dev e0 parent ffff: prio 1 protocol ip u32 match ip src 10.3.0.0/16 "
     "action mirred egress redirect dev e1",
     SNAPSHOT_INGRESS},
    {"clsact with filters on both sides",
     "tc qdisc add dev e0 clsact &&"
     "tc filter add dev e0 ingress prio 1 protocol ip u32 match ip src 10.3.0.0/16 action mirred egress redirect dev "
     "e1 &&"
     "tc filter add dev e0 egress prio 4 protocol all matchall action mirred egress mirror dev e1 &&"
     "tc filter add dev e0 egress prio 2 protocol ip flower dst_ip 10.4.0.1 action mirred egress mirror dev e1",
     SNAPSHOT_INGRESS},
    {"both sides",
     "tc qdisc add dev e0 clsact && tc filter add dev e0 ingress prio 1 matchall action mirred egress mirror dev e1 &&"
     "tc qdisc add dev e0 root handle 7: fq limit 123",
     SNAPSHOT_EGRESS | SNAPSHOT_INGRESS},
};
enum { SETUP_COUNT = sizeof setups / sizeof setups[0] };

static struct snapshot take(struct netlink *netlink, int ifindex, unsigned parts)
{
    struct snapshot snapshot;
    struct err err = {""};
    ck_assert_msg(snapshot_take(netlink, ifindex, parts, &snapshot, &err) == 0, "%s", err.text);
    return snapshot;
}

static void replace_everything(unsigned parts)
{
    if (parts & SNAPSHOT_EGRESS)
        rig_run(
            "tc qdisc replace dev e0 root handle 10a0: htb && tc class add dev e0 parent 10a0: classid 10a0:1 htb rate "
            "1gbit && tc qdisc add dev e0 parent 10a0:1 handle 10a1: netem delay 10ms && tc filter add dev e0 parent "
            "10a0: prio 1 protocol ip u32 match ip dst 10.2.0.0/16 flowid 10a0:1");
    if (parts & SNAPSHOT_INGRESS)
        rig_run(
            "tc qdisc del dev e0 ingress 2>/dev/null; tc qdisc del dev e0 clsact 2>/dev/null; tc qdisc add dev e0 "
            "ingress && tc filter add dev e0 parent ffff: prio 41760 matchall action mirred egress redirect dev e1");
}

START_TEST(restores)
{
    const struct setup *setup = &setups[_i];
    struct err err = {""};
    rig_new_network();
    rig_run("%s", setup->commands);
    struct netlink *netlink = netlink_open(&err);
    int ifindex = (int)if_nametoindex("e0");
    char *before = rig_dump("e0");
    struct snapshot taken = take(netlink, ifindex, setup->parts), read;
    ck_assert_msg(snapshot_restorable(&taken, &err) == 0, "%s: %s", setup->name, err.text);
    json_t *json = snapshot_to_json(&taken);
    ck_assert(snapshot_from_json(json, &read, &err) == 0 && snapshot_equal(&taken, &read, NULL, 0));
    replace_everything(setup->parts);
    int rc = snapshot_restore(netlink, ifindex, &read, &err);
    char *after = rig_dump("e0");
    ck_assert_msg(rc == 0, "%s: %s\n%s\nbecame\n%s", setup->name, err.text, before, after);
    if (strcmp(before, after))
        ck_abort_msg("%s:\n%s\nbecame\n%s", setup->name, before, after);
    json_decref(json);
    snapshot_free(&taken);
    snapshot_free(&read);
    netlink_close(netlink);
    free(before);
    free(after);
}
END_TEST

static const struct {
    const char *commands, *message;
} refused[] = {
    {"tc qdisc add dev e0 root handle 1: netem delay 10ms", "qdisc netem 1: could not be put back exactly"},
    {"tc qdisc add dev e0 root handle 1: multiq", "qdisc multiq 1: could not be put back exactly"},
    {"tc qdisc add dev e0 root handle 1: prio && tc qdisc add dev e0 parent 1:1 handle 2: netem", "qdisc netem 2:"},
    {"tc qdisc add dev e0 root handle 1: stab overhead 10 linklayer ethernet fq", "size table"},
    {"tc qdisc add dev e0 root handle 1: prio && tc filter add dev e0 parent 1: chain 3 prio 1 matchall classid 1:1",
     "chains"},
};

START_TEST(refuses)
{
    struct err err = {""};
    rig_new_network();
    rig_run("%s", refused[_i].commands);
    struct netlink *netlink = netlink_open(&err);
    struct snapshot taken = take(netlink, (int)if_nametoindex("e0"), SNAPSHOT_EGRESS);
    ck_assert_int_eq(snapshot_restorable(&taken, &err), -95);
    ck_assert_msg(strstr(err.text, refused[_i].message) != NULL, "%s", err.text);
    snapshot_free(&taken);
    netlink_close(netlink);
}
END_TEST

START_TEST(other_side_is_left_alone)
{
    struct err err = {""};
    rig_new_network();
    rig_run("tc qdisc add dev e0 clsact && tc qdisc add dev e0 root handle 7: fq");
    struct netlink *netlink = netlink_open(&err);
    int ifindex = (int)if_nametoindex("e0");
    struct snapshot taken = take(netlink, ifindex, SNAPSHOT_EGRESS);
    rig_run("tc filter add dev e0 ingress prio 1 matchall action mirred egress mirror dev e1");
    char *before = rig_dump("e0");
    replace_everything(SNAPSHOT_EGRESS);
    ck_assert_msg(snapshot_restore(netlink, ifindex, &taken, &err) == 0, "%s", err.text);
    char *after = rig_dump("e0");
    ck_assert_str_eq(before, after);
    snapshot_free(&taken);
    netlink_close(netlink);
    free(before);
    free(after);
}
END_TEST

int main(void)
{
    rig_need((const char *const[]){"netem", "htb", "fq", "fq_codel", "sfq", "prio", "tbf rate 1mbit burst 2k limit 9k",
                                   NULL});
    TCase *cases = tcase_create("snapshot");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, restores, 0, SETUP_COUNT);
    tcase_add_loop_test(cases, refuses, 0, sizeof refused / sizeof refused[0]);
    tcase_add_test(cases, other_side_is_left_alone);
    return rig_main("snapshot", cases);
}
