/* snapshot_restore: what stands is replaced by what stood, parents before children. */
#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "emu/host/entry.h"

enum { U32_IDS = 0x7ff };

struct batch {
    size_t count, room;
    struct nl_msg **messages; /* owned */
};

static int batch_add(struct batch *batch, struct nl_msg *message, struct err *err)
{
    if (message && batch->count == batch->room) {
        size_t room = 2 * batch->room + 16;
        struct nl_msg **grown = reallocarray(batch->messages, room, sizeof *grown);
        if (grown) {
            batch->messages = grown;
            batch->room = room;
        }
    }
    if (!message || batch->count == batch->room) {
        nlmsg_free(message);
        return err_set(err, ENOMEM, "out of memory");
    }
    batch->messages[batch->count++] = message;
    return 0;
}

static void batch_free(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        nlmsg_free(batch->messages[i]);
    free(batch->messages);
}

/* Is what this entry hangs at, by the snapshot, still to come? */
static bool must_wait(const struct snapshot *snapshot, const bool *done, const struct entry *entry)
{
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct entry *other = &snapshot->entries[i];
        if (done[i] || other == entry || other->kind == ENTRY_FILTER)
            continue;
        bool is_parent = other->handle == entry->parent;
        bool is_qdisc = other->kind == ENTRY_QDISC &&
                        TC_H_MAJ(other->handle) == TC_H_MAJ(entry->kind == ENTRY_CLASS ? entry->handle : entry->parent);
        if (is_parent || is_qdisc)
            return true;
    }
    return false;
}

/* Qdiscs and classes in an order in which each finds its parent. */
static int add_tree(struct batch *batch, const struct snapshot *snapshot, int ifindex, struct err *err)
{
    int rc = 0;
    bool *done = calloc(snapshot->count + 1, sizeof *done), progress = true;
    if (!done)
        return err_set(err, ENOMEM, "out of memory");
    while (!rc && progress) {
        progress = false;
        for (size_t i = 0; !rc && i < snapshot->count; i++) {
            const struct entry *entry = &snapshot->entries[i];
            if (done[i] || entry->kind == ENTRY_FILTER || must_wait(snapshot, done, entry))
                continue;
            rc = batch_add(batch, entry_message(entry, ifindex), err);
            done[i] = progress = true;
        }
    }
    free(done);
    return rc;
}

/* Every u32 priority has a root table, listed last; its number is given by the kernel, counting up within a qdisc. */
struct root {
    const struct entry *filter; /* the answer without a handle that opens a priority */
    uint32_t number;            /* 0 to U32_IDS */
};

static bool is_u32(const struct entry *entry)
{
    return entry->kind == ENTRY_FILTER && !strcmp(entry->name, "u32");
}

static bool is_table(const struct entry *entry)
{
    return is_u32(entry) && entry->handle && (entry->handle & 0xfffff) == 0;
}

static bool same_priority(const struct entry *a, const struct entry *b)
{
    return a->parent == b->parent && a->info == b->info;
}

/* The root table of this priority: the last of its tables. */
static const struct entry *root_table(const struct snapshot *snapshot, const struct entry *filter)
{
    const struct entry *root = NULL;
    for (size_t i = 0; i < snapshot->count; i++)
        if (is_table(&snapshot->entries[i]) && same_priority(&snapshot->entries[i], filter))
            root = &snapshot->entries[i];
    return root;
}

static int by_number(const void *left, const void *right)
{
    const struct root *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

static uint32_t free_priority(const struct snapshot *snapshot, uint32_t parent, uint32_t below)
{
    for (uint32_t priority = below - 1; priority > 0; priority--) {
        bool taken = false;
        for (size_t i = 0; i < snapshot->count; i++)
            taken |= snapshot->entries[i].kind == ENTRY_FILTER && snapshot->entries[i].info >> 16 == priority &&
                     TC_H_MAJ(snapshot->entries[i].parent) == TC_H_MAJ(parent);
        if (!taken)
            return priority;
    }
    return 1;
}

/* Numbers between two roots were of priorities that are gone: placeholders use them up, and leave. */
static int add_placeholders(struct batch *batch, struct batch *removals, const struct snapshot *snapshot,
                            const struct root *root, uint32_t count, uint32_t *priority, int ifindex, struct err *err)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < count; i++) {
        *priority = free_priority(snapshot, root->filter->parent, *priority);
        struct entry entry = *root->filter;
        entry.handle = 0;
        entry.info = *priority << 16 | (root->filter->info & 0xffff);
        rc = batch_add(batch, entry_bare_message(&entry, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, ifindex), err);
        rc = rc ? rc : batch_add(removals, entry_bare_message(&entry, RTM_DELTFILTER, 0, ifindex), err);
    }
    return rc;
}

