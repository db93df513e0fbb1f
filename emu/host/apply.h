/* Apply and clear as transactions: recorded before anything changes, rolled back when a step fails or a
 * signal comes, and the same when done twice. */
#ifndef LONGHAUL_APPLY_H
#define LONGHAUL_APPLY_H

#include "emu/host/record.h"

struct apply_options {
    double expires_s; /* clear by itself after this; 0: never */
    bool take_over;   /* replace a foreign root (or ingress) qdisc; it is put back by clear */
    bool force;       /* even where it touches the connection this session came by */
};

enum apply_outcome { APPLY_DONE, APPLY_ALREADY /* the same was applied; only the expiry is new */, APPLY_REPLACED };

/* Several devices, all or nothing. Order: locks; guard (session, foreign root, restorable); then for each device
 * record with snapshot, watcher (expiry), offloads, steps, reading back; last the records are marked complete. Any
 * failure after the first record: every device is put back as it stood before this call (an earlier apply of ours, or
 * the snapshot), records too, and err says what failed and that nothing changed. SIGINT, SIGTERM, SIGHUP and SIGQUIT
 * wait for the end of the transaction, which they roll back (-EINTR). outcomes: one for each wish. */
int apply_run(struct netlink *netlink, const struct wish *wishes, size_t count, const struct apply_options *options,
              enum apply_outcome *outcomes, struct err *err);

/* For apply_run, and for tests that break a step on purpose: sends the plan's steps; on failure restores before, and
 * says so where even that fails. */
int apply_steps(struct netlink *netlink, int ifindex, const struct plan *plan, const struct snapshot *before,
                struct err *err);

/* Is the root of this device (egress), or its ingress qdisc, one that this tool made? */
bool apply_is_ours(const struct snapshot *snapshot, enum plan_at at);

enum clear_outcome {
    CLEAR_NOTHING,    /* nothing of ours was there */
    CLEAR_DONE,       /* what stood before stands again */
    CLEAR_UNRECORDED, /* ours stood there, but the record is lost or unreadable: deleted; the driver's default stays */
    CLEAR_GONE,       /* the device went away, and with it what was applied: its record and ifb device are removed */
};

/* Puts back what stood before. -EEXIST: somebody replaced our qdisc by
 * his own, which is left alone; the record is dropped. */
int apply_clear(struct netlink *netlink, const char *device, enum clear_outcome *outcome, struct err *err);

/* Names of the devices that a clear would act on: with a record, or with a tree of ours on them or their ifb. Caller
 * frees names and list.
 */
int apply_list(struct netlink *netlink, char ***names, size_t *count, struct err *err);

/* apply_clear at expiry, by the watcher: only where the record names this process. */
int apply_expire(struct netlink *netlink, const struct device *device, struct err *err);

/* The watcher: a process of its own session and (where cgroups allow) of the root cgroup, that sleeps on CLOCK_BOOTTIME
 * in this network namespace and then clears; ends when the record is gone or names another watcher. Returns its id and
 * start. */
int watch_start(const struct device *device, int64_t expires_boot_ns, pid_t *watcher, uint64_t *start, struct err *err);
/* Is it that very process, and alive? */
bool watch_alive(pid_t watcher, uint64_t start);
void watch_stop(pid_t watcher, uint64_t start);
int64_t watch_boot_ns(void); /* CLOCK_BOOTTIME */

/* Would shaping these prefixes on this device touch a TCP connection of this process or one of its ancestors (sshd, a
 * launcher's daemon), or $SSH_CONNECTION's client? Returns 0, or -EBUSY with the line that names connection and
 * process. */
int guard_session(const struct wish *wish, struct err *err);

#endif
