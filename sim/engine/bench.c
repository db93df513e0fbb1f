#include "sim/engine/bench.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sim/engine/floor.h"

/* splitmix64 (Steele, Lea, Flood 2014): a stateless stream of starts from one seed. */
static double uniform(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static struct span rail_span(const struct bench *bench, int rank)
{
    struct span whole = {REGION_GRADIENT, 0, bench->bytes};
    int rails = (int)bench->placement.rails;
    return ring_segment(whole, rails, rank % rails);
}

static int send_receive(struct stream *stream, const struct bench *bench, const struct lane *lane)
{
    int rank = transport_rank(stream), last = (int)bench->placement.site_first[bench->placement.sites - 1];
    if (bench->placement.sites == 1)
        last = bench->ranks - 1;
    struct span span = {REGION_GRADIENT, 0, bench->bytes};
    if (rank == last && rank != 0)
        transport_wait(stream, transport_irecv(stream, 0, lane->channel, span, RECEIVE_REPLACE));
    else if (rank == 0 && rank != last)
        transport_wait(stream, transport_isend(stream, last, lane->channel, span));
    return 0;
}

static int all_reduce(struct stream *stream, const struct bench *bench, const struct lane *lane)
{
    int rank = transport_rank(stream);
    const struct groups *groups = &bench->groups[rank];
    if (bench->algorithm == ALLREDUCE_HIERARCHICAL)
        return collective_hierarchical(stream, groups, rail_span(bench, rank), lane);
    return collective_ring(stream, &groups->all, RING_ALL_REDUCE, rail_span(bench, rank), lane);
}

static int reduce_scatter(struct stream *stream, const struct bench *bench, const struct lane *lane)
{
    int rank = transport_rank(stream);
    return collective_ring(stream, &bench->groups[rank].all, RING_REDUCE_SCATTER, rail_span(bench, rank), lane);
}

static int all_gather(struct stream *stream, const struct bench *bench, const struct lane *lane)
{
    int rank = transport_rank(stream);
    return collective_ring(stream, &bench->groups[rank].all, RING_ALL_GATHER, rail_span(bench, rank), lane);
}

static const struct {
    int (*run)(struct stream *, const struct bench *, const struct lane *);
    enum ring_kind kind;
} ops[BENCH_OP_COUNT] = {
    [BENCH_ALL_REDUCE] = {all_reduce, RING_ALL_REDUCE},
    [BENCH_REDUCE_SCATTER] = {reduce_scatter, RING_REDUCE_SCATTER},
    [BENCH_ALL_GATHER] = {all_gather, RING_ALL_GATHER},
    [BENCH_SEND_RECEIVE] = {send_receive, RING_ALL_GATHER},
};

static void bench_main(struct stream *stream, void *argument)
{
    struct bench *bench = argument;
    const struct transport_settings *transport = &bench->scenario.transport;
    struct lane lane = {0, (int)transport->channels, (int)transport->slices};
    int rank = transport_rank(stream);
    if (bench->skew_s > 0)
        transport_compute(stream, bench->skew_s * uniform(bench->scenario.seed, (uint64_t)rank));
    int rc = ops[bench->op].run(stream, bench, &lane);
    bench->done_s[rank] = rc < 0 ? INFINITY : transport_now(stream);
}

static int make_groups(struct bench *bench, struct err *err)
{
    bench->groups = calloc((size_t)bench->ranks, sizeof *bench->groups);
    bench->done_s = engine_share((size_t)bench->ranks * sizeof(double));
    if (!bench->groups || !bench->done_s)
        return err_set(err, ENOMEM, "out of memory for %d ranks", bench->ranks);
    for (int i = 0; i < bench->ranks; i++) {
        bench->done_s[i] = NAN;
        int rc = groups_init(&bench->groups[i], &bench->placement, i, bench->order, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int refuse(const struct bench *bench, struct err *err)
{
    if (bench->algorithm == ALLREDUCE_HIERARCHICAL && bench->op != BENCH_ALL_REDUCE)
        return err_set(err, EINVAL, "--algorithm hierarchical is an all-reduce: use --op allreduce");
    if (bench->algorithm == ALLREDUCE_HIERARCHICAL && bench->groups[0].cross.count == 0)
        return err_set(err, EINVAL, "--algorithm hierarchical needs the same number of ranks in every site");
    return 0;
}

int bench_init(struct bench *bench, const struct scenario *scenario, enum bench_op op, enum allreduce algorithm,
               enum ring_order order, uint64_t bytes, double skew_s, struct err *err)
{
    *bench = (struct bench){
        .scenario = *scenario, .op = op, .algorithm = algorithm, .order = order, .bytes = bytes, .skew_s = skew_s};
    bench->scenario.training.pipeline = 1;
    bench->scenario.training.data = scenario_gpus(scenario) / scenario->training.tensor;
    bench->ranks = (int)bench->scenario.training.data;
    int rc = placement_init(&bench->placement, &bench->scenario, err);
    rc = rc ? rc : make_groups(bench, err);
    rc = rc ? rc : refuse(bench, err);
    bool contiguous = algorithm == ALLREDUCE_RING && order == ORDER_CONTIGUOUS;
    bench->job = (struct engine_job){
        .wan_flows = contiguous || op == BENCH_SEND_RECEIVE ? bench->placement.rails : bench->placement.site_first[1],
        .scenario = &bench->scenario,
        .bulk_above = ENGINE_BULK_ABOVE,
        .main = bench_main,
        .repeats = true,
        .argument = bench};
    rc = rc ? rc : engine_job_init(&bench->job, err);
    if (rc < 0)
        bench_free(bench);
    return rc;
}

void bench_free(struct bench *bench)
{
    for (int i = 0; bench->groups && i < bench->ranks; i++)
        groups_free(&bench->groups[i]);
    free(bench->groups);
    engine_unshare(bench->done_s, (size_t)bench->ranks * sizeof(double));
    engine_job_free(&bench->job);
    placement_free(&bench->placement);
    bench->groups = NULL;
    bench->done_s = NULL;
}

double bench_bus_factor(const struct bench *bench)
{
    if (bench->op == BENCH_SEND_RECEIVE)
        return 1;
    return ring_bytes_per_hop(ops[bench->op].kind, bench->ranks, 1);
}

static const struct group *crossing_ring(const struct bench *bench)
{
    return bench->algorithm == ALLREDUCE_HIERARCHICAL ? &bench->groups[0].cross : &bench->groups[0].all;
}

void bench_wan_bytes(const struct bench *bench, double *bytes)
{
    const struct placement *placement = &bench->placement;
    const struct group *ring = crossing_ring(bench);
    size_t sites = placement->sites;
    for (size_t i = 0; i < sites * sites; i++)
        bytes[i] = 0;
    if (bench->op == BENCH_SEND_RECEIVE) {
        if (sites > 1)
            bytes[sites - 1] = (double)bench->bytes;
        return;
    }
    for (int i = 0; i < ring->count; i++) {
        size_t from = placement_site(placement, ring->ranks[i]);
        size_t to = placement_site(placement, ring->ranks[(i + 1) % ring->count]);
        if (from != to)
            bytes[from * sites + to] += ring_bytes_per_hop(ops[bench->op].kind, ring->count, (double)bench->bytes);
    }
}

static double latency_floor(const struct bench *bench, const struct layout *layout)
{
    const struct groups *groups = &bench->groups[0];
    if (bench->op == BENCH_SEND_RECEIVE)
        return layout->placement.sites > 1 ? floor_latency(layout, 0, (int)layout->placement.site_first[1]) : 0;
    double sum_s = floor_ring_latency(layout, crossing_ring(bench), ops[bench->op].kind);
    if (bench->algorithm == ALLREDUCE_HIERARCHICAL)
        sum_s += floor_ring_latency(layout, &groups->site, RING_ALL_REDUCE);
    return sum_s;
}

double bench_floor(const struct bench *bench)
{
    struct layout layout;
    const struct groups *groups = &bench->groups[0];
    size_t sites = bench->placement.sites;
    double *bytes = calloc(sites * sites, sizeof *bytes);
    if (!bytes || layout_init(&layout, &bench->scenario, false, 1, NULL) < 0) {
        free(bytes);
        return 0;
    }
    bench_wan_bytes(bench, bytes);
    const struct group *ring = bench->algorithm == ALLREDUCE_HIERARCHICAL ? &groups->site : &groups->all;
    double share = (double)bench->bytes / (double)bench->placement.rails;
    double sent = bench->op == BENCH_SEND_RECEIVE ? share
                  : ring->count > 1               ? ring_bytes_per_hop(ops[bench->op].kind, ring->count, share)
                                                  : 0;
    double floor_s =
        fmax(latency_floor(bench, &layout), fmax(floor_nic(&layout, sent), floor_wan_rate(&layout, bytes)));
    layout_free(&layout);
    free(bytes);
    return floor_s;
}
