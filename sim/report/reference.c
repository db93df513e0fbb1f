#include "sim/report/reference.h"

#include <math.h>
#include <string.h>

const char *convention_name(enum flops_convention convention)
{
    static const char *const names[] = {
        [FLOPS_GQA] = "gqa",
        [FLOPS_MHA] = "mha",
        [FLOPS_UNSTATED] = "unstated",
    };
    return names[convention];
}

static bool is_mfu(const struct reference *reference)
{
    return strcmp(reference->metric, "mfu") == 0;
}

size_t reference_readings(const struct reference *reference)
{
    return is_mfu(reference) && reference->convention == FLOPS_UNSTATED ? 2 : 1;
}

static const struct strategy_result *find_strategy(const struct result *result, size_t strategy)
{
    for (size_t i = 0; i < result->strategy_count; i++) {
        if (result->strategies[i].strategy == strategy)
            return &result->strategies[i];
    }
    return NULL;
}

static double predict(const struct strategy_result *strategy, const char *metric, enum flops_convention convention)
{
    if (strategy == NULL)
        return NAN;
    if (strcmp(metric, "efficiency") == 0)
        return strategy->efficiency;
    if (strcmp(metric, "step") == 0)
        return strategy->step.step_s;
    if (strcmp(metric, "tokens_per_s") == 0)
        return strategy->step.tokens_per_s;
    return strcmp(metric, "mfu") == 0 && convention != FLOPS_UNSTATED ? strategy->step.mfu[convention] : NAN;
}

struct comparison reference_compare(const struct result *result, const struct reference *reference, size_t reading)
{
    struct comparison comparison = {.reference = reference, .convention = FLOPS_UNSTATED};
    if (is_mfu(reference)) {
        bool stated = reference->convention != FLOPS_UNSTATED;
        comparison.convention = stated ? reference->convention : reading == 0 ? FLOPS_GQA : FLOPS_MHA;
    }
    const struct strategy_result *strategy = find_strategy(result, reference->strategy);
    comparison.predicted = predict(strategy, reference->metric, comparison.convention);
    comparison.error = comparison.predicted / reference->value - 1;
    return comparison;
}
