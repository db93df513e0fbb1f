#include "sim/engine/analysis.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/calibration.h"
#include "sim/engine/case.h"
#include "sim/report/unmodelled.h"

/* One way to read the scenario: its calibration, and per strategy the run on its sites and the run on one site. */
struct reading {
    struct calibration calibration;
    bool *chosen;           /* [strategies]: which ones this reading is about */
    struct run_case *runs;  /* [strategies] */
    struct run_case *bases; /* [strategies]; made only where base_of is the strategy itself */
    size_t *base_of;        /* [strategies]: whose baseline serves */
};

struct analysis {
    const struct scenario *scenario;
    const struct analysis_options *options;
    struct one_site one;
    struct reading readings[2];
    size_t reading_count;
    struct engine_job **jobs;
    size_t job_count, done;
};

/* Strategies that are the same in one site share a baseline: there the order of a ring means nothing, and where
 * something is sharded a hierarchical reduction is a ring's reduce-scatter. */
static bool same_in_one_site(const struct strategy *a, const struct strategy *b)
{
    bool same_rings = a->sharding != SHARD_NONE || a->allreduce == b->allreduce;
    return same_rings && a->sharding == b->sharding && a->overlap == b->overlap && a->chunk_layers == b->chunk_layers &&
           a->depth == b->depth;
}

static int reading_init(struct reading *reading, size_t strategies, struct err *err)
{
    reading->chosen = calloc(strategies, sizeof *reading->chosen);
    reading->runs = calloc(strategies, sizeof *reading->runs);
    reading->bases = calloc(strategies, sizeof *reading->bases);
    reading->base_of = calloc(strategies, sizeof *reading->base_of);
    if (!reading->chosen || !reading->runs || !reading->bases || !reading->base_of)
        return err_set(err, ENOMEM, "out of memory for %zu strategies", strategies);
    return 0;
}

static void reading_free(struct reading *reading, size_t strategies)
{
    for (size_t i = 0; i < strategies; i++) {
        if (reading->runs)
            case_free(&reading->runs[i]);
        if (reading->bases)
            case_free(&reading->bases[i]);
    }
    free(reading->chosen);
    free(reading->runs);
    free(reading->bases);
    free(reading->base_of);
}

static int add_job(struct analysis *analysis, struct run_case *run, enum case_run which, bool probe, struct err *err)
{
    int rc = case_make(run, which, analysis->options->fidelity, probe, err);
    if (rc == 0)
        analysis->jobs[analysis->job_count++] = &run->jobs[which];
    return rc;
}

/* The other reading stays folded: every replica once is enough. */
static bool wants_full(const struct analysis *analysis, const struct reading *reading, const struct run_case *run)
{
    return run->folds && reading == &analysis->readings[0] &&
           (analysis->options->fidelity == ANALYSIS_MESSAGE || analysis->options->fidelity == ANALYSIS_BULK);
}

static int refuse_fold(const struct analysis *analysis, const struct run_case *run, struct err *err)
{
    if (analysis->options->fidelity != ANALYSIS_FOLDED || run->folds)
        return 0;
    return err_set(
        err, EINVAL,
        "--fidelity folded needs sites with the same number of replicas and the same GPUs; leave it out or use "
        "--fidelity bulk");
}

static int add_runs(struct analysis *analysis, const struct reading *reading, struct run_case *run, bool what_ifs,
                    struct err *err)
{
    bool wan = run->plan.placement.sites > 1;
    int rc = refuse_fold(analysis, run, err);
    if (rc == 0 && wants_full(analysis, reading, run))
        rc = add_job(analysis, run, CASE_FULL, false, err);
    if (rc == 0 && (what_ifs || !wants_full(analysis, reading, run)))
        rc = add_job(analysis, run, CASE_MAIN, what_ifs && wan, err);
    if (rc == 0 && what_ifs)
        rc = add_job(analysis, run, CASE_COMPUTE, false, err);
    if (rc == 0 && what_ifs && run->plan.shape.stages > 1)
        rc = add_job(analysis, run, CASE_BUBBLE, false, err);
    if (rc == 0 && what_ifs)
        rc = add_job(analysis, run, CASE_FABRIC, false, err);
    return rc;
}

