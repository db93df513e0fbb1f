/* Apply and clear as a cluster's administrator must be able to trust them. Time here is the lab's: an hour costs
 * nothing. */
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emu/host/readback.h"
#include "tests/emu/host/acts.h"

static const char *const earlier[] = {
    "true",
    "tc qdisc add dev e0 root handle 8001: fq quantum 9000",
    "tc qdisc add dev e0 root handle 1: mq && tc qdisc add dev e0 parent 1:2 handle 12: pfifo limit 7",
    "tc qdisc add dev e0 root handle 1: htb default 10 && tc class add dev e0 parent 1: classid 1:10 htb rate 9gbit && "
    "tc qdisc add dev e0 parent 1:10 handle 10: fq_codel && tc filter add dev e0 parent 1: prio 3 protocol ip u32 "
    "match "
    "ip dst 10.9.0.0/16 flowid 1:10",
    "tc qdisc add dev e0 root tbf rate 1gbit burst 100kb latency 5ms",
};

START_TEST(clear_restores)
{
    start();
    rig_run("%s", earlier[_i]);
    char *before = rig_dump("e0");
    struct wish wish = wishes_two();
    ck_assert_int_eq(apply(&wish, &taking_over), APPLY_DONE);
    has("qdisc netem 10a1:", true);
    has("qdisc netem 10a2:", true);
    ck_assert_int_eq(clear(), CLEAR_DONE);
    stands_again(before);
    ck_assert(!is_recorded());
    ck_assert_int_eq(clear(), CLEAR_NOTHING);
    wish_free(&wish);
}
END_TEST

START_TEST(foreign_root_is_refused)
{
    struct err err = {""};
    start();
    rig_run("tc qdisc add dev e0 root handle 8001: fq");
    char *before = rig_dump("e0");
    struct wish wish = wishes_two();
    ck_assert_int_eq(fails(&wish, &plain, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, "fq 8001:") && strstr(err.text, "--take-over"), "%s", err.text);
    stands_again(before);
    ck_assert(!is_recorded());
    rig_run("tc qdisc replace dev e0 root handle 8002: netem delay 3ms");
    ck_assert_int_eq(fails(&wish, &taking_over, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, "jitter table") != NULL, "%s", err.text);
    wish_free(&wish);
}
END_TEST

/* A wish whose every figure is hard: read back from the kernel to the last unit. */
START_TEST(figures_are_exact)
{
    static const struct {
        uint64_t delay_ns, jitter_ns, rate_byte_per_s;
        double loss;
        const char *shown;
    } figures[] = {
        {10650000, 494975, UINT64_C(100000000000), 0.0005, "rate 800Gbit"},
        {21300000, 0, IMPAIRMENT_RATE_NONE, 1e-6, "delay 21.3ms"},
        {UINT64_C(300000000000), IMPAIRMENT_JITTER_MAX_NS, UINT64_C(1), 1, "rate 8bit"},
        {1, 1, UINT64_C(12500000000000), 0.123456789, "rate 100Tbit"},
    };
    start();
    struct wish wish = wishes_plain(0);
    struct impairment *it = &wish.paths[0].impairment;
    it->delay_ns = figures[_i].delay_ns;
    it->jitter_ns = figures[_i].jitter_ns;
    it->rate_byte_per_s = figures[_i].rate_byte_per_s;
    it->loss = (struct loss){.kind = LOSS_INDEPENDENT, .ratio = figures[_i].loss};
    impairment_limit(it);
    apply(&wish, &plain);
    struct path_state state;
    char difference[400] = "";
    ck_assert_int_eq(readback_paths(netlink, (int)if_nametoindex("e0"), &wish, &state, NULL), 0);
    ck_assert_msg(readback_same(it, &state, difference, sizeof difference), "%s", difference);
    ck_assert_uint_eq(state.impairment.delay_ns, it->delay_ns);
    ck_assert_uint_eq(state.impairment.jitter_ns, it->jitter_ns);
    ck_assert_uint_eq(state.impairment.rate_byte_per_s, it->rate_byte_per_s);
    ck_assert_double_eq_tol(state.impairment.loss.ratio, figures[_i].loss, 0x1p-31);
    has(figures[_i].shown, true);
    impairment_free(&state.impairment);
    wish_free(&wish);
}
END_TEST

