/* Stands in for both backends: prints a made-up longhaul.result/1 of the scenario it is given. Arguments as those of
 * `longhaul`: sim [--lab-scale] or lab run, then SCENARIO, --set KEY=VALUE, and what else is not looked at. Predicts a
 * step of 1 s + 0.1 s per strategy + the first link's RTT, and measures 5 % more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/result.h"

enum { SETS_MAX = 16 };
#define EFFICIENCY 0.437

struct asked {
    bool lab, scaled;
    const char *scenario, *sets[SETS_MAX];
    size_t set_count;
};

static struct asked read_arguments(char **word)
{
    struct asked asked = {.lab = *word != NULL && strcmp(*word, "lab") == 0};
    for (word += asked.lab ? 2 : 1; *word != NULL; word++) {
        if (strcmp(*word, "--set") == 0 && asked.set_count < SETS_MAX)
            asked.sets[asked.set_count++] = *++word;
        else if (strcmp(*word, "--lab-scale") == 0)
            asked.scaled = true;
        else if (asked.scenario == NULL)
            asked.scenario = *word;
    }
    asked.scaled = asked.scaled || asked.lab;
    return asked;
}

static void fill(struct strategy_result *strategy, const struct scenario *scenario, size_t index, bool measured)
{
    double step_s = (measured ? 1.05 : 1) * (1 + 0.1 * (double)index + scenario->wan[0].rtt_s);
    *strategy = (struct strategy_result){.strategy = index,
                                         .step = {.step_s = step_s, .tokens_per_s = 1000 / step_s},
                                         .compute_s = 0.5,
                                         .slow_start_s = 0.01,
                                         .wan_busy_s = measured ? 0.35 : 0.3};
    strategy->baseline.step_s = 0.6;
    if (!measured)
        return;
    strategy->step.fidelity = FIDELITY_MEASURED;
    strategy->baseline.step_s = NAN;
    strategy->bound_by = strategy->floor_bound = BOUND_COUNT;
    strategy->measured = (struct measured){.steps = 3, .least_s = 0.99 * step_s, .most_s = 1.01 * step_s};
}

static int print(const struct asked *asked, const struct scenario *scenario)
{
    char note[] = "made up", *notes[] = {note};
    struct strategy_result strategies[64];
    struct result result = {.scenario = scenario,
                            .backend = asked->lab ? "emu" : "sim",
                            .calibration = {.kernel_efficiency = EFFICIENCY, .forward_s = 1},
                            .strategy_count = scenario->strategy_count,
                            .strategies = strategies,
                            .note_count = 1,
                            .notes = notes};
    for (size_t i = 0; i < scenario->strategy_count; i++)
        fill(&strategies[i], scenario, i, asked->lab);
    return result_dump_json(&result, stdout, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct asked asked = read_arguments(argv + (argc > 0));
    struct scenario scenario, lab = {0};
    struct err err = {""};
    int rc = scenario_load(asked.scenario, asked.sets, asked.set_count, &scenario, &err);
    if (rc == 0 && asked.scaled)
        rc = scenario_lab_scale(&scenario, EFFICIENCY, &lab, &err);
    int code = rc == 0 ? print(&asked, asked.scaled ? &lab : &scenario) : err_exit_code(rc);
    scenario_free(&scenario);
    scenario_free(&lab);
    if (rc < 0)
        fprintf(stderr, "fake: %s\n", err.text);
    return code;
}