/* The longest begin first, so that the workers end together. Ties keep their order, which the addresses of jobs in
 * their cases have. */
static int longest_first(const void *a, const void *b)
{
    const struct engine_job *x = *(struct engine_job *const *)a, *y = *(struct engine_job *const *)b;
    return x->cost != y->cost ? (y->cost > x->cost) - (y->cost < x->cost) : (x > y) - (x < y);
}

/* The calibration's last run was this strategy's baseline. */
static bool was_calibrated_on(const struct analysis *analysis, const struct reading *reading, size_t i)
{
    const struct calibrate *given = &analysis->scenario->calibrate;
    return given->present && reading->calibration.is_baseline &&
           same_in_one_site(&analysis->scenario->strategies[given->strategy], &analysis->scenario->strategies[i]);
}

static int add_strategy(struct analysis *analysis, struct reading *reading, size_t i, bool what_ifs, struct err *err)
{
    const struct scenario *scenario = analysis->scenario;
    const struct strategy *strategy = &scenario->strategies[i];
    double efficiency = reading->calibration.result.kernel_efficiency;
    int rc = case_init(&reading->runs[i], scenario, strategy, efficiency, err);
    rc = rc ? rc : add_runs(analysis, reading, &reading->runs[i], what_ifs, err);
    reading->base_of[i] = i;
    for (size_t j = 0; j < i; j++)
        if (reading->chosen[j] && same_in_one_site(&scenario->strategies[j], strategy))
            reading->base_of[i] = reading->base_of[j];
    if (rc < 0 || scenario->site_count == 1 || reading->base_of[i] != i)
        return rc;
    rc = case_init(&reading->bases[i], &analysis->one.scenario, strategy, efficiency, err);
    if (rc == 0 && was_calibrated_on(analysis, reading, i) && !wants_full(analysis, reading, &reading->bases[i]))
        return 0;
    return rc ? rc : add_runs(analysis, reading, &reading->bases[i], false, err);
}

/* The first reading is about all strategies, the other about those that a measured or published figure exists for. */
static void choose(struct reading *reading, const struct scenario *scenario, bool first)
{
    for (size_t i = 0; i < scenario->strategy_count; i++)
        reading->chosen[i] = first || i == scenario->calibrate.strategy;
    for (size_t i = 0; i < scenario->reference_count; i++)
        reading->chosen[scenario->references[i].strategy] = true;
}

/* How a measured MFU is read first. */
static enum flops_convention first_convention(const struct calibrate *given)
{
    bool both = given->present && given->mfu > 0 && given->convention == FLOPS_UNSTATED;
    return both || given->convention == FLOPS_MHA ? FLOPS_MHA : FLOPS_GQA;
}

int analysis_lab_scale(const struct scenario *scenario, int workers, struct scenario *scaled, struct err *err)
{
    struct calibration calibration = {.convention = first_convention(&scenario->calibrate)};
    int rc = calibrate(scenario, &calibration, 1, workers, err);
    return rc ? rc : scenario_lab_scale(scenario, calibration.result.kernel_efficiency, scaled, err);
}

