/* What every program that takes a scenario shares: --set, --version, exit code 2 for usage, output to FILE or '-',
 * colours. */
#ifndef LONGHAUL_OPTIONS_H
#define LONGHAUL_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "configs/err.h"

enum { OPTIONS_SETS_MAX = 64 };

struct options_sets {
    size_t count;
    const char *texts[OPTIONS_SETS_MAX]; /* KEY=VALUE, borrowed from argv; hand (texts, count) to scenario_load */
};

/* A child parser with --set KEY=VALUE. Use it as `.children = (struct argp_child[]){{&options_argp}, {0}}` and in the
 * parent's ARGP_KEY_INIT set state->child_inputs[0] to a struct options_sets. */
extern const struct argp options_argp;

/* Call first in main: --version prints "longhaul VERSION", wrong usage exits with EXIT_USAGE. */
void options_setup(void);

/* Opens FILE for writing; "-" is standard output. NULL with a message where that fails. */
FILE *options_open(const char *path, struct err *err);
/* Closes what options_open gave; notices a full disk. Returns 0 or a negative errno. */
int options_close(FILE *file, const char *path, struct err *err);

/* Colours: file is a terminal, NO_COLOR is unset or empty, TERM is not "dumb". */
bool options_colour(FILE *file);
/* Columns of the terminal that file is, 0 where it is none. */
int options_width(FILE *file);

#endif