START_TEST(twice_is_once)
{
    start();
    struct wish wish = wishes_two();
    const struct apply_options hour = {.expires_s = 3600};
    ck_assert_int_eq(apply(&wish, &plain), APPLY_DONE);
    char *before = rig_dump("e0");
    ck_assert_int_eq(apply(&wish, &plain), APPLY_ALREADY);
    ck_assert_int_eq(apply(&wish, &hour), APPLY_ALREADY);
    struct record first = recorded();
    ck_assert_int_eq(apply(&wish, &hour), APPLY_ALREADY);
    struct record second = recorded();
    ck_assert_int_ne(first.watcher, second.watcher);
    usleep(1000);
    ck_assert(!watch_alive(first.watcher, first.watcher_start));
    ck_assert(watch_alive(second.watcher, second.watcher_start));
    stands_again(before);
    clear();
    usleep(1000);
    ck_assert(!watch_alive(second.watcher, second.watcher_start));
    record_free(&first);
    record_free(&second);
    wish_free(&wish);
}
END_TEST

START_TEST(changed_wish_leaves_nothing_behind)
{
    start();
    rig_run("tc qdisc add dev e0 root handle 8001: fq");
    char *before = rig_dump("e0");
    struct wish full = wishes_two(), less = wishes_two(), other = wishes_plain(5000000);
    for (size_t i = 0; i < 2; i++) {
        impairment_init(&less.paths[i].impairment);
        less.paths[i].impairment.delay_ns = 7000000;
        impairment_limit(&less.paths[i].impairment);
    }
    full.paths[0].impairment.duplicate = full.paths[0].impairment.corrupt = 0.01;
    full.paths[0].impairment.correlation = 0.25;
    apply(&full, &taking_over);
    has("loss", true);
    has("rate", true);
    has("494us", true);
    has("duplicate", true);
    ck_assert_int_eq(apply(&less, &plain), APPLY_REPLACED);
    has("delay 7ms", true);
    has("loss", false);
    has("494us", false);
    has("duplicate", false);
    has("corrupt", false);
    has("rate 800Gbit", false);
    ck_assert_int_eq(apply(&other, &plain), APPLY_REPLACED);
    has("delay 5ms", true);
    has("10a2:", false);
    clear();
    stands_again(before);
    wish_free(&full);
    wish_free(&less);
    wish_free(&other);
}
END_TEST

/* Step k of the plan is spoiled: refused by the kernel; everything is as it was, for every k. */
static void spoil(struct nl_msg *message)
{
    struct tcmsg *tc = nlmsg_data(nlmsg_hdr(message));
    tc->tcm_ifindex = 0x7ffffff0;
}

START_TEST(every_step_rolls_back)
{
    start();
    rig_run("%s", earlier[_i]);
    char *before = rig_dump("e0");
    int ifindex = (int)if_nametoindex("e0");
    struct wish wish = wishes_two();
    struct err err = {""};
    struct snapshot snapshot;
    ck_assert_int_eq(snapshot_take(netlink, ifindex, SNAPSHOT_EGRESS, &snapshot, &err), 0);
    size_t steps = 1;
    for (size_t k = 0; k < steps; k++) {
        struct plan plan;
        rig_try("tc qdisc del dev e0 root 2>/dev/null");
        ck_assert_int_eq(plan_build(&wish, ifindex, 0, &plan, &err), 0);
        spoil(plan.steps[k].message);
        steps = plan.count;
        ck_assert_int_eq(apply_steps(netlink, ifindex, &plan, &snapshot, &err), -ENODEV);
        char *now = rig_dump("e0");
        ck_assert_msg(!strcmp(before, now), "step %zu: %s\nbecame\n%s", k, before, now);
        free(now);
        plan_free(&plan);
    }
    ck_assert_uint_gt(steps, 7);
    free(before);
    snapshot_free(&snapshot);
    wish_free(&wish);
}
END_TEST

