#include "emu/verbs/wish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "configs/units.h"
#include "emu/host/device.h"
#include "emu/verbs/wish_parts.h"

enum { DEVICES_MAX = 64 };

int wishes_note(struct wishes *wishes, struct err *err, const char *format, ...)
{
    va_list list;
    char *text = NULL;
    char **notes = realloc(wishes->notes, (wishes->note_count + 1) * sizeof *notes);
    if (!notes)
        return err_set(err, ENOMEM, "out of memory");
    wishes->notes = notes;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    if (length < 0)
        return err_set(err, ENOMEM, "out of memory");
    wishes->notes[wishes->note_count++] = text;
    return 0;
}

void wish_path_free(struct path *path)
{
    free(path->name);
    free(path->prefixes);
    impairment_free(&path->impairment);
    *path = (struct path){0};
}

uint64_t wish_mix(uint64_t seed, uint64_t value)
{
    uint64_t z = seed + (value + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Which device each prefix of a path leaves by. */
struct spread {
    size_t count;
    char devices[DEVICES_MAX][16];
    size_t unrouted;    /* prefixes without a route: on the first device */
    size_t *of_prefix;  /* index into devices, by prefix; owned */
    struct err missing; /* of the first without a route */
};

static int spread_device(struct spread *spread, const char *device, size_t *index, struct err *err)
{
    for (*index = 0; *index < spread->count; ++*index)
        if (!strcmp(spread->devices[*index], device))
            return 0;
    if (spread->count == DEVICES_MAX)
        return err_set(err, EINVAL, "more than %d devices lead there; choose one with --dev", DEVICES_MAX);
    memcpy(spread->devices[spread->count++], device, sizeof spread->devices[0]);
    return 0;
}

static int spread_by_routes(const struct wish_lookups *lookups, const struct path *path, struct spread *spread,
                            struct err *err)
{
    for (size_t i = 0; i < path->prefix_count; i++) {
        char device[16] = "";
        struct err why = {""};
        int rc = lookups->towards(lookups->context, &path->prefixes[i], device, &why);
        if (rc == -ENOENT && !spread->unrouted++)
            spread->missing = why;
        if (rc == -ENOENT)
            continue;
        if (rc)
            return err_set(err, -rc, "%s", why.text);
        rc = spread_device(spread, device, &spread->of_prefix[i], err);
        if (rc)
            return rc;
    }
    if (spread->count)
        return 0;
    return err_set(err, ENOENT, "%s; name the device with --dev", spread->missing.text);
}

static int spread_find(const struct wish_arguments *arguments, const struct wish_lookups *lookups,
                       const struct path *path, struct spread *spread, struct err *err)
{
    const char *device = arguments->texts[WISH_DEV];
    *spread = (struct spread){.of_prefix = calloc(path->prefix_count, sizeof *spread->of_prefix)};
    if (!spread->of_prefix)
        return err_set(err, ENOMEM, "out of memory");
    if (!device)
        return spread_by_routes(lookups, path, spread, err);
    spread->count = 1;
    strcpy(spread->devices[0], device); /* its length was checked */
    return 0;
}

/* The part of the path that leaves by one device, owned by the result. */
static int part_of(const struct path *path, const struct spread *spread, size_t device, bool divide, struct path *part,
                   struct err *err)
{
    const char *table_file = path->impairment.table_file;
    *part = (struct path){.name = strdup(path->name),
                          .prefixes = calloc(path->prefix_count, sizeof *part->prefixes),
                          .impairment = path->impairment};
    part->impairment.table_file = table_file ? strdup(table_file) : NULL;
    if (!part->name || !part->prefixes || (table_file && !part->impairment.table_file)) {
        wish_path_free(part);
        return err_set(err, ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < path->prefix_count; i++)
        if (spread->of_prefix[i] == device)
            part->prefixes[part->prefix_count++] = path->prefixes[i];
    if (device && part->impairment.seed_given)
        part->impairment.seed = wish_mix(path->impairment.seed, device);
    if (divide && part->impairment.rate_byte_per_s != IMPAIRMENT_RATE_NONE) {
        uint64_t rate = path->impairment.rate_byte_per_s / spread->count;
        part->impairment.rate_byte_per_s = rate ? rate : 1;
        impairment_limit(&part->impairment);
    }
    return 0;
}

static struct wish *wish_of_device(const struct wish_arguments *arguments, struct wishes *wishes, const char *device)
{
    for (size_t i = 0; i < wishes->count; i++)
        if (!strcmp(wishes->wishes[i].device, device))
            return &wishes->wishes[i];
    struct wish *grown = realloc(wishes->wishes, (wishes->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    wishes->wishes = grown;
    struct wish *wish = &grown[wishes->count++];
    bool ingress = arguments->texts[WISH_AT] && !strcmp(arguments->texts[WISH_AT], "ingress");
    *wish = (struct wish){.at = ingress ? PLAN_INGRESS : PLAN_EGRESS, .gso_off = arguments->texts[WISH_GSO_OFF]};
    strcpy(wish->device, device);
    return wish;
}

/* Takes the path over where it returns 0. */
static int append_path(struct wish *wish, const struct path *path, struct err *err)
{
    if (!wish)
        return err_set(err, ENOMEM, "out of memory");
    if (wish->path_count == PLAN_PATHS_MAX)
        return err_set(err, EINVAL, "more than %d paths on %s; fewer are possible on one device", PLAN_PATHS_MAX,
                       wish->device);
    struct path *grown = realloc(wish->paths, (wish->path_count + 1) * sizeof *grown);
    if (!grown)
        return err_set(err, ENOMEM, "out of memory");
    wish->paths = grown;
    wish->paths[wish->path_count++] = *path;
    return 0;
}

static int note_spread(struct wishes *wishes, const struct path *path, const struct spread *spread, bool divide,
                       struct err *err)
{
    int rc = 0;
    bool limited = path->impairment.rate_byte_per_s != IMPAIRMENT_RATE_NONE;
    if (spread->unrouted)
        rc = wishes_note(wishes, err, "%s: no route to %zu of %zu prefixes (%s); they are shaped on %s", path->name,
                         spread->unrouted, path->prefix_count, spread->missing.text, spread->devices[0]);
    if (!rc && spread->count > 1 && limited)
        rc = wishes_note(wishes, err, "%s: leaves by %zu devices; each has %s rate one way", path->name, spread->count,
                         divide ? "its equal part of that" : "the whole");
    return rc;
}

int wishes_add_path(const struct wish_arguments *arguments, const struct wish_lookups *lookups, const struct path *path,
                    bool divide, struct wishes *wishes, struct err *err)
{
    struct spread spread;
    int rc = spread_find(arguments, lookups, path, &spread, err);
    if (rc)
        err_prefix(err, "%s", path->name);
    for (size_t i = 0; !rc && i < spread.count; i++) {
        struct path part;
        rc = part_of(path, &spread, i, divide, &part, err);
        if (rc)
            break;
        rc = append_path(wish_of_device(arguments, wishes, spread.devices[i]), &part, err);
        if (rc)
            wish_path_free(&part);
    }
    rc = rc ? rc : note_spread(wishes, path, &spread, divide, err);
    free(spread.of_prefix);
    return rc;
}

/* What is wrong whatever the flags mean. */
static int check_form(const struct wish_arguments *arguments, struct err *err)
{
    static const char *const ats[] = {"egress", "ingress", NULL};
    const char *device = arguments->texts[WISH_DEV];
    int at = PLAN_EGRESS;
    uint64_t limit;
    if (arguments->excess)
        return err_set(err, EINVAL, "one SCENARIO at a time, and '%s' is another", arguments->excess);
    if (arguments->given_twice)
        return err_set(err, EINVAL, "%s is given twice; give it once", arguments->given_twice);
    if (device && (!*device || strlen(device) >= sizeof(struct wish){0}.device || strpbrk(device, "/ \t\n")))
        return wish_flag_fail(WISH_DEV, err, "'%s' is no device name; write one like eth0", device);
    int rc = wish_take_choice(arguments, WISH_AT, ats, &at, err);
    rc = rc ? rc : wish_take_count(arguments, WISH_LIMIT, 1, INT32_MAX, &limit, err);
    if (!rc && at == PLAN_INGRESS && arguments->texts[WISH_GSO_OFF])
        rc = wish_flag_fail(WISH_GSO_OFF, err,
                            "segments are made by the sender; give it there, or leave --at ingress out");
    return rc;
}

int wishes_resolve_with(const struct wish_arguments *arguments, const struct wish_lookups *lookups,
                        struct wishes *wishes, struct err *err)
{
    *wishes = (struct wishes){0};
    int rc = check_form(arguments, err);
    if (!rc)
        rc = arguments->scenario ? wishes_of_scenario(arguments, lookups, wishes, err)
                                 : wishes_of_flags(arguments, lookups, wishes, err);
    if (rc)
        wishes_free(wishes);
    return rc;
}

static int addresses_here(void *context, struct prefix **addresses, size_t *count, struct err *err)
{
    return device_addresses(context, addresses, count, err);
}

static int towards_here(void *context, const struct prefix *prefix, char device[16], struct err *err)
{
    struct device found;
    int rc = device_towards(context, prefix, &found, err);
    if (!rc)
        memcpy(device, found.name, sizeof found.name);
    return rc;
}

/* netem has a seed since Linux 6.4 and takes it without a word before. */
static int note_seed(struct wishes *wishes, struct err *err)
{
    struct utsname kernel;
    unsigned major = 0, minor = 0;
    bool seeded = false;
    for (size_t i = 0; i < wishes->count; i++)
        for (size_t k = 0; k < wishes->wishes[i].path_count; k++)
            seeded |= wishes->wishes[i].paths[k].impairment.seed_given;
    if (!seeded || uname(&kernel) || sscanf(kernel.release, "%u.%u", &major, &minor) != 2)
        return 0;
    if (major > 6 || (major == 6 && minor >= 4))
        return 0;
    return wishes_note(wishes, err,
                       "this kernel (%s) takes no seed (Linux 6.4 does): jitter and losses differ from run to run",
                       kernel.release);
}

int wishes_resolve(const struct wish_arguments *arguments, struct netlink *netlink, struct wishes *wishes,
                   struct err *err)
{
    const struct wish_lookups here = {netlink, addresses_here, towards_here};
    int rc = wishes_resolve_with(arguments, &here, wishes, err);
    rc = rc ? rc : note_seed(wishes, err);
    if (rc)
        wishes_free(wishes);
    return rc;
}

void wishes_free(struct wishes *wishes)
{
    for (size_t i = 0; i < wishes->count; i++)
        wish_free(&wishes->wishes[i]);
    for (size_t i = 0; i < wishes->note_count; i++)
        free(wishes->notes[i]);
    free(wishes->wishes);
    free(wishes->notes);
    *wishes = (struct wishes){0};
}