static size_t find_roots(const struct snapshot *snapshot, uint32_t major, struct root *roots)
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct entry *filter = &snapshot->entries[i];
        const struct entry *table = is_u32(filter) && !filter->handle ? root_table(snapshot, filter) : NULL;
        if (table && TC_H_MAJ(filter->parent) == major)
            roots[count++] = (struct root){filter, table->handle >> 20 & U32_IDS};
    }
    qsort(roots, count, sizeof *roots, by_number);
    return count;
}

/* The root tables of one qdisc, with their old numbers. */
static int add_roots(struct batch *batch, struct batch *removals, const struct snapshot *snapshot, uint32_t major,
                     int ifindex, struct err *err)
{
    struct root *roots = calloc(snapshot->count + 1, sizeof *roots);
    int rc = roots ? 0 : err_set(err, ENOMEM, "out of memory");
    size_t count = roots ? find_roots(snapshot, major, roots) : 0;
    uint32_t next = 0, priority = 0xffff;
    for (size_t i = 0; !rc && i < count; i++) {
        struct entry filter = *roots[i].filter;
        filter.handle = 0;
        rc = add_placeholders(batch, removals, snapshot, &roots[i], roots[i].number - next, &priority, ifindex, err);
        rc =
            rc ? rc
               : batch_add(batch, entry_bare_message(&filter, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, ifindex), err);
        next = roots[i].number + 1;
    }
    free(roots);
    return rc;
}

/* The answers without a handle are no filters; root tables are there already. */
static bool is_wanted(const struct snapshot *snapshot, const struct entry *entry, bool tables)
{
    return entry->kind == ENTRY_FILTER && entry->handle && is_table(entry) == tables &&
           (!tables || root_table(snapshot, entry) != entry);
}

/* Tables before the filters that lead to them, the last first: the kernel lists the newest first. */
static int add_filters(struct batch *batch, const struct snapshot *snapshot, int ifindex, struct err *err)
{
    int rc = 0;
    for (size_t i = snapshot->count; !rc && i-- > 0;)
        if (is_wanted(snapshot, &snapshot->entries[i], true))
            rc = batch_add(batch, entry_message(&snapshot->entries[i], ifindex), err);
    for (size_t i = 0; !rc && i < snapshot->count; i++)
        if (is_wanted(snapshot, &snapshot->entries[i], false))
            rc = batch_add(batch, entry_message(&snapshot->entries[i], ifindex), err);
    return rc;
}

static int add_all_filters(struct batch *batch, const struct snapshot *snapshot, int ifindex, struct err *err)
{
    struct batch removals = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < snapshot->count; i++)
        if (snapshot->entries[i].kind == ENTRY_QDISC)
            rc = add_roots(batch, &removals, snapshot, TC_H_MAJ(snapshot->entries[i].handle), ifindex, err);
    for (size_t i = 0; !rc && i < removals.count; i++) {
        rc = batch_add(batch, removals.messages[i], err);
        removals.messages[i] = NULL; /* batch_add owns or freed it */
    }
    rc = rc ? rc : add_filters(batch, snapshot, ifindex, err); /* tables may bear the placeholders' numbers */
    batch_free(&removals);
    return rc;
}

static int no_answer(const struct nlmsghdr *answer, void *context, struct err *err)
{
    (void)answer, (void)context, (void)err;
    return 0;
}

/* Is there an action mirred of this index? */
static bool mirred_exists(struct netlink *netlink, uint32_t index)
{
    struct tcamsg any = {.tca_family = AF_UNSPEC};
    struct nl_msg *request = nlmsg_alloc_simple(RTM_GETACTION, 0);
    bool there = request && !nlmsg_append(request, &any, sizeof any, NLMSG_ALIGNTO);
    struct nlattr *list = there ? nla_nest_start(request, TCA_ACT_TAB) : NULL;
    struct nlattr *first = list ? nla_nest_start(request, 1) : NULL;
    if (first && !nla_put_string(request, TCA_ACT_KIND, "mirred") && !nla_put_u32(request, TCA_ACT_INDEX, index)) {
        nla_nest_end(request, first);
        nla_nest_end(request, list);
        there = !netlink_ask(netlink, request, no_answer, NULL, NULL);
    }
    nlmsg_free(request);
    return there;
}

/* The kernel destroys filters and their actions some time after they are deleted, and a filter that is set with the
 * index of one that lingers is bound to that one. */
