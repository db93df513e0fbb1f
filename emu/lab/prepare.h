/* From what the user asked to what the machine is told. */
#ifndef LONGHAUL_LAB_PREPARE_H
#define LONGHAUL_LAB_PREPARE_H

#include <limits.h>

#include "emu/lab/spec.h"
#include "emu/lab/topology.h"

struct request {
    const char *scenario; /* file or preset */
    const char *const *sets;
    size_t set_count;
    double kernel_efficiency; /* that a calibration gave; 0: the scenario's own */
    const char *host;         /* NULL: the first */
    const char *writable;     /* NULL: the working directory, where that is neither / nor the home directory */
    char **command;           /* borrowed, ended by NULL */
};

/* Fills scenario, topology (borrows scenario) and everything in spec but what is about terminals. Frees nothing of its
 * caller's when it fails. */
int prepare(const struct request *request, struct scenario *scenario, struct topology *topology, struct spec *spec,
            struct err *err);

/* Folders with this project's programs, separated by ':'; caller frees. In a build tree they lie where their sources
 * do. */
char *prepare_programs(struct err *err);
/* A program in these folders or on PATH. -ENOTSUP: not installed. */
int prepare_program(const char *programs, const char *name, char path[PATH_MAX], struct err *err);
/* longhaul-emu, in these folders or on PATH. -ENOTSUP: not installed. */
int prepare_shaper(const char *programs, char path[PATH_MAX], struct err *err);

#endif
