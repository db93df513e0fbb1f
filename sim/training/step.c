#include "sim/training/step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sim/training/model.h"
#include "sim/training/step_internal.h"

/* Backward costs twice a forward, and once more where all activations are recomputed (arXiv 2205.05198, section 5). */
static double backward_factor(const struct scenario *scenario)
{
    return scenario->training.recompute == RECOMPUTE_FULL ? 3 : 2;
}

static double peak_flop_per_s(const struct scenario *scenario, size_t site)
{
    return scenario->sites[site].gpu.flop_per_s[scenario->training.compute];
}

static double slowest_peak(const struct scenario *scenario)
{
    double least = INFINITY;
    for (size_t s = 0; s < scenario->site_count; s++)
        least = fmin(least, peak_flop_per_s(scenario, s));
    return least;
}

static int set_speeds(struct step_plan *plan, double kernel_efficiency, struct err *err)
{
    const struct scenario *scenario = plan->scenario;
    const struct training *training = &scenario->training;
    double slowest = slowest_peak(scenario);
    if (!(slowest > 0))
        return err_set(err, EINVAL, "a GPU of the scenario has no %s peak: choose another training.compute",
                       dtype_name(training->compute));
    double tokens = (double)(training->sequence * training->micro_batch);
    double layers = (double)scenario->model.layers / (double)(training->pipeline * training->interleave);
    double flop = model_forward_flop_per_token(&scenario->model, training->sequence) * tokens * layers;
    plan->forward_s = flop / ((double)training->tensor * slowest * kernel_efficiency);
    plan->backward_s = backward_factor(scenario) * plan->forward_s;
    plan->site_speed = calloc(scenario->site_count, sizeof *plan->site_speed);
    if (!plan->site_speed)
        return err_set(err, ENOMEM, "out of memory for %zu sites", scenario->site_count);
    for (size_t s = 0; s < scenario->site_count; s++)
        plan->site_speed[s] = slowest / peak_flop_per_s(scenario, s);
    return 0;
}

static void set_bytes(struct step_plan *plan)
{
    const struct scenario *scenario = plan->scenario;
    const struct training *training = &scenario->training;
    double parameters = model_parameters(&scenario->model) / (double)(training->pipeline * scenario->scale);
    plan->gradient_bytes = (uint64_t)llround(parameters * dtype_bytes(training->gradient));
    plan->parameter_bytes = (uint64_t)llround(parameters * dtype_bytes(training->parameter));
    plan->activation_bytes = (uint64_t)llround(model_activation_bytes(scenario));
}

static long units_of(const struct scenario *scenario, const struct strategy *strategy)
{
    long layers = scenario->model.layers / scenario->training.pipeline;
    if (strategy->overlap == OVERLAP_CHUNKS)
        return layers / strategy->chunk_layers;
    return strategy->sharding == SHARD_PARAMETERS ? layers : 1;
}

static int refuse(const struct step_plan *plan, struct err *err)
{
    const struct strategy *strategy = plan->strategy;
    const struct placement *placement = &plan->placement;
    if (strategy->sharding == SHARD_PARAMETERS && plan->shape.stages > 1)
        return err_set(err, EINVAL, "strategy %s: sharding: parameters needs training.pipeline: 1 (it is %ld)",
                       strategy->name, plan->shape.stages);
    if (strategy->allreduce != ALLREDUCE_HIERARCHICAL)
        return 0;
    for (size_t s = 1; s < placement->sites; s++)
        if (placement->site_first[s + 1] - placement->site_first[s] != placement->site_first[1])
            return err_set(err, EINVAL,
                           "strategy %s: a hierarchical all-reduce needs the same number of replicas in every site "
                           "(%s holds %ld, %s %ld)",
                           strategy->name, plan->scenario->sites[0].name, placement->site_first[1],
                           plan->scenario->sites[s].name, placement->site_first[s + 1] - placement->site_first[s]);
    return 0;
}

