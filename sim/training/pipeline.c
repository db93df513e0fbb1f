/* A rank of a pipeline: operations in the order of its schedule, activations to and from its neighbours, gradients
 * reduced as their chunk's last backward ends. */
#include <errno.h>
#include <stdlib.h>

#include "sim/training/step_internal.h"

enum {
    SENDS_IN_FLIGHT = 2, /* operations whose output may still be leaving */
    RECEIVES_POSTED = 2, /* operations ahead whose input may arrive already */
};

struct walk {
    struct stream *stream;
    struct step_rank *rank;
    const struct op *ops;
    struct request **receives, **sends; /* one per op */
    long gathers_joined, gathers_started, reduces_started;
};

static bool overlaps(const struct step_rank *rank)
{
    return rank->plan->strategy->overlap == OVERLAP_CHUNKS;
}

static int channel_of(const struct op *op)
{
    return op->backward ? CHANNEL_BACKWARD : CHANNEL_FORWARD;
}

static int neighbour(const struct walk *walk, long stage)
{
    const struct placement *placement = &walk->rank->plan->placement;
    return placement_rank(placement, stage, placement_replica(placement, transport_rank(walk->stream)));
}

static struct span activation(const struct step_plan *plan)
{
    return (struct span){REGION_ACTIVATION, 0, plan->activation_bytes};
}

static void post_receive(struct walk *walk, size_t i)
{
    const struct step_plan *plan = walk->rank->plan;
    long stage;
    int chunk;
    if (i >= plan->op_count || plan->free_pipeline || plan->shape.stages == 1 ||
        !schedule_source(&plan->shape, walk->rank->stage, &walk->ops[i], &stage, &chunk))
        return;
    walk->receives[i] = transport_irecv(walk->stream, neighbour(walk, stage), channel_of(&walk->ops[i]),
                                        activation(plan), RECEIVE_REPLACE);
}

static void send_output(struct walk *walk, size_t i)
{
    const struct step_plan *plan = walk->rank->plan;
    long stage;
    int chunk;
    if (plan->free_pipeline || plan->shape.stages == 1 ||
        !schedule_target(&plan->shape, walk->rank->stage, &walk->ops[i], &stage, &chunk))
        return;
    walk->sends[i] = transport_isend(walk->stream, neighbour(walk, stage), channel_of(&walk->ops[i]), activation(plan));
}

static void finish_send(struct walk *walk, size_t i)
{
    transport_wait(walk->stream, walk->sends[i]);
    walk->sends[i] = NULL;
}

/* ---- parameters of a sharded optimiser, gathered at the start */

static void gather_job(struct stream *stream, void *argument)
{
    struct job *job = argument;
    struct step_rank *rank = job->rank;
    const struct step_plan *plan = rank->plan;
    struct lane lane = step_lane(rank, true, job->number);
    step_gather(stream, rank, step_unit_span(rank, REGION_PARAMETER, job->unit, plan->units), &lane);
    struct job *next = job + plan->strategy->depth;
    if (job->number + plan->strategy->depth < plan->units)
        next->stream = transport_spawn(stream, gather_job, next, "parameters");
}

static void start_gathers(struct walk *walk)
{
    struct step_rank *rank = walk->rank;
    const struct step_plan *plan = rank->plan;
    struct lane lane = step_lane(rank, true, 0);
    if (plan->strategy->sharding == SHARD_NONE)
        return;
    if (!overlaps(rank)) {
        step_gather(walk->stream, rank, step_unit_span(rank, REGION_PARAMETER, 0, 1), &lane);
        return;
    }
    for (long unit = 0; unit < plan->units; unit++)
        rank->gathers[unit] = (struct job){rank, unit, unit, false, NULL};
    for (long unit = 0; unit < plan->units && unit < plan->strategy->depth; unit++)
        rank->gathers[unit].stream = transport_spawn(walk->stream, gather_job, &rank->gathers[unit], "parameters");
}

