/* The way back: clear, expiry, and what apply needs of it. */
#include <errno.h>
#include <limits.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "emu/host/apply.h"
#include "emu/host/entry.h"
#include "emu/host/undo.h"

unsigned undo_part(enum plan_at at)
{
    return at == PLAN_INGRESS ? SNAPSHOT_INGRESS : SNAPSHOT_EGRESS;
}

static void fill_signals(sigset_t *set)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        sigaddset(set, ends[i]);
}

void undo_hold_signals(sigset_t *before)
{
    sigset_t ends;
    fill_signals(&ends);
    sigprocmask(SIG_BLOCK, &ends, before);
}

void undo_release_signals(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

int undo_taken_signal(void)
{
    sigset_t ends;
    struct timespec now = {0};
    fill_signals(&ends);
    int taken = sigtimedwait(&ends, NULL, &now);
    return taken > 0 ? taken : 0;
}

static bool is_our_root(const struct entry *root)
{
    return root && root->handle == PLAN_HANDLE << 16 && !strcmp(root->name, "htb");
}

/* The ingress qdisc has no handle to choose: our filters are known by their priorities. */
static size_t count_ingress_filters(const struct snapshot *snapshot, bool ours)
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct entry *entry = &snapshot->entries[i];
        uint32_t priority = entry->info >> 16;
        if (entry->kind == ENTRY_FILTER && TC_H_MAJ(entry->parent) == TC_H_MAJ(TC_H_INGRESS))
            count += (priority == PLAN_PRIO_IPV4 || priority == PLAN_PRIO_IPV6) == ours;
    }
    return count;
}

bool apply_is_ours(const struct snapshot *snapshot, enum plan_at at)
{
    return at == PLAN_INGRESS ? snapshot_ingress(snapshot) && count_ingress_filters(snapshot, true)
                              : is_our_root(snapshot_root(snapshot));
}

bool undo_is_shared(const struct snapshot *snapshot, enum plan_at at)
{
    return at == PLAN_INGRESS && apply_is_ours(snapshot, at) && count_ingress_filters(snapshot, false);
}

int undo_record(struct netlink *netlink, const struct device *device, const struct record *record, struct err *err)
{
    int rc = snapshot_restore(netlink, device->ifindex, &record->before, err);
    return rc == -ENODEV ? 0 : rc ? rc : undo_rest(netlink, device, record, err);
}

static int delete_entry(struct netlink *netlink, int ifindex, const struct entry *entry, int type, struct err *err)
{
    struct nl_msg *message = entry_bare_message(entry, type, 0, ifindex);
    int rc = message ? netlink_send(netlink, &message, 1, NULL, err) : err_set(err, ENOMEM, "out of memory");
    nlmsg_free(message);
    return rc;
}

/* Our filters leave the ingress qdisc, which others use too. */
static int delete_our_filters(struct netlink *netlink, const struct device *device, const struct snapshot *now,
                              struct err *err)
{
    int rc = 0;
    uint32_t gone[2] = {0};
    for (size_t i = 0; !rc && i < now->count; i++) {
        struct entry filter = now->entries[i];
        uint32_t priority = filter.info >> 16;
        bool ours = filter.kind == ENTRY_FILTER && TC_H_MAJ(filter.parent) == TC_H_MAJ(TC_H_INGRESS) &&
                    (priority == PLAN_PRIO_IPV4 || priority == PLAN_PRIO_IPV6);
        if (!ours || gone[priority == PLAN_PRIO_IPV6])
            continue;
        gone[priority == PLAN_PRIO_IPV6] = 1;
        filter.handle = 0; /* all of this priority */
        rc = delete_entry(netlink, device->ifindex, &filter, RTM_DELTFILTER, err);
    }
    return rc ? rc : device_ifb_close(netlink, device, err);
}

int undo_free_place(struct netlink *netlink, const struct device *device, enum plan_at at, struct err *err)
{
    struct snapshot now;
    int rc = snapshot_take(netlink, device->ifindex, undo_part(at), &now, err);
    if (rc)
        return rc;
    const struct entry *stands = at == PLAN_INGRESS ? snapshot_ingress(&now) : snapshot_root(&now);
    if (undo_is_shared(&now, at))
        rc = delete_our_filters(netlink, device, &now, err);
    else
        rc = stands ? delete_entry(netlink, device->ifindex, stands, RTM_DELQDISC, err) : 0;
    snapshot_free(&now);
    return rc || at != PLAN_INGRESS ? rc : device_ifb_close(netlink, device, err);
}

