#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "configs/yaml.h"
#include "emu/lab/topology.h"

enum { FAMILIES = 2 };

/* The address plan of the lab as the scenario's `emu:`. */
static void set_sites(const struct topology *topology, struct emu_site *sites, struct prefix *prefixes)
{
    for (size_t site = 0; site < topology->scenario->site_count; site++) {
        struct prefix *own = &prefixes[FAMILIES * site];
        own[0] = topology_site_prefix(site, AF_INET);
        own[1] = topology_site_prefix(site, AF_INET6);
        sites[site] = (struct emu_site){.site = site, .prefix_count = FAMILIES, .prefixes = own};
    }
}

char *topology_scenario(const struct topology *topology, struct err *err)
{
    struct scenario scaled = *topology->scenario; /* borrows all but what is replaced here */
    double divide = (double)scaled.lab.divide;
    char *text = NULL;
    json_t *json = NULL;
    scaled.wan = calloc(scaled.wan_count + 1, sizeof *scaled.wan);
    scaled.emu_sites = calloc(scaled.site_count, sizeof *scaled.emu_sites);
    struct prefix *prefixes = calloc(FAMILIES * scaled.site_count, sizeof *prefixes);
    if (scaled.wan && scaled.emu_sites && prefixes) {
        for (size_t i = 0; i < scaled.wan_count; i++) {
            scaled.wan[i] = topology->scenario->wan[i];
            scaled.wan[i].wave_bit_per_s /= divide;
        }
        scaled.fabric.nic_bit_per_s /= divide;
        scaled.lab.divide = 1;
        scaled.emu_site_count = scaled.site_count;
        set_sites(topology, scaled.emu_sites, prefixes);
        json = scenario_to_json(&scaled);
    }
    if (!json)
        err_set(err, ENOMEM, "out of memory");
    else if (yaml_emit(json, &text, err))
        text = NULL;
    json_decref(json);
    free(scaled.wan);
    free(scaled.emu_sites);
    free(prefixes);
    return text;
}