/* Units are joined in order: the end of one has started the one `depth` later. */
static void await_parameters(struct walk *walk, const struct op *op)
{
    struct step_rank *rank = walk->rank;
    const struct step_plan *plan = rank->plan;
    if (plan->strategy->sharding == SHARD_NONE || !overlaps(rank))
        return;
    long needed = (op->chunk + 1) * (plan->units / plan->shape.chunks);
    while (walk->gathers_joined < needed)
        transport_join(walk->stream, rank->gathers[walk->gathers_joined++].stream);
}

/* ---- gradients */

static void reduce_job(struct stream *stream, void *argument)
{
    struct job *job = argument;
    struct step_rank *rank = job->rank;
    const struct step_plan *plan = rank->plan;
    struct lane lane = step_lane(rank, false, job->number);
    if (job->number >= plan->strategy->depth)
        transport_join(stream, (job - plan->strategy->depth)->stream);
    step_reduce(stream, rank, step_unit_span(rank, REGION_GRADIENT, job->unit, plan->units), &lane, true);
}

static void unit_ready(struct walk *walk, long unit)
{
    struct step_rank *rank = walk->rank;
    struct job *job = &rank->reduces[walk->reduces_started];
    *job = (struct job){rank, walk->reduces_started++, unit, true, NULL};
    job->stream = transport_spawn(walk->stream, reduce_job, job, "gradients");
}

static void finish_gradients(struct walk *walk)
{
    struct step_rank *rank = walk->rank;
    struct lane lane = step_lane(rank, false, 0);
    if (!overlaps(rank)) {
        step_reduce(walk->stream, rank, step_unit_span(rank, REGION_GRADIENT, 0, 1), &lane, true);
        return;
    }
    long depth = rank->plan->strategy->depth, units = walk->reduces_started;
    for (long i = units > depth ? units - depth : 0; i < units; i++)
        transport_join(walk->stream, rank->reduces[i].stream);
}

/* The last backward of a chunk makes its units ready one after the other, last layers first. */
static void compute(struct walk *walk, const struct op *op)
{
    const struct step_plan *plan = walk->rank->plan;
    double seconds = (op->backward ? plan->backward_s : plan->forward_s) * walk->rank->speed;
    if (!op->last_of_chunk || !overlaps(walk->rank)) {
        transport_compute(walk->stream, seconds);
        return;
    }
    long units = plan->units / plan->shape.chunks;
    for (long unit = units - 1; unit >= 0; unit--) {
        transport_compute(walk->stream, seconds / (double)units);
        unit_ready(walk, op->chunk * units + unit);
    }
}

static void walk_schedule(struct walk *walk)
{
    size_t count = walk->rank->plan->op_count;
    start_gathers(walk);
    for (size_t i = 0; i < RECEIVES_POSTED; i++)
        post_receive(walk, i);
    for (size_t i = 0; i < count; i++) {
        post_receive(walk, i + RECEIVES_POSTED);
        transport_wait(walk->stream, walk->receives[i]);
        await_parameters(walk, &walk->ops[i]);
        compute(walk, &walk->ops[i]);
        send_output(walk, i);
        if (i >= SENDS_IN_FLIGHT)
            finish_send(walk, i - SENDS_IN_FLIGHT);
    }
    for (size_t i = count > SENDS_IN_FLIGHT ? count - SENDS_IN_FLIGHT : 0; i < count; i++)
        finish_send(walk, i);
    finish_gradients(walk);
}

void pipeline_main(struct stream *stream, struct step_rank *rank)
{
    size_t count = rank->plan->op_count;
    struct request **requests = calloc(2 * count, sizeof(struct request *));
    if (!requests) {
        step_failed(rank->plan, -ENOMEM);
        return;
    }
    struct walk walk = {stream, rank, rank->plan->ops[rank->stage], requests, requests + count, 0, 0, 0};
    walk_schedule(&walk);
    free(requests);
}
