#include "emu/host/apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emu/host/entry.h"
#include "emu/host/readback.h"
#include "emu/host/undo.h"

/* One device of an apply. */
struct transaction {
    const struct wish *wish;
    struct device device;
    int lock; /* -1 */
    bool recorded;
    struct record old; /* where recorded */
    bool standing;     /* a tree of ours stands where this wish's goes */
    bool begun;        /* something may have changed */
    struct record record;
    enum apply_outcome outcome;
};

int apply_steps(struct netlink *netlink, int ifindex, const struct plan *plan, const struct snapshot *before,
                struct err *err)
{
    size_t failed;
    struct err again = {""};
    struct nl_msg **messages = calloc(plan->count + 1, sizeof *messages);
    if (!messages)
        return err_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < plan->count; i++)
        messages[i] = plan->steps[i].message;
    int rc = netlink_send(netlink, messages, plan->count, &failed, err);
    free(messages);
    int back = rc ? snapshot_restore(netlink, ifindex, before, &again) : 0;
    if (back && back != -ENODEV) { /* a device that went away took everything with it */
        char text[ERR_TEXT_MAX];
        snprintf(text, sizeof text, "%s", err->text);
        err_set(err, -rc, "%.500s; and taking it back failed: %.400s", text, again.text);
    }
    return rc;
}

/* The earlier apply, where it is whole and stands: what a failure falls back to. */
static bool has_earlier(const struct transaction *it)
{
    return it->recorded && it->old.complete;
}

static bool earlier_here(const struct transaction *it)
{
    return has_earlier(it) && it->old.wish.at == it->wish->at;
}

static bool same_side(const struct transaction *it)
{
    return earlier_here(it) && it->standing;
}

static int check_foreign(const struct transaction *it, const struct snapshot *now, bool take_over, struct err *err)
{
    bool ingress = it->wish->at == PLAN_INGRESS;
    const struct entry *stands = ingress ? snapshot_ingress(now) : snapshot_root(now);
    char text[96];
    /* An apply of ours that was cut off before its first filter. */
    bool bare = ingress && it->recorded && !it->old.complete && it->old.wish.at == it->wish->at && now->count <= 1 &&
                !snapshot_equal(now, &it->old.before, NULL, 0);
    if (undo_is_shared(now, it->wish->at))
        return err_set(
            err, EEXIST,
            "%s: filters that are not this tool's are in its ingress qdisc beside ours; remove them, or clear",
            it->device.name);
    if (!stands || it->standing || bare)
        return 0;
    entry_text(stands, text, sizeof text);
    if (!take_over)
        return err_set(err, EEXIST,
                       "%s: %s is there already and is not this tool's; --take-over replaces it, clear puts it back",
                       it->device.name, text);
    struct err why;
    if (snapshot_restorable(now, &why))
        return err_set(err, EEXIST, "%s: %.500s; remove it yourself if it need not come back", it->device.name,
                       why.text);
    return 0;
}

/* Everything that can be refused, before anything is done. */
static int prepare(struct netlink *netlink, struct transaction *it, const struct apply_options *options,
                   struct err *err)
{
    struct snapshot now = {0};
    int rc = device_find(netlink, it->wish->device, &it->device, err);
    rc = rc || options->force ? rc : guard_session(it->wish, err);
    rc = rc ? rc : record_lock(&it->device, &it->lock, err);
    if (rc)
        return rc;
    rc = record_read(&it->device, &it->old, err);
    it->recorded = rc == 0;
    if (rc && rc != -ENOENT && rc != -EBADMSG)
        return rc;
    rc = snapshot_take(netlink, it->device.ifindex, undo_part(it->wish->at), &now, err);
    if (rc)
        return rc;
    it->standing = apply_is_ours(&now, it->wish->at);
    rc = check_foreign(it, &now, options->take_over, err);
    snapshot_free(&now);
    return rc;
}

static int copy_snapshot(const struct snapshot *from, struct snapshot *to, struct err *err)
{
    json_t *json = snapshot_to_json(from);
    int rc = json ? snapshot_from_json(json, to, err) : err_set(err, ENOMEM, "out of memory");
    json_decref(json);
    return rc;
}

