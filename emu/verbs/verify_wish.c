/* What was asked of the path to one address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emu/host/record.h"
#include "emu/verbs/verify_parts.h"

/* Does the command line say what to expect? --dev alone only says where to look. */
static bool says_what(const struct wish_arguments *arguments)
{
    if (arguments->scenario || arguments->to_count || arguments->sets.count)
        return true;
    for (int flag = 0; flag < WISH_FLAG_COUNT; flag++)
        if (flag != WISH_DEV && arguments->texts[flag])
            return true;
    return false;
}

/* The path with the longest prefix that holds the address: which the filters take, too. */
static const struct path *find_path(const struct wish *wishes, size_t count, const struct prefix *address,
                                    enum plan_at *at)
{
    const struct path *best = NULL;
    unsigned length = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < wishes[i].path_count; k++)
            for (size_t n = 0; n < wishes[i].paths[k].prefix_count; n++) {
                const struct prefix *prefix = &wishes[i].paths[k].prefixes[n];
                if (!prefix_contains(prefix, address) || (best && prefix->length <= length))
                    continue;
                best = &wishes[i].paths[k];
                length = prefix->length;
                *at = wishes[i].at;
            }
    return best;
}

static int copy(const struct impairment *from, struct impairment *to, struct err *err)
{
    *to = *from;
    to->table_file = from->table_file ? strdup(from->table_file) : NULL;
    return from->table_file && !to->table_file ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* Egress shapes the way out, ingress the way back; the other end does the same, unless it is said not to. */
static int take_path(const struct wish *wishes, size_t count, const struct prefix *address, bool one_sided,
                     struct verify_wish *wish, struct err *err)
{
    char text[PREFIX_TEXT_MAX];
    enum plan_at at = PLAN_EGRESS;
    const struct path *path = find_path(wishes, count, address, &at);
    if (!path)
        return err_set(err, ENOENT, "no path to %s is shaped: none of the prefixes asked for holds it",
                       prefix_format(address, text, sizeof text));
    enum direction own = at == PLAN_INGRESS ? BACK : OUT;
    int rc = 0;
    for (int i = OUT; !rc && i <= BACK; i++) {
        wish->asked[i] = !one_sided || i == (int)own;
        if (wish->asked[i])
            rc = copy(&path->impairment, &wish->direction[i], err);
    }
    wish->path = strdup(path->name);
    return rc || wish->path ? rc : err_set(err, ENOMEM, "out of memory");
}

static int from_command_line(const struct verify_arguments *arguments, struct netlink *netlink, const char *text,
                             const struct prefix *address, struct verify_wish *wish, struct err *err)
{
    struct wish_arguments asked = arguments->wish;
    struct wishes wishes;
    wish->source = asked.scenario ? "scenario" : "flags";
    if (!asked.scenario && !asked.to_count)
        asked.to[asked.to_count++] = text;
    int rc = wishes_resolve(&asked, netlink, &wishes, err);
    rc = rc ? rc : take_path(wishes.wishes, wishes.count, address, arguments->one_sided, wish, err);
    wishes_free(&wishes);
    return rc;
}

static int from_record(const struct verify_arguments *arguments, struct netlink *netlink, const struct prefix *address,
                       struct verify_wish *wish, struct err *err)
{
    struct device device;
    struct record record = {0};
    const char *name = arguments->wish.texts[WISH_DEV];
    int rc = name ? device_find(netlink, name, &device, err) : device_towards(netlink, address, &device, err);
    if (rc)
        return rc;
    wish->source = "applied";
    rc = record_read(&device, &record, err);
    if (rc == -ENOENT)
        return err_set(err, ENOENT,
                       "nothing is applied on %s; name the SCENARIO, or flags like --delay 10.65ms, to compare with",
                       device.name);
    rc = rc ? rc : take_path(&record.wish, 1, address, arguments->one_sided, wish, err);
    record_free(&record);
    return rc;
}

int verify_wish_find(const struct verify_arguments *arguments, const char *text, struct verify_wish *wish,
                     struct err *err)
{
    struct prefix address;
    *wish = (struct verify_wish){0};
    for (int i = OUT; i <= BACK; i++)
        impairment_init(&wish->direction[i]);
    int rc = prefix_parse(text, &address, err);
    struct netlink *netlink = rc ? NULL : netlink_open(err);
    if (!rc && !netlink)
        rc = -EIO;
    if (!rc)
        rc = says_what(&arguments->wish) ? from_command_line(arguments, netlink, text, &address, wish, err)
                                         : from_record(arguments, netlink, &address, wish, err);
    netlink_close(netlink);
    if (rc)
        verify_wish_free(wish);
    return rc;
}

void verify_wish_free(struct verify_wish *wish)
{
    for (int i = OUT; i <= BACK; i++)
        impairment_free(&wish->direction[i]);
    free(wish->path);
    *wish = (struct verify_wish){0};
}
