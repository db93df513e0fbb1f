/* longhaul-platform: a scenario as a SimGrid platform, for other SimGrid programs and for smpirun. */
#include <errno.h>

#include "configs/options.h"
#include "sim/engine/platform.h"

struct arguments {
    struct options_sets sets;
    const char *scenario, *output;
};

static int write_to(const char *path, const struct layout *layout, struct err *err)
{
    FILE *out = options_open(path, err);
    if (!out)
        return -EIO;
    int rc = platform_write(layout, &(struct ideal){0}, true, out, err), closed = options_close(out, path, err);
    return rc ? rc : closed;
}

static int print_platform(const struct arguments *arguments, struct err *err)
{
    struct scenario scenario = {0};
    struct layout layout = {0};
    int rc = scenario_load(arguments->scenario, arguments->sets.texts, arguments->sets.count, &scenario, err);
    rc = rc ? rc : layout_init(&layout, &scenario, false, 1, err);
    if (rc == 0) {
        rc = write_to(arguments->output ? arguments->output : "-", &layout, err);
        layout_free(&layout);
    }
    scenario_free(&scenario);
    return rc;
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &arguments->sets;
    else if (key == 'o')
        arguments->output = argument;
    else if (key == ARGP_KEY_END && !arguments->scenario)
        argp_error(state, "needs a SCENARIO, a file or a shipped one such as lab-2x4");
    else if (key == ARGP_KEY_ARG && !arguments->scenario)
        arguments->scenario = argument;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "one SCENARIO at a time, and '%s' is another", argument);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option options[] = {{"output", 'o', "FILE", 0, "write to FILE instead of standard output", 0},
                                             {0}};
static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
static const struct argp parser = {
    .options = options,
    .parser = take_argument,
    .children = children,
    .args_doc = "SCENARIO",
    .doc =
        "Prints a scenario as a SimGrid platform (XML 4.1, latencies in the links): a host per rank, named "
        "SITE-NUMBER, "
        "a zone per site, a duplex link per WAN link.\v"
        "SCENARIO is a YAML file or the name of a shipped scenario (longhaul config list).\n\n"
        "Example: an MPI program on the first two hosts of each site. The options make links behave as in longhaul: "
        "SimGrid's own defaults multiply latencies by 13 and cap a flow at 4 MiB per round trip, and SMPI's factors "
        "change rates and latencies again. What still differs: flows that share a link share it by round trip time.\n\n"
        "  longhaul platform lab-2x4 -o lab.xml\n"
        "  printf '%s\\n' west-0 west-1 east-0 east-1 > hosts\n"
        "  smpicc -o program program.c\n"
        "  smpirun -platform lab.xml -hostfile hosts -np 4 --cfg=network/model:CM02 \\\n"
        "    --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:no --cfg=smpi/bw-factor:1 \\\n"
        "    --cfg=smpi/lat-factor:1 ./program\n\n"
        "Exit status: 0 fine, 1 failed, 2 wrong usage or a wrong scenario.",
};

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct err err = {""};
    options_setup();
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    int rc = print_platform(&arguments, &err);
    if (err.text[0])
        fprintf(stderr, "longhaul-platform: %s\n", err.text);
    return err_exit_code(rc);
}
