/* longhaul-collective: one collective over all ranks of a scenario, alone on its network, by size: nccl-tests,
 * predicted. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "configs/options.h"
#include "configs/suggest.h"
#include "configs/units.h"
#include "sim/engine/collective.h"

static const struct collective_op ops[] = {
    {"allreduce", BENCH_ALL_REDUCE},
    {"reducescatter", BENCH_REDUCE_SCATTER},
    {"allgather", BENCH_ALL_GATHER},
    {"sendrecv", BENCH_SEND_RECEIVE},
};
static const struct collective_algorithm algorithms[] = {
    {"ring", ALLREDUCE_RING, ORDER_CONTIGUOUS},
    {"interleaved", ALLREDUCE_RING, ORDER_INTERLEAVED},
    {"hierarchical", ALLREDUCE_HIERARCHICAL, ORDER_CONTIGUOUS},
};
enum { RING, INTERLEAVED, HIERARCHICAL };
/* There is only one way to send a message. */
static const struct collective_algorithm direct = {"direct", ALLREDUCE_RING, ORDER_CONTIGUOUS};

enum { OP_COUNT = sizeof ops / sizeof ops[0], ALGORITHM_COUNT = sizeof algorithms / sizeof algorithms[0] };
#define SIZE_MOST 1e18 /* bytes; more is a slip of the pen */

struct arguments {
    struct options_sets sets;
    const char *scenario, *op, *size, *algorithm, *skew, *json;
};

/* ---- what the options say */

/* Position of the row of this name in a table whose rows begin with their name, or -1 with a message. */
static int find_name(const char *option, const char *name, const void *table, size_t count, size_t width,
                     struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, *(const char *const *)((const char *)table + i * width)))
            return (int)i;
    char phrase[128];
    suggest_phrase(name, table, count, width, phrase, sizeof phrase);
    return err_set(err, EINVAL, "%s: '%.60s' is unknown%s", option, name, phrase);
}

static int parse_size(const char *text, uint64_t *bytes, struct err *err)
{
    double value;
    int rc = units_parse(text, DIM_BYTES, &value, err);
    if (rc == 0 && !(value >= 1 && value <= SIZE_MOST))
        rc = err_set(err, EINVAL, "'%.60s' is out of range: 1 B to 1000 PB", text);
    if (rc < 0)
        return rc;
    *bytes = (uint64_t)llround(value);
    return 0;
}

static int add_size(struct collective_question *question, uint64_t bytes, struct err *err)
{
    if (question->size_count == COLLECTIVE_SIZES_MAX)
        return err_set(err, EINVAL, "more than %d sizes", COLLECTIVE_SIZES_MAX);
    question->sizes[question->size_count++] = bytes;
    return 0;
}

/* "1MiB", or "1KiB..1GiB": doubling. Cuts item. */
static int add_sizes(struct collective_question *question, char *item, struct err *err)
{
    char *dots = strstr(item, "..");
    uint64_t first, last;
    if (dots)
        *dots = '\0';
    int rc = parse_size(item, &first, err);
    last = first;
    if (rc == 0 && dots)
        rc = parse_size(dots + 2, &last, err);
    if (rc == 0 && last < first)
        rc = err_set(err, EINVAL, "the range ends below its start: write 1KiB..1GiB");
    for (; rc == 0 && first <= last; first *= 2)
        rc = add_size(question, first, err);
    return rc;
}

static int add_algorithm(struct collective_question *question, char *item, struct err *err)
{
    int i = find_name("--algorithm", item, algorithms, ALGORITHM_COUNT, sizeof algorithms[0], err);
    if (i < 0)
        return i;
    for (size_t k = 0; k < question->algorithm_count; k++)
        if (question->algorithms[k] == &algorithms[i])
            return err_set(err, EINVAL, "--algorithm: '%s' stands there twice", item);
    question->algorithms[question->algorithm_count++] = &algorithms[i];
    return 0;
}

/* Calls take for every item of a list separated by commas. */
static int each_item(const char *list, struct collective_question *question,
                     int (*take)(struct collective_question *, char *, struct err *), struct err *err)
{
    char *copy = strdup(list), *rest = copy, *item;
    int rc = copy ? 0 : err_set(err, ENOMEM, "out of memory");
    while (rc == 0 && (item = strsep(&rest, ",")))
        rc = take(question, item, err);
    free(copy);
    return rc;
}

static bool sites_are_equal(const struct scenario *scenario)
{
    for (size_t s = 1; s < scenario->site_count; s++)
        if (site_gpus(&scenario->sites[s]) != site_gpus(&scenario->sites[0]))
            return false;
    return true;
}

static int choose_algorithms(struct collective_question *question, const char *list, struct err *err)
{
    bool sends = question->op->op == BENCH_SEND_RECEIVE;
    if (list && sends)
        return err_set(err, EINVAL, "--algorithm: sendrecv has only one way; leave it out");
    if (list)
        return each_item(list, question, add_algorithm, err);
    question->algorithms[question->algorithm_count++] = sends ? &direct : &algorithms[RING];
    if (question->op->op == BENCH_ALL_REDUCE && question->scenario->site_count > 1 &&
        sites_are_equal(question->scenario))
        question->algorithms[question->algorithm_count++] = &algorithms[HIERARCHICAL];
    return 0;
}

