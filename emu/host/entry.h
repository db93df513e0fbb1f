/* One qdisc, class or filter between the kernel's dump and the message that sets it again. What a dump gives and what a
 * set takes differ kind by kind; entry.c knows how. */
#ifndef LONGHAUL_ENTRY_H
#define LONGHAUL_ENTRY_H

#include <linux/rtnetlink.h>

#include "emu/host/snapshot.h"

/* From one answer of an RTM_GETQDISC, RTM_GETTCLASS or RTM_GETTFILTER dump. 0, -ENOMEM. */
int entry_of_dump(const struct nlmsghdr *answer, struct entry *entry, struct err *err);
void entry_free(struct entry *entry);

/* 0, or -ENOTSUP with the reason why this one cannot be set again exactly. */
int entry_restorable(const struct entry *entry, struct err *err);

/* "qdisc htb 1:", "class htb 1:10", "filter u32 800::800 of 1:" */
void entry_text(const struct entry *entry, char *text, size_t size);

/* The message that sets it again: RTM_NEWQDISC and so on. NULL out of memory. */
struct nl_msg *entry_message(const struct entry *entry, int ifindex);
/* A message about it of another type, with flags, without its attributes but TCA_KIND. NULL out of memory. */
struct nl_msg *entry_bare_message(const struct entry *entry, int type, int flags, int ifindex);

/* A qdisc kind whose classes are made by its user (htb), not by itself (mq, prio). */
bool entry_has_own_classes(const struct entry *qdisc);

/* The indices of a filter's mirred actions, at most room. */
size_t entry_mirreds(const struct entry *filter, uint32_t *indices, size_t room);

#endif
