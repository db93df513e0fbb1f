#include "sim/engine/case.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sim/engine/floor.h"

static long greatest_divisor(long a, long b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

void one_site_resize(struct one_site *one, long gpus)
{
    long per_node = greatest_divisor(gpus, one->site.gpus_per_node);
    one->scenario.fabric.nic_bit_per_s *= (double)per_node / (double)one->site.gpus_per_node;
    one->site.gpus_per_node = per_node;
    one->site.nodes = gpus / per_node;
}

void one_site_init(struct one_site *one, const struct scenario *scenario)
{
    enum dtype dtype = scenario->training.compute;
    one->scenario = *scenario;
    one->site = scenario->sites[0];
    for (size_t s = 1; s < scenario->site_count; s++)
        if (scenario->sites[s].gpu.flop_per_s[dtype] < one->site.gpu.flop_per_s[dtype])
            one->site.gpu = scenario->sites[s].gpu;
    for (size_t s = 1; s < scenario->site_count; s++)
        if (scenario->sites[s].gpus_per_node > one->site.gpus_per_node)
            one->site.gpus_per_node = scenario->sites[s].gpus_per_node;
    one->scenario.sites = &one->site;
    one->scenario.site_count = 1;
    one->scenario.wan_count = 0;
    one->scenario.wan = NULL;
    one_site_resize(one, scenario_gpus(scenario));
}

int case_init(struct run_case *run, const struct scenario *scenario, const struct strategy *strategy,
              double kernel_efficiency, struct err *err)
{
    *run = (struct run_case){.folds = false};
    int rc = step_plan_init(&run->plan, scenario, strategy, kernel_efficiency, err);
    if (rc < 0)
        return rc;
    run->folds = step_foldable(&run->plan, &run->wan_flows);
    /* In a queue ranks that are alike follow one another, and chance treats each as it likes. */
    run->folds = run->folds && scenario->transport.protocol != PROTOCOL_TCP;
    run->no_bubble = run->plan;
    run->no_bubble.free_pipeline = true;
    return 0;
}

void case_free(struct run_case *run)
{
    for (int which = 0; which < CASE_RUNS; which++)
        if (run->made[which])
            engine_job_free(&run->jobs[which]);
    step_plan_free(&run->plan);
    *run = (struct run_case){.folds = false};
}

static double bulk_above(enum analysis_fidelity fidelity)
{
    return fidelity == ANALYSIS_MESSAGE ? INFINITY : fidelity == ANALYSIS_BULK ? 0 : ENGINE_BULK_ABOVE;
}

/* Messages, about: operations of the pipeline and units of gradients, of every simulated rank; what-ifs run some of
 * them again. */
static double cost(const struct run_case *run, const struct engine_job *job)
{
    const struct step_plan *plan = &run->plan;
    double ranks = (double)(plan->shape.stages * plan->placement.replicas) / (job->fold ? (double)run->wan_flows : 1);
    double of_rank = (double)plan->op_count + (double)plan->units * (job->fold ? 1 : (double)plan->placement.replicas);
    return ranks * of_rank * (job->probe_wan ? 2 : 1);
}

int case_make(struct run_case *run, enum case_run which, enum analysis_fidelity fidelity, bool probe, struct err *err)
{
    struct engine_job *job = &run->jobs[which];
    struct step_plan *plan = which == CASE_BUBBLE ? &run->no_bubble : &run->plan;
    bool full = which == CASE_FULL;
    *job = (struct engine_job){.scenario = run->plan.scenario,
                               .fold = run->folds && !full,
                               .wan_flows = run->wan_flows,
                               .bulk_above = bulk_above(full || !run->folds ? fidelity : ANALYSIS_AUTO),
                               .main = step_main,
                               .repeats = true,
                               .argument = plan,
                               .failure = &plan->failure,
                               .probe_wan = probe};
    job->cost = cost(run, job);
    job->ideal.compute = which == CASE_COMPUTE;
    job->ideal.fabric = which == CASE_FABRIC;
    int rc = engine_job_init(job, err);
    run->made[which] = rc == 0;
    return rc;
}

const struct engine_job *case_step(const struct run_case *run)
{
    return &run->jobs[run->made[CASE_FULL] ? CASE_FULL : CASE_MAIN];
}

/* ---- checks */

static int wan_bytes(const struct run_case *run, double **gradient, double **parameter, struct err *err)
{
    size_t pairs = run->plan.placement.sites * run->plan.placement.sites;
    *gradient = calloc(2 * pairs, sizeof **gradient);
    if (!*gradient)
        return err_set(err, ENOMEM, "out of memory for %zu sites", run->plan.placement.sites);
    *parameter = *gradient + pairs;
    return step_wan_bytes(&run->plan, *gradient, *parameter, err);
}

/* Segments are whole elements of 4 bytes, so a ring's bytes may differ from the formula by one element a message. */
static bool near(double measured, double formula, double messages)
{
    return fabs(measured - formula) <= 1e-6 * formula + 4 * messages;
}

static int check_links(const struct run_case *run, const struct engine_job *job, const double *bytes, struct err *err)
{
    struct layout layout;
    const struct scenario *scenario = run->plan.scenario;
    int rc = layout_init(&layout, scenario, false, 1, err);
    if (rc < 0)
        return rc;
    double messages = (double)job->outcomes->messages * (double)(job->fold ? job->wan_flows : 1);
    for (size_t i = 0; i < 2 * scenario->wan_count && rc == 0; i++) {
        double formula = routes_link_bytes(&layout.routes, layout.scenario, bytes, (long)(i / 2), i % 2);
        const struct wan_link *wan = &scenario->wan[i / 2];
        if (!near(job->wan[i].bytes, formula, messages))
            rc = err_set(err, EIO, "invariant broken: strategy %s sent %.0f bytes from %s to %s, its formula says %.0f",
                         run->plan.strategy->name, job->wan[i].bytes, scenario->sites[wan->between[i % 2]].name,
                         scenario->sites[wan->between[!(i % 2)]].name, formula);
    }
    layout_free(&layout);
    return rc;
}

static int check_run(const struct run_case *run, const struct engine_job *job, struct err *err)
{
    const struct engine_outcome *outcome = job->outcomes;
    double *gradient = NULL, *parameter;
    if (outcome->sent_bytes != outcome->received_bytes || outcome->messages != outcome->arrived)
        return err_set(err, EIO,
                       "invariant broken: strategy %s sent %.0f bytes in %llu messages and received %.0f in %llu",
                       run->plan.strategy->name, outcome->sent_bytes, (unsigned long long)outcome->messages,
                       outcome->received_bytes, (unsigned long long)outcome->arrived);
    int rc = wan_bytes(run, &gradient, &parameter, err);
    for (size_t i = 0; rc == 0 && i < run->plan.placement.sites * run->plan.placement.sites; i++)
        gradient[i] += parameter[i];
    rc = rc ? rc : check_links(run, job, gradient, err);
    free(gradient);
    return rc;
}

int case_check(const struct run_case *run, struct err *err)
{
    int rc = 0;
    if (run->made[CASE_FULL])
        rc = check_run(run, &run->jobs[CASE_FULL], err);
    if (rc == 0 && run->made[CASE_MAIN])
        rc = check_run(run, &run->jobs[CASE_MAIN], err);
    return rc;
}

/* ---- floor */

struct floor {
    double s;
    enum bound bound;
};

static void raise_floor(struct floor *floor, double s, enum bound bound)
{
    if (s > floor->s)
        *floor = (struct floor){s, bound};
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Units that are ready at t or later all have to leave after t: t + their share of the WAN time of all gradients. */
static int raise_by_buckets(struct floor *floor, const struct step_plan *plan, double gradient_s, struct err *err)
{
    size_t units = (size_t)(plan->shape.stages * plan->units);
    double *ready_s = calloc(units, sizeof *ready_s), end_s;
    int rc = ready_s ? step_free(plan, &end_s, ready_s, err) : err_set(err, ENOMEM, "out of memory for the floor");
    if (rc == 0)
        qsort(ready_s, units, sizeof *ready_s, by_time);
    for (size_t i = 0; rc == 0 && i < units && gradient_s > 0; i++)
        raise_floor(floor, ready_s[i] + gradient_s * (double)(units - i) / (double)units, BOUND_WAN_RATE);
    free(ready_s);
    return rc;
}

static int raise_by_latency(struct floor *floor, const struct run_case *run, const struct layout *layout,
                            struct err *err)
{
    struct groups groups;
    const struct strategy *strategy = run->plan.strategy;
    bool all = strategy->sharding == SHARD_NONE;
    int rc = groups_init(&groups, &layout->placement, 0, strategy->order, err);
    if (rc < 0)
        return rc;
    enum ring_kind kind = all ? RING_ALL_REDUCE : RING_REDUCE_SCATTER;
    double chain_s;
    if (strategy->allreduce == ALLREDUCE_HIERARCHICAL)
        chain_s =
            floor_ring_latency(layout, &groups.cross, RING_ALL_REDUCE) + floor_ring_latency(layout, &groups.site, kind);
    else
        chain_s = floor_ring_latency(layout, &groups.all, kind);
    raise_floor(floor, chain_s, BOUND_WAN_LATENCY);
    groups_free(&groups);
    return 0;
}

int case_floor(const struct run_case *run, double *floor_s, enum bound *bound, struct err *err)
{
    struct layout layout;
    struct floor floor = {0, BOUND_COMPUTE};
    double *gradient = NULL, *parameter, free_s;
    int rc = layout_init(&layout, run->plan.scenario, false, 1, err);
    if (rc < 0)
        return rc;
    rc = step_free(&run->plan, &free_s, NULL, err);
    rc = rc ? rc : wan_bytes(run, &gradient, &parameter, err);
    if (rc == 0) {
        double gradient_s = floor_wan_rate(&layout, gradient);
        raise_floor(&floor, free_s, BOUND_COMPUTE);
        if (run->plan.strategy->sharding != SHARD_PARAMETERS)
            rc = raise_by_buckets(&floor, &run->plan, gradient_s, err);
        for (size_t i = 0; i < layout.placement.sites * layout.placement.sites; i++)
            gradient[i] += parameter[i];
        raise_floor(&floor, floor_wan_rate(&layout, gradient), BOUND_WAN_RATE);
    }
    rc = rc ? rc : raise_by_latency(&floor, run, &layout, err);
    free(gradient);
    layout_free(&layout);
    *floor_s = floor.s;
    *bound = floor.bound;
    return rc;
}
