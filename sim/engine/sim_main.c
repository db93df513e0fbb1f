/* longhaul-sim: predicts a training step, strategy by strategy. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "configs/options.h"
#include "sim/engine/analysis.h"
#include "sim/engine/engine.h"

struct arguments {
    struct options_sets sets;
    const char *scenario;
    const char *json, *timeline, *strategy;
    enum analysis_fidelity fidelity;
    bool lab_scale;
};

static const char documentation[] =
    "Predicts what a training step takes on a scenario's links, for every communication strategy in it, and what "
    "bounds "
    "each.\vSCENARIO is a file or the name of a preset (longhaul config list); without one, twin-1536.\n\n"
    "Examples:\n"
    "  longhaul sim twin-1536\n"
    "  longhaul sim twin-1536 --set wan.rtt=50ms --set wan.waves=16\n"
    "  longhaul sim my.yaml --json result.json --timeline step.json\n\n"
    "Each strategy is compared with itself on the same GPUs in one site (efficiency). Exposed is the step less the "
    "step with "
    "free communication; slack is the largest extra one-way WAN delay that leaves the step unchanged; the floor is "
    "what no "
    "schedule of the strategy can beat.\n\n"
    "The timeline opens in https://ui.perfetto.dev. Exit code 0: done; 1: a run failed or an invariant broke; 2: the "
    "scenario or the command line is wrong.";

static const struct argp_option option_list[] = {
    {"json", 'j', "FILE", 0, "Write the result as JSON (longhaul.result/1) to FILE; - prints it instead of the table",
     0},
    {"timeline", 't', "FILE", 0, "Write the step of one strategy as a trace for Perfetto", 0},
    {"strategy", 's', "NAME", 0, "Whose timeline (the scenario's last strategy)", 0},
    {"fidelity", 'f', "LEVEL", 0,
     "auto (folded where replicas are identical, else every replica), message, bulk or folded", 0},
    {"lab-scale", 'l', NULL, 0, "Simulate the scenario as the lab runs it: lab.hosts a site, bytes and rates divided",
     0},
    {0},
};

static const char *const fidelities[] = {
    [ANALYSIS_AUTO] = "auto", [ANALYSIS_MESSAGE] = "message", [ANALYSIS_BULK] = "bulk", [ANALYSIS_FOLDED] = "folded"};

static void take_fidelity(struct arguments *arguments, const char *text, struct argp_state *state)
{
    for (size_t i = 0; i < sizeof fidelities / sizeof fidelities[0]; i++) {
        if (!strcmp(text, fidelities[i])) {
            arguments->fidelity = (enum analysis_fidelity)i;
            return;
        }
    }
    argp_error(state, "--fidelity %s: it must be auto, message, bulk or folded", text);
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &arguments->sets;
    else if (key == 'j')
        arguments->json = argument;
    else if (key == 't')
        arguments->timeline = argument;
    else if (key == 's')
        arguments->strategy = argument;
    else if (key == 'l')
        arguments->lab_scale = true;
    else if (key == 'f')
        take_fidelity(arguments, argument, state);
    else if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    else if (arguments->scenario)
        argp_error(state, "more than one scenario: %s and %s", arguments->scenario, argument);
    else
        arguments->scenario = argument;
    return 0;
}

/* ---- progress, on a terminal and after two seconds */

struct progress {
    struct timespec start;
    bool shown;
};

static void show_progress(void *context, size_t done, size_t total)
{
    struct progress *progress = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!isatty(STDERR_FILENO) || now.tv_sec - progress->start.tv_sec < 2)
        return;
    progress->shown = true;
    fprintf(stderr, "\rsimulating: %zu of %zu runs", done, total);
    fflush(stderr);
}

static void end_progress(const struct progress *progress)
{
    if (progress->shown)
        fprintf(stderr, "\r\033[K");
}

static int find_strategy(const struct scenario *scenario, const char *name, size_t *index, struct err *err)
{
    *index = scenario->strategy_count - 1;
    if (!name)
        return 0;
    for (*index = 0; *index < scenario->strategy_count; ++*index)
        if (!strcmp(scenario->strategies[*index].name, name))
            return 0;
    return err_set(err, EINVAL, "--strategy %s: the scenario has no strategy of that name", name);
}

static int report(const struct arguments *arguments, const struct result *result, struct err *err)
{
    bool to_stdout = arguments->json && !strcmp(arguments->json, "-");
    if (!to_stdout)
        result_print(result, stdout, options_colour(stdout), options_width(stdout));
    if (!arguments->json)
        return options_close(stdout, "-", err);
    FILE *out = options_open(arguments->json, err);
    if (!out)
        return -EIO;
    int rc = result_dump_json(result, out, err);
    int closed = options_close(out, arguments->json, err);
    return rc ? rc : closed;
}

static int simulate(const struct arguments *arguments, const struct scenario *scenario, struct err *err)
{
    struct progress progress = {.shown = false};
    struct analysis_options options = {
        .fidelity = arguments->fidelity, .workers = engine_workers(), .progress = show_progress, .context = &progress};
    struct result result;
    int rc = find_strategy(scenario, arguments->strategy, &options.timeline_strategy, err);
    clock_gettime(CLOCK_MONOTONIC, &progress.start);
    if (rc == 0 && arguments->timeline) {
        options.timeline = options_open(arguments->timeline, err);
        rc = options.timeline ? 0 : -EIO;
    }
    if (rc < 0)
        return rc;
    rc = analysis_run(scenario, &options, &result, err);
    end_progress(&progress);
    if (options.timeline) {
        int closed = options_close(options.timeline, arguments->timeline, rc ? NULL : err);
        rc = rc ? rc : closed;
    }
    rc = rc ? rc : report(arguments, &result, err);
    result_free(&result);
    return rc;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.fidelity = ANALYSIS_AUTO};
    const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
    const struct argp argp = {option_list, take_argument, "[SCENARIO]", documentation, children, NULL, NULL};
    struct scenario scenario, scaled = {0};
    struct err err = {""};
    options_setup();
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    int rc = scenario_load(arguments.scenario ? arguments.scenario : "twin-1536", arguments.sets.texts,
                           arguments.sets.count, &scenario, &err);
    if (rc == 0 && arguments.lab_scale)
        rc = analysis_lab_scale(&scenario, engine_workers(), &scaled, &err);
    rc = rc ? rc : simulate(&arguments, arguments.lab_scale ? &scaled : &scenario, &err);
    scenario_free(&scenario);
    scenario_free(&scaled);
    if (rc < 0)
        fprintf(stderr, "longhaul-sim: %s\n", err.text);
    return err_exit_code(rc);
}