/* A second device that cannot be shaped takes the first one back with it; an earlier apply comes back. */
START_TEST(all_devices_or_none)
{
    struct err err = {""};
    enum apply_outcome outcomes[2];
    start();
    rig_run("ip link add f0 type veth peer name f1 && ip link set f0 up && tc qdisc add dev f0 root handle 3: pfifo");
    struct wish old = wishes_plain(3000000), wishes[2] = {wishes_two(), wishes_two()};
    strcpy(wishes[1].device, "f0");
    old.paths[0].impairment.seed_given = true; /* or the kernel draws one */
    apply(&old, &plain);
    char *before = rig_dump("e0");
    ck_assert_int_eq(apply_run(netlink, wishes, 2, &plain, outcomes, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, "f0: qdisc pfifo 3:") != NULL, "%s", err.text);
    stands_again(before);
    /* Late, when e0 is done already: the record of f0 cannot be written. */
    rig_run("tc qdisc del dev f0 root && mkdir $LONGHAUL_EMU_STATE/$(stat -Lc %%i /proc/self/ns/net)-f0.json.new");
    before = rig_dump("e0");
    ck_assert_int_lt(apply_run(netlink, wishes, 2, &plain, outcomes, &err), 0);
    stands_again(before);
    has("delay 3ms", true);
    struct record record = recorded();
    ck_assert(record.complete && wish_equal(&record.wish, &old));
    record_free(&record);
    for (size_t i = 0; i < 2; i++)
        wish_free(&wishes[i]);
    wish_free(&old);
}
END_TEST

START_TEST(expires_after_kill)
{
    start();
    rig_run("tc qdisc add dev e0 root handle 8001: fq quantum 9000");
    char *before = rig_dump("e0");
    struct wish wish = wishes_two();
    const struct apply_options half_hour = {.expires_s = 1800, .take_over = true};
    pid_t tool = fork();
    if (tool == 0) {
        apply(&wish, &half_hour);
        for (;;)
            pause();
    }
    while (!is_recorded())
        usleep(10000);
    usleep(500000);
    kill(tool, SIGKILL);
    waitpid(tool, NULL, 0);
    sleep(1790);
    has("netem", true);
    sleep(20);
    stands_again(before);
    ck_assert(!is_recorded());
    wish_free(&wish);
}
END_TEST

/* Killed after k steps: what is left is a record that is not complete, and a part of the tree. */
START_TEST(killed_in_the_middle)
{
    start();
    rig_run("tc qdisc add dev e0 root handle 8001: fq quantum 9000");
    char *before = rig_dump("e0");
    struct wish wish = wishes_two();
    struct err err = {""};
    size_t steps = 1;
    for (size_t k = 0; k <= steps; k++) {
        struct record record = {.device = {.ifindex = (int)if_nametoindex("e0"), .name = "e0"}, .wish = wish};
        struct plan plan;
        ck_assert_int_eq(snapshot_take(netlink, record.device.ifindex, SNAPSHOT_EGRESS, &record.before, &err), 0);
        ck_assert_int_eq(record_write(&record, &err), 0);
        rig_run("tc qdisc del dev e0 root");
        ck_assert_int_eq(plan_build(&wish, record.device.ifindex, 0, &plan, &err), 0);
        steps = plan.count;
        for (size_t i = 0; i < k; i++)
            ck_assert_int_eq(netlink_send(netlink, &plan.steps[i].message, 1, NULL, &err), 0);
        if (_i)
            ck_assert_int_eq(apply(&wish, &plain), APPLY_DONE);
        ck_assert_int_eq(clear(), CLEAR_DONE);
        stands_again(strdup(before));
        plan_free(&plan);
        snapshot_free(&record.before);
    }
    free(before);
    wish_free(&wish);
}
END_TEST

