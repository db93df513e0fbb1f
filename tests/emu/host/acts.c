#include "tests/emu/host/acts.h"

#include <net/if.h>
#include <stdlib.h>
#include <string.h>

struct netlink *netlink;
const struct apply_options plain = {0}, taking_over = {.take_over = true};

void start(void)
{
    struct err err = {""};
    rig_new_network();
    netlink = netlink_open(&err);
    ck_assert_msg(netlink != NULL, "%s", err.text);
}

enum apply_outcome apply(const struct wish *wish, const struct apply_options *options)
{
    enum apply_outcome outcome;
    struct err err = {""};
    ck_assert_msg(apply_run(netlink, wish, 1, options, &outcome, &err) == 0, "%s", err.text);
    return outcome;
}

int fails(const struct wish *wish, const struct apply_options *options, struct err *err)
{
    enum apply_outcome outcome;
    int rc = apply_run(netlink, wish, 1, options, &outcome, err);
    ck_assert_msg(rc < 0, "went through");
    ck_assert_ptr_null(strchr(err->text, '\n'));
    return rc;
}

enum clear_outcome clear(void)
{
    enum clear_outcome outcome;
    struct err err = {""};
    ck_assert_msg(apply_clear(netlink, "e0", &outcome, &err) == 0, "%s", err.text);
    return outcome;
}

bool is_recorded(void)
{
    struct record record;
    struct device device = {.ifindex = (int)if_nametoindex("e0"), .name = "e0"};
    int rc = record_read(&device, &record, NULL);
    if (!rc)
        record_free(&record);
    return rc == 0;
}

struct record recorded(void)
{
    struct record record;
    struct err err = {""};
    struct device device = {.ifindex = (int)if_nametoindex("e0"), .name = "e0"};
    ck_assert_msg(record_read(&device, &record, &err) == 0, "%s", err.text);
    return record;
}

void stands_again(char *before)
{
    char *now = rig_dump("e0");
    ck_assert_str_eq(before, now);
    free(before);
    free(now);
}

void has(const char *what, bool wanted)
{
    char *shown = rig_output("tc qdisc show dev e0");
    ck_assert_msg(!!strstr(shown, what) == wanted, "%s'%s' in: %s", wanted ? "no " : "", what, shown);
    free(shown);
}
