#include "tests/report/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const site_names[4] = {"ord", "iad", "pdx", "dfw"};
static const char *const strategy_names[4] = {"flat", "flat-interleaved", "har", "har-chunked"};
static const double steps[4] = {18.914, 121.37, 17.62, 10.7305};
static const double baselines[4] = {10.62, 10.6201, 10.61998, 10.3};

static void fill_sites(struct fixture *fixture, size_t sites)
{
    for (size_t i = 0; i < sites; i++) {
        fixture->sites[i] = (struct site){
            .name = (char *)site_names[i],
            .nodes = 192,
            .gpus_per_node = 8,
            .gpu = {.name = (char *)"h100-sxm", .memory_bytes = 80e9},
        };
    }
    size_t links = sites == 2 ? 1 : sites == 1 ? 0 : sites;
    for (size_t i = 0; i < links; i++) {
        fixture->wan[i] = (struct wan_link){
            .between = {i, (i + 1) % sites}, .waves = 8, .wave_bit_per_s = 100e9, .rtt_s = 0.0213 + 0.01 * (double)i};
    }
    fixture->scenario.site_count = sites;
    fixture->scenario.sites = fixture->sites;
    fixture->scenario.wan_count = links;
    fixture->scenario.wan = fixture->wan;
}

static void fill_scenario(struct fixture *fixture, size_t sites)
{
    fill_sites(fixture, sites);
    for (size_t i = 0; i < 4; i++)
        fixture->strategies[i] = (struct strategy){.name = (char *)strategy_names[i]};
    fixture->references[0] = (struct reference){
        .strategy = 3, .metric = (char *)"efficiency", .value = 0.96, .source = (char *)"NVIDIA NeMo 25.02 blog"};
    fixture->references[1] = (struct reference){.strategy = 3,
                                                .metric = (char *)"mfu",
                                                .value = 0.49,
                                                .convention = FLOPS_UNSTATED,
                                                .source = (char *)"NVIDIA NeMo 25.02 blog"};
    fixture->references[2] = (struct reference){
        .strategy = 3, .metric = (char *)"tokens_per_s", .value = 146e3, .source = (char *)"the project's own brief"};
    struct scenario *scenario = &fixture->scenario;
    scenario->name = (char *)"twin-1536";
    scenario->fabric = (struct fabric){.nics_per_node = 8, .nic_bit_per_s = 400e9};
    scenario->model = (struct model_spec){.name = (char *)"nemotron-4-340b", .layers = 96};
    scenario->training = (struct training){.tensor = 8,
                                           .pipeline = 12,
                                           .interleave = 8,
                                           .data = 32,
                                           .sequence = 4096,
                                           .global_batch = 1536,
                                           .micro_batch = 1,
                                           .gradient = DTYPE_BF16};
    scenario->calibrate = (struct calibrate){.present = true,
                                             .mfu = 0.51,
                                             .convention = FLOPS_UNSTATED,
                                             .data = 32,
                                             .global_batch = 1536,
                                             .strategy = 3,
                                             .source = (char *)"NVIDIA NeMo 25.02 blog"};
    scenario->strategy_count = 4;
    scenario->strategies = fixture->strategies;
    scenario->reference_count = 3;
    scenario->references = fixture->references;
    scenario->seed = 7;
    strcpy(scenario->hash, "0123456789abcdef");
}

static struct step_result make_step(double step_s, enum fidelity fidelity, uint64_t messages)
{
    double tokens_per_s = 1536.0 * 4096 / step_s;
    double peak = 3072 * 989e12;
    return (struct step_result){.step_s = step_s,
                                .tokens_per_s = tokens_per_s,
                                .fidelity = fidelity,
                                .messages = messages,
                                .mfu = {tokens_per_s * 2.105e12 / peak, tokens_per_s * 2.464e12 / peak}};
}

static void fill_wan(const struct fixture *fixture, struct strategy_result *strategy)
{
    strategy->wan_count = 2 * fixture->scenario.wan_count;
    strategy->wan = calloc(strategy->wan_count + 1, sizeof *strategy->wan);
    for (size_t i = 0; i < strategy->wan_count && strategy->wan != NULL; i++) {
        const struct wan_link *link = &fixture->wan[i / 2];
        double bytes = 680e9 * (1 + (double)(i / 2));
        strategy->wan[i] = (struct wan_result){.from = link->between[i % 2],
                                               .to = link->between[1 - i % 2],
                                               .bytes = bytes,
                                               .utilisation = bytes * 8 / 800e9 / strategy->step.step_s / 4,
                                               .peak_utilisation = 1,
                                               .rate_per_gpu_bit_per_s = bytes * 8 / strategy->step.step_s / 1536};
    }
}

