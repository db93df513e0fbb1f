/* longhaul-rank: one rank of a training step, under mpirun. */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "configs/options.h"
#include "emu/mpi/measure.h"
#include "sim/report/result.h"

enum { OPTION_SPIN = 256, OPTION_CHECK, OPTION_WINDOWS, OPTION_PROGRESS, STEPS_DEFAULT = 3, STEPS_MAX = 10000 };

struct arguments {
    struct options_sets sets;
    const char *scenario, *json, *timeline, *strategy;
    struct measure_options options;
    bool spin;
};

static const char documentation[] =
    "Runs the training step of a scenario on real MPI ranks, one process a rank and one rank a host, and measures it: "
    "the same strategies as `longhaul sim`, with real buffers over a real network. Computation is a sleep of the "
    "modelled time. Sums are checked.\vYou rarely start it yourself: `longhaul lab run SCENARIO --strategies` does in "
    "the "
    "lab, `longhaul-emu run` on a cluster.\n\n"
    "  mpirun -np 8 --map-by node longhaul-rank \"$LONGHAUL_SCENARIO\" --json step.json\n\n"
    "Exit status: 0; 1 when a sum is wrong, a link was bypassed or a run failed; 2 wrong usage or a wrong scenario.";

static const struct argp_option option_list[] = {
    {"json", 'j', "FILE", 0, "Write the result as JSON (longhaul.result/1) to FILE; - prints it instead of the table",
     0},
    {"timeline", 't', "FILE", 0, "Write the last measured step of one strategy as a trace for Perfetto", 0},
    {"strategy", 's', "NAME", 0, "Run only this strategy", 0},
    {"steps", 'n', "N", 0, "Steps to measure; one more comes before them (default: 3)", 0},
    {"spin", OPTION_SPIN, NULL, 0, "Compute by spinning instead of sleeping", 0},
    {"check-all", OPTION_CHECK, NULL, 0, "Check the sums of every step, not just the first: takes time", 0},
    {"open-windows", OPTION_WINDOWS, NULL, 0,
     "One more step with TCP's restart after idle off, to see what slow start costs (needs to be root of the network)",
     0},
    {"progress", OPTION_PROGRESS, NULL, 0, "Say on standard error which step is measured", 0},
    {0},
};

static long number(struct argp_state *state, const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < 1 || value > STEPS_MAX)
        argp_error(state, "--steps %s: it is a number from 1 to %d", text, STEPS_MAX);
    return value;
}

static error_t take(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->sets;
        return 0;
    case 'j':
        arguments->json = text;
        return 0;
    case 't':
        arguments->timeline = text;
        return 0;
    case 's':
        arguments->strategy = text;
        return 0;
    case 'n':
        arguments->options.steps = (int)number(state, text);
        return 0;
    case OPTION_SPIN:
        arguments->spin = true;
        return 0;
    case OPTION_CHECK:
        arguments->options.check_all = true;
        return 0;
    case OPTION_WINDOWS:
        arguments->options.open_windows = true;
        return 0;
    case OPTION_PROGRESS:
        arguments->options.progress = true;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->scenario)
            argp_error(state, "more than one scenario: %s and %s", arguments->scenario, text);
        arguments->scenario = text;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "needs a scenario, like $LONGHAUL_SCENARIO in the lab");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool is_chosen(const struct arguments *arguments, const struct strategy *strategy)
{
    return !arguments->strategy || !strcmp(arguments->strategy, strategy->name);
}

static int find_strategy(const struct arguments *arguments, const struct scenario *scenario, size_t *index,
                         struct err *err)
{
    for (*index = scenario->strategy_count; (*index)-- > 0;)
        if (is_chosen(arguments, &scenario->strategies[*index]))
            return 0;
    return err_set(err, EINVAL, "--strategy %s: the scenario has no strategy of that name", arguments->strategy);
}

