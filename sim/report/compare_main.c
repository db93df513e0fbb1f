/* longhaul-compare: the simulator's prediction beside what real ranks take in the lab. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/options.h"
#include "configs/suggest.h"
#include "configs/units.h"
#include "sim/report/compare_run.h"

enum { VARIES_MAX = 4, NAMES_MAX = 64, OPTION_RTT = 256, OPTION_VARY, OPTION_STEPS, OPTION_STRATEGY, OPTION_TIMEOUT };

struct arguments {
    struct options_sets sets;
    const char *scenario, *json, *steps;
    double timeout_s;
    size_t vary_count, name_count;
    struct vary varies[VARIES_MAX];
    const char *names[NAMES_MAX];
};

static const char documentation[] =
    "Predicts a training step with the simulator, measures the same step on real ranks in the lab, and says for every "
    "communication strategy how far they are apart and in which part of the step.\v"
    "SCENARIO is a file or the name of a preset (longhaul config list). Both backends run it at the lab's scale "
    "(lab.hosts a site, bytes and rates divided by lab.divide, times left alone); where the scenario is larger, its "
    "full scale is predicted too.\n\n"
    "Examples:\n"
    "  longhaul compare lab-2x4\n"
    "  longhaul compare lab-2x4 --steps 9 --json errors.json\n"
    "  longhaul compare twin-1536 --rtt 1ms,5ms,21.3ms,50ms\n"
    "  longhaul compare mine.yaml --vary wan.rtt=5ms,20ms --vary wan.waves=1,4\n\n"
    "A step is split into compute, slow start, bandwidth and wait, the same for both. With several points a table "
    "shows the error of each strategy over what was varied. Without --json everything is for people; the file is "
    "longhaul.compare/1, described in sim/report/README.md.\n\n"
    "longhaul sim and longhaul lab run are started through the program longhaul beside this one. Exit code 0: done; 1: "
    "a backend failed; 2: the scenario or the command line is wrong; 77: the simulator or the lab is not available "
    "here; 130: interrupted.";

static const struct argp_option option_list[] = {
    {"json", 'j', "FILE", 0, "Write the comparison as JSON (longhaul.compare/1) to FILE; - prints it instead of tables",
     0},
    {"rtt", OPTION_RTT, "LIST", 0, "Short for --vary wan.rtt=LIST, such as 1ms,5ms", 0},
    {"vary", OPTION_VARY, "KEY=V1,V2,...", 0,
     "Compare at every one of these values; with several --vary at every combination", 0},
    {"steps", OPTION_STEPS, "N", 0, "Steps to measure of each strategy (what longhaul lab run chooses)", 0},
    {"strategy", OPTION_STRATEGY, "NAME", 0,
     "Show this strategy only; repeatable. The backends run all of them nevertheless", 0},
    {"timeout", OPTION_TIMEOUT, "DURATION", 0, "The most that one backend may take for one point, real time (no limit)",
     0},
    {0},
};

static void add_vary(struct arguments *arguments, const char *option, const char *text, struct argp_state *state)
{
    struct err err = {""};
    if (arguments->vary_count == VARIES_MAX)
        argp_error(state, "more than %d keys vary", VARIES_MAX);
    else if (vary_parse(text, &arguments->varies[arguments->vary_count], &err) < 0)
        argp_error(state, "%s %s", option, err.text);
    else
        arguments->vary_count++;
}

static void take_rtt(struct arguments *arguments, const char *list, struct argp_state *state)
{
    char *text = NULL;
    if (asprintf(&text, "wan.rtt=%s", list) < 0)
        argp_failure(state, EXIT_FAILED, ENOMEM, "--rtt");
    add_vary(arguments, "--rtt", text, state);
    free(text);
}

static void take_varied(struct arguments *arguments, const char *text, struct argp_state *state)
{
    add_vary(arguments, "--vary", text, state);
}

static void take_steps(struct arguments *arguments, const char *text, struct argp_state *state)
{
    char *end;
    errno = 0;
    long steps = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text || steps < 1)
        argp_error(state, "--steps %s: it is a whole number, 1 or more", text);
    arguments->steps = text;
}

static void take_strategy(struct arguments *arguments, const char *name, struct argp_state *state)
{
    if (arguments->name_count == NAMES_MAX)
        argp_error(state, "more than %d --strategy", NAMES_MAX);
    else
        arguments->names[arguments->name_count++] = name;
}

static void take_timeout(struct arguments *arguments, const char *text, struct argp_state *state)
{
    struct err err = {""};
    if (units_parse(text, DIM_TIME, &arguments->timeout_s, &err))
        argp_error(state, "--timeout %s: %s", text, err.text);
    else if (arguments->timeout_s <= 0)
        argp_error(state, "--timeout is more than 0; leave it out for none");
}

static void take_scenario(struct arguments *arguments, const char *text, struct argp_state *state)
{
    if (arguments->scenario != NULL)
        argp_error(state, "more than one scenario: %s and %s", arguments->scenario, text);
    arguments->scenario = text;
}

static void take_json(struct arguments *arguments, const char *path, struct argp_state *state)
{
    (void)state;
    arguments->json = path;
}

static void need_scenario(struct arguments *arguments, const char *nothing, struct argp_state *state)
{
    (void)arguments;
    (void)nothing;
    argp_error(state, "needs a scenario: a file, or a name such as lab-2x4");
}

static void give_sets(struct arguments *arguments, const char *nothing, struct argp_state *state)
{
    (void)nothing;
    state->child_inputs[0] = &arguments->sets;
}

static const struct {
    int key;
    void (*take)(struct arguments *arguments, const char *text, struct argp_state *state);
} takers[] = {
    {ARGP_KEY_INIT, give_sets}, {ARGP_KEY_ARG, take_scenario},    {ARGP_KEY_NO_ARGS, need_scenario},
    {'j', take_json},           {OPTION_RTT, take_rtt},           {OPTION_VARY, take_varied},
    {OPTION_STEPS, take_steps}, {OPTION_STRATEGY, take_strategy}, {OPTION_TIMEOUT, take_timeout},
};

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
        if (takers[i].key == key) {
            takers[i].take(state->input, argument, state);
            return 0;
        }
    }
    return ARGP_ERR_UNKNOWN;
}

/* A strategy that no scenario has is told before anything runs. */
static int check_names(const struct arguments *arguments, const struct scenario *scenario, struct err *err)
{
    char phrase[128];
    for (size_t i = 0; i < arguments->name_count; i++) {
        bool known = false;
        for (size_t j = 0; j < scenario->strategy_count; j++)
            known = known || strcmp(scenario->strategies[j].name, arguments->names[i]) == 0;
        if (!known)
            return err_set(err, EINVAL, "--strategy %s: the scenario has no strategy of that name%s",
                           arguments->names[i],
                           suggest_phrase(arguments->names[i], scenario->strategies, scenario->strategy_count,
                                          sizeof *scenario->strategies, phrase, sizeof phrase));
    }
    return 0;
}