START_TEST(signal_rolls_back)
{
    struct err err = {""};
    sigset_t set;
    start();
    char *before = rig_dump("e0");
    struct wish wish = wishes_two();
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGINT);
    ck_assert_int_eq(fails(&wish, &plain, &err), -EINTR);
    ck_assert_msg(strstr(err.text, "nothing is changed") != NULL, "%s", err.text);
    stands_again(before);
    ck_assert(!is_recorded());
    wish_free(&wish);
}
END_TEST

START_TEST(two_at_once_take_turns)
{
    struct err err = {""};
    struct device device = {.ifindex = 0, .name = "e0"};
    struct timespec begin, end;
    int lock;
    start();
    char *before = rig_dump("e0");
    struct wish wishes[2] = {wishes_plain(3000000), wishes_two()};
    pid_t holder = fork();
    if (holder == 0) {
        ck_assert_int_eq(record_lock(&device, &lock, &err), 0);
        sleep(2);
        _exit(0);
    }
    usleep(200000);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    apply(&wishes[0], &plain);
    clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_int_ge(end.tv_sec * 1000 + end.tv_nsec / 1000000 - begin.tv_sec * 1000 - begin.tv_nsec / 1000000, 1700);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            enum apply_outcome outcome;
            struct netlink *own = netlink_open(&err);
            _exit(!own || apply_run(own, &wishes[i], 1, &plain, &outcome, &err));
        }
    for (int status, i = 0; i < 3; i++) {
        ck_assert(wait(&status) > 0);
        ck_assert_int_eq(status, 0);
    }
    struct record record = recorded();
    ck_assert(wish_equal(&record.wish, &wishes[0]) || wish_equal(&record.wish, &wishes[1]));
    record_free(&record);
    ck_assert_int_eq(clear(), CLEAR_DONE);
    stands_again(before);
    for (int i = 0; i < 2; i++)
        wish_free(&wishes[i]);
}
END_TEST

START_TEST(vanished_device)
{
    struct err err = {""};
    enum clear_outcome outcome;
    start();
    struct wish wish = wishes_two();
    apply(&wish, &plain);
    rig_run("ip link del e0");
    ck_assert_int_eq(fails(&wish, &plain, &err), -ENOENT);
    ck_assert_msg(strstr(err.text, "there are lo") != NULL, "%s", err.text);
    ck_assert_int_eq(apply_clear(netlink, "e0", &outcome, &err), 0);
    ck_assert_int_eq(apply_clear(netlink, "e0", &outcome, &err), -ENOENT);
    /* The same name again is another device: the old record is none of its. */
    rig_run("ip link add e0 type dummy");
    ck_assert_int_eq(apply_clear(netlink, "e0", &outcome, &err), 0);
    ck_assert_int_eq(outcome, CLEAR_NOTHING);
    wish_free(&wish);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        foreign_root_is_refused, twice_is_once,      changed_wish_leaves_nothing_behind,
        all_devices_or_none,     expires_after_kill, signal_rolls_back,
        two_at_once_take_turns,  vanished_device,
    };
    rig_need((const char *const[]){"netem", "htb", "fq", "fq_codel", NULL});
    TCase *cases = tcase_create("apply");
    tcase_set_timeout(cases, 2100); /* of the lab's time; Check counts us in 31 bit */
    tcase_add_loop_test(cases, clear_restores, 0, sizeof earlier / sizeof earlier[0]);
    tcase_add_loop_test(cases, every_step_rolls_back, 0, sizeof earlier / sizeof earlier[0]);
    tcase_add_loop_test(cases, figures_are_exact, 0, 4);
    tcase_add_loop_test(cases, killed_in_the_middle, 0, 2);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(cases, tests[i]);
    return rig_main("apply", cases);
}
