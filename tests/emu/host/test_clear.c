/* What is left of the device when clear has gone over it, whatever happened to it before. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/host/readback.h"
#include "tests/emu/host/acts.h"

static void no_ifb(void)
{
    ck_assert_int_ne(rig_try("ip link show type ifb | grep -q lhifb"), 0);
}

static const char *ifb_name(void)
{
    static char name[IF_NAMESIZE];
    snprintf(name, sizeof name, PLAN_IFB_PREFIX "%u", if_nametoindex("e0"));
    return name;
}

static struct wish wishes_ingress(void)
{
    struct wish wish = wishes_plain(5000000);
    wish.at = PLAN_INGRESS;
    return wish;
}

START_TEST(lost_or_broken_record)
{
    start();
    struct wish wish = wishes_two();
    char *before = rig_dump("e0");
    apply(&wish, &plain);
    rig_run(_i ? "for f in $LONGHAUL_EMU_STATE/*.json; do echo '{' >$f; done" : "rm $LONGHAUL_EMU_STATE/*.json");
    ck_assert_int_eq(apply(&wish, &plain), APPLY_DONE);
    rig_run(_i ? "for f in $LONGHAUL_EMU_STATE/*.json; do echo '{' >$f; done" : "rm $LONGHAUL_EMU_STATE/*.json");
    ck_assert_int_eq(clear(), CLEAR_UNRECORDED);
    ck_assert_int_eq(clear(), CLEAR_NOTHING);
    stands_again(before);
    wish_free(&wish);
}
END_TEST

START_TEST(foreign_replacement_is_left_alone)
{
    struct err err = {""};
    enum clear_outcome outcome;
    start();
    struct wish wish = wishes_two();
    apply(&wish, &plain);
    rig_run("tc qdisc replace dev e0 root handle 77: pfifo limit 5");
    char *before = rig_dump("e0");
    ck_assert_int_eq(apply_clear(netlink, "e0", &outcome, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, "pfifo 77:") != NULL, "%s", err.text);
    stands_again(before);
    ck_assert(!is_recorded());
    wish_free(&wish);
}
END_TEST

START_TEST(offloads_come_back)
{
    struct offloads before, during, after;
    start();
    struct wish wish = wishes_two();
    wish.gso_off = true;
    ck_assert_int_eq(device_offloads("e0", &before, NULL), 0);
    ck_assert(before.known && before.gso && before.tso);
    apply(&wish, &plain);
    ck_assert_int_eq(device_offloads("e0", &during, NULL), 0);
    ck_assert(!during.gso && !during.tso);
    clear();
    ck_assert_int_eq(device_offloads("e0", &after, NULL), 0);
    ck_assert(after.gso && after.tso);
    wish_free(&wish);
}
END_TEST

/* What arrives from 10.1.0.2 waits 5 ms in the ifb device; what arrives from others does not. */
START_TEST(ingress)
{
    start();
    struct wish wish = wishes_plain(5000000), egress = wishes_plain(3000000);
    wish.at = PLAN_INGRESS;
    ck_assert_int_eq(prefix_parse("10.1.0.2", &wish.paths[0].prefixes[0], NULL), 0);
    rig_run(
        "ip netns add far 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs t /run/netns && ip netns add far; }");
    rig_run(
        "ip link set e1 netns far && ip -n far addr add 10.1.0.2/16 dev e1 && ip -n far addr add 10.1.0.3/16 dev e1 "
        "&& ip -n far link set e1 up");
    char *before = rig_dump("e0");
    ck_assert_int_eq(apply(&wish, &plain), APPLY_DONE);
    ck_assert_int_eq(apply(&wish, &plain), APPLY_ALREADY);
    rig_run("ping -c 3 -i 0.2 10.1.0.2 >/dev/null");
    char *slow = rig_output("ping -c 3 -i 0.2 10.1.0.2"), *quick = rig_output("ping -c 3 -i 0.2 10.1.0.3");
    ck_assert_msg(strstr(slow, "= 5.0") != NULL, "%s", slow);
    ck_assert_msg(strstr(quick, "= 0.0") != NULL, "%s", quick);
    wish.paths[0].impairment.delay_ns = 8000000;
    impairment_limit(&wish.paths[0].impairment);
    ck_assert_int_eq(apply(&wish, &plain), APPLY_REPLACED);
    /* To the other side and back. */
    ck_assert_int_eq(apply(&egress, &plain), APPLY_DONE);
    ck_assert_int_ne(rig_try("ip link show type ifb | grep -q lhifb"), 0);
    ck_assert_int_eq(apply(&wish, &plain), APPLY_DONE);
    has("qdisc htb", false);
    ck_assert_int_eq(clear(), CLEAR_DONE);
    stands_again(before);
    ck_assert_int_ne(rig_try("ip link show type ifb | grep -q lhifb"), 0);
    rig_run("tc qdisc add dev e0 clsact");
    struct err err = {""};
    ck_assert_int_eq(fails(&wish, &plain, &err), -EEXIST);
    before = rig_dump("e0");
    apply(&wish, &taking_over);
    clear();
    stands_again(before);
    rig_run("ip netns del far");
    free(slow);
    free(quick);
    wish_free(&wish);
    wish_free(&egress);
}
END_TEST

START_TEST(offloads_come_back_though_the_tree_was_deleted)
{
    struct offloads after;
    start();
    struct wish wish = wishes_two();
    wish.gso_off = true;
    apply(&wish, &plain);
    rig_run("tc qdisc del dev e0 root");
    wish.gso_off = _i;
    apply(&wish, &plain);
    clear();
    ck_assert_int_eq(device_offloads("e0", &after, NULL), 0);
    ck_assert(after.gso && after.tso);
    wish_free(&wish);
}
END_TEST

