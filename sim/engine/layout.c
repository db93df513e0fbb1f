#include "sim/engine/layout.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/tcp.h"

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
        most = fmax(most, layout->payload_share * waves * scenario->wan[l].wave_bit_per_s / 8);
    }
    return most * 16 <= layout->nic_byte_per_s;
}

int layout_init(struct layout *layout, const struct scenario *scenario, bool fold, long wan_flows, struct err *err)
{
    const struct transport_settings *transport = &scenario->transport;
    *layout = (struct layout){.scenario = scenario, .payload_share = 1, .wan_flows = 1, .fold = 1};
    if (transport->protocol == PROTOCOL_TCP)
        layout->payload_share = tcp_payload_share(transport->mtu_bytes);
    layout->nic_byte_per_s = layout->payload_share * slowest_nic(scenario);
    int rc = routes_init(&layout->routes, scenario, err);
    rc = rc ? rc : placement_init(&layout->placement, scenario, err);
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
    return 0;
}

void layout_free(struct layout *layout)
{
    placement_free(&layout->placement);
    routes_free(&layout->routes);
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
