#include "configs/route.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

size_t route_other_end(const struct scenario *scenario, long link, size_t from)
{
    const struct wan_link *wan = &scenario->wan[link];
    return wan->between[wan->between[0] == from];
}

static void direct_links(struct routes *routes, const struct scenario *scenario)
{
    size_t sites = routes->sites;
    for (size_t i = 0; i < sites * sites; i++) {
        routes->next_link[i] = -1;
        routes->rtt_s[i] = i / sites == i % sites ? 0 : INFINITY;
    }
    for (size_t l = 0; l < scenario->wan_count; l++) {
        const struct wan_link *wan = &scenario->wan[l];
        for (int way = 0; way < 2; way++) {
            size_t at = wan->between[way] * sites + wan->between[!way];
            if (wan->rtt_s < routes->rtt_s[at]) {
                routes->rtt_s[at] = wan->rtt_s;
                routes->next_link[at] = (long)l;
            }
        }
    }
}

/* Floyd and Warshall; ties keep the path found first, so the result does not depend on anything but the scenario. */
static void shortest_paths(struct routes *routes)
{
    size_t sites = routes->sites;
    for (size_t via = 0; via < sites; via++) {
        for (size_t from = 0; from < sites; from++) {
            for (size_t to = 0; to < sites; to++) {
                double sum = routes->rtt_s[from * sites + via] + routes->rtt_s[via * sites + to];
                if (sum < routes->rtt_s[from * sites + to]) {
                    routes->rtt_s[from * sites + to] = sum;
                    routes->next_link[from * sites + to] = routes->next_link[from * sites + via];
                }
            }
        }
    }
}

int routes_init(struct routes *routes, const struct scenario *scenario, struct err *err)
{
    size_t pairs = scenario->site_count * scenario->site_count;
    *routes = (struct routes){.sites = scenario->site_count};
    routes->next_link = calloc(pairs, sizeof *routes->next_link);
    routes->rtt_s = calloc(pairs, sizeof *routes->rtt_s);
    if (!routes->next_link || !routes->rtt_s) {
        routes_free(routes);
        return err_set(err, ENOMEM, "out of memory for %zu sites", scenario->site_count);
    }
    direct_links(routes, scenario);
    shortest_paths(routes);
    return 0;
}

void routes_free(struct routes *routes)
{
    free(routes->next_link);
    free(routes->rtt_s);
    *routes = (struct routes){0};
}

double routes_link_bytes(const struct routes *routes, const struct scenario *scenario, const double *bytes, long link,
                         size_t way)
{
    size_t sites = routes->sites, start = scenario->wan[link].between[way];
    double sum = 0;
    for (size_t pair = 0; pair < sites * sites; pair++) {
        size_t to = pair % sites;
        for (size_t at = pair / sites; at != to;) {
            long next = routes->next_link[at * sites + to];
            if (next == link && at == start)
                sum += bytes[pair];
            at = route_other_end(scenario, next, at);
        }
    }
    return sum;
}
