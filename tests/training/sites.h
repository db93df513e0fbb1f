/* Scenarios with nothing but sites, for tests of groups and collectives. */
#ifndef LONGHAUL_TEST_SITES_H
#define LONGHAUL_TEST_SITES_H

#include "sim/training/group.h"

enum { SITES_MAX = 4 };

struct sites {
    size_t count;
    long nodes[SITES_MAX], gpus_per_node[SITES_MAX];
    long tensor, stages;
};

/* The scenario points into `storage`. */
struct scenario sites_scenario(const struct sites *sites, struct site storage[SITES_MAX]);
/* "sites 4x2 4x2, tensor 1, 3 stages" */
const char *sites_name(const struct sites *sites, char *buffer, size_t size);

#endif
