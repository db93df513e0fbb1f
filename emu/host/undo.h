/* Steps back that apply and clear share. */
#ifndef LONGHAUL_UNDO_H
#define LONGHAUL_UNDO_H

#include <signal.h>

#include "emu/host/record.h"

/* What stood before the record's apply stands again: qdiscs, offloads, no ifb device. The record itself stays. */
int undo_record(struct netlink *netlink, const struct device *device, const struct record *record, struct err *err);

/* Of that, what is no qdisc: offloads, the ifb device. */
int undo_rest(struct netlink *netlink, const struct device *device, const struct record *record, struct err *err);

/* *foreign: somebody put a qdisc of his own where the record's was: neither ours nor what stood before; err tells (for
 * callers that stop there). Where others put filters into our ingress qdisc, ours are taken out and the rest is
 * foreign. */
int undo_find_foreign(struct netlink *netlink, const struct device *device, const struct record *record, bool *foreign,
                      struct err *err);
/* Does our ingress qdisc hold filters of others? */
bool undo_is_shared(const struct snapshot *snapshot, enum plan_at at);

/* Frees the place for our tree: deletes the root, or the ingress qdisc and the ifb device, whosever they are. None is
 * fine. */
int undo_free_place(struct netlink *netlink, const struct device *device, enum plan_at at, struct err *err);

unsigned undo_part(enum plan_at at); /* of enum snapshot_part */

/* Signals that would end this process wait from hold to release. */
void undo_hold_signals(sigset_t *before);
void undo_release_signals(const sigset_t *before);
/* Has one of them come since hold? Takes it, and returns its number; 0: none. */
int undo_taken_signal(void);

#endif
