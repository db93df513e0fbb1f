/* A program run as a child: what it prints is read fully, and it does not outlive us. */
#ifndef LONGHAUL_CHILD_H
#define LONGHAUL_CHILD_H

#include <jansson.h>
#include <stddef.h>

#include "configs/err.h"

struct child_text {
    char *text; /* ended by a zero byte once the child has ended; NULL where nothing came */
    size_t length, size;
};

struct child_output {
    struct child_text out, errors; /* owned: child_output_free */
    int status;                    /* as waitpid gives it */
    int signal;                    /* the one that interrupted us, with -EINTR */
};

struct child_watch {
    double timeout_s;            /* INFINITY: none */
    void (*tick)(void *context); /* twice a second while it runs; may be NULL */
    void *context;
};

/* Runs arguments[0] (a path), standard input empty, in a process group of its own, which SIGINT, SIGTERM and SIGHUP to
 * us are passed on to. 0 when it ended by itself, whatever its status; -EINTR when a signal ended it (output->signal);
 * -ETIMEDOUT; -EFBIG where it prints without end; others of the system. One line in err except for -EINTR. */
int child_run(const char *const *arguments, const struct child_watch *watch, struct child_output *output,
              struct err *err);
/* The JSON that a child of ours printed; its warnings are passed on. Where it failed: the one line that says why, as
 * its exit code means it. Cuts errors up. */
int child_json(struct child_output *output, json_t **json, struct err *err);
/* What it printed, if words is not NULL: the caller's then, NULL for nothing. Failures as above. */
int child_words(struct child_output *output, char **words, struct err *err);
void child_output_free(struct child_output *output);

#endif
