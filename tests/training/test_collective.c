/* sim/training/collective.c on the loopback: sums and bytes between sites, over sites, rails, channels and slices. */
#include "sim/training/collective.h"

#include <stdlib.h>

#include "tests/training/sites.h"
#include "tests/training/sums.h"

static const struct sites worlds[] = {
    {1, {1}, {1}, 1, 1},
    {1, {5}, {1}, 1, 1},
    {1, {4}, {4}, 1, 1},
    {2, {1, 1}, {1, 1}, 1, 1},
    {2, {4, 4}, {1, 1}, 1, 1},
    {2, {6, 6}, {1, 1}, 1, 2},
    {2, {3, 3}, {4, 4}, 1, 1},
    {2, {3, 3}, {4, 4}, 2, 3},
    {3, {1, 1, 1}, {1, 1, 1}, 1, 1},
    {3, {3, 3, 3}, {2, 2, 2}, 1, 1},
    {4, {2, 2, 2, 2}, {1, 1, 1, 1}, 1, 1},
    {4, {5, 5, 5, 5}, {2, 2, 2, 2}, 1, 1},
    {3, {5, 1, 3}, {1, 1, 1}, 1, 1}, /* unequal: rings only */
};
enum { WORLDS = sizeof worlds / sizeof worlds[0] };
static const size_t floats[] = {29, 1001};
enum { FLOATS = sizeof floats / sizeof floats[0], CHANNELS_MAX = 3, SLICES_MAX = 4 };

struct world;
typedef int collective_function(struct stream *stream, const struct world *world, const struct groups *groups,
                                struct span span);

struct world {
    struct placement placement;
    struct groups *groups; /* [ranks] */
    int *site_of;          /* [ranks] */
    int ranks;
    struct lane lane;
    size_t bytes;
    collective_function *run;
    char context[160];
};

static struct span rail_span(const struct world *world, int rank)
{
    long rail = placement_replica(&world->placement, rank) % world->placement.rails;
    return ring_segment((struct span){REGION_GRADIENT, 0, world->bytes}, (int)world->placement.rails, (int)rail);
}

static void world_main(struct stream *stream, void *argument)
{
    const struct world *world = argument;
    int rank = transport_rank(stream);
    ck_assert_int_eq(world->run(stream, world, &world->groups[rank], rail_span(world, rank)), 0);
}

static void world_init(struct world *world, const struct sites *sites, enum ring_order order)
{
    struct site storage[SITES_MAX];
    struct scenario scenario = sites_scenario(sites, storage);
    *world = (struct world){0};
    ck_assert_int_eq(placement_init(&world->placement, &scenario, NULL), 0);
    world->ranks = (int)(world->placement.stages * world->placement.replicas);
    world->groups = calloc((size_t)world->ranks, sizeof *world->groups);
    world->site_of = calloc((size_t)world->ranks, sizeof *world->site_of);
    ck_assert(world->groups && world->site_of);
    for (int i = 0; i < world->ranks; i++) {
        ck_assert_int_eq(groups_init(&world->groups[i], &world->placement, i, order, NULL), 0);
        world->site_of[i] = (int)placement_site(&world->placement, i);
    }
}

static void world_free(struct world *world)
{
    for (int i = 0; i < world->ranks; i++)
        groups_free(&world->groups[i]);
    free(world->groups);
    free(world->site_of);
    placement_free(&world->placement);
}

/* Bytes of a stage that cross from site to site in all: hops x what a hop carries, exact where nothing is cut. */
static void check_crossing(const struct loopback *loopback, const struct world *world, const struct group *ring,
                           enum ring_kind kind)
{
    int sites = (int)world->placement.sites, stages = (int)world->placement.stages;
    double rounding = 16.0 * world->ranks * world->lane.channels;
    for (int from = 0; from < sites; from++)
        for (int to = 0; to < sites; to++) {
            double expected = 0;
            for (int i = 0; i < ring->count; i++)
                if (world->site_of[ring->ranks[i]] == from && world->site_of[ring->ranks[(i + 1) % ring->count]] == to)
                    expected += stages * ring_bytes_per_hop(kind, ring->count, (double)world->bytes);
            double sent = (double)loopback_site_bytes(loopback, world->site_of, from, to);
            ck_assert_msg(from == to || (sent <= expected + rounding && sent >= expected - rounding),
                          "%s: %g bytes from site %d to %d, expected %g", world->context, sent, from, to, expected);
        }
}