static int write_json(const char *path, const struct compare *compare, const struct compare_summary *summary,
                      struct err *err)
{
    json_t *json = compare_to_json(compare, summary);
    if (json == NULL)
        return err_set(err, ENOMEM, "out of memory while writing the comparison as JSON");
    FILE *out = options_open(path, err);
    int rc = out != NULL ? 0 : -EIO;
    if (out != NULL) {
        bool written = json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 && fputc('\n', out) != EOF;
        rc = options_close(out, path, err);
        rc = rc == 0 && !written ? err_set(err, EIO, "%s: writing failed", path) : rc;
    }
    json_decref(json);
    return rc;
}

static int report(const struct arguments *arguments, const struct compare *compare, struct err *err)
{
    struct compare_summary summary;
    int rc = compare_summarise(compare, &summary, err);
    bool to_stdout = arguments->json != NULL && strcmp(arguments->json, "-") == 0;
    if (rc == 0 && !to_stdout) {
        compare_print(compare, &summary, stdout, options_colour(stdout), options_width(stdout));
        rc = options_close(stdout, "-", err);
    }
    return rc == 0 && arguments->json != NULL ? write_json(arguments->json, compare, &summary, err) : rc;
}

static int compare(const struct arguments *arguments, struct compare *made, int *signal, struct err *err)
{
    const struct compare_request request = {.scenario = arguments->scenario,
                                            .set_count = arguments->sets.count,
                                            .sets = arguments->sets.texts,
                                            .steps = arguments->steps,
                                            .timeout_s = arguments->timeout_s};
    int rc = compare_points(made, request.scenario, request.sets, request.set_count, err);
    rc = rc ? rc : check_names(arguments, &made->points[0].full, err);
    rc = rc ? rc : compare_run(made, &request, signal, err);
    for (size_t i = 0; rc == 0 && i < made->point_count; i++)
        rc = compare_rows(&made->points[i], arguments->names, arguments->name_count, err);
    return rc ? rc : report(arguments, made, err);
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.timeout_s = INFINITY};
    const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
    const struct argp argp = {option_list, take_argument, "SCENARIO", documentation, children, NULL, NULL};
    struct err err = {""};
    int signal = 0;
    options_setup();
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    struct compare made = {.vary_count = arguments.vary_count, .varies = arguments.varies};
    int rc = compare(&arguments, &made, &signal, &err);
    compare_free(&made);
    for (size_t i = 0; i < arguments.vary_count; i++)
        vary_free(&arguments.varies[i]);
    if (rc == -EINTR)
        return 128 + signal;
    if (rc < 0)
        fprintf(stderr, "longhaul-compare: %s\n", err.text);
    return err_exit_code(rc);
}
