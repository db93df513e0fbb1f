/* The result as JSON; every key is described in README.md beside this file. */
#include "sim/report/result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/reference.h"
#include "sim/report/text.h"

/* A number, or null where it is not finite: JSON has neither NaN nor infinity. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A bound's name, or null where it is not known. */
static json_t *bound(enum bound which)
{
    return which < BOUND_COUNT ? json_string(bound_name(which)) : json_null();
}

/* jansson refuses text that is not UTF-8; a name given on the command line may be anything. */
static json_t *text(const char *value)
{
    if (value == NULL)
        return json_null();
    char *clean = text_clean(value);
    json_t *json = clean != NULL ? json_string(clean) : NULL;
    free(clean);
    return json;
}

/* A seed above the largest JSON integer of jansson is written as decimal text rather than as another number. */
static json_t *unsigned_integer(uint64_t value)
{
    if (value <= INT64_MAX)
        return json_integer((json_int_t)value);
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    return json_string(digits);
}

/* The array with one more item, or NULL (and the array freed) when out of memory. */
static json_t *append(json_t *array, json_t *item)
{
    if (json_array_append_new(array, item) == 0)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *mfu_to_json(const double mfu[2])
{
    return json_pack("{s:o, s:o}", convention_name(FLOPS_GQA), number(mfu[FLOPS_GQA]), convention_name(FLOPS_MHA),
                     number(mfu[FLOPS_MHA]));
}

/* A run, or null where there was none. */
static json_t *step_to_json(const struct step_result *step)
{
    if (!isfinite(step->step_s))
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:s, s:o}", "step_s", number(step->step_s), "tokens_per_s",
                     number(step->tokens_per_s), "mfu", mfu_to_json(step->mfu), "fidelity",
                     fidelity_name(step->fidelity), "messages", unsigned_integer(step->messages));
}

static json_t *gain_to_json(const double gain_s[BOUND_COUNT])
{
    json_t *gains = json_object();
    for (int i = 0; i < BOUND_COUNT; i++)
        json_object_set_new(gains, bound_name((enum bound)i), number(gain_s[i]));
    return gains;
}

static json_t *wan_to_json(const struct scenario *scenario, const struct strategy_result *strategy)
{
    json_t *links = json_array();
    for (size_t i = 0; links != NULL && i < strategy->wan_count; i++) {
        const struct wan_result *wan = &strategy->wan[i];
        json_t *link = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "from", text(scenario->sites[wan->from].name), "to",
                                 text(scenario->sites[wan->to].name), "bytes", number(wan->bytes), "utilisation",
                                 number(wan->utilisation), "peak_utilisation", number(wan->peak_utilisation),
                                 "rate_per_gpu_bit_per_s", number(wan->rate_per_gpu_bit_per_s));
        links = append(links, link);
    }
    return links;
}

static json_t *memory_to_json(const struct memory *memory)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "parameters_bytes", number(memory->parameters),
                     "gradients_bytes", number(memory->gradients), "optimizer_bytes", number(memory->optimizer),
                     "activations_bytes", number(memory->activations), "total_bytes", number(memory->total),
                     "available_bytes", number(memory->available), "out_of_memory", memory->out_of_memory);
}

static json_t *measured_to_json(const struct measured *measured)
{
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "steps", measured->steps, "least_s", number(measured->least_s),
                     "most_s", number(measured->most_s), "retransmits", number(measured->retransmits), "wan_wire_bytes",
                     number(measured->wan_wire_bytes), "checked_bytes", number(measured->checked_bytes));
}

/* Ends with "measured" where the step was measured. */
static json_t *with_measured(json_t *json, const struct strategy_result *strategy)
{
    if (json == NULL || strategy->step.fidelity != FIDELITY_MEASURED ||
        json_object_set_new(json, "measured", measured_to_json(&strategy->measured)) == 0)
        return json;
    json_decref(json);
    return NULL;
}

json_t *result_strategy_to_json(const struct result *result, const struct strategy_result *strategy)
{
    const struct scenario *scenario = result->scenario;
    const struct step_result *step = &strategy->step;
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, "
        "s:o}",
        "name", text(scenario->strategies[strategy->strategy].name), "bound_by", bound(strategy->bound_by), "step_s",
        number(step->step_s), "tokens_per_s", number(step->tokens_per_s), "mfu", mfu_to_json(step->mfu), "efficiency",
        number(strategy->efficiency), "exposed_comm_s", number(strategy->exposed_comm_s), "slack_s",
        number(strategy->slack_s), "floor_s", number(strategy->floor_s), "floor_by", bound(strategy->floor_bound),
        "gain_s", gain_to_json(strategy->gain_s), "free_step_s", number(strategy->free_step_s), "bubble_s",
        number(strategy->bubble_s), "compute_s", number(strategy->compute_s), "slow_start_s",
        number(strategy->slow_start_s), "wan_busy_s", number(strategy->wan_busy_s), "wan",
        wan_to_json(scenario, strategy), "memory_per_gpu_bytes", number(strategy->memory.total), "memory",
        memory_to_json(&strategy->memory), "fidelity", fidelity_name(step->fidelity), "messages",
        unsigned_integer(step->messages), "baseline", step_to_json(&strategy->baseline));
    return with_measured(json, strategy);
}