/* What clear will put back. Where ours stands without a record, what stood before is lost: the driver's default. */
static int find_before(struct netlink *netlink, struct transaction *it, struct err *err)
{
    struct record *record = &it->record;
    /* Also where the tree was deleted by hand meanwhile: the offloads are still as we left them. */
    bool was_off = earlier_here(it) && it->old.wish.gso_off;
    if (was_off)
        record->offloads_before = it->old.offloads_before;
    int rc = was_off ? 0 : device_offloads(it->device.name, &record->offloads_before, err);
    if (rc)
        return rc;
    if (same_side(it))
        return copy_snapshot(&it->old.before, &record->before, err);
    if (it->standing) {
        record->before.parts = undo_part(it->wish->at);
        return 0;
    }
    return snapshot_take(netlink, it->device.ifindex, undo_part(it->wish->at), &record->before, err);
}

/* The record's wish is borrowed from the caller: recording_done takes it out before record_free. */
static int write_record(struct transaction *it, bool complete, struct err *err)
{
    it->record.device = it->device;
    it->record.complete = complete;
    it->record.wish = *it->wish;
    return record_write(&it->record, err);
}

static int start_watcher(struct transaction *it, int64_t expires_boot_ns, struct err *err)
{
    it->record.expires_boot_ns = expires_boot_ns;
    it->record.watcher = 0;
    it->record.watcher_start = 0;
    if (!expires_boot_ns)
        return 0;
    return watch_start(&it->device, expires_boot_ns, &it->record.watcher, &it->record.watcher_start, err);
}

static int switch_offloads(struct transaction *it, struct err *err)
{
    const struct offloads off = {.known = it->record.offloads_before.known};
    bool was_off = earlier_here(it) && it->old.wish.gso_off;
    if (it->wish->gso_off)
        return device_set_offloads(it->device.name, &off, err);
    return was_off ? device_set_offloads(it->device.name, &it->record.offloads_before, err) : 0;
}

/* The same paths with the same prefixes: only what their netems do is new. */
static bool same_layout(const struct wish *a, const struct wish *b)
{
    if (a->path_count != b->path_count)
        return false;
    for (size_t i = 0; i < a->path_count; i++) {
        const struct path *one = &a->paths[i], *other = &b->paths[i];
        if (one->prefix_count != other->prefix_count || one->impairment.seed_given != other->impairment.seed_given)
            return false;
        for (size_t k = 0; k < one->prefix_count; k++)
            if (one->prefixes[k].family != other->prefixes[k].family ||
                one->prefixes[k].length != other->prefixes[k].length ||
                memcmp(one->prefixes[k].address, other->prefixes[k].address, sizeof one->prefixes[k].address))
                return false;
    }
    return true;
}

/* Does everything that was applied still stand as asked? */
static bool stands_as_asked(struct netlink *netlink, int holder, const struct wish *wish, char *why, size_t size)
{
    struct path_state *states = calloc(wish->path_count, sizeof *states);
    struct err err = {""};
    bool same = states && !readback_paths(netlink, holder, wish, states, &err) &&
                !readback_filters(netlink, holder, wish, &err);
    snprintf(why, size, "%s", err.text);
    for (size_t i = 0; same && i < wish->path_count; i++) {
        char difference[256];
        same = readback_same(&wish->paths[i].impairment, &states[i], difference, sizeof difference);
        if (!same)
            snprintf(why, size, "%s: %s", wish->paths[i].name, difference);
    }
    for (size_t i = 0; states && i < wish->path_count; i++)
        impairment_free(&states[i].impairment);
    free(states);
    return same;
}

/* Only the netems, each changed where it stands: no packet passes unshaped, the counters go on. */
static void keep_netems(struct plan *plan)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++) {
        struct step step = plan->steps[i];
        if (strcmp(step.what, "netem")) {
            nlmsg_free(step.message);
            free(step.tc);
            continue;
        }
        struct nlmsghdr *header = nlmsg_hdr(step.message);
        header->nlmsg_flags = (header->nlmsg_flags & ~(unsigned)NLM_F_EXCL) | NLM_F_CREATE | NLM_F_REPLACE;
        plan->steps[kept++] = step;
    }
    plan->count = kept;
}