static void fill_strategy(const struct fixture *fixture, struct strategy_result *strategy, size_t i)
{
    *strategy = (struct strategy_result){
        .strategy = i,
        .step = make_step(steps[i], FIDELITY_FOLDED, 18642 * (i + 1)),
        .baseline = make_step(baselines[i], FIDELITY_FOLDED, 18642),
        .efficiency = baselines[i] / steps[i],
        .free_step_s = 10.21,
        .bubble_s = 0.4,
        .compute_s = 9.81,
        .slow_start_s = 0.05,
        .wan_busy_s = 6.8,
        .exposed_comm_s = steps[i] - 10.21,
        .slack_s = i == 3 ? 0.00082 : 0,
        .floor_s = 10.33,
        .floor_bound = BOUND_WAN_RATE,
        .bound_by = i == 1   ? BOUND_WAN_LATENCY
                    : i == 3 ? BOUND_COMPUTE
                             : BOUND_WAN_RATE,
        .gain_s = {[BOUND_COMPUTE] = i == 3 ? 7.9 : 0.5,
                   [BOUND_WAN_RATE] = (steps[i] - baselines[i]) * 0.9,
                   [BOUND_WAN_LATENCY] = i == 1 ? 105 : 0.02},
        .memory = {.parameters = 7.1e9,
                   .gradients = 7.1e9,
                   .optimizer = 2.66e9,
                   .activations = 34e9,
                   .total = 50.86e9,
                   .available = 80e9},
    };
    fill_wan(fixture, strategy);
}

static bool fill_result(const struct fixture *fixture, struct result *result)
{
    *result = (struct result){
        .scenario = &fixture->scenario,
        .backend = "sim",
        .calibration = {.calibrated = true,
                        .convention = FLOPS_MHA,
                        .measured_step_s = 10.3,
                        .forward_s = 0.00621,
                        .kernel_efficiency = 0.553,
                        .runs = 2},
    };
    result->strategies = calloc(4, sizeof *result->strategies);
    result->notes = calloc(1, sizeof *result->notes);
    if (result->strategies == NULL || result->notes == NULL)
        return false;
    result->strategy_count = 4;
    result->note_count = 1;
    result->notes[0] = strdup("The WAN is ideal apart from the window: no loss, no slow start.");
    for (size_t i = 0; i < 4; i++)
        fill_strategy(fixture, &result->strategies[i], i);
    struct memory *memory = &result->strategies[0].memory;
    memory->optimizer += 80e9;
    memory->total += 80e9;
    memory->out_of_memory = 1;
    return true;
}

struct fixture *fixture_new(size_t sites)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct result *other = calloc(1, sizeof *other);
    if (fixture == NULL || other == NULL)
        abort();
    fill_scenario(fixture, sites);
    if (!fill_result(fixture, &fixture->result) || !fill_result(fixture, other))
        abort();
    other->calibration.convention = FLOPS_GQA;
    fixture->result.other_reading = other;
    return fixture;
}

static void measure_strategy(struct strategy_result *strategy)
{
    double step_s = strategy->step.step_s;
    strategy->step.fidelity = FIDELITY_MEASURED;
    strategy->measured = (struct measured){.steps = 5,
                                           .least_s = 0.99 * step_s,
                                           .most_s = 1.02 * step_s,
                                           .retransmits = 12.4,
                                           .wan_wire_bytes = 702e6,
                                           .checked_bytes = 1.5e9};
    strategy->baseline =
        (struct step_result){.step_s = NAN, .tokens_per_s = NAN, .mfu = {NAN, NAN}, .fidelity = FIDELITY_MEASURED};
    strategy->efficiency = strategy->exposed_comm_s = strategy->slack_s = strategy->floor_s = NAN;
    strategy->free_step_s = strategy->bubble_s = strategy->slow_start_s = NAN;
    strategy->floor_bound = strategy->bound_by = BOUND_COUNT;
    for (int bound = 0; bound < BOUND_COUNT; bound++)
        strategy->gain_s[bound] = NAN;
    for (size_t i = 0; i < strategy->wan_count; i++)
        strategy->wan[i].peak_utilisation = NAN;
}

void fixture_measure(struct fixture *fixture)
{
    struct result *result = &fixture->result;
    result->backend = "emu";
    result->calibration.calibrated = false;
    for (size_t i = 0; i < result->strategy_count; i++)
        measure_strategy(&result->strategies[i]);
    result_free(result->other_reading);
    free(result->other_reading);
    result->other_reading = NULL;
    strcpy(result->notes[0], "Computing is waited for.");
}

void fixture_free(struct fixture *fixture)
{
    result_free(&fixture->result);
    free(fixture);
}

char *fixture_print(const struct result *result, bool colour, int width)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        abort();
    result_print(result, out, colour, width);
    fclose(out);
    return text;
}