static void await_actions(struct netlink *netlink, const struct snapshot *stood)
{
    enum { ACTIONS_MAX = 32, WAIT_MS = 5, TRIES = 200 };
    int tries = 0;
    for (size_t i = 0; i < stood->count; i++) {
        uint32_t indices[ACTIONS_MAX];
        size_t count =
            stood->entries[i].kind == ENTRY_FILTER ? entry_mirreds(&stood->entries[i], indices, ACTIONS_MAX) : 0;
        for (size_t k = 0; k < count; k++)
            while (tries < TRIES && mirred_exists(netlink, indices[k])) {
                nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
                tries++; /* in all: one that others hold stays, and is the right one to be bound to */
            }
    }
}

static bool has_actions(const struct snapshot *snapshot)
{
    uint32_t index;
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->entries[i].kind == ENTRY_FILTER && entry_mirreds(&snapshot->entries[i], &index, 1))
            return true;
    return false;
}

/* A tree of another handle is replaced in one step, without a moment of the driver's default; the same handle, clsact
 * and one with actions must go first. */
static int delete_first(struct netlink *netlink, const struct entry *stands, const struct snapshot *stood, int ifindex,
                        struct err *err)
{
    const struct entry *root = snapshot_root(stood);
    bool replaced = root && stands && stands->parent == TC_H_ROOT && stands->handle != root->handle;
    if (!stands || (replaced && !has_actions(stood)))
        return 0;
    struct nl_msg *message = entry_bare_message(stands, RTM_DELQDISC, 0, ifindex);
    int rc = message ? netlink_send(netlink, &message, 1, NULL, err) : err_set(err, ENOMEM, "out of memory");
    nlmsg_free(message);
    if (!rc)
        await_actions(netlink, stood);
    return rc;
}

static int put_back(struct netlink *netlink, int ifindex, const struct snapshot *stands, const struct snapshot *stood,
                    struct err *err)
{
    struct batch batch = {0};
    int rc = add_tree(&batch, stood, ifindex, err);
    rc = rc ? rc : add_all_filters(&batch, stood, ifindex, err);
    rc = rc ? rc : delete_first(netlink, snapshot_root(stands), stood, ifindex, err);
    rc = rc ? rc : delete_first(netlink, snapshot_ingress(stands), stood, ifindex, err);
    rc = rc ? rc : netlink_send(netlink, batch.messages, batch.count, NULL, err);
    batch_free(&batch);
    return rc;
}

/* The part of a snapshot that has to be put back: a side that stands as it stood is left alone. */
static struct snapshot side(const struct snapshot *snapshot, unsigned part)
{
    struct snapshot view = {.parts = part};
    view.entries = calloc(snapshot->count + 1, sizeof *view.entries);
    for (size_t i = 0; view.entries && i < snapshot->count; i++) {
        const struct entry *entry = &snapshot->entries[i];
        uint32_t at = entry->kind == ENTRY_FILTER ? entry->parent : entry->handle;
        bool ingress = TC_H_MAJ(at) == TC_H_MAJ(TC_H_INGRESS);
        if (ingress == (part == SNAPSHOT_INGRESS))
            view.entries[view.count++] = *entry;
    }
    return view;
}

static int restore_side(struct netlink *netlink, int ifindex, const struct snapshot *stood, unsigned part,
                        struct err *err)
{
    struct snapshot now = {0}, after = {0}, want = side(stood, part);
    char where[160];
    int rc = want.entries ? snapshot_take(netlink, ifindex, part, &now, err) : err_set(err, ENOMEM, "out of memory");
    if (rc || snapshot_equal(&want, &now, NULL, 0))
        goto out;
    rc = put_back(netlink, ifindex, &now, &want, err);
    rc = rc ? rc : snapshot_take(netlink, ifindex, part, &after, err);
    if (!rc && !snapshot_equal(&want, &after, where, sizeof where))
        rc = err_set(err, EIO, "not the same as before: %s", where);
out:
    snapshot_free(&after);
    snapshot_free(&now);
    free(want.entries); /* a view: its entries are the snapshot's */
    return rc;
}

int snapshot_restore(struct netlink *netlink, int ifindex, const struct snapshot *snapshot, struct err *err)
{
    int rc = 0;
    for (unsigned part = SNAPSHOT_EGRESS; !rc && part <= SNAPSHOT_INGRESS; part <<= 1)
        if (snapshot->parts & part)
            rc = restore_side(netlink, ifindex, snapshot, part, err);
    return rc;
}