static int prepare(struct analysis *analysis, struct err *err)
{
    const struct scenario *scenario = analysis->scenario;
    const struct calibrate *given = &scenario->calibrate;
    bool both = given->present && given->mfu > 0 && given->convention == FLOPS_UNSTATED;
    enum flops_convention order[] = {first_convention(given), FLOPS_GQA};
    analysis->reading_count = both ? 2 : 1;
    analysis->jobs = calloc(2 * scenario->strategy_count * (CASE_RUNS + 2), sizeof *analysis->jobs);
    struct calibration calibrations[2] = {{.convention = order[0]}, {.convention = order[1]}};
    int rc = analysis->jobs ? 0 : err_set(err, ENOMEM, "out of memory for the runs");
    rc = rc ? rc : calibrate(scenario, calibrations, analysis->reading_count, analysis->options->workers, err);
    for (size_t r = 0; r < analysis->reading_count && rc == 0; r++) {
        struct reading *reading = &analysis->readings[r];
        reading->calibration = calibrations[r];
        rc = reading_init(reading, scenario->strategy_count, err);
        if (rc == 0)
            choose(reading, scenario, r == 0);
        for (size_t i = 0; i < scenario->strategy_count && rc == 0; i++)
            if (reading->chosen[i])
                rc = add_strategy(analysis, reading, i, r == 0, err);
    }
    if (rc == 0)
        qsort(analysis->jobs, analysis->job_count, sizeof *analysis->jobs, longest_first);
    return rc;
}

/* ---- results */

static struct step_result step_result(const struct scenario *scenario, const struct engine_outcome *outcome,
                                      bool folded)
{
    struct step_result result;
    step_result_fill(&result, scenario, outcome->step_s,
                     folded               ? FIDELITY_FOLDED
                     : outcome->used_bulk ? FIDELITY_BULK
                                          : FIDELITY_MESSAGE,
                     outcome->messages);
    return result;
}

static double gain(const struct run_case *run, enum case_run which, double step_s)
{
    return run->made[which] ? fmax(0, step_s - run->jobs[which].outcomes->step_s) : 0;
}

static void fill_gains(struct strategy_result *result, const struct run_case *run)
{
    const struct engine_job *main = &run->jobs[CASE_MAIN];
    result->slack_s = INFINITY;
    if (!run->made[CASE_MAIN])
        return;
    double step_s = main->outcomes[PROBE_BASE].step_s;
    result->gain_s[BOUND_COMPUTE] = gain(run, CASE_COMPUTE, step_s);
    result->gain_s[BOUND_BUBBLE] = gain(run, CASE_BUBBLE, step_s);
    result->gain_s[BOUND_FABRIC] = gain(run, CASE_FABRIC, step_s);
    if (main->probe_wan) {
        result->gain_s[BOUND_WAN_RATE] = fmax(0, step_s - main->outcomes[PROBE_WAN_RATE].step_s);
        result->gain_s[BOUND_WAN_LATENCY] = fmax(0, step_s - main->outcomes[PROBE_WAN_LATENCY].step_s);
        result->gain_s[BOUND_WINDOW] = fmax(0, step_s - main->outcomes[PROBE_WINDOW].step_s);
        result->slow_start_s = fmax(0, step_s - main->outcomes[PROBE_SLOW_START].step_s);
        result->slack_s = *main->slack_s;
    }
    for (int bound = 0; bound < BOUND_COUNT; bound++)
        if (result->gain_s[bound] > result->gain_s[result->bound_by])
            result->bound_by = (enum bound)bound;
}

static int fill_wan(struct strategy_result *result, const struct run_case *run, struct err *err)
{
    const struct scenario *scenario = run->plan.scenario;
    const struct engine_job *job = case_step(run);
    result->wan_count = 2 * scenario->wan_count;
    result->wan = calloc(result->wan_count + 1, sizeof *result->wan);
    if (!result->wan)
        return err_set(err, ENOMEM, "out of memory for the links' results");
    for (size_t i = 0; i < result->wan_count; i++) {
        const struct wan_link *link = &scenario->wan[i / 2];
        struct wan_result *wan = &result->wan[i];
        *wan = (struct wan_result){
            .from = link->between[i % 2], .to = link->between[!(i % 2)], .bytes = job->wan[i].bytes};
        wan->utilisation = job->wan[i].utilisation;
        wan->peak_utilisation = job->wan[i].peak_utilisation;
        result->wan_busy_s = fmax(result->wan_busy_s, wan->utilisation * job->outcomes->step_s);
        wan->rate_per_gpu_bit_per_s =
            wan->bytes * 8 / job->outcomes->step_s / (double)site_gpus(&scenario->sites[wan->from]);
    }
    return 0;
}

