/* What the tests of this machine's part share: a private network namespace, commands, dumps as the kernel sends them.
 */
#ifndef LONGHAUL_TEST_HOST_RIG_H
#define LONGHAUL_TEST_HOST_RIG_H

#include <check.h>
#include <stddef.h>

#include "emu/host/netlink.h"

/* Leaves with 77 and the reason where the caller is not root, or its kernel lacks what is named ("netem", ...). Each
 * name is tried as a qdisc of a dummy device. Call first in main. */
void rig_need(const char *const *kinds);

/* A new network namespace with device e0 (4 queues, veth to e1, up) and a state folder of its own; in each test, before
 * anything else. */
void rig_new_network(void);

/* Runs a command by the shell; its exit code. Fails the test where it is not 0. */
int rig_try(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rig_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Output of a command, allocated. */
char *rig_output(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Qdiscs, classes and filters of a device as text: the bytes of the kernel's dumps, statistics left out, and what tc
 * says of its filters. Nothing of emu/host is used. Allocated. */
char *rig_dump(const char *device);

/* Runs the cases as Check's environment asks. Returns the exit code of main. */
int rig_main(const char *name, TCase *cases);

#endif