static int build_schedules(struct step_plan *plan, struct err *err)
{
    long stages = plan->shape.stages;
    plan->ops = calloc((size_t)stages, sizeof *plan->ops);
    plan->ranks = calloc((size_t)(stages * plan->placement.replicas), sizeof(struct step_rank *));
    if (!plan->ops || !plan->ranks)
        return err_set(err, ENOMEM, "out of memory for %ld stages", stages);
    int rc = 0;
    for (long stage = 0; stage < stages && rc == 0; stage++)
        rc = schedule_build(&plan->shape, stage, &plan->ops[stage], &plan->op_count, err);
    return rc;
}

int step_plan_init(struct step_plan *plan, const struct scenario *scenario, const struct strategy *strategy,
                   double kernel_efficiency, struct err *err)
{
    *plan = (struct step_plan){.scenario = scenario, .strategy = strategy};
    plan->shape = (struct schedule_shape){scenario->training.pipeline, scenario->training.interleave,
                                          scenario_micro_batches(scenario)};
    plan->units = units_of(scenario, strategy);
    int rc = placement_init(&plan->placement, scenario, err);
    if (rc == 0)
        rc = refuse(plan, err);
    if (rc == 0)
        rc = set_speeds(plan, kernel_efficiency, err);
    if (rc == 0)
        rc = build_schedules(plan, err);
    if (rc < 0)
        step_plan_free(plan);
    else
        set_bytes(plan);
    return rc;
}

static void free_rank(struct step_rank *rank)
{
    if (!rank)
        return;
    groups_free(&rank->groups);
    free(rank->gathers);
    free(rank->reduces);
    free(rank);
}

void step_plan_free(struct step_plan *plan)
{
    for (long i = 0; plan->ranks && i < plan->shape.stages * plan->placement.replicas; i++)
        free_rank(plan->ranks[i]);
    for (long i = 0; plan->ops && i < plan->shape.stages; i++)
        free(plan->ops[i]);
    free(plan->ranks);
    free(plan->ops);
    free(plan->site_speed);
    placement_free(&plan->placement);
    *plan = (struct step_plan){0};
}

/* An all-reduce of the ends takes a round trip and a half, whatever the sites between. */
double step_gap_s(const struct scenario *scenario)
{
    double rtt_s = 0;
    for (size_t i = 0; i < scenario->wan_count; i++)
        rtt_s += scenario->wan[i].rtt_s;
    return 10e-3 + 3 * rtt_s;
}

double step_compute_s(const struct step_plan *plan)
{
    return (double)(plan->shape.micro_batches * plan->shape.chunks) * (plan->forward_s + plan->backward_s);
}

/* Units of a chunk become ready one after the other during its last backward, the last layers first. */
static void spread_ready(const struct step_plan *plan, const double *chunk_ready_s, double *ready_s)
{
    long per_chunk = plan->units / plan->shape.chunks;
    for (long stage = 0; stage < plan->shape.stages; stage++) {
        const double *chunks = chunk_ready_s + stage * plan->shape.chunks;
        double end_s = 0;
        for (long chunk = 0; chunk < plan->shape.chunks; chunk++)
            end_s = fmax(end_s, chunks[chunk]);
        for (long unit = 0; unit < plan->units; unit++) {
            double back = per_chunk ? (double)(per_chunk - 1 - unit % per_chunk) / (double)per_chunk : 0;
            ready_s[stage * plan->units + unit] =
                plan->strategy->overlap == OVERLAP_CHUNKS ? chunks[unit / per_chunk] - back * plan->backward_s : end_s;
        }
    }
}

int step_free(const struct step_plan *plan, double *end_s, double *ready_s, struct err *err)
{
    size_t chunks = (size_t)(plan->shape.stages * plan->shape.chunks);
    struct schedule_cost cost = {plan->forward_s, plan->backward_s, NULL};
    double *chunk_ready_s = calloc(chunks, sizeof *chunk_ready_s);
    if (!chunk_ready_s)
        return err_set(err, ENOMEM, "out of memory for %zu model chunks", chunks);
    int rc = schedule_evaluate(&plan->shape, &cost, end_s, chunk_ready_s, err);
    if (rc == 0 && ready_s)
        spread_ready(plan, chunk_ready_s, ready_s);
    free(chunk_ready_s);
    return rc;
}

