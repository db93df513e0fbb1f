#include "emu/host/snapshot.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/host/entry.h"

void snapshot_free(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->count; i++)
        entry_free(&snapshot->entries[i]);
    free(snapshot->entries);
    *snapshot = (struct snapshot){0};
}

/* clsact and ingress sit beside the tree; their filters hang at ffff: and, of clsact, ffff:fff2 and ffff:fff3. */
static unsigned part_of(uint32_t handle)
{
    return TC_H_MAJ(handle) == TC_H_MAJ(TC_H_INGRESS) ? SNAPSHOT_INGRESS : SNAPSHOT_EGRESS;
}

struct taking {
    int ifindex;
    bool classes; /* those of kinds whose user makes them; others come and go by themselves */
    struct snapshot *snapshot;
};

static int take_entry(const struct nlmsghdr *answer, void *context, struct err *err)
{
    struct taking *taking = context;
    struct snapshot *snapshot = taking->snapshot;
    const struct tcmsg *tc = nlmsg_data(answer);
    bool qdisc = answer->nlmsg_type == RTM_NEWQDISC;
    /* Handle 0 is the driver's own choice: nobody can change it, and it comes back by itself. */
    if (tc->tcm_ifindex != taking->ifindex || (qdisc && !tc->tcm_handle))
        return 0;
    if (qdisc && !(part_of(tc->tcm_handle) & snapshot->parts))
        return 0;
    struct entry entry, *grown;
    int rc = entry_of_dump(answer, &entry, err);
    if (rc)
        return rc;
    grown = reallocarray(snapshot->entries, snapshot->count + 1, sizeof *grown);
    if (!grown) {
        entry_free(&entry);
        return err_set(err, ENOMEM, "out of memory");
    }
    snapshot->entries = grown;
    snapshot->entries[snapshot->count++] = entry;
    return 0;
}

static int dump(struct netlink *netlink, int type, uint32_t parent, struct taking *taking, struct err *err)
{
    struct tcmsg tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = taking->ifindex, .tcm_parent = parent};
    struct nl_msg *request = nlmsg_alloc_simple(type, 0);
    int rc =
        request && !nlmsg_append(request, &tc, sizeof tc, NLMSG_ALIGNTO) ? 0 : err_set(err, ENOMEM, "out of memory");
    rc = rc ? rc : netlink_dump(netlink, request, take_entry, taking, err);
    nlmsg_free(request);
    return rc;
}

static int take_filters(struct netlink *netlink, struct taking *taking, struct err *err)
{
    int rc = 0;
    size_t hosts = taking->snapshot->count; /* filters are appended behind the qdiscs and classes they hang at */
    for (size_t i = 0; !rc && i < hosts; i++) {
        struct entry host = taking->snapshot->entries[i]; /* a copy: the array moves */
        if (!strcmp(host.name, "clsact") && host.kind == ENTRY_QDISC) {
            rc = dump(netlink, RTM_GETTFILTER, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), taking, err);
            rc = rc ? rc : dump(netlink, RTM_GETTFILTER, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS), taking, err);
        } else {
            rc = dump(netlink, RTM_GETTFILTER, host.handle, taking, err);
        }
    }
    return rc;
}

int snapshot_take(struct netlink *netlink, int ifindex, unsigned parts, struct snapshot *snapshot, struct err *err)
{
    struct taking taking = {.ifindex = ifindex, .snapshot = snapshot};
    *snapshot = (struct snapshot){.parts = parts};
    int rc = dump(netlink, RTM_GETQDISC, 0, &taking, err);
    size_t qdiscs = snapshot->count;
    for (size_t i = 0; !rc && i < qdiscs; i++)
        if (entry_has_own_classes(&snapshot->entries[i]))
            rc = dump(netlink, RTM_GETTCLASS, snapshot->entries[i].handle, &taking, err);
    rc = rc ? rc : take_filters(netlink, &taking, err);
    if (rc)
        snapshot_free(snapshot);
    return rc;
}

static const struct entry *find_parent(const struct snapshot *snapshot, uint32_t parent)
{
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->entries[i].kind == ENTRY_QDISC && snapshot->entries[i].parent == parent)
            return &snapshot->entries[i];
    return NULL;
}

const struct entry *snapshot_root(const struct snapshot *snapshot)
{
    return find_parent(snapshot, TC_H_ROOT);
}

const struct entry *snapshot_ingress(const struct snapshot *snapshot)
{
    return find_parent(snapshot, TC_H_INGRESS);
}

/* u32 keeps its tables per qdisc, also for filters at its classes: two of one priority show each other's. */
static bool twice(const struct snapshot *snapshot, const struct entry *filter)
{
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct entry *other = &snapshot->entries[i];
        if (other->kind == ENTRY_FILTER && other->parent != filter->parent && !strcmp(other->name, "u32") &&
            !strcmp(filter->name, "u32") && TC_H_MAJ(other->parent) == TC_H_MAJ(filter->parent) &&
            other->info >> 16 == filter->info >> 16)
            return true;
    }
    return false;
}