/* Marks the record as one whose apply was cut off, and puts a root of somebody else's where ours was. */
START_TEST(a_foreign_root_after_a_cut_off_apply_is_foreign)
{
    struct err err = {""};
    start();
    struct wish wish = wishes_two();
    apply(&wish, &plain);
    struct record record = recorded();
    record.complete = false;
    ck_assert_int_eq(record_write(&record, &err), 0);
    record_free(&record);
    rig_run("tc qdisc replace dev e0 root handle 77: pfifo limit 5");
    char *before = rig_dump("e0");
    ck_assert_int_eq(fails(&wish, &plain, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, "pfifo 77:") != NULL, "%s", err.text);
    ck_assert_int_eq(apply(&wish, &taking_over), APPLY_DONE);
    ck_assert_int_eq(clear(), CLEAR_DONE);
    stands_again(before);
    wish_free(&wish);
}
END_TEST

START_TEST(filters_of_others_beside_ours_stay)
{
    struct err err = {""};
    enum clear_outcome outcome;
    start();
    struct wish wish = wishes_ingress(), other = wishes_ingress();
    other.paths[0].impairment.delay_ns = 7000000;
    apply(&wish, &plain);
    rig_run("tc filter add dev e0 parent ffff: prio 5 protocol ip u32 match ip src 10.9.9.9 flowid 1:1");
    char *shared = rig_dump("e0");
    ck_assert_int_eq(fails(&other, &plain, &err), -EEXIST);
    stands_again(shared);
    ck_assert_int_eq(apply_clear(netlink, "e0", &outcome, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, "not ours stay") != NULL, "%s", err.text);
    ck_assert_int_eq(rig_try("tc filter show dev e0 parent ffff: | grep -q 'pref 5 '"), 0);
    ck_assert_int_ne(rig_try("tc filter show dev e0 parent ffff: | grep -q mirred"), 0);
    no_ifb();
    ck_assert(!is_recorded());
    ck_assert_int_eq(clear(), CLEAR_NOTHING);
    wish_free(&wish);
    wish_free(&other);
}
END_TEST

START_TEST(no_ifb_outlives_its_device)
{
    struct err err = {""};
    enum clear_outcome outcome;
    start();
    struct wish wish = wishes_ingress();
    apply(&wish, &plain);
    rig_run("ip link del dev e0");
    ck_assert_int_eq(apply_clear(netlink, "e0", &outcome, &err), 0);
    ck_assert_int_eq(outcome, CLEAR_GONE);
    no_ifb();
    wish_free(&wish);
}
END_TEST

START_TEST(ingress_without_a_record_is_found)
{
    char **names;
    size_t count;
    start();
    struct wish wish = wishes_ingress();
    char *before = rig_dump("e0");
    apply(&wish, &plain);
    rig_run("rm $LONGHAUL_EMU_STATE/*.json");
    ck_assert_int_eq(apply_list(netlink, &names, &count, NULL), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(names[0], "e0");
    ck_assert_int_eq(clear(), CLEAR_UNRECORDED);
    stands_again(before);
    no_ifb();
    free(names[0]);
    free(names);
    wish_free(&wish);
}
END_TEST

START_TEST(a_deleted_filter_is_mended)
{
    start();
    struct wish wish = wishes_two();
    apply(&wish, &plain);
    char *whole = rig_output("tc filter show dev e0");
    rig_run("tc filter del dev e0 parent 10a0: prio 41760");
    ck_assert_int_eq(apply(&wish, &plain), APPLY_REPLACED);
    char *again = rig_output("tc filter show dev e0");
    ck_assert_str_eq(whole, again);
    clear();
    free(whole);
    free(again);
    wish_free(&wish);
}
END_TEST

START_TEST(a_deleted_redirect_is_noticed_and_mended)
{
    struct err err = {""};
    start();
    struct wish wish = wishes_ingress();
    apply(&wish, &plain);
    rig_run("tc filter del dev e0 parent ffff: prio 41760");
    int ifb = (int)if_nametoindex(ifb_name());
    ck_assert_int_eq(readback_filters(netlink, ifb, &wish, &err), -EIO);
    ck_assert_int_ne(apply(&wish, &plain), APPLY_ALREADY);
    ck_assert_int_eq(readback_filters(netlink, (int)if_nametoindex(ifb_name()), &wish, &err), 0);
    clear();
    wish_free(&wish);
}
END_TEST

START_TEST(a_relative_state_folder_is_refused)
{
    struct err err = {""};
    start();
    struct wish wish = wishes_two();
    char *before = rig_dump("e0");
    setenv("LONGHAUL_EMU_STATE", "state", 1);
    ck_assert_int_eq(fails(&wish, &plain, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "a path from /") != NULL, "%s", err.text);
    stands_again(before);
    wish_free(&wish);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        foreign_replacement_is_left_alone,
        offloads_come_back,
        ingress,
        a_foreign_root_after_a_cut_off_apply_is_foreign,
        filters_of_others_beside_ours_stay,
        no_ifb_outlives_its_device,
        ingress_without_a_record_is_found,
        a_deleted_filter_is_mended,
        a_deleted_redirect_is_noticed_and_mended,
        a_relative_state_folder_is_refused,
    };
    rig_need((const char *const[]){"netem", "htb", NULL});
    TCase *cases = tcase_create("clear");
    tcase_set_timeout(cases, 2100); /* of the lab's time; Check counts us in 31 bit */
    tcase_add_loop_test(cases, lost_or_broken_record, 0, 2);
    tcase_add_loop_test(cases, offloads_come_back_though_the_tree_was_deleted, 0, 2);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(cases, tests[i]);
    return rig_main("clear", cases);
}
