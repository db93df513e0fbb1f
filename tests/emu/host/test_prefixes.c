/* A thousand destination prefixes: set by netlink in no more time than `tc -batch` takes for the same content, and with
 * the same result, filter by filter. Time is the processor's own counter: the lab's clock stands still while one
 * computes. */
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/emu/host/rig.h"
#include "tests/emu/host/wishes.h"

enum { PREFIXES = 1000, ROUNDS = 5 };

static uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
}

static bool has_netem(void)
{
    return rig_try("tc qdisc add dev e1 root netem 2>/dev/null && tc qdisc del dev e1 root") == 0;
}

/* Steps that this kernel can do, as messages; and as a batch file. */
static size_t choose(const struct plan *plan, bool netem, struct nl_msg **messages, const char *file)
{
    FILE *out = fopen(file, "w");
    size_t count = 0;
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < plan->count; i++) {
        const char *command = plan->steps[i].tc;
        if (!netem && !strcmp(plan->steps[i].what, "netem"))
            continue;
        messages[count++] = plan->steps[i].message;
        ck_assert_msg(!strncmp(command, "tc ", 3), "%s", command);
        fprintf(out, "%s\n", command + 3);
    }
    fclose(out);
    return count;
}

static uint64_t time_tc(const char *file)
{
    uint64_t begin = ticks();
    rig_run("tc -batch %s", file);
    return ticks() - begin;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

START_TEST(no_slower_than_tc_batch)
{
    struct err err = {""};
    struct plan plan;
    const char *file = "/dev/shm/longhaul-batch", *empty = "/dev/null";
    uint64_t ours = UINT64_MAX, theirs = UINT64_MAX, start = UINT64_MAX;
    char *by_tc = NULL, *by_us = NULL;
    rig_new_network();
    rig_run("ip link set e0 down"); /* a packet of its own would count in the dump */
    struct wish wish = wishes_many(PREFIXES);
    struct netlink *netlink = netlink_open(&err);
    ck_assert_int_eq(plan_build(&wish, (int)if_nametoindex("e0"), 0, &plan, &err), 0);
    struct nl_msg **messages = calloc(plan.count, sizeof *messages);
    size_t count = choose(&plan, has_netem(), messages, file);
    for (int round = 0; round < ROUNDS; round++) {
        start = least(start, time_tc(empty)); /* the process itself: not counted */
        theirs = least(theirs, time_tc(file));
        by_tc = round ? by_tc : rig_dump("e0");
        rig_run("tc qdisc del dev e0 root");
        uint64_t begin = ticks();
        int rc = netlink_send(netlink, messages, count, NULL, &err);
        ours = least(ours, ticks() - begin);
        ck_assert_msg(rc == 0, "%s", err.text);
        by_us = round ? by_us : rig_dump("e0");
        rig_run("tc qdisc del dev e0 root");
    }
    theirs -= start < theirs ? start : 0;
    printf("%d prefixes: netlink %.2f of the time of tc -batch\n", PREFIXES, (double)ours / (double)theirs);
    ck_assert_msg(ours <= theirs, "%ju against %ju", (uintmax_t)ours, (uintmax_t)theirs);
    if (!has_netem()) /* whose seed is drawn anew each time */
        ck_assert_str_eq(by_tc, by_us);
    remove(file);
    free(by_tc);
    free(by_us);
    free(messages);
    plan_free(&plan);
    netlink_close(netlink);
    wish_free(&wish);
}
END_TEST

int main(void)
{
    rig_need((const char *const[]){"htb", NULL});
    TCase *cases = tcase_create("prefixes");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, no_slower_than_tc_batch);
    return rig_main("prefixes", cases);
}
