/* The inside of the machine: what its first process does. */
#ifndef LONGHAUL_LAB_GUEST_H
#define LONGHAUL_LAB_GUEST_H

#include "emu/lab/spec.h"
#include "emu/lab/topology.h"

#define GUEST_FOLDER "/run/longhaul" /* what the lab tells its commands: scenario, hosts, how to reach them */
#define GUEST_SCENARIO GUEST_FOLDER "/scenario.yaml"

/* The first process of the machine: mounts, network, command, relay, verdict, halt. folder: the private folder as the
 * kernel was told it. Never returns. */
_Noreturn void guest_run(const char *folder);

/* File systems of the machine; first: those that the verdict needs. */
int guest_mount_first(struct err *err);
int guest_mount(const struct spec *spec, struct err *err);
/* The generated file stands where the machine's /etc/hosts is read. */
int guest_cover_hosts(const char *path, struct err *err);

/* This process goes to a host, as by `ip netns exec`, with a name and IPC of the host's own, and LONGHAUL_HOST. */
int guest_become_host(const char *host, struct err *err);
/* rsh HOST COMMAND..., as it is known to programs that start others on the hosts: GUEST_FOLDER/rsh. Returns only when
 * it failed: an exit code. */
int guest_rsh(char **argv);

/* What `mpirun ./program` needs to find all hosts: files, and variables where the user has not set them. */
int guest_mpi_files(const struct spec *spec, const struct topology *topology, struct err *err);
int guest_mpi_environment(const struct spec *spec, struct err *err);

/* Starts the command on its host; everything it says goes to the consoles until it has ended. Returns the exit code
 * (128 + signal), or a negative errno. */
int guest_command(const struct spec *spec, const char *host, struct err *err);

/* Opens a console for bytes as they are; -1. */
int guest_console(enum spec_console console);
/* Writes all. Where the launcher is slow the clock must not run ahead of it: this process stays busy instead of
 * sleeping, so that virtual time stands still. */
void guest_write(int fd, const void *data, size_t size);
/* Until the console has passed on all that was written. */
void guest_drain(int fd);

#endif
