/* Jitter tables as netem wants them: the inverse of a cumulative distribution function at count equally likely points,
 * in units of 1/8192 standard deviation around the mean. The kernel picks a point at random: delay + jitter x table[i]
 * / 8192.
 *
 * Shapes are computed here (formulas in distribution.c) and scaled to mean 0 and standard deviation 1 after clipping to
 * 16 bits (4 sd), so that the standard deviation asked for is the one that comes out, for every shape. (tc's own
 * pareto and paretonormal tables have 0.82 and 0.83.)
 */
#ifndef LONGHAUL_DISTRIBUTION_H
#define LONGHAUL_DISTRIBUTION_H

#include <stddef.h>
#include <stdint.h>

#include "configs/err.h"
#include "configs/scenario.h"

enum {
    DISTRIBUTION_SCALE = 8192, /* NETEM_DIST_SCALE */
    DISTRIBUTION_COUNT = 4096, /* entries of a computed table; netem takes at most 16384 */
    DISTRIBUTION_COUNT_MAX = 16384,
};

struct distribution {
    size_t count;
    int16_t *table; /* owned */
};

/* Returns 0 or -ENOMEM. */
int distribution_of_shape(enum jitter_shape shape, struct distribution *distribution, struct err *err);
/* tc's .dist format: whole numbers separated by white space, '#' to the end of a line is a comment. Taken as it is: its
 * own mean and sd are what results (distribution_moments). 0, -ENOMEM or -EINVAL with name:line:column. On failure
 * *distribution is empty. */
int distribution_parse(const char *name, const char *text, struct distribution *distribution, struct err *err);
/* The same from a file; also -ENOENT. */
int distribution_read(const char *path, struct distribution *distribution, struct err *err);
void distribution_free(struct distribution *distribution);
/* Mean and standard deviation in units of the jitter. */
void distribution_moments(const struct distribution *distribution, double *mean, double *sd);

#endif
