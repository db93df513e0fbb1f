#include "sim/engine/layout.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

size_t layout_other_end(const struct scenario *scenario, long link, size_t from)
{
    const struct wan_link *wan = &scenario->wan[link];
    return wan->between[wan->between[0] == from];
}

static void direct_links(struct layout *layout)
{
    const struct scenario *scenario = layout->scenario;
    size_t sites = scenario->site_count;
    for (size_t i = 0; i < sites * sites; i++) {
        layout->next_link[i] = -1;
        layout->wan_rtt_s[i] = i / sites == i % sites ? 0 : INFINITY;
    }
    for (size_t l = 0; l < scenario->wan_count; l++) {
        const struct wan_link *wan = &scenario->wan[l];
        for (int way = 0; way < 2; way++) {
            size_t at = wan->between[way] * sites + wan->between[!way];
            if (wan->rtt_s < layout->wan_rtt_s[at]) {
                layout->wan_rtt_s[at] = wan->rtt_s;
                layout->next_link[at] = (long)l;
            }
        }
    }
}

/* Floyd and Warshall; ties keep the path found first, so the result does not depend on anything but the scenario. */
static void shortest_paths(struct layout *layout)
{
    size_t sites = layout->scenario->site_count;
    direct_links(layout);
    for (size_t via = 0; via < sites; via++) {
        for (size_t from = 0; from < sites; from++) {
            for (size_t to = 0; to < sites; to++) {
                double sum = layout->wan_rtt_s[from * sites + via] + layout->wan_rtt_s[via * sites + to];
                if (sum < layout->wan_rtt_s[from * sites + to]) {
                    layout->wan_rtt_s[from * sites + to] = sum;
                    layout->next_link[from * sites + to] = layout->next_link[from * sites + via];
                }
            }
        }
    }
}

static double slowest_nic(const struct scenario *scenario)
{
    double least = INFINITY;
    for (size_t s = 0; s < scenario->site_count; s++) {
        double node_bit_per_s = (double)scenario->fabric.nics_per_node * scenario->fabric.nic_bit_per_s;
        double share = (double)scenario->training.tensor / (double)scenario->sites[s].gpus_per_node;
        least = fmin(least, node_bit_per_s * share / 8);
    }
    return least;
}

/* What one of `flows` a stage gets of the widest link: its share, or one wave for each of its connections if that is
 * less. */
static bool nic_is_wide(const struct layout *layout, long flows)
{
    const struct scenario *scenario = layout->scenario;
    double share = 1 / (double)(flows * scenario->training.pipeline), most = 0;
    for (size_t l = 0; l < scenario->wan_count; l++) {
        double waves = fmin((double)scenario->transport.connections, (double)scenario->wan[l].waves * share);
        most = fmax(most, waves * scenario->wan[l].wave_bit_per_s / 8);
    }
    return most * 16 <= layout->nic_byte_per_s;
}

int layout_init(struct layout *layout, const struct scenario *scenario, bool fold, long wan_flows, struct err *err)
{
    size_t pairs = scenario->site_count * scenario->site_count;
    *layout = (struct layout){.scenario = scenario, .nic_byte_per_s = slowest_nic(scenario), .wan_flows = 1, .fold = 1};
    layout->next_link = calloc(pairs, sizeof *layout->next_link);
    layout->wan_rtt_s = calloc(pairs, sizeof *layout->wan_rtt_s);
    int rc = layout->next_link && layout->wan_rtt_s ? placement_init(&layout->placement, scenario, err)
                                                    : err_set(err, ENOMEM, "out of memory for %zu sites", pairs);
    if (rc < 0) {
        layout_free(layout);
        return rc;
    }
    long rails = layout->placement.rails;
    layout->hop_latency_s = scenario->fabric.latency_s + (double)(rails - 1) * scenario->fabric.nvlink_latency_s;
    layout->count = (int)(scenario->training.pipeline * scenario->training.data);
    layout->wan_skips_nic = scenario->wan_count > 0 && nic_is_wide(layout, wan_flows);
    if (fold) {
        layout->folded = true;
        layout->fold = site_replicas(scenario, 0);
        layout->wan_flows = wan_flows;
        layout->mirrored = scenario->site_count == 2 && layout->wan_skips_nic;
        layout->count = (int)(scenario->training.pipeline * (layout->mirrored ? 1 : (long)scenario->site_count));
    }
    shortest_paths(layout);
    return 0;
}

void layout_free(struct layout *layout)
{
    placement_free(&layout->placement);
    free(layout->next_link);
    free(layout->wan_rtt_s);
    layout->next_link = NULL;
    layout->wan_rtt_s = NULL;
}

int layout_index(const struct layout *layout, int rank)
{
    if (!layout->folded)
        return rank;
    long stage = placement_stage(&layout->placement, rank);
    if (layout->mirrored)
        return (int)stage;
    return (int)(stage * (long)layout->placement.sites + (long)placement_site(&layout->placement, rank));
}

int layout_rank(const struct layout *layout, int index)
{
    if (!layout->folded)
        return index;
    size_t sites = layout->mirrored ? 1 : layout->placement.sites, site = (size_t)index % sites;
    long stage = index / (long)sites;
    return placement_rank(&layout->placement, stage, layout->placement.site_first[site]);
}

const char *layout_host(const struct layout *layout, int rank, char *buffer)
{
    size_t site = placement_site(&layout->placement, rank);
    long first = layout->placement.site_first[site], here = layout->placement.site_first[site + 1] - first;
    long place = placement_stage(&layout->placement, rank) * here + placement_replica(&layout->placement, rank) - first;
    snprintf(buffer, LAYOUT_HOST_MAX, "%.64s-%ld", layout->scenario->sites[site].name, place);
    return buffer;
}