bool step_foldable(const struct step_plan *plan, long *wan_flows)
{
    const struct placement *placement = &plan->placement;
    const struct strategy *strategy = plan->strategy;
    bool contiguous = strategy->allreduce == ALLREDUCE_RING && strategy->order == ORDER_CONTIGUOUS;
    const struct transport_settings *transport = &plan->scenario->transport;
    /* Along a contiguous ring replicas end one after the other: one can stand for all only where nothing follows that
     * end, and where the hops between them are plain. A ring that crosses at every hop over three or more sites does
     * not stay in step: its flows drift into each other's gaps. */
    bool ring = strategy->allreduce == ALLREDUCE_RING && placement->sites > 1;
    bool plain = transport->handshakes == 0 && transport->channels == 1 && strategy->overlap == OVERLAP_NONE &&
                 strategy->sharding != SHARD_PARAMETERS;
    *wan_flows = contiguous ? placement->rails : placement->site_first[1];
    if (plan->scenario->fabric.oversubscription > 1 || (ring && (contiguous ? !plain : placement->sites > 2)))
        return false;
    for (size_t s = 1; s < placement->sites; s++)
        if (placement->site_first[s + 1] - placement->site_first[s] != placement->site_first[1] ||
            plan->site_speed[s] != plan->site_speed[0])
            return false;
    return true;
}

/* ---- what a rank runs */

struct span step_unit_span(const struct step_rank *rank, enum region region, long unit, long units)
{
    const struct step_plan *plan = rank->plan;
    uint64_t bytes = region == REGION_GRADIENT ? plan->gradient_bytes : plan->parameter_bytes;
    int rails = (int)plan->placement.rails;
    int rail = (int)(rank->groups.all.ranks[0] % plan->placement.replicas % rails);
    struct span whole = ring_segment((struct span){region, 0, bytes}, (int)units, (int)unit);
    return ring_segment(whole, rails, rail);
}

struct lane step_lane(const struct step_rank *rank, bool gather, long number)
{
    const struct transport_settings *transport = &rank->plan->scenario->transport;
    long depth = rank->plan->strategy->overlap == OVERLAP_CHUNKS ? rank->plan->strategy->depth : 1;
    long slot = (gather ? 0 : depth) + number % depth;
    return (struct lane){CHANNEL_COLLECTIVES + (int)(slot * transport->channels), (int)transport->channels,
                         (int)transport->slices};
}

int step_channels(const struct scenario *scenario, const struct strategy *strategy)
{
    long depth = strategy->overlap == OVERLAP_CHUNKS ? strategy->depth : 1;
    return CHANNEL_COLLECTIVES + 2 * (int)(depth * scenario->transport.channels);
}

void step_failed(struct step_plan *plan, int rc)
{
    if (rc < 0 && plan->failure == 0)
        plan->failure = rc;
}

/* What this rank owns of a channel's part before it is gathered. */
static void own_parameters(struct stream *stream, const struct step_rank *rank, const struct group *group,
                           struct span span, const struct lane *lane)
{
    const struct step_values *values = rank->plan->values;
    values->cleared(stream, span);
    for (int channel = 0; channel < lane->channels; channel++)
        values->owned(stream, ring_owned(group, ring_segment(span, lane->channels, channel)));
}

void step_gather(struct stream *stream, struct step_rank *rank, struct span span, const struct lane *lane)
{
    const struct step_values *values = rank->plan->values;
    const struct group *group =
        rank->plan->strategy->allreduce == ALLREDUCE_HIERARCHICAL ? &rank->groups.site : &rank->groups.all;
    if (values)
        own_parameters(stream, rank, group, span, lane);
    int rc = collective_ring(stream, group, RING_ALL_GATHER, span, lane);
    step_failed(rank->plan, rc);
    if (values && rc == 0)
        values->gathered(stream, span);
}

