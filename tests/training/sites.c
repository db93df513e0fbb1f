#include "tests/training/sites.h"

#include <stdio.h>

struct scenario sites_scenario(const struct sites *sites, struct site storage[SITES_MAX])
{
    struct scenario scenario = {.scale = 1,
                                .site_count = sites->count,
                                .sites = storage,
                                .training = {.tensor = sites->tensor, .pipeline = sites->stages}};
    for (size_t s = 0; s < sites->count; s++)
        storage[s] = (struct site){.nodes = sites->nodes[s], .gpus_per_node = sites->gpus_per_node[s]};
    scenario.training.data = scenario_gpus(&scenario) / (sites->tensor * sites->stages);
    return scenario;
}

const char *sites_name(const struct sites *sites, char *buffer, size_t size)
{
    int used = snprintf(buffer, size, "sites");
    for (size_t s = 0; s < sites->count; s++)
        used += snprintf(buffer + used, size - (size_t)used, " %ldx%ld", sites->nodes[s], sites->gpus_per_node[s]);
    snprintf(buffer + used, size - (size_t)used, ", tensor %ld, %ld stages", sites->tensor, sites->stages);
    return buffer;
}