/* The tree of a wish, in place of whatever stands there. changes_only: into the tree that stands. */
static int build(struct netlink *netlink, const struct device *device, const struct wish *wish,
                 const struct snapshot *before, bool changes_only, struct err *err)
{
    struct plan plan = {0};
    char why[320];
    int ifb = 0;
    int rc = changes_only ? 0 : undo_free_place(netlink, device, wish->at, err);
    if (!rc && wish->at == PLAN_INGRESS)
        rc = device_ifb_open(netlink, device, &ifb, err);
    rc = rc ? rc : plan_build(wish, device->ifindex, ifb, &plan, err);
    if (!rc && changes_only)
        keep_netems(&plan);
    rc = rc ? rc : apply_steps(netlink, device->ifindex, &plan, before, err);
    if (!rc && !stands_as_asked(netlink, ifb ? ifb : device->ifindex, wish, why, sizeof why))
        rc = err_set(err, EIO, "the kernel did not take it as asked: %s", why);
    plan_free(&plan);
    return rc;
}

static bool is_already(struct netlink *netlink, const struct transaction *it)
{
    char why[320];
    int holder = it->device.ifindex;
    if (!same_side(it) || !wish_equal(&it->old.wish, it->wish))
        return false;
    if (it->wish->at == PLAN_INGRESS && device_ifb_find(netlink, &it->device, &holder, NULL))
        return false;
    return stands_as_asked(netlink, holder, it->wish, why, sizeof why);
}

/* One that was cut off in the middle, or is on the other side, goes first. */
static int drop_old(struct netlink *netlink, struct transaction *it, struct err *err)
{
    bool this_side = it->recorded && it->old.wish.at == it->wish->at, foreign;
    if (!it->recorded || (it->old.complete && this_side))
        return 0;
    int rc = undo_find_foreign(netlink, &it->device, &it->old, &foreign, err);
    if (!rc)
        rc =
            foreign ? undo_rest(netlink, &it->device, &it->old, err) : undo_record(netlink, &it->device, &it->old, err);
    it->standing = it->standing && !this_side;
    return rc;
}

static bool has_all_filters(struct netlink *netlink, const struct transaction *it)
{
    int holder = it->device.ifindex;
    if (it->wish->at == PLAN_INGRESS && device_ifb_find(netlink, &it->device, &holder, NULL))
        return false;
    return !readback_filters(netlink, holder, it->wish, NULL);
}

/* From here on, undo is needed on failure. */
static int begin(struct netlink *netlink, struct transaction *it, int64_t expires_boot_ns, struct err *err)
{
    bool already = is_already(netlink, it);
    it->begun = true;
    it->outcome = already ? APPLY_ALREADY : same_side(it) ? APPLY_REPLACED : APPLY_DONE;
    it->record.applied_unix_s = already ? it->old.applied_unix_s : (int64_t)time(NULL);
    if (it->recorded) { /* until the new one is there */
        it->record.watcher = it->old.watcher;
        it->record.watcher_start = it->old.watcher_start;
        it->record.expires_boot_ns = it->old.expires_boot_ns;
    }
    int rc = drop_old(netlink, it, err);
    rc = rc ? rc : find_before(netlink, it, err);
    rc = rc ? rc : write_record(it, already, err);
    rc = rc ? rc : start_watcher(it, expires_boot_ns, err);
    rc = rc || already ? rc : switch_offloads(it, err);
    rc = rc ? rc : write_record(it, already, err);
    if (rc || already)
        return rc;
    bool changes_only = same_side(it) && same_layout(&it->old.wish, it->wish) && has_all_filters(netlink, it);
    return build(netlink, &it->device, it->wish, &it->record.before, changes_only, err);
}