static int check_floor(const struct strategy_result *result, const struct run_case *run, struct err *err)
{
    if (result->step.step_s >= result->floor_s * (1 - 1e-9))
        return 0;
    return err_set(err, EIO, "invariant broken: strategy %s took %.9g s, below its floor of %.9g s (%s)",
                   run->plan.strategy->name, result->step.step_s, result->floor_s, bound_name(result->floor_bound));
}

static struct step_result baseline(const struct analysis *analysis, const struct reading *reading, size_t i)
{
    const struct scenario *one = &analysis->one.scenario;
    const struct run_case *base = &reading->bases[reading->base_of[i]];
    if (analysis->scenario->site_count == 1)
        base = &reading->runs[i];
    else if (!base->made[CASE_MAIN] && !base->made[CASE_FULL])
        return step_result(one, &reading->calibration.last, reading->calibration.folded);
    return step_result(one, case_step(base)->outcomes, case_step(base)->fold);
}

static int fill_strategy(const struct analysis *analysis, const struct reading *reading, size_t i,
                         struct strategy_result *result, struct err *err)
{
    const struct run_case *run = &reading->runs[i];
    const struct scenario *scenario = analysis->scenario;
    result->strategy = i;
    result->step = step_result(scenario, case_step(run)->outcomes, case_step(run)->fold);
    result->baseline = baseline(analysis, reading, i);
    result->efficiency = result->baseline.step_s / result->step.step_s;
    result->compute_s = step_compute_s(&run->plan);
    int rc = step_free(&run->plan, &result->free_step_s, NULL, err);
    result->bubble_s = fmax(0, result->free_step_s - result->compute_s);
    result->exposed_comm_s = fmax(0, result->step.step_s - result->free_step_s);
    fill_gains(result, run);
    rc = rc ? rc : case_floor(run, &result->floor_s, &result->floor_bound, err);
    rc = rc ? rc : check_floor(result, run, err);
    rc = rc ? rc : case_check(run, err);
    rc = rc ? rc : fill_wan(result, run, err);
    return rc ? rc : model_memory(scenario, run->plan.strategy, scenario->site_count, &result->memory, err);
}

static int fill_reading(const struct analysis *analysis, const struct reading *reading, struct result *result,
                        struct err *err)
{
    const struct scenario *scenario = analysis->scenario;
    size_t first = 0;
    while (!reading->chosen[first])
        first++;
    const struct step_plan *plan = &reading->runs[first].plan;
    *result = (struct result){.scenario = scenario, .backend = "sim", .calibration = reading->calibration.result};
    result->calibration.forward_s = plan->forward_s *
                                    (double)(scenario->training.pipeline * scenario->training.interleave) /
                                    (double)scenario->model.layers;
    result->strategies = calloc(scenario->strategy_count, sizeof *result->strategies);
    if (!result->strategies)
        return err_set(err, ENOMEM, "out of memory for %zu strategies", scenario->strategy_count);
    int rc = 0;
    for (size_t i = 0; i < scenario->strategy_count && rc == 0; i++)
        if (reading->chosen[i])
            rc = fill_strategy(analysis, reading, i, &result->strategies[result->strategy_count++], err);
    return rc;
}

/* ---- what the run approximated */

static bool mixed_gpus(const struct scenario *scenario)
{
    for (size_t s = 1; s < scenario->site_count; s++)
        if (strcmp(scenario->sites[s].gpu.name, scenario->sites[0].gpu.name))
            return true;
    return false;
}

static bool any_fidelity(const struct result *result, enum fidelity fidelity)
{
    for (size_t i = 0; i < result->strategy_count; i++)
        if (result->strategies[i].step.fidelity == fidelity)
            return true;
    return false;
}

static bool above_one_site(const struct result *result)
{
    for (size_t i = 0; i < result->strategy_count; i++)
        if (result->strategies[i].efficiency > 1.001)
            return true;
    return false;
}