static json_t *strategies_to_json(const struct result *result)
{
    json_t *strategies = json_array();
    for (size_t i = 0; strategies != NULL && i < result->strategy_count; i++)
        strategies = append(strategies, result_strategy_to_json(result, &result->strategies[i]));
    return strategies;
}

/* The one-site run that the scenario as a whole is read against: that of the strategy the calibration names, else the
 * first. */
static json_t *baseline_to_json(const struct result *result)
{
    if (result->strategy_count == 0)
        return json_null();
    const struct strategy_result *strategy = &result->strategies[0];
    for (size_t i = 0; i < result->strategy_count; i++) {
        if (result->strategies[i].strategy == result->scenario->calibrate.strategy)
            strategy = &result->strategies[i];
    }
    json_t *baseline = step_to_json(&strategy->baseline);
    if (json_is_object(baseline))
        json_object_set_new(baseline, "strategy", text(result->scenario->strategies[strategy->strategy].name));
    return baseline;
}

static json_t *calibration_to_json(const struct result *result)
{
    const struct calibration_result *calibration = &result->calibration;
    const struct calibrate *asked = &result->scenario->calibrate;
    bool with_mfu = asked->present && asked->mfu > 0;
    return json_pack("{s:b, s:o, s:s, s:o, s:o, s:o, s:i, s:o}", "calibrated", calibration->calibrated, "mfu",
                     with_mfu ? number(asked->mfu) : json_null(), "convention",
                     convention_name(calibration->convention), "measured_step_s",
                     calibration->calibrated ? number(calibration->measured_step_s) : json_null(), "forward_s",
                     number(calibration->forward_s), "kernel_efficiency", number(calibration->kernel_efficiency),
                     "runs", calibration->runs, "source", text(asked->present ? asked->source : NULL));
}

static json_t *comparison_to_json(const struct result *result, const struct comparison *comparison)
{
    const struct reference *reference = comparison->reference;
    bool has_convention = comparison->convention != FLOPS_UNSTATED;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "strategy",
                     text(result->scenario->strategies[reference->strategy].name), "metric", text(reference->metric),
                     "convention", text(has_convention ? convention_name(comparison->convention) : NULL), "value",
                     number(reference->value), "predicted", number(comparison->predicted), "error",
                     number(comparison->error), "source", text(reference->source));
}

static json_t *references_to_json(const struct result *result)
{
    json_t *references = json_array();
    for (size_t i = 0; i < result->scenario->reference_count; i++) {
        const struct reference *reference = &result->scenario->references[i];
        for (size_t reading = 0; references != NULL && reading < reference_readings(reference); reading++) {
            struct comparison comparison = reference_compare(result, reference, reading);
            references = append(references, comparison_to_json(result, &comparison));
        }
    }
    return references;
}

static json_t *notes_to_json(const struct result *result)
{
    json_t *notes = json_array();
    for (size_t i = 0; notes != NULL && i < result->note_count; i++)
        notes = append(notes, text(result->notes[i]));
    return notes;
}

json_t *result_to_json(const struct result *result)
{
    const struct scenario *scenario = result->scenario;
    const struct strategy_result *best = result_best(result);
    json_t *json =
        json_pack("{s:s, s:{s:o, s:s}, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "longhaul.result/1",
                  "scenario", "name", text(scenario->name), "hash", scenario->hash, "seed",
                  unsigned_integer(scenario->seed), "version", LONGHAUL_VERSION, "backend", result->backend, "best",
                  text(best != NULL ? scenario->strategies[best->strategy].name : NULL), "baseline",
                  baseline_to_json(result), "calibration", calibration_to_json(result), "strategies",
                  strategies_to_json(result), "references", references_to_json(result), "notes", notes_to_json(result));
    if (json == NULL || result->other_reading == NULL)
        return json;
    if (json_object_set_new(json, "other_reading", result_to_json(result->other_reading)) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

int result_dump_json(const struct result *result, FILE *out, struct err *err)
{
    json_t *json = result_to_json(result);
    if (json == NULL)
        return err_set(err, ENOMEM, "out of memory while writing the result as JSON");
    bool failed = json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) != 0;
    json_decref(json);
    failed = fputc('\n', out) == EOF || fflush(out) != 0 || failed;
    return failed ? err_set(err, EIO, "cannot write the result as JSON: %s", strerror(errno)) : 0;
}
