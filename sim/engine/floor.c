#include "sim/engine/floor.h"

#include <math.h>
#include <stdlib.h>

double floor_latency(const struct layout *layout, int from, int to)
{
    size_t a = placement_site(&layout->placement, from), b = placement_site(&layout->placement, to);
    return layout->hop_latency_s + layout->routes.rtt_s[a * layout->placement.sites + b] / 2;
}

double floor_wan_rate(const struct layout *layout, const double *bytes)
{
    const struct scenario *scenario = layout->scenario;
    double most_s = 0;
    for (size_t l = 0; l < scenario->wan_count; l++) {
        double rate = layout->payload_share * (double)scenario->wan[l].waves * scenario->wan[l].wave_bit_per_s / 8;
        for (size_t way = 0; way < 2; way++)
            most_s = fmax(most_s, routes_link_bytes(&layout->routes, scenario, bytes, (long)l, way) / rate);
    }
    return most_s;
}

double floor_nic(const struct layout *layout, double bytes)
{
    return bytes / layout->nic_byte_per_s;
}

double floor_ring_latency(const struct layout *layout, const struct group *group, enum ring_kind kind)
{
    int n = group->count, steps = ring_steps(kind, n);
    double sum_s = 0, least_s;
    if (n < 2)
        return 0;
    for (int i = 0; i < steps; i++)
        sum_s += floor_latency(layout, group->ranks[i % n], group->ranks[(i + 1) % n]);
    least_s = sum_s;
    for (int i = 0; i < n; i++) {
        int end = (i + steps) % n;
        sum_s += floor_latency(layout, group->ranks[end], group->ranks[(end + 1) % n]);
        sum_s -= floor_latency(layout, group->ranks[i], group->ranks[(i + 1) % n]);
        least_s = fmin(least_s, sum_s);
    }
    return least_s;
}
