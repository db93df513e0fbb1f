/* What crosses the WAN in a step, by formula. S: gradient bytes of the model, P: parameter bytes, n: positions in a
 * ring over all sites, M: sites, m: micro-batches. Per hop that joins two sites: ring, nothing sharded 2 (n-1)/n S
 *   ring, optimiser sharded               (n-1)/n S + (n-1)/n P
 *   ring, parameters sharded              m ((n-1)/n S + 2 (n-1)/n P)
 *   hierarchical, in the ring of sites    2 (M-1)/M S     (S for two sites), whatever is sharded inside a site
 */
#include "sim/training/step.h"

struct per_hop {
    double gradient, parameter;
};

/* Laps of (n-1)/n of the bytes that a ring makes in a step. */
static const struct {
    double gradient, parameter;
    bool every_batch;
} laps[] = {
    [SHARD_NONE] = {2, 0, false},
    [SHARD_OPTIMIZER] = {1, 1, false},
    [SHARD_PARAMETERS] = {1, 2, true},
};

static struct per_hop ring_hop(const struct step_plan *plan, int positions)
{
    enum sharding sharding = plan->strategy->sharding;
    double stages = (double)plan->shape.stages;
    double times = laps[sharding].every_batch ? (double)plan->shape.micro_batches : 1;
    double gradient = ring_bytes_per_hop(RING_REDUCE_SCATTER, positions, (double)plan->gradient_bytes * stages);
    double parameter = ring_bytes_per_hop(RING_ALL_GATHER, positions, (double)plan->parameter_bytes * stages);
    return (struct per_hop){times * laps[sharding].gradient * gradient, times * laps[sharding].parameter * parameter};
}

int step_wan_bytes(const struct step_plan *plan, double *gradient, double *parameter, struct err *err)
{
    struct groups groups;
    size_t sites = plan->placement.sites;
    int rc = groups_init(&groups, &plan->placement, 0, plan->strategy->order, err);
    if (rc < 0)
        return rc;
    bool hierarchical = plan->strategy->allreduce == ALLREDUCE_HIERARCHICAL;
    const struct group *ring = hierarchical ? &groups.cross : &groups.all;
    struct per_hop hop = ring_hop(plan, ring->count > 0 ? ring->count : 1);
    if (hierarchical)
        hop = (struct per_hop){
            ring_bytes_per_hop(RING_ALL_REDUCE, ring->count, (double)plan->gradient_bytes * (double)plan->shape.stages),
            0};
    for (size_t i = 0; i < sites * sites; i++)
        gradient[i] = parameter[i] = 0;
    for (int i = 0; i < ring->count; i++) {
        size_t from = placement_site(&plan->placement, ring->ranks[i]);
        size_t to = placement_site(&plan->placement, ring->ranks[(i + 1) % ring->count]);
        if (from == to)
            continue;
        gradient[from * sites + to] += hop.gradient;
        parameter[from * sites + to] += hop.parameter;
    }
    groups_free(&groups);
    return 0;
}
