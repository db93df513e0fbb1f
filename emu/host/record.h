/* What this tool has done to a device and how to undo it, on disk before it is done:
 * /run/longhaul-emu/NETNS-DEVICE.json (NETNS: inode of the network namespace; LONGHAUL_EMU_STATE, a path from /,
 * replaces the folder), mode 0600, written by rename after fsync. One lock a device (flock on the file's .lock) covers
 * each apply and clear.
 */
#ifndef LONGHAUL_RECORD_H
#define LONGHAUL_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "emu/host/device.h"
#include "emu/host/snapshot.h"
#include "emu/shape/plan.h"

struct record {
    struct device device;
    bool complete;          /* apply reached its end; false: it was cut off in the middle */
    struct wish wish;       /* owned */
    struct snapshot before; /* owned */
    struct offloads offloads_before;
    int64_t applied_unix_s;  /* wall clock */
    int64_t expires_boot_ns; /* CLOCK_BOOTTIME; 0: never */
    pid_t watcher;           /* the process that clears at expiry; 0 */
    uint64_t watcher_start;  /* field 22 of /proc/PID/stat: tells a reused id apart */
};

/* Waits at most half a minute for another apply or clear; close(fd) unlocks. -EBUSY, -EACCES (root is needed). */
int record_lock(const struct device *device, int *fd, struct err *err);
/* -ENOENT without a message: there is none. A record whose device went away (same name, other ifindex) counts as none
 * and is removed. -EBADMSG: there is one that cannot be read. On failure nothing is left to free. */
int record_read(const struct device *device, struct record *record, struct err *err);
int record_write(const struct record *record, struct err *err);
int record_remove(const struct device *device, struct err *err); /* none is fine */
void record_free(struct record *record);
/* Names of the devices of this namespace that have a record; caller frees names and list. None, and no folder: 0. */
int record_list(char ***names, size_t *count, struct err *err);

#endif