static int reduce_ring(struct stream *stream, struct step_rank *rank, struct span span, const struct lane *lane,
                       bool cross)
{
    (void)cross;
    enum ring_kind kind = rank->plan->strategy->sharding == SHARD_NONE ? RING_ALL_REDUCE : RING_REDUCE_SCATTER;
    return collective_ring(stream, &rank->groups.all, kind, span, lane);
}

static int reduce_hierarchical(struct stream *stream, struct step_rank *rank, struct span span, const struct lane *lane,
                               bool cross)
{
    if (rank->plan->strategy->sharding == SHARD_NONE)
        return collective_hierarchical(stream, &rank->groups, span, lane);
    if (!cross)
        return collective_ring(stream, &rank->groups.site, RING_REDUCE_SCATTER, span, lane);
    return collective_hierarchical_reduce(stream, &rank->groups, span, lane);
}

typedef int reduce_function(struct stream *, struct step_rank *, struct span, const struct lane *, bool cross);

/* One row per way to all-reduce. */
static reduce_function *const reduces[] = {
    [ALLREDUCE_RING] = reduce_ring,
    [ALLREDUCE_HIERARCHICAL] = reduce_hierarchical,
};

/* Where the sums end: everywhere, or where something is sharded in what this rank owns of each channel's part. */
static void tell_reduced(struct stream *stream, const struct step_rank *rank, struct span span, const struct lane *lane,
                         bool cross)
{
    const struct strategy *strategy = rank->plan->strategy;
    bool hierarchical = strategy->allreduce == ALLREDUCE_HIERARCHICAL;
    const struct group *owners = hierarchical ? &rank->groups.site : &rank->groups.all;
    const struct group *over = hierarchical && !cross ? &rank->groups.site : &rank->groups.all;
    for (int channel = 0; channel < lane->channels; channel++) {
        struct span part = ring_segment(span, lane->channels, channel);
        rank->plan->values->reduced(stream, strategy->sharding == SHARD_NONE ? part : ring_owned(owners, part), over);
    }
}

void step_reduce(struct stream *stream, struct step_rank *rank, struct span span, const struct lane *lane, bool cross)
{
    const struct step_values *values = rank->plan->values;
    if (values)
        values->produced(stream, span);
    int rc = reduces[rank->plan->strategy->allreduce](stream, rank, span, lane, cross);
    step_failed(rank->plan, rc);
    if (values && rc == 0)
        tell_reduced(stream, rank, span, lane, cross);
}

static struct step_rank *rank_new(struct step_plan *plan, int number)
{
    const struct placement *placement = &plan->placement;
    struct step_rank *rank = calloc(1, sizeof *rank);
    if (!rank)
        return NULL;
    free_rank(plan->ranks[number]); /* of an earlier step */
    plan->ranks[number] = rank;
    rank->plan = plan;
    rank->stage = placement_stage(placement, number);
    rank->speed = plan->site_speed[placement_site(placement, number)];
    size_t uses = plan->strategy->sharding == SHARD_PARAMETERS ? 2 * (size_t)plan->shape.micro_batches : 1;
    rank->gathers = calloc(uses * (size_t)plan->units, sizeof(struct job));
    rank->reduces = calloc(uses * (size_t)plan->units, sizeof(struct job));
    if (!rank->gathers || !rank->reduces || groups_init(&rank->groups, placement, number, plan->strategy->order, NULL))
        return NULL;
    return rank;
}

void step_main(struct stream *stream, void *argument)
{
    struct step_plan *plan = argument;
    struct step_rank *rank = rank_new(plan, transport_rank(stream));
    if (!rank)
        step_failed(plan, -ENOMEM);
    else if (plan->strategy->sharding == SHARD_PARAMETERS)
        sharded_main(stream, rank);
    else
        pipeline_main(stream, rank);
}