static int undo(struct netlink *netlink, struct transaction *it, struct err *err)
{
    int rc = 0;
    if (!it->recorded || it->record.watcher != it->old.watcher)
        watch_stop(it->record.watcher, it->record.watcher_start);
    if (it->outcome == APPLY_ALREADY)
        return record_write(&it->old, err);
    if (it->record.before.parts)
        rc = undo_record(netlink, &it->device, &it->record, err);
    if (rc || !has_earlier(it)) {
        return rc ? rc : record_remove(&it->device, err);
    }
    const struct offloads off = {.known = it->old.offloads_before.known};
    rc = it->old.wish.gso_off ? device_set_offloads(it->device.name, &off, err) : 0;
    rc = rc ? rc : build(netlink, &it->device, &it->old.wish, &it->old.before, false, err);
    return rc ? rc : record_write(&it->old, err);
}

/* Newest first. Says in err, which holds what went wrong, how it ended. */
static void undo_all(struct netlink *netlink, struct transaction *all, size_t count, struct err *err)
{
    for (size_t i = count; i-- > 0;) {
        struct err again = {""};
        if (!all[i].begun || !undo(netlink, &all[i], &again))
            continue;
        char text[ERR_TEXT_MAX];
        snprintf(text, sizeof text, "%s", err->text);
        err_set(err, EIO, "%.500s; and putting %s back failed: %.300s; try longhaul-emu clear", text,
                all[i].device.name, again.text);
        return;
    }
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, "; nothing is changed");
}

static int check_signal(struct err *err)
{
    int number = undo_taken_signal();
    return number ? err_set(err, EINTR, "interrupted (%s)", strsignal(number)) : 0;
}

static int finish(struct transaction *all, size_t count, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++)
        rc = write_record(&all[i], true, err);
    for (size_t i = 0; !rc && i < count; i++)
        if (all[i].recorded)
            watch_stop(all[i].old.watcher, all[i].old.watcher_start);
    return rc;
}

/* On CLOCK_BOOTTIME, at most a century from now; 0: never. */
static int64_t expiry(double expires_s)
{
    const double century_s = 100.0 * 366 * 86400;
    double s = expires_s < century_s ? expires_s : century_s;
    return s > 0 ? watch_boot_ns() + (int64_t)(s * 1e9) : 0;
}

static int run_all(struct netlink *netlink, struct transaction *all, size_t count, const struct apply_options *options,
                   struct err *err)
{
    int rc = 0;
    sigset_t mask;
    int64_t expires = expiry(options->expires_s);
    for (size_t i = 1; !rc && i < count; i++) /* sorted; it would wait for its own lock */
        if (!strcmp(all[i - 1].wish->device, all[i].wish->device))
            rc = err_set(err, EINVAL, "%s is asked for twice", all[i].wish->device);
    for (size_t i = 0; !rc && i < count; i++)
        rc = prepare(netlink, &all[i], options, err);
    if (rc)
        return rc;
    undo_hold_signals(&mask);
    for (size_t i = 0; !rc && i < count; i++) {
        rc = begin(netlink, &all[i], expires, err);
        if (rc)
            err_prefix(err, "%s", all[i].device.name);
        rc = rc ? rc : check_signal(err);
    }
    rc = rc ? rc : finish(all, count, err);
    if (rc)
        undo_all(netlink, all, count, err);
    undo_release_signals(&mask);
    return rc;
}

static void free_transaction(struct transaction *it)
{
    it->record.wish = (struct wish){0}; /* the caller's */
    record_free(&it->record);
    record_free(&it->old);
    if (it->lock >= 0)
        close(it->lock);
}

/* Locks are taken in one order, so that two applies cannot wait for each other. */
static int by_device(const void *left, const void *right)
{
    const struct transaction *a = left, *b = right;
    return strcmp(a->wish->device, b->wish->device);
}

int apply_run(struct netlink *netlink, const struct wish *wishes, size_t count, const struct apply_options *options,
              enum apply_outcome *outcomes, struct err *err)
{
    struct transaction *all = calloc(count ? count : 1, sizeof *all);
    if (!all)
        return err_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        all[i] = (struct transaction){.wish = &wishes[i], .lock = -1};
    qsort(all, count, sizeof *all, by_device);
    int rc = run_all(netlink, all, count, options, err);
    for (size_t i = 0; i < count; i++) {
        outcomes[all[i].wish - wishes] = all[i].outcome;
        free_transaction(&all[i]);
    }
    free(all);
    return rc;
}
