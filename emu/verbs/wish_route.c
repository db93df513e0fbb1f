/* Ways over the WAN by the smallest RTT. */
#include <math.h>

#include "emu/verbs/wish_work.h"

/* Distance to one site. */
struct way {
    double rtt_s;
    size_t hops;
};

static bool shorter(struct way a, struct way b)
{
    return a.rtt_s < b.rtt_s || (a.rtt_s == b.rtt_s && a.hops < b.hops);
}

size_t wish_peer(const struct wan_link *link, size_t site)
{
    return link->between[link->between[0] == site];
}

/* Bellman and Ford, from every site to this one. */
static void find_ways(const struct scenario *scenario, size_t to, struct way ways[SITES_MAX])
{
    for (size_t i = 0; i < scenario->site_count; i++)
        ways[i] = (struct way){i == to ? 0 : INFINITY, 0};
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < scenario->wan_count; i++)
            for (int end = 0; end < 2; end++) {
                const struct wan_link *link = &scenario->wan[i];
                struct way beyond = ways[link->between[!end]];
                struct way way = {link->rtt_s + beyond.rtt_s, beyond.hops + 1};
                if (isfinite(beyond.rtt_s) && shorter(way, ways[link->between[end]])) {
                    ways[link->between[end]] = way;
                    changed = true;
                }
            }
    }
}

/* The link to take from a site; among equals that to the lowest site, then the lowest link. */
static size_t next_link(const struct scenario *scenario, const struct way *ways, size_t from)
{
    struct way best = {INFINITY, 0};
    size_t link = 0, peer = SITES_MAX;
    for (size_t i = 0; i < scenario->wan_count; i++) {
        const struct wan_link *wan = &scenario->wan[i];
        if (wan->between[0] != from && wan->between[1] != from)
            continue;
        size_t other = wish_peer(wan, from);
        struct way way = {wan->rtt_s + ways[other].rtt_s, ways[other].hops + 1};
        bool same = way.rtt_s == best.rtt_s && way.hops == best.hops;
        if (isfinite(way.rtt_s) && (shorter(way, best) || (same && other < peer))) {
            best = way;
            link = i;
            peer = other;
        }
    }
    return link;
}

void wish_find_route(const struct scenario *scenario, size_t from, size_t to, struct wish_route *route)
{
    struct way ways[SITES_MAX];
    find_ways(scenario, to, ways);
    route->count = 0;
    while (from != to && route->count < SITES_MAX) {
        size_t link = next_link(scenario, ways, from);
        route->links[route->count++] = link;
        from = wish_peer(&scenario->wan[link], from);
    }
}
