/* What the launcher asks of the machine: written as JSON into the private folder, read by the machine's init. */
#ifndef LONGHAUL_LAB_SPEC_H
#define LONGHAUL_LAB_SPEC_H

#include <jansson.h>
#include <stdbool.h>

#include "configs/err.h"
#include "configs/scenario.h"

#define SPEC_FILE "spec.json" /* in the private folder, beside "init" */

/* Where the machine's consoles lead; the numbers are those of its ttys. */
enum spec_console {
    CONSOLE_KERNEL,  /* the kernel's own words: a log in the private folder */
    CONSOLE_COMMAND, /* standard output of the command, and its input in a shell */
    CONSOLE_ERROR,   /* standard error */
    CONSOLE_CONTROL, /* one line at the end: "exit N", or "fail N TEXT" */
    CONSOLE_COUNT
};

struct spec {
    char *scenario; /* YAML, resolved; NULL: start, answer, halt (doctor) */
    char *host;     /* name of the host to run on; NULL: the first */
    char *folder;   /* working directory */
    char *writable; /* mounted for writing; NULL: nothing is */
    char *programs; /* folders put in front of PATH, separated by ':' */
    char *shaper;   /* path of longhaul-emu */
    char **argv;    /* owned list ended by NULL */
    char **envp;
    bool real_time;   /* else the clock stands still while a process runs and jumps while all of them sleep */
    bool private_tmp; /* an empty /tmp of its own */
    bool shell;       /* interactive: input is relayed, the command leads a terminal */
    bool terminal[2]; /* standard output, error: is a terminal outside */
    int rows, columns;
};

/* 0 or negative errno. */
int spec_write(const struct spec *spec, const char *path, struct err *err);
int spec_read(const char *path, struct spec *spec, struct err *err);
void spec_free(struct spec *spec);

#endif