int undo_find_foreign(struct netlink *netlink, const struct device *device, const struct record *record, bool *foreign,
                      struct err *err)
{
    struct snapshot now;
    *foreign = false;
    int rc = snapshot_take(netlink, device->ifindex, record->before.parts, &now, err);
    if (rc)
        return rc;
    bool ingress = record->wish.at == PLAN_INGRESS;
    const struct entry *stands = ingress ? snapshot_ingress(&now) : snapshot_root(&now);
    /* Cut off in the middle, ours may have no filters yet. */
    bool bare = ingress && !record->complete && now.count <= 1;
    bool same = snapshot_equal(&now, &record->before, NULL, 0);
    if (undo_is_shared(&now, record->wish.at)) {
        rc = delete_our_filters(netlink, device, &now, err);
        *foreign = !rc;
        if (!rc)
            err_set(err, EEXIST, "%s: filters that are not ours stay in its ingress qdisc%s; ours are gone",
                    device->name, snapshot_ingress(&record->before) ? ", so what stood before is not put back" : "");
    } else if (stands && !bare && !apply_is_ours(&now, record->wish.at) && !same) {
        *foreign = true;
        char text[96];
        entry_text(stands, text, sizeof text);
        err_set(err, EEXIST, "%s: %s is not ours and is left alone; what this tool remembered of the device is dropped",
                device->name, text);
    }
    snapshot_free(&now);
    return rc;
}

int undo_rest(struct netlink *netlink, const struct device *device, const struct record *record, struct err *err)
{
    int rc = record->wish.gso_off ? device_set_offloads(device->name, &record->offloads_before, err) : 0;
    if (!rc && record->wish.at == PLAN_INGRESS)
        rc = device_ifb_close(netlink, device, err);
    return rc == -ENODEV ? 0 : rc; /* the device went away, and everything with it */
}

static int clear_recorded(struct netlink *netlink, const struct device *device, const struct record *record,
                          struct err *err)
{
    bool foreign = false;
    struct err why;
    int rc = undo_find_foreign(netlink, device, record, &foreign, &why);
    if (rc)
        *err = why;
    else
        rc = foreign ? undo_rest(netlink, device, record, err) : undo_record(netlink, device, record, err);
    rc = rc ? rc : record_remove(device, err);
    if (!rc)
        watch_stop(record->watcher, record->watcher_start);
    if (!rc && foreign)
        *err = why;
    return rc ? rc : foreign ? -EEXIST : 0;
}

/* No record: what bears our marks is deleted. */
static int clear_unrecorded(struct netlink *netlink, const struct device *device, enum clear_outcome *outcome,
                            struct err *err)
{
    struct snapshot now;
    int rc = snapshot_take(netlink, device->ifindex, SNAPSHOT_EGRESS | SNAPSHOT_INGRESS, &now, err);
    if (rc)
        return rc;
    for (int at = PLAN_EGRESS; !rc && at <= PLAN_INGRESS; at++)
        if (apply_is_ours(&now, (enum plan_at)at)) {
            rc = undo_free_place(netlink, device, (enum plan_at)at, err);
            *outcome = CLEAR_UNRECORDED;
        }
    snapshot_free(&now);
    rc = rc ? rc : record_remove(device, err); /* the one that cannot be read */
    return rc;
}

static int clear_device(struct netlink *netlink, const struct device *device, bool expiry, enum clear_outcome *outcome,
                        struct err *err)
{
    int lock;
    sigset_t mask;
    struct record record;
    *outcome = CLEAR_NOTHING;
    int rc = record_lock(device, &lock, err);
    if (rc)
        return rc;
    undo_hold_signals(&mask); /* short, and best not left half done */
    rc = record_read(device, &record, err);
    if (rc == -ENOENT || rc == -EBADMSG) {
        rc = expiry ? 0 : clear_unrecorded(netlink, device, outcome, err);
    } else if (!rc) {
        bool due = !expiry || record.watcher == getpid();
        rc = due ? clear_recorded(netlink, device, &record, err) : 0;
        *outcome = due && !rc ? CLEAR_DONE : CLEAR_NOTHING;
        record_free(&record);
    }
    close(lock);
    undo_release_signals(&mask);
    return rc;
}

