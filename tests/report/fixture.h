/* A hand-made scenario and result: two sites, four strategies (one without memory enough), references, an unstated
 * convention. */
#ifndef LONGHAUL_TEST_FIXTURE_H
#define LONGHAUL_TEST_FIXTURE_H

#include "sim/report/result.h"

struct fixture {
    struct site sites[4];
    struct wan_link wan[4];
    struct strategy strategies[4];
    struct reference references[4];
    struct scenario scenario;
    struct result result;
};

/* sites: 1, 2 (one link) or 4 (a ring of links). Free with fixture_free. */
struct fixture *fixture_new(size_t sites);
void fixture_free(struct fixture *fixture);

/* Makes the result one that was measured on real ranks: 5 steps each, no baseline, no what-ifs, no other reading. */
void fixture_measure(struct fixture *fixture);

/* Runs result_print into memory. Caller frees. */
char *fixture_print(const struct result *result, bool colour, int width);

#endif
