#include "sim/training/group.h"

#include <errno.h>
#include <stdlib.h>

/* Replicas are laid out inside a site stage by stage, replica fastest, so neighbours in a ring share nodes. */
static long rails_of(const struct scenario *scenario)
{
    long rails = 0;
    for (size_t s = 0; s < scenario->site_count; s++) {
        long per_node = scenario->sites[s].gpus_per_node / scenario->training.tensor;
        long replicas = site_replicas(scenario, s);
        long here = replicas % per_node == 0 ? per_node : 1;
        if (rails && here != rails)
            return 1;
        rails = here;
    }
    return rails;
}

int placement_init(struct placement *placement, const struct scenario *scenario, struct err *err)
{
    *placement = (struct placement){.stages = scenario->training.pipeline,
                                    .replicas = scenario->training.data,
                                    .sites = scenario->site_count,
                                    .rails = rails_of(scenario)};
    placement->site_first = calloc(scenario->site_count + 1, sizeof *placement->site_first);
    if (!placement->site_first)
        return err_set(err, ENOMEM, "out of memory for the placement of %ld replicas", placement->replicas);
    for (size_t s = 0; s < scenario->site_count; s++)
        placement->site_first[s + 1] = placement->site_first[s] + site_replicas(scenario, s);
    if (placement->site_first[scenario->site_count] == placement->replicas)
        return 0;
    long found = placement->site_first[scenario->site_count];
    placement_free(placement);
    return err_set(err, EINVAL, "training.data: the sites hold %ld replicas of %ld x %ld GPUs, not %ld", found,
                   scenario->training.tensor, scenario->training.pipeline, scenario->training.data);
}

void placement_free(struct placement *placement)
{
    free(placement->site_first);
    placement->site_first = NULL;
}

int placement_rank(const struct placement *placement, long stage, long replica)
{
    return (int)(stage * placement->replicas + replica);
}

long placement_stage(const struct placement *placement, int rank)
{
    return rank / placement->replicas;
}

long placement_replica(const struct placement *placement, int rank)
{
    return rank % placement->replicas;
}

size_t placement_site(const struct placement *placement, int rank)
{
    long replica = placement_replica(placement, rank);
    size_t site = 0;
    while (replica >= placement->site_first[site + 1])
        site++;
    return site;
}

static long site_size(const struct placement *placement, size_t site)
{
    return placement->site_first[site + 1] - placement->site_first[site];
}

static void add(struct group *group, int *ranks, int rank, int self)
{
    if (rank == self)
        group->position = group->count;
    ranks[group->count++] = rank;
    group->ranks = ranks;
}

/* The n-th replica of a site on this rail, in the order of the ring. */
static void fill_all(struct group *group, int *ranks, const struct placement *placement, int self,
                     enum ring_order order)
{
    long stage = placement_stage(placement, self);
    long rail = placement_replica(placement, self) % placement->rails;
    long rounds = order == ORDER_INTERLEAVED ? placement->replicas : 1;
    for (long round = 0; round < rounds; round++) {
        for (size_t s = 0; s < placement->sites; s++) {
            long first = placement->site_first[s] + rail, end = placement->site_first[s + 1];
            long from = order == ORDER_INTERLEAVED ? first + round * placement->rails : first;
            long to = order == ORDER_INTERLEAVED ? from + 1 : end;
            for (long replica = from; replica < to && replica < end; replica += placement->rails)
                add(group, ranks, placement_rank(placement, stage, replica), self);
        }
    }
}

static void fill_cross(struct group *group, int *ranks, const struct placement *placement, int self)
{
    size_t own = placement_site(placement, self);
    long stage = placement_stage(placement, self);
    long place = placement_replica(placement, self) - placement->site_first[own];
    for (size_t s = 0; s < placement->sites; s++)
        if (site_size(placement, s) != site_size(placement, own))
            return;
    for (size_t s = 0; s < placement->sites; s++)
        add(group, ranks, placement_rank(placement, stage, placement->site_first[s] + place), self);
}

int groups_init(struct groups *groups, const struct placement *placement, int rank, enum ring_order order,
                struct err *err)
{
    size_t site = placement_site(placement, rank);
    long replica = placement_replica(placement, rank);
    size_t most = (size_t)(placement->replicas / placement->rails);
    *groups = (struct groups){.ranks = calloc(2 * most + placement->sites, sizeof(int))};
    if (!groups->ranks)
        return err_set(err, ENOMEM, "out of memory for the rings of rank %d", rank);
    fill_all(&groups->all, groups->ranks, placement, rank, order);
    for (long r = placement->site_first[site] + replica % placement->rails; r < placement->site_first[site + 1];
         r += placement->rails)
        add(&groups->site, groups->ranks + most, placement_rank(placement, placement_stage(placement, rank), r), rank);
    fill_cross(&groups->cross, groups->ranks + 2 * most, placement, rank);
    return 0;
}

void groups_free(struct groups *groups)
{
    free(groups->ranks);
    groups->ranks = NULL;
}
