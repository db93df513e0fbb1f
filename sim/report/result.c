#include "sim/report/result.h"

#include <math.h>
#include <stdlib.h>

static const char *const bound_names[] = {
    [BOUND_COMPUTE] = "compute",         [BOUND_BUBBLE] = "bubble", [BOUND_WAN_RATE] = "WAN rate",
    [BOUND_WAN_LATENCY] = "WAN latency", [BOUND_WINDOW] = "window", [BOUND_FABRIC] = "fabric",
    [BOUND_COUNT] = "unknown",
};

static const char *const fidelity_names[] = {
    [FIDELITY_MESSAGE] = "message",
    [FIDELITY_BULK] = "bulk",
    [FIDELITY_FOLDED] = "folded",
    [FIDELITY_MEASURED] = "measured",
};

const char *bound_name(enum bound bound)
{
    return bound_names[bound];
}

const char *fidelity_name(enum fidelity fidelity)
{
    return fidelity_names[fidelity];
}

void step_result_fill(struct step_result *result, const struct scenario *scenario, double step_s,
                      enum fidelity fidelity, uint64_t messages)
{
    const struct training *training = &scenario->training;
    double tokens = (double)(training->global_batch * training->sequence), peak = 0;
    for (size_t s = 0; s < scenario->site_count; s++)
        peak += (double)site_gpus(&scenario->sites[s]) * scenario->sites[s].gpu.flop_per_s[training->compute];
    *result = (struct step_result){
        .step_s = step_s, .tokens_per_s = tokens / step_s, .fidelity = fidelity, .messages = messages};
    for (int c = FLOPS_GQA; c <= FLOPS_MHA; c++)
        result->mfu[c] = model_mfu(model_flop_per_token(&scenario->model, training->sequence, (enum flops_convention)c),
                                   tokens, step_s, 1, peak);
}

const struct strategy_result *result_best(const struct result *result)
{
    const struct strategy_result *best = NULL;
    for (size_t i = 0; i < result->strategy_count; i++) {
        const struct strategy_result *candidate = &result->strategies[i];
        if (candidate->memory.out_of_memory || isnan(candidate->step.step_s))
            continue;
        if (best == NULL || candidate->step.step_s < best->step.step_s)
            best = candidate;
    }
    return best;
}

bool result_measured(const struct result *result)
{
    for (size_t i = 0; i < result->strategy_count; i++) {
        if (result->strategies[i].step.fidelity == FIDELITY_MEASURED)
            return true;
    }
    return false;
}

void result_free(struct result *result)
{
    if (result == NULL)
        return;
    for (size_t i = 0; i < result->strategy_count; i++)
        free(result->strategies[i].wan);
    free(result->strategies);
    for (size_t i = 0; i < result->note_count; i++)
        free(result->notes[i]);
    free(result->notes);
    result_free(result->other_reading);
    free(result->other_reading);
}