int snapshot_restorable(const struct snapshot *snapshot, struct err *err)
{
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct entry *entry = &snapshot->entries[i];
        int rc = entry_restorable(entry, err);
        if (rc)
            return rc;
        if (entry->kind == ENTRY_FILTER && twice(snapshot, entry)) {
            char text[96];
            entry_text(entry, text, sizeof text);
            return err_set(err, ENOTSUP, "%s shares its priority with a filter of another class", text);
        }
    }
    return 0;
}

static bool same_place(const struct entry *a, const struct entry *b)
{
    return a->kind == b->kind && a->handle == b->handle && a->parent == b->parent && a->info == b->info &&
           !strcmp(a->name, b->name);
}

static bool same(const struct entry *a, const struct entry *b)
{
    return same_place(a, b) && a->size == b->size && !memcmp(a->attributes, b->attributes, a->size);
}

/* The first entry of a that b does not have; *changed: b has it with other settings. NULL: none. */
static const struct entry *first_missing(const struct snapshot *a, const struct snapshot *b, bool *changed)
{
    for (size_t i = 0; i < a->count; i++) {
        bool found = false, place = false;
        /* Both come in the kernel's order: looking at the same place first keeps thousands of filters quick. */
        if (i < b->count && same(&a->entries[i], &b->entries[i]))
            continue;
        for (size_t k = 0; !found && k < b->count; k++) {
            place = place || same_place(&a->entries[i], &b->entries[k]);
            found = same(&a->entries[i], &b->entries[k]);
        }
        *changed = place;
        if (!found)
            return &a->entries[i];
    }
    return NULL;
}

bool snapshot_equal(const struct snapshot *a, const struct snapshot *b, char *where, size_t size)
{
    bool changed = false, unused;
    char text[96];
    const struct entry *missing = first_missing(a, b, &changed);
    const struct entry *extra = missing ? NULL : first_missing(b, a, &unused);
    if (where && size)
        *where = '\0';
    if (!missing && !extra)
        return true;
    entry_text(missing ? missing : extra, text, sizeof text);
    if (where)
        snprintf(where, size, "%s %s", text,
                 !missing  ? "was not there"
                 : changed ? "has other settings"
                           : "is missing");
    return false;
}

static json_t *entry_to_json(const struct entry *entry)
{
    static const char digits[] = "0123456789abcdef";
    char *hex = malloc(2 * entry->size + 1);
    if (!hex)
        return NULL;
    for (size_t i = 0; i < entry->size; i++) {
        hex[2 * i] = digits[entry->attributes[i] >> 4];
        hex[2 * i + 1] = digits[entry->attributes[i] & 15];
    }
    json_t *json = json_pack("{s:i, s:I, s:I, s:I, s:s, s:s#}", "type", (int)entry->kind, "handle",
                             (json_int_t)entry->handle, "parent", (json_int_t)entry->parent, "info",
                             (json_int_t)entry->info, "kind", entry->name, "attributes", hex, (int)(2 * entry->size));
    free(hex);
    return json;
}

json_t *snapshot_to_json(const struct snapshot *snapshot)
{
    json_t *entries = json_array();
    int failed = entries ? 0 : -1;
    for (size_t i = 0; !failed && i < snapshot->count; i++)
        failed = json_array_append_new(entries, entry_to_json(&snapshot->entries[i]));
    if (failed) {
        json_decref(entries);
        return NULL;
    }
    return json_pack("{s:I, s:o}", "parts", (json_int_t)snapshot->parts, "entries", entries);
}

static int nibble(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static int from_hex(const char *hex, struct entry *entry)
{
    size_t length = strlen(hex);
    entry->size = length / 2;
    entry->attributes = malloc(entry->size + 1);
    if (!entry->attributes || length % 2)
        return -1;
    for (size_t i = 0; i < entry->size; i++) {
        int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return -1;
        entry->attributes[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

static int entry_from_json(json_t *json, struct entry *entry)
{
    int type;
    json_int_t handle, parent, info;
    const char *kind, *hex;
    if (json_unpack(json, "{s:i, s:I, s:I, s:I, s:s, s:s}", "type", &type, "handle", &handle, "parent", &parent, "info",
                    &info, "kind", &kind, "attributes", &hex) ||
        type < ENTRY_QDISC || type > ENTRY_FILTER || strlen(kind) >= sizeof entry->name)
        return -1;
    entry->kind = (enum entry_kind)type;
    entry->handle = (uint32_t)handle;
    entry->parent = (uint32_t)parent;
    entry->info = (uint32_t)info;
    snprintf(entry->name, sizeof entry->name, "%s", kind);
    return from_hex(hex, entry);
}

int snapshot_from_json(const json_t *json, struct snapshot *snapshot, struct err *err)
{
    json_t *entries = json_object_get(json, "entries");
    *snapshot = (struct snapshot){.parts = (unsigned)json_integer_value(json_object_get(json, "parts"))};
    size_t count = json_array_size(entries);
    int failed = !json_is_array(entries) || !snapshot->parts ? -1 : 0;
    snapshot->entries = calloc(count + 1, sizeof *snapshot->entries);
    failed = snapshot->entries ? failed : -1;
    for (size_t i = 0; !failed && i < count; i++) {
        failed = entry_from_json(json_array_get(entries, i), &snapshot->entries[i]);
        snapshot->count++;
    }
    if (!failed)
        return 0;
    snapshot_free(snapshot);
    return err_set(err, EBADMSG, "the settings that stood before cannot be read");
}
