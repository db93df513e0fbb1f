#include "sim/engine/calibration.h"

#include <errno.h>
#include <math.h>

#include "sim/engine/case.h"

enum { RUNS_MAX = 16 };

/* The measured configuration: as many GPUs as its replicas need, in one site. */
static void measured_site(struct one_site *one, const struct scenario *scenario)
{
    const struct calibrate *calibrate = &scenario->calibrate;
    one_site_init(one, scenario);
    one->scenario.training.data = calibrate->data;
    one->scenario.training.global_batch = calibrate->global_batch;
    long gpus = calibrate->data * scenario->training.tensor * scenario->training.pipeline;
    one->site.nodes = (gpus + one->site.gpus_per_node - 1) / one->site.gpus_per_node;
}

static double step_of_mfu(const struct scenario *scenario, enum flops_convention convention)
{
    const struct training *training = &scenario->training;
    double tokens = (double)(training->global_batch * training->sequence);
    double gpus = (double)(training->data * training->tensor * training->pipeline);
    double flop = model_flop_per_token(&scenario->model, training->sequence, convention) * tokens;
    return flop / (scenario->calibrate.mfu * gpus * scenario->sites[0].gpu.flop_per_s[training->compute]);
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

static int run_once(const struct scenario *scenario, double efficiency, double *step_s, struct err *err)
{
    struct run_case run;
    struct engine_job *jobs[] = {&run.jobs[CASE_MAIN]};
    int rc = case_init(&run, scenario, &scenario->strategies[scenario->calibrate.strategy], efficiency, err);
    if (rc < 0)
        return rc;
    rc = case_make(&run, CASE_MAIN, ANALYSIS_AUTO, false, err);
    rc = rc ? rc : engine_run(jobs, 1, 1, NULL, NULL, err);
    if (rc == 0)
        *step_s = jobs[0]->outcomes->step_s;
    case_free(&run);
    return rc;
}

static int no_solution(const struct scenario *scenario, double target_s, double step_s, struct err *err)
{
    return err_set(err, EINVAL,
                   "calibrate: strategy %s cannot take %.4g s a step on one site: at the GPU's full peak it takes %.4g s",
                   scenario->strategies[scenario->calibrate.strategy].name, target_s, step_s);
}

/* The step is an increasing, piecewise linear function of the compute time x = 1 / efficiency: mostly the step with free
 * communication, which is proportional to x, plus what communication adds. Secant steps from there find the root in two or three
 * runs; a guess of what communication adds saves one. */
static int solve(const struct scenario *scenario, double target_s, double *added_s, struct calibration_result *result,
                 struct err *err)
{
    double step_s, free_s, before_x = 0, before_s = 0;
    int rc = free_at_peak(scenario, &free_s, err);
    double x = fmax(1, (target_s - *added_s) / free_s);
    for (result->runs = 0; rc == 0 && result->runs < RUNS_MAX; result->runs++) {
        rc = run_once(scenario, 1 / x, &step_s, err);
        result->kernel_efficiency = 1 / x;
        *added_s = step_s - free_s * x;
        if (rc < 0 || fabs(step_s - target_s) <= 1e-9 * target_s)
            return rc;
        if (x == 1 && step_s > target_s)
            return no_solution(scenario, target_s, step_s, err);
        double slope = before_x > 0 && step_s != before_s ? (step_s - before_s) / (x - before_x) : free_s;
        before_x = x;
        before_s = step_s;
        x = fmax(1, x - (step_s - target_s) / slope);
    }
    return rc ? rc
              : err_set(err, EIO, "calibrate: no compute time found in %d runs (last step %.9g s, measured %.9g s)",
                        RUNS_MAX, step_s, target_s);
}

int calibrate(const struct scenario *scenario, enum flops_convention convention, double *added_s,
              struct calibration_result *result, struct err *err)
{
    struct one_site one;
    *result = (struct calibration_result){.kernel_efficiency = scenario->training.kernel_efficiency,
                                          .convention = FLOPS_UNSTATED};
    if (!scenario->calibrate.present)
        return 0;
    measured_site(&one, scenario);
    bool by_step = scenario->calibrate.step_s > 0;
    result->calibrated = true;
    result->convention = by_step ? FLOPS_UNSTATED : convention;
    result->measured_step_s = by_step ? scenario->calibrate.step_s : step_of_mfu(&one.scenario, convention);
    return solve(&one.scenario, result->measured_step_s, added_s, result, err);
}
