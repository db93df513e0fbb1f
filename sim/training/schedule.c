#include "schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int schedule_check(const struct schedule_shape *shape, struct err *err)
{
    long p = shape->stages, v = shape->chunks, m = shape->micro_batches;

    if (p < 1 || v < 1 || m < 1)
        return err_set(err, EINVAL, "a pipeline needs at least 1 stage, chunk and micro-batch; got %ld, %ld, %ld", p, v,
                       m);
    if (p > SCHEDULE_OPS_MAX || v > SCHEDULE_OPS_MAX / p || m > SCHEDULE_OPS_MAX / (2 * p * v))
        return err_set(err, EINVAL, "%ld stages x %ld chunks x %ld micro-batches are more than %d operations", p, v, m,
                       SCHEDULE_OPS_MAX);
    if (v > 1 && m % p != 0)
        return err_set(err, EINVAL,
                       "an interleaved pipeline needs micro-batches (%ld) to be a multiple of its stages (%ld)", m, p);
    return 0;
}

/* Warm-up forwards: p - 1 - i on stage i, so that the first backward arrives just as they are done; interleaved
 * 2 (p - 1 - i) + (v - 1) p: a whole group of p micro-batches must have passed v - 1 chunks before the last chunk
 * starts. Megatron-LM schedules.py, forward_backward_pipelining_without_interleaving and _with_interleaving. */
long schedule_warm_up(const struct schedule_shape *shape, long stage)
{
    long behind = shape->stages - 1 - stage;
    long all = shape->micro_batches * shape->chunks;
    long warm_up = shape->chunks == 1 ? behind : 2 * behind + (shape->chunks - 1) * shape->stages;

    return warm_up < all ? warm_up : all;
}

/* The k-th forward (or backward) of any stage: micro-batches go in groups of p; a group passes chunk 0, then chunk 1,
 * ... (backward from the last chunk down) before the next group starts. */
static struct op nth_op(const struct schedule_shape *shape, bool backward, long k)
{
    long p = shape->stages, v = shape->chunks;
    long in_group = k % (p * v);
    long micro_batch = k / (p * v) * p + in_group % p;
    long chunk = in_group / p;

    return (struct op){
        .backward = backward,
        .last_of_chunk = backward && micro_batch == shape->micro_batches - 1,
        .chunk = (int)(backward ? v - 1 - chunk : chunk),
        .micro_batch = (int)micro_batch,
    };
}

/* Position i of a stage's list: warm-up forwards, then pairs of one forward and one backward, then backwards. */
static struct op op_at(const struct schedule_shape *shape, long stage, long i)
{
    long all = shape->micro_batches * shape->chunks;
    long warm_up = schedule_warm_up(shape, stage);
    long pair = i - warm_up;

    if (pair < 0)
        return nth_op(shape, false, i);
    if (pair >= 2 * (all - warm_up))
        return nth_op(shape, true, i - all);
    return pair % 2 == 0 ? nth_op(shape, false, warm_up + pair / 2) : nth_op(shape, true, pair / 2);
}

int schedule_build(const struct schedule_shape *shape, long stage, struct op **ops, size_t *count, struct err *err)
{
    struct op *list;
    long total;
    int rc = schedule_check(shape, err);

    if (rc < 0)
        return rc;
    if (stage < 0 || stage >= shape->stages)
        return err_set(err, EINVAL, "stage %ld is not in 0 .. %ld", stage, shape->stages - 1);
    total = 2 * shape->micro_batches * shape->chunks;
    list = calloc((size_t)total, sizeof(*list));
    if (!list)
        return err_set(err, ENOMEM, "out of memory for a schedule of %ld operations", total);
    for (long i = 0; i < total; i++)
        list[i] = op_at(shape, stage, i);
    *ops = list;
    *count = (size_t)total;
    return 0;
}

/* The stage and chunk `step` virtual stages further on; false outside the model. */
static bool neighbour(const struct schedule_shape *shape, long stage, int chunk, long step, long *to_stage,
                      int *to_chunk)
{
    long position = chunk * shape->stages + stage + step;

    if (position < 0 || position >= shape->stages * shape->chunks)
        return false;
    *to_stage = position % shape->stages;
    *to_chunk = (int)(position / shape->stages);
    return true;
}

bool schedule_source(const struct schedule_shape *shape, long stage, const struct op *op, long *from_stage,
                     int *from_chunk)
{
    return neighbour(shape, stage, op->chunk, op->backward ? 1 : -1, from_stage, from_chunk);
}

bool schedule_target(const struct schedule_shape *shape, long stage, const struct op *op, long *to_stage, int *to_chunk)
{
    return neighbour(shape, stage, op->chunk, op->backward ? -1 : 1, to_stage, to_chunk);
}

/* One evaluation. A stage runs until its next op's input has not been produced yet; whoever produces it queues the
 * stage again. Times need no event queue: a stage's own order is fixed and so is the order on each link. */
struct evaluation {
    const struct schedule_shape *shape;
    const struct schedule_cost *cost;
    double *arrival;   /* [op_index]: when the input of an op is on its stage; < 0: not produced yet */
    double *idle;      /* [stage]: end of its last op */
    double *link_free; /* [2 * stage + backward]: end of the last message this stage sent that way */
    long *next;        /* [stage]: position of its next op */
    long *queue;       /* stages to look at again: a ring of p entries, each stage in it at most once */
    bool *queued;      /* [stage] */
    long head, length;
    double *ready_s; /* as in schedule_evaluate */
};

static size_t op_index(const struct schedule_shape *shape, long stage, const struct op *op)
{
    long position = (op->chunk * shape->stages + stage) * shape->micro_batches + op->micro_batch;

    return (size_t)(2 * position + op->backward);
}

