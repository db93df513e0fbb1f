/* The resolved scenario as text: the dump, and the hash over it. scenario_to_json is declared in scenario.h. */
#ifndef LONGHAUL_SHOW_H
#define LONGHAUL_SHOW_H

#include "configs/scenario.h"

/* Fills scenario->hash. Returns 0 or -ENOMEM. */
int scenario_hash(struct scenario *scenario);

#endif