static int add_note(struct result *result, bool holds, const char *text, struct err *err)
{
    if (!holds)
        return 0;
    char **notes = realloc(result->notes, (result->note_count + 1) * sizeof *notes);
    char *copy = notes ? strdup(text) : NULL;
    if (notes)
        result->notes = notes;
    if (!copy)
        return err_set(err, ENOMEM, "out of memory for the notes");
    result->notes[result->note_count++] = copy;
    return 0;
}

static int add_unmodelled(const struct scenario *scenario, struct result *result, struct err *err)
{
    char *text;
    int rc = unmodelled_text(scenario, &text, err);
    rc = rc ? rc : add_note(result, text != NULL, text, err);
    free(text);
    return rc;
}

static int add_notes(const struct analysis *analysis, struct result *result, struct err *err)
{
    const struct scenario *scenario = analysis->scenario;
    bool folded = any_fidelity(result, FIDELITY_FOLDED);
    int rc = add_note(result, scenario->model.vocabulary > 0 && scenario->training.pipeline > 1,
                      "Embedding and output layer are spread evenly over the pipeline's stages.", err);
    rc = rc ? rc : add_note(result, folded, "Folded: one replica per site stands for its identical ones.", err);
    rc = rc ? rc
            : add_note(
                  result, any_fidelity(result, FIDELITY_BULK),
                  "Bulk: large rings are simulated as one flow per neighbour; inside a site between two WAN hops by "
                  "formula, their NICs taken as free.",
                  err);
    rc = rc ? rc
            : add_note(result, above_one_site(result),
                       "Efficiency above 100 %: over several sites parameters are gathered among fewer ranks than in "
                       "one site.",
                       err);
    rc = rc ? rc
            : add_note(result, mixed_gpus(scenario),
                       "Sites differ in GPUs: the baseline's GPUs are all of the slowest kind.", err);
    rc = rc ? rc
            : add_note(result, scenario->site_count > 1,
                       scenario->transport.protocol == PROTOCOL_TCP
                           ? "TCP: headers, slow start, restart after idle, losses; no jitter, queues as long as they "
                             "need to be."
                           : "The WAN transport is ideal apart from its window: no headers, no loss, no slow start, no "
                             "jitter.",
                       err);
    return rc ? rc : add_unmodelled(scenario, result, err);
}

static void count_done(void *context)
{
    struct analysis *analysis = context;
    analysis->done++;
    if (analysis->options->progress)
        analysis->options->progress(analysis->options->context, analysis->done, analysis->job_count);
}

static int collect(const struct analysis *analysis, struct result *result, struct err *err)
{
    int rc = fill_reading(analysis, &analysis->readings[0], result, err);
    rc = rc ? rc : add_notes(analysis, result, err);
    if (rc < 0 || analysis->reading_count < 2)
        return rc;
    result->other_reading = calloc(1, sizeof *result->other_reading);
    if (!result->other_reading)
        return err_set(err, ENOMEM, "out of memory for the other reading");
    return fill_reading(analysis, &analysis->readings[1], result->other_reading, err);
}

int analysis_run(const struct scenario *scenario, const struct analysis_options *options, struct result *result,
                 struct err *err)
{
    struct analysis analysis = {.scenario = scenario, .options = options};
    *result = (struct result){.scenario = scenario};
    one_site_init(&analysis.one, scenario);
    int rc = prepare(&analysis, err);
    if (rc == 0 && options->timeline) {
        struct run_case *run = &analysis.readings[0].runs[options->timeline_strategy];
        run->jobs[run->made[CASE_FULL] ? CASE_FULL : CASE_MAIN].timeline = options->timeline;
    }
    rc = rc ? rc : engine_run(analysis.jobs, analysis.job_count, options->workers, count_done, &analysis, err);
    rc = rc ? rc : collect(&analysis, result, err);
    if (rc < 0) {
        result_free(result);
        *result = (struct result){.scenario = scenario};
    }
    for (size_t r = 0; r < analysis.reading_count; r++)
        reading_free(&analysis.readings[r], scenario->strategy_count);
    free(analysis.jobs);
    return rc;
}