/* The device whose ingress goes through an ifb device of this name; 0: it is none of ours. */
static int ifb_owner(const char *name)
{
    size_t length = strlen(PLAN_IFB_PREFIX);
    char *end;
    if (strncmp(name, PLAN_IFB_PREFIX, length) || !name[length])
        return 0;
    long owner = strtol(name + length, &end, 10);
    return *end || owner < 1 || owner > INT_MAX ? 0 : (int)owner;
}

/* Removes the ifb devices of ours whose device is gone. */
static int close_orphans(struct netlink *netlink, struct err *err)
{
    char name[IF_NAMESIZE];
    int rc = 0;
    struct if_nameindex *all = if_nameindex();
    for (struct if_nameindex *it = all; !rc && it && it->if_index; it++) {
        struct device gone = {.ifindex = ifb_owner(it->if_name)};
        if (gone.ifindex && !if_indextoname((unsigned)gone.ifindex, name))
            rc = device_ifb_close(netlink, &gone, err);
    }
    if (all)
        if_freenameindex(all);
    return rc;
}

/* The device does not exist: is there a record of it? */
static int clear_gone(const char *name, bool *recorded, struct err *err)
{
    char **names;
    size_t count;
    struct device device = {0};
    int rc = record_list(&names, &count, err);
    *recorded = false;
    for (size_t i = 0; !rc && i < count; i++)
        if (!strcmp(names[i], name) && strlen(name) < sizeof device.name) {
            strcpy(device.name, name);
            *recorded = true;
            rc = record_remove(&device, err);
        }
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return rc;
}

int apply_clear(struct netlink *netlink, const char *name, enum clear_outcome *outcome, struct err *err)
{
    struct device device;
    bool recorded;
    struct err gone;
    int rc = device_find(netlink, name, &device, err);
    if (rc != -ENOENT)
        return rc ? rc : clear_device(netlink, &device, false, outcome, err);
    rc = clear_gone(name, &recorded, &gone);
    if (!rc && recorded)
        rc = close_orphans(netlink, &gone);
    if (rc) {
        *err = gone;
        return rc;
    }
    *outcome = CLEAR_GONE;
    return recorded ? 0 : -ENOENT;
}

struct listing {
    char **names;
    size_t count;
};

static int take_ours(const struct nlmsghdr *answer, void *context, struct err *err)
{
    struct listing *listing = context;
    const struct tcmsg *tc = nlmsg_data(answer);
    char name[IF_NAMESIZE];
    if (tc->tcm_handle != PLAN_HANDLE << 16 || tc->tcm_parent != TC_H_ROOT ||
        !if_indextoname((unsigned)tc->tcm_ifindex, name))
        return 0;
    int owner = ifb_owner(name);
    if (owner && !if_indextoname((unsigned)owner, name))
        return 0;
    for (size_t i = 0; i < listing->count; i++)
        if (!strcmp(listing->names[i], name))
            return 0;
    char **grown = reallocarray(listing->names, listing->count + 1, sizeof *grown);
    if (!grown)
        return err_set(err, ENOMEM, "out of memory");
    listing->names = grown;
    grown[listing->count] = strdup(name);
    return grown[listing->count] ? (listing->count++, 0) : err_set(err, ENOMEM, "out of memory");
}

int apply_list(struct netlink *netlink, char ***names, size_t *count, struct err *err)
{
    struct listing listing = {0};
    struct tcmsg any = {.tcm_family = AF_UNSPEC};
    struct nl_msg *request = nlmsg_alloc_simple(RTM_GETQDISC, 0);
    int rc =
        request && !nlmsg_append(request, &any, sizeof any, NLMSG_ALIGNTO) ? 0 : err_set(err, ENOMEM, "out of memory");
    rc = rc ? rc : record_list(&listing.names, &listing.count, err);
    rc = rc ? rc : netlink_dump(netlink, request, take_ours, &listing, err);
    nlmsg_free(request);
    *names = listing.names;
    *count = listing.count;
    return rc;
}

int apply_expire(struct netlink *netlink, const struct device *device, struct err *err)
{
    enum clear_outcome outcome;
    return clear_device(netlink, device, true, &outcome, err);
}