/* The timeline is the last strategy's. */
static int measure_all(const struct arguments *arguments, struct process *process, FILE *timeline,
                       struct result *result, struct err *err)
{
    const struct scenario *scenario = process->scenario;
    size_t last;
    result->strategies = calloc(scenario->strategy_count, sizeof *result->strategies);
    int rc = result->strategies ? find_strategy(arguments, scenario, &last, err) : -ENOMEM;
    for (size_t i = 0; i < scenario->strategy_count && rc == 0; i++) {
        struct measure_options options = arguments->options;
        if (!is_chosen(arguments, &scenario->strategies[i]))
            continue;
        options.timeline = i == last ? timeline : NULL;
        rc = measure(process, &scenario->strategies[i], &options, &result->strategies[result->strategy_count++], err);
        if (rc < 0)
            err_prefix(err, "strategy %s", scenario->strategies[i].name);
    }
    return rc;
}

static int report(const struct arguments *arguments, const struct result *result, struct err *err)
{
    if (!arguments->json) {
        result_print(result, stdout, options_colour(stdout), options_width(stdout));
        return options_close(stdout, "-", err);
    }
    FILE *out = options_open(arguments->json, err);
    int rc = out ? result_dump_json(result, out, err) : -EIO;
    int closed = out ? options_close(out, arguments->json, err) : 0;
    return rc ? rc : closed;
}

/* What the steps take for computing: the same for all strategies. */
static int fill_calibration(const struct scenario *scenario, struct calibration_result *calibration, struct err *err)
{
    struct step_plan plan;
    calibration->kernel_efficiency = scenario->training.kernel_efficiency;
    int rc = step_plan_init(&plan, scenario, &scenario->strategies[0], calibration->kernel_efficiency, err);
    if (rc)
        return rc;
    calibration->forward_s = plan.forward_s * (double)(scenario->training.pipeline * scenario->training.interleave) /
                             (double)scenario->model.layers;
    step_plan_free(&plan);
    return 0;
}

static int run(const struct arguments *arguments, const struct scenario *scenario, struct err *err)
{
    struct process process;
    struct result result = {.scenario = scenario, .backend = "emu"};
    FILE *timeline = NULL;
    int rc = process_open(&process, scenario, err);
    rc = rc ? rc : fill_calibration(scenario, &result.calibration, err);
    process.spin = arguments->spin;
    if (rc == 0 && arguments->timeline) { /* only rank 0 writes, but all must know that there is one */
        timeline = options_open(process.rank == 0 ? arguments->timeline : "/dev/null", err);
        rc = timeline ? 0 : -EIO;
    }
    rc = rc ? rc : measure_all(arguments, &process, timeline, &result, err);
    if (rc == 0 && process.rank == 0)
        rc = report(arguments, &result, err);
    if (timeline)
        (void)fclose(timeline);
    bool speaks = process.rank == 0;
    process_close(&process);
    result_free(&result);
    if (rc < 0 && speaks)
        fprintf(stderr, "longhaul-rank: %s\n", err->text);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
    static const struct argp parser = {option_list, take, "SCENARIO", documentation, children, NULL, NULL};
    struct arguments arguments = {.options = {.steps = STEPS_DEFAULT}};
    struct scenario scenario = {0};
    struct err err = {""};
    int support, rank;
    options_setup();
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    int rc = scenario_load(arguments.scenario, arguments.sets.texts, arguments.sets.count, &scenario, &err);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &support);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rc == 0 && support < MPI_THREAD_SERIALIZED)
        rc = err_set(&err, ENOTSUP, "this MPI library has no MPI_THREAD_SERIALIZED");
    if (rc < 0 && rank == 0)
        fprintf(stderr, "longhaul-rank: %s\n", err.text);
    if (rc == 0)
        rc = run(&arguments, &scenario, &err);
    scenario_free(&scenario);
    MPI_Finalize();
    return err_exit_code(rc);
}