static void enqueue(struct evaluation *run, long stage)
{
    if (run->queued[stage])
        return;
    run->queue[(run->head + run->length++) % run->shape->stages] = stage;
    run->queued[stage] = true;
}

static long dequeue(struct evaluation *run)
{
    long stage = run->queue[run->head];

    run->head = (run->head + 1) % run->shape->stages;
    run->length--;
    run->queued[stage] = false;
    return stage;
}

/* Hands an op's output, done at done_s, to its target: leaves when the link is free, arrives a latency after it left.
 */
static void deliver(struct evaluation *run, long stage, const struct op *op, double done_s)
{
    struct op to = *op;
    long to_stage;
    double arrival = done_s;

    if (!schedule_target(run->shape, stage, op, &to_stage, &to.chunk))
        return;
    if (run->cost->hops && to_stage != stage) {
        const struct schedule_hop *hop = &run->cost->hops[op->backward ? to_stage : stage];
        double *free_s = &run->link_free[2 * stage + op->backward];

        *free_s = fmax(*free_s, done_s) + hop->occupancy_s;
        arrival = *free_s + hop->latency_s;
    }
    run->arrival[op_index(run->shape, to_stage, &to)] = arrival;
    if (to_stage != stage)
        enqueue(run, to_stage);
}

static void run_stage(struct evaluation *run, long stage)
{
    long total = 2 * run->shape->micro_batches * run->shape->chunks;

    for (; run->next[stage] < total; run->next[stage]++) {
        struct op op = op_at(run->shape, stage, run->next[stage]);
        double arrival = run->arrival[op_index(run->shape, stage, &op)];

        if (arrival < 0)
            return;
        run->idle[stage] =
            fmax(run->idle[stage], arrival) + (op.backward ? run->cost->backward_s : run->cost->forward_s);
        if (op.last_of_chunk && run->ready_s)
            run->ready_s[stage * run->shape->chunks + op.chunk] = run->idle[stage];
        deliver(run, stage, &op, run->idle[stage]);
    }
}

/* Inputs not produced yet, but for those that need none: the first virtual stage's forwards have their tokens, the last
 * one's backwards follow their own forward in the list. */
static void prepare(struct evaluation *run)
{
    const struct schedule_shape *shape = run->shape;
    size_t ops = 2 * (size_t)(shape->stages * shape->chunks * shape->micro_batches);
    struct op first = {.backward = false}, last = {.backward = true, .chunk = (int)shape->chunks - 1};

    for (size_t i = 0; i < ops; i++)
        run->arrival[i] = -1;
    for (long i = 0; i < shape->micro_batches; i++) {
        first.micro_batch = last.micro_batch = (int)i;
        run->arrival[op_index(shape, 0, &first)] = 0;
        run->arrival[op_index(shape, shape->stages - 1, &last)] = 0;
    }
    for (long stage = 0; stage < shape->stages; stage++)
        enqueue(run, stage);
}

static int finish(const struct evaluation *run, double *end_s, struct err *err)
{
    long total = 2 * run->shape->micro_batches * run->shape->chunks;

    *end_s = 0;
    for (long stage = 0; stage < run->shape->stages; stage++) {
        if (run->next[stage] != total)
            return err_set(err, EDEADLK, "pipeline stage %ld waits for ever at operation %ld of %ld", stage,
                           run->next[stage], total);
        *end_s = fmax(*end_s, run->idle[stage]);
    }
    return 0;
}

static int check_cost(const struct schedule_shape *shape, const struct schedule_cost *cost, struct err *err)
{
    if (!(cost->forward_s >= 0 && isfinite(cost->forward_s) && cost->backward_s >= 0 && isfinite(cost->backward_s)))
        return err_set(err, EINVAL, "forward (%g s) and backward (%g s) must be finite and not negative",
                       cost->forward_s, cost->backward_s);
    for (long i = 0; cost->hops && i < shape->stages; i++) {
        const struct schedule_hop *hop = &cost->hops[i];

        if (!(hop->latency_s >= 0 && isfinite(hop->latency_s) && hop->occupancy_s >= 0 && isfinite(hop->occupancy_s)))
            return err_set(err, EINVAL, "hop %ld: latency (%g s) and occupancy (%g s) must be finite and not negative",
                           i, hop->latency_s, hop->occupancy_s);
    }
    return 0;
}

int schedule_evaluate(const struct schedule_shape *shape, const struct schedule_cost *cost, double *end_s,
                      double *ready_s, struct err *err)
{
    struct evaluation run = {.shape = shape, .cost = cost, .ready_s = ready_s};
    size_t stages;
    int rc = schedule_check(shape, err);

    if (rc < 0 || (rc = check_cost(shape, cost, err)) < 0)
        return rc;
    stages = (size_t)shape->stages;
    run.arrival = calloc(2 * stages * (size_t)(shape->chunks * shape->micro_batches), sizeof(*run.arrival));
    run.idle = calloc(stages, sizeof(*run.idle));
    run.link_free = calloc(2 * stages, sizeof(*run.link_free));
    run.next = calloc(stages, sizeof(*run.next));
    run.queue = calloc(stages, sizeof(*run.queue));
    run.queued = calloc(stages, sizeof(*run.queued));
    if (!run.arrival || !run.idle || !run.link_free || !run.next || !run.queue || !run.queued) {
        rc = err_set(err, ENOMEM, "out of memory for a pipeline of %ld stages", shape->stages);
        goto out;
    }
    prepare(&run);
    while (run.length > 0)
        run_stage(&run, dequeue(&run));
    rc = finish(&run, end_s, err);
out:
    free(run.queued);
    free(run.queue);
    free(run.next);
    free(run.link_free);
    free(run.idle);
    free(run.arrival);
    return rc;
}
