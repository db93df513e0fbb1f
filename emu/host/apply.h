/* Apply and clear as transactions on one device: recorded before anything changes, rolled back when a step fails or a
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

/* Order: lock; guard (session, foreign root, restorable); record with snapshot; watcher (expiry); offloads; steps; mark
 * complete. Any failure after the record: restore what stood before this call (an earlier apply of ours, or the
 * snapshot), remove or rewrite the record, and say both what failed and that nothing changed. SIGINT, SIGTERM and
 * SIGHUP wait for the end of the transaction and roll it back. */
int apply_run(struct netlink *netlink, const struct wish *wish, const struct apply_options *options,
              enum apply_outcome *outcome, struct err *err);

/* For apply_run, and for tests that break a step on purpose: sends the plan's steps; on failure restores before. */
int apply_steps(struct netlink *netlink, int ifindex, const struct plan *plan, const struct snapshot *before,
                struct err *err);

/* Puts back what stood before. No record but our handle at the root (a reboot took /run, or the record was lost):
 * deletes it, *unrecorded is true, the driver's default is what stays. Nothing of ours there: 0, *cleared false. */
int apply_clear(struct netlink *netlink, const char *device, bool *cleared, bool *unrecorded, struct err *err);

/* The watcher: a process of its own session and (where cgroups allow) of the root cgroup, that sleeps on CLOCK_BOOTTIME
 * in this network namespace and then clears; ends when the record is gone or names another watcher. Returns its id. */
int watch_start(const struct device *device, int64_t expires_boot_ns, pid_t *watcher, uint64_t *start, struct err *err);

/* Would shaping these prefixes on this device touch a TCP connection of this process or one of its ancestors (sshd, a
 * launcher's daemon), or $SSH_CONNECTION's client? Returns 0, or -EBUSY with the line that names connection and
 * process. */
int guard_session(const struct wish *wish, struct err *err);

#endif
