/* A User-Mode Linux machine and the guardian that ends it.
 *
 *   launcher (this process) --- guardian (own session) --- kernel --- its traced processes
 *
 * The guardian owns everything that could be left behind: the private folder and every process below it. It holds one
 * end of a pipe whose other end only the launcher has: when the launcher is gone, for whatever reason, it ends them by
 * process id and removes the folder. */
#ifndef LONGHAUL_LAB_MACHINE_H
#define LONGHAUL_LAB_MACHINE_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

#include "emu/lab/spec.h"

struct machine_options {
    const char *kernel;
    const struct spec *spec;
    double memory_bytes;
    int terminal; /* put back to settings when the machine ends; -1: none */
    const struct termios *settings;
};

struct machine {
    pid_t guardian;
    int life;       /* closing it ends the machine */
    int input;      /* to the command; -1 without a shell */
    int streams[2]; /* standard output and error of the command; end of file when all is over */
    int control; /* lines: "folder PATH", "exit N", "fail N TEXT"; last, when all is removed, "log TEXT" of the kernel
                  */
};

int machine_start(const struct machine_options *options, struct machine *machine, struct err *err);
/* Ends it, if it still runs, and waits until nothing of it is left. */
void machine_stop(struct machine *machine);

/* The path of this very program. */
int machine_program(char *path, size_t size, struct err *err);

#endif