static int understand(const struct arguments *arguments, struct collective_question *question, struct err *err)
{
    int op = find_name("--op", arguments->op ? arguments->op : "allreduce", ops, OP_COUNT, sizeof ops[0], err);
    if (op < 0)
        return op;
    question->op = &ops[op];
    int rc = each_item(arguments->size ? arguments->size : "1KiB..1GiB", question, add_sizes, err);
    if (rc < 0)
        err_prefix(err, "--size");
    if (rc == 0 && arguments->skew) {
        rc = units_parse(arguments->skew, DIM_TIME, &question->skew_s, err);
        if (rc < 0)
            err_prefix(err, "--skew");
    }
    return rc ? rc : choose_algorithms(question, arguments->algorithm, err);
}

/* ---- progress: only for somebody who watches, and only when there is something to wait for */

struct progress {
    bool shown, watched;
    size_t done, count;
    struct timespec start;
};

static void show_progress(void *context)
{
    struct progress *progress = context;
    struct timespec now;
    progress->done++;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!progress->watched || now.tv_sec - progress->start.tv_sec <= 2)
        return;
    progress->shown = true;
    fprintf(stderr, "\r%zu of %zu runs", progress->done, progress->count);
}

static void end_progress(const struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

/* ---- the answer */

static int write_answer(const struct arguments *arguments, const struct collective_question *question,
                        const struct collective_row *rows, struct err *err)
{
    if (!arguments->json || strcmp(arguments->json, "-")) {
        collective_print(question, rows, stdout, options_colour(stdout), options_width(stdout));
        if (fflush(stdout))
            return err_set(err, EIO, "cannot write to standard output");
    }
    if (!arguments->json)
        return 0;
    FILE *out = options_open(arguments->json, err);
    if (!out)
        return -EIO;
    int rc = collective_dump_json(question, rows, out, err), closed = options_close(out, arguments->json, err);
    return rc ? rc : closed;
}

static int answer(const struct arguments *arguments, struct err *err)
{
    struct scenario scenario = {0};
    struct collective_row *rows = NULL;
    struct collective_question question = {.scenario = &scenario};
    int rc = scenario_load(arguments->scenario, arguments->sets.texts, arguments->sets.count, &scenario, err);
    rc = rc ? rc : understand(arguments, &question, err);
    size_t count = question.size_count * question.algorithm_count;
    struct progress progress = {.watched = isatty(STDERR_FILENO), .count = count};
    clock_gettime(CLOCK_MONOTONIC, &progress.start);
    rc = rc ? rc : collective_run(&question, show_progress, &progress, &rows, err);
    end_progress(&progress);
    rc = rc ? rc : write_answer(arguments, &question, rows, err);
    collective_free(rows, count);
    scenario_free(&scenario);
    return rc;
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &arguments->sets;
    else if (key == 'o')
        arguments->op = argument;
    else if (key == 's')
        arguments->size = argument;
    else if (key == 'a')
        arguments->algorithm = argument;
    else if (key == 'k')
        arguments->skew = argument;
    else if (key == 'j')
        arguments->json = argument ? argument : "-";
    else if (key == ARGP_KEY_END && !arguments->scenario)
        argp_error(state, "needs a SCENARIO, a file or a shipped one such as twin-1536");
    else if (key == ARGP_KEY_ARG && !arguments->scenario)
        arguments->scenario = argument;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "one SCENARIO at a time, and '%s' is another", argument);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option options[] = {
    {"op", 'o', "OP", 0,
     "allreduce (default), reducescatter, allgather, or sendrecv: one message from the first rank to "
     "the first of the last site",
     0},
    {"size", 's', "SIZES", 0, "sizes with units, separated by commas; A..B doubles from A to B (default 1KiB..1GiB)",
     0},
    {"algorithm", 'a', "LIST", 0,
     "ring (site by site), interleaved (a ring that changes site at every hop), "
     "hierarchical (allreduce only); default ring, with hierarchical for an allreduce over "
     "several equal sites",
     0},
    {"skew", 'k', "TIME", 0, "ranks start at seeded moments within this time instead of together", 0},
    {"json", 'j', "FILE", 0, "write JSON (longhaul.collective/1) to FILE, or to standard output with -", 0},
    {0}};
static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
static const struct argp parser = {
    .options = options,
    .parser = take_argument,
    .children = children,
    .args_doc = "SCENARIO",
    .doc =
        "Predicts one collective over all ranks of a scenario, alone on its network, by size, as nccl-tests measures "
        "it. A rank is a tensor-parallel group; all of them form one data-parallel group.\v"
        "SCENARIO is a YAML file or the name of a shipped scenario (longhaul config list).\n\n"
        "Example: from which size on does the hierarchical all-reduce win, and with four channels?\n\n"
        "  longhaul collective twin-1536 --size 1MiB..16GiB\n"
        "  longhaul collective twin-1536 --size 1GiB --set transport.channels=4\n\n"
        "Exit status: 0 fine, 1 a run failed or broke an invariant, 2 wrong usage or a wrong scenario.",
};

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct err err = {""};
    options_setup();
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    int rc = answer(&arguments, &err);
    if (err.text[0])
        fprintf(stderr, "longhaul-collective: %s\n", err.text);
    return err_exit_code(rc);
}
