/* Buffers whose sums over any ranks are exact in float, for tests of collectives on the loopback. */
#ifndef LONGHAUL_TEST_SUMS_H
#define LONGHAUL_TEST_SUMS_H

#include <check.h>

#include "sim/training/group.h"
#include "sim/training/transport.h"
#include "tests/support/loopback.h"

/* A loopback of ranks with `bytes` of gradient each and nothing else. */
struct loopback *sums_loopback(int ranks, size_t bytes);
/* Every rank's gradient: small whole numbers that differ by rank and place. */
void sums_fill(const struct loopback *loopback, int ranks, size_t bytes);
/* What a rank's float at a place was, and the sum of it over a group. */
float sums_value(int rank, size_t place);
float sums_expected(const struct group *group, size_t place);

/* Fails unless the floats of the span hold the sum over the group. context names the case. */
void sums_check(const struct loopback *loopback, int rank, const struct group *group, struct span span,
                const char *context);
/* Runs, and fails with the loopback's message. */
void sums_run(struct loopback *loopback, stream_function *main, void *argument, const char *context);
/* Runs the cases as Check's environment asks. Returns the exit code of main. */
int sums_suite(const char *name, TCase *cases);

#endif