/* ---- the collectives, and what a rank must hold afterwards */

static int run_ring(struct stream *stream, const struct world *world, const struct groups *groups, struct span span)
{
    return collective_ring(stream, &groups->all, RING_ALL_REDUCE, span, &world->lane);
}

static int run_hierarchical(struct stream *stream, const struct world *world, const struct groups *groups,
                            struct span span)
{
    return collective_hierarchical(stream, groups, span, &world->lane);
}

static int run_reduce(struct stream *stream, const struct world *world, const struct groups *groups, struct span span)
{
    return collective_hierarchical_reduce(stream, groups, span, &world->lane);
}

/* What the sharded optimiser does: reduce, then gather in the site. */
static int run_reduce_gather(struct stream *stream, const struct world *world, const struct groups *groups,
                             struct span span)
{
    int rc = collective_hierarchical_reduce(stream, groups, span, &world->lane);
    return rc ? rc : collective_ring(stream, &groups->site, RING_ALL_GATHER, span, &world->lane);
}

static void check_whole(const struct loopback *loopback, const struct world *world, int rank)
{
    sums_check(loopback, rank, &world->groups[rank].all, rail_span(world, rank), world->context);
}

/* The shard: of every channel's part the segment that this rank owns in its site. */
static void check_shard(const struct loopback *loopback, const struct world *world, int rank)
{
    const struct groups *groups = &world->groups[rank];
    for (int c = 0; c < world->lane.channels; c++) {
        struct span part = ring_segment(rail_span(world, rank), world->lane.channels, c);
        sums_check(loopback, rank, &groups->all, ring_owned(&groups->site, part), world->context);
    }
}

static const struct collective_case {
    const char *name;
    collective_function *run;
    void (*check)(const struct loopback *, const struct world *, int rank);
    enum ring_order order;
    bool crosses_once; /* hierarchical */
} collectives[] = {
    {"ring", run_ring, check_whole, ORDER_CONTIGUOUS, false},
    {"interleaved ring", run_ring, check_whole, ORDER_INTERLEAVED, false},
    {"hierarchical", run_hierarchical, check_whole, ORDER_CONTIGUOUS, true},
    {"hierarchical reduce", run_reduce, check_shard, ORDER_CONTIGUOUS, true},
    {"hierarchical reduce and gather", run_reduce_gather, check_whole, ORDER_CONTIGUOUS, true},
};
enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

static void run_once(struct world *world, const struct collective_case *collective)
{
    const struct groups *groups = &world->groups[0];
    struct loopback *loopback = sums_loopback(world->ranks, world->bytes);
    sums_fill(loopback, world->ranks, world->bytes);
    sums_run(loopback, world_main, world, world->context);
    for (int rank = 0; rank < world->ranks; rank++)
        collective->check(loopback, world, rank);
    check_crossing(loopback, world, collective->crosses_once ? &groups->cross : &groups->all, RING_ALL_REDUCE);
    loopback_free(loopback);
}

static void run_world(const struct sites *sites, const struct collective_case *collective)
{
    struct world world;
    char name[96];
    world_init(&world, sites, collective->order);
    if (collective->crosses_once && world.groups[0].cross.count == 0) {
        world_free(&world);
        return;
    }
    world.run = collective->run;
    sites_name(sites, name, sizeof name);
    for (int channels = 1; channels <= CHANNELS_MAX; channels++)
        for (int slices = 1; slices <= SLICES_MAX; slices += slices)
            for (size_t f = 0; f < FLOATS; f++) {
                world.lane = (struct lane){2, channels, slices};
                world.bytes = floats[f] * sizeof(float);
                snprintf(world.context, sizeof world.context, "%s, %s, %d channels, %d slices, %zu floats",
                         collective->name, name, channels, slices, floats[f]);
                run_once(&world, collective);
            }
    world_free(&world);
}

START_TEST(every_world)
{
    for (size_t c = 0; c < COLLECTIVES; c++)
        run_world(&worlds[_i], &collectives[c]);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("collective");
    tcase_add_loop_test(cases, every_world, 0, WORLDS);
    return sums_suite("collective", cases);
}
