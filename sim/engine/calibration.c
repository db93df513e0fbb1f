#include "sim/engine/calibration.h"

#include <errno.h>
#include <math.h>

#include "sim/engine/case.h"

enum { ROUNDS_MAX = 16, CALIBRATIONS_MAX = 2 };

/* The measured configuration: as many GPUs as its replicas need, in one site. */
static void measured_site(struct one_site *one, const struct scenario *scenario)
{
    const struct calibrate *calibrate = &scenario->calibrate;
    one_site_init(one, scenario);
    one->scenario.training.data = calibrate->data;
    one->scenario.training.global_batch = calibrate->global_batch;
    long gpus = calibrate->data * scenario->training.tensor * scenario->training.pipeline;
    one_site_resize(one, gpus);
}

static double step_of_mfu(const struct scenario *scenario, enum flops_convention convention)
{
    const struct training *training = &scenario->training;
    double tokens = (double)(training->global_batch * training->sequence);
    double gpus = (double)(training->data * training->tensor * training->pipeline);
    double flop = model_flop_per_token(&scenario->model, training->sequence, convention) * tokens;
    return flop / (scenario->calibrate.mfu * gpus * scenario->sites[0].gpu.flop_per_s[training->compute]);
}

static int no_solution(const struct scenario *scenario, double target_s, double step_s, struct err *err)
{
    return err_set(
        err, EINVAL,
        "calibrate: strategy %s cannot take %.4g s a step on one site: at the GPU's full peak it takes %.4g s",
        scenario->strategies[scenario->calibrate.strategy].name, target_s, step_s);
}

static int free_at_peak(const struct scenario *scenario, double *free_s, struct err *err)
{
    struct step_plan plan;
    int rc = step_plan_init(&plan, scenario, &scenario->strategies[scenario->calibrate.strategy], 1, err);
    if (rc < 0)
        return rc;
    rc = step_free(&plan, free_s, NULL, err);
    step_plan_free(&plan);
    return rc;
}

/* The step is an increasing, piecewise linear function of the compute time x = 1 / efficiency: mostly the step with
 * free communication, which is proportional to x, plus what communication adds. Secant steps from there find the root
 * in two or three runs. */
struct search {
    struct calibration *calibration;
    double target_s, free_s; /* measured step; step with free communication at full peak */
    double x, before_x, before_s;
    bool solved;
    struct run_case run;
};

static int next_step(const struct scenario *scenario, struct search *search, struct err *err)
{
    double step_s = search->calibration->last.step_s;
    search->solved = fabs(step_s - search->target_s) <= 1e-4 * search->target_s;
    search->calibration->result.kernel_efficiency = 1 / search->x;
    search->calibration->result.runs++;
    if (search->solved)
        return 0;
    if (search->x == 1 && step_s > search->target_s)
        return no_solution(scenario, search->target_s, step_s, err);
    bool two_points = search->before_x > 0 && step_s != search->before_s;
    double slope = two_points ? (step_s - search->before_s) / (search->x - search->before_x) : search->free_s;
    search->before_x = search->x;
    search->before_s = step_s;
    search->x = fmax(1, search->x - (step_s - search->target_s) / slope);
    return 0;
}

/* One run of every search that is not solved yet. */
static int run_round(const struct scenario *scenario, struct search *searches, size_t count, int workers,
                     struct err *err)
{
    struct engine_job *jobs[CALIBRATIONS_MAX];
    size_t job_count = 0;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct search *search = &searches[i];
        if (search->solved)
            continue;
        rc = case_init(&search->run, scenario, &scenario->strategies[scenario->calibrate.strategy], 1 / search->x, err);
        rc = rc ? rc : case_make(&search->run, CASE_MAIN, ANALYSIS_AUTO, false, err);
        jobs[job_count++] = &search->run.jobs[CASE_MAIN];
    }
    rc = rc ? rc : engine_run(jobs, job_count, workers, NULL, NULL, err);
    for (size_t i = 0; i < count; i++) {
        struct search *search = &searches[i];
        if (rc == 0 && !search->solved) {
            search->calibration->last = *search->run.jobs[CASE_MAIN].outcomes;
            search->calibration->folded = search->run.jobs[CASE_MAIN].fold;
            rc = next_step(scenario, search, err);
        }
        case_free(&search->run);
    }
    return rc;
}

static bool all_solved(const struct search *searches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!searches[i].solved)
            return false;
    return true;
}

static int solve(const struct scenario *scenario, struct search *searches, size_t count, int workers, struct err *err)
{
    int rc = 0;
    for (int round = 0; rc == 0 && round < ROUNDS_MAX; round++) {
        rc = run_round(scenario, searches, count, workers, err);
        if (rc < 0 || all_solved(searches, count))
            return rc;
    }
    return rc ? rc : err_set(err, EIO, "calibrate: no compute time found in %d runs", ROUNDS_MAX);
}

static bool is_baseline(const struct scenario *scenario)
{
    return scenario->calibrate.data == scenario->training.data &&
           scenario->calibrate.global_batch == scenario->training.global_batch;
}

int calibrate(const struct scenario *scenario, struct calibration *calibrations, size_t count, int workers,
              struct err *err)
{
    struct one_site one;
    struct search searches[CALIBRATIONS_MAX];
    double free_s;
    for (size_t i = 0; i < count; i++)
        calibrations[i].result = (struct calibration_result){.kernel_efficiency = scenario->training.kernel_efficiency,
                                                             .convention = FLOPS_UNSTATED};
    if (!scenario->calibrate.present)
        return 0;
    measured_site(&one, scenario);
    int rc = free_at_peak(&one.scenario, &free_s, err);
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct calibration_result *result = &calibrations[i].result;
        bool by_step = scenario->calibrate.step_s > 0;
        result->calibrated = true;
        result->convention = by_step ? FLOPS_UNSTATED : calibrations[i].convention;
        result->measured_step_s =
            by_step ? scenario->calibrate.step_s : step_of_mfu(&one.scenario, calibrations[i].convention);
        calibrations[i].is_baseline = is_baseline(scenario);
        searches[i] =
            (struct search){.calibration = &calibrations[i], .target_s = result->measured_step_s, .free_s = free_s};
        searches[i].x = fmax(1, searches[i].target_s / free_s);
    }
    return rc ? rc : solve(&one.scenario, searches, count, workers, err);
}
