/* A program with verbs: one table for dispatch, help and suggestions. */
#ifndef LONGHAUL_VERBS_H
#define LONGHAUL_VERBS_H

#include <stddef.h>

struct verb {
    const char *name;                  /* first: suggest.h reads it */
    const char *help;                  /* one line */
    int (*run)(int argc, char **argv); /* argv[0] is "PROGRAM VERB"; returns the exit code */
};

struct verbs {
    const char *program; /* "longhaul-emu" */
    const char *purpose; /* one line */
    const char *example; /* whole lines, a heading and commands */
    const struct verb *list;
    size_t count;
};

/* --help, help VERB, --version, the verbs. Notices a full disk on standard output. Returns the exit code. */
int verbs_main(const struct verbs *verbs, int argc, char **argv);

#endif
