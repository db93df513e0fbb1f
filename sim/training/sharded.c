/* A rank whose parameters are sharded (FSDP; over the ranks of a site: HSDP): every unit of layers is gathered before
 * it is used, forward and again backward, and its gradients are reduce-scattered after backward; across sites after the
 * last micro-batch. */
#include "sim/training/step_internal.h"

struct walk {
    struct stream *stream;
    struct step_rank *rank;
    long uses, gathers, reduces; /* uses of units in the step; jobs started */
};

static long depth_of(const struct step_rank *rank)
{
    return rank->plan->strategy->overlap == OVERLAP_CHUNKS ? rank->plan->strategy->depth : 0;
}

/* Use q of the step: micro-batch, direction and unit in order. */
static long unit_of(const struct step_plan *plan, long use)
{
    long in_batch = use % (2 * plan->units);
    return in_batch < plan->units ? in_batch : 2 * plan->units - 1 - in_batch;
}

static bool is_backward(const struct step_plan *plan, long use)
{
    return use % (2 * plan->units) >= plan->units;
}

static void gather_job(struct stream *stream, void *argument)
{
    struct job *job = argument;
    struct lane lane = step_lane(job->rank, true, job->number);
    step_gather(stream, job->rank, step_unit_span(job->rank, REGION_PARAMETER, job->unit, job->rank->plan->units),
                &lane);
}

static void reduce_job(struct stream *stream, void *argument)
{
    struct job *job = argument;
    long depth = depth_of(job->rank);
    struct lane lane = step_lane(job->rank, false, job->number);
    if (depth > 0 && job->number >= depth)
        transport_join(stream, (job - depth)->stream);
    step_reduce(stream, job->rank, step_unit_span(job->rank, REGION_GRADIENT, job->unit, job->rank->plan->units), &lane,
                job->cross);
}

static void start_gathers(struct walk *walk, long last_use)
{
    struct step_rank *rank = walk->rank;
    for (; walk->gathers < walk->uses && walk->gathers <= last_use; walk->gathers++) {
        struct job *job = &rank->gathers[walk->gathers];
        *job = (struct job){rank, walk->gathers, unit_of(rank->plan, walk->gathers), false, NULL};
        if (depth_of(rank) > 0)
            job->stream = transport_spawn(walk->stream, gather_job, job, "parameters");
        else
            gather_job(walk->stream, job);
    }
}

/* Waits for what this use needs, then lets the next `depth` uses gather while it computes. */
static void gather(struct walk *walk, long use)
{
    long depth = depth_of(walk->rank);
    start_gathers(walk, use);
    if (depth > 0)
        transport_join(walk->stream, walk->rank->gathers[use].stream);
    start_gathers(walk, use + depth);
}

static void reduce(struct walk *walk, long use)
{
    struct step_rank *rank = walk->rank;
    struct job *job = &rank->reduces[walk->reduces];
    bool last = use >= walk->uses - rank->plan->units;
    *job = (struct job){rank, walk->reduces++, unit_of(rank->plan, use), last, NULL};
    if (depth_of(rank) > 0)
        job->stream = transport_spawn(walk->stream, reduce_job, job, "gradients");
    else
        reduce_job(walk->stream, job);
}

void sharded_main(struct stream *stream, struct step_rank *rank)
{
    const struct step_plan *plan = rank->plan;
    struct walk walk = {stream, rank, 2 * plan->units * plan->shape.micro_batches, 0, 0};
    double per_unit = rank->speed * (double)plan->shape.chunks / (double)plan->units;
    for (long use = 0; use < walk.uses; use++) {
        gather(&walk, use);
        transport_compute(stream, per_unit * (is_backward(plan, use) ? plan->backward_s : plan->forward_s));
        if (is_backward(plan, use))
            reduce(&walk, use);
    }
    long depth = depth_of(rank);
    for (long i = walk.reduces > depth ? walk.reduces - depth : 0; i < walk.reduces && depth > 0; i++)
        transport_join(stream, rank->reduces[i].stream);
}
