/* longhaul-lab run and shell. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include "configs/options.h"
#include "configs/units.h"
#include "emu/lab/kernel.h"
#include "emu/lab/lab.h"
#include "emu/lab/prepare.h"
#include "emu/lab/pump.h"
#include "emu/lab/strategies.h"

enum { OPTION_REAL_TIME = 256, OPTION_KERNEL, OPTION_TIMEOUT, OPTION_STRATEGIES, LINKS_SHOWN = 3 };
#define MEMORY_DEFAULT 2e9
#define MEMORY_LEAST 256e6
#define STRATEGIES_TIMEOUT_S 600

struct arguments {
    struct options_sets sets;
    struct request request;
    const char *kernel;
    struct strategies strategies;
    bool shell, real_time, quiet, runs_strategies;
    double memory_bytes, timeout_s; /* 0: not given */
};

/* ---- command line */

static double quantity(struct argp_state *state, const char *option, const char *text, enum dimension dimension)
{
    double value = 0;
    struct err err = {""};
    if (units_parse(text, dimension, &value, &err))
        argp_error(state, "%s %s: %s", option, text, err.text);
    return value;
}

/* Scenario first; the rest is the command, options of its own included. */
static void take_word(struct arguments *arguments, char *word, struct argp_state *state)
{
    if (!arguments->request.scenario) {
        arguments->request.scenario = word;
    } else if (arguments->shell) {
        argp_error(state, "'%s' is one word too many; `longhaul lab run` runs a command", word);
    } else {
        arguments->request.command = &state->argv[state->next - 1];
        state->next = state->argc;
    }
}

static bool is_measuring(const struct strategies *strategies)
{
    return strategies->json || strategies->timeline || strategies->strategy || strategies->steps;
}

static bool both_printed(const struct strategies *strategies)
{
    return strategies->json && strategies->timeline && !strcmp(strategies->json, "-") &&
           !strcmp(strategies->timeline, "-");
}

static void check(const struct arguments *arguments, struct argp_state *state)
{
    if (!arguments->request.scenario)
        argp_error(state, "needs a scenario: a file, or a name such as lab-2x4");
    else if (arguments->runs_strategies && (arguments->request.command || arguments->request.host))
        argp_error(state, "--strategies is what runs, on all hosts: no command and no --on beside it");
    else if (!arguments->runs_strategies && is_measuring(&arguments->strategies))
        argp_error(state, "--json, --timeline, --strategy and --steps are of --strategies");
    else if (both_printed(&arguments->strategies))
        argp_error(state, "--json - and --timeline -: only one of them can be printed");
    else if (!arguments->shell && !arguments->runs_strategies && !arguments->request.command)
        argp_error(state, "needs a command after the scenario, like: run lab-2x4 -- ping -c 3 east-0; or --strategies");
    else if (arguments->memory_bytes != 0 && (arguments->memory_bytes < MEMORY_LEAST || arguments->memory_bytes > 1e12))
        argp_error(state, "--memory is from 256 MB to 1 TB");
}

static error_t take(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->sets;
        return 0;
    case 'o':
        arguments->request.host = text;
        return 0;
    case 'w':
        arguments->request.writable = text;
        return 0;
    case 'q':
        arguments->quiet = true;
        return 0;
    case 'm':
        arguments->memory_bytes = quantity(state, "--memory", text, DIM_BYTES);
        return 0;
    case OPTION_STRATEGIES:
        arguments->runs_strategies = true;
        return 0;
    case 'j':
        arguments->strategies.json = text;
        return 0;
    case 't':
        arguments->strategies.timeline = text;
        return 0;
    case 's':
        arguments->strategies.strategy = text;
        return 0;
    case 'n':
        arguments->strategies.steps = text;
        return 0;
    case OPTION_REAL_TIME:
        arguments->real_time = true;
        return 0;
    case OPTION_KERNEL:
        arguments->kernel = text;
        return 0;
    case OPTION_TIMEOUT:
        arguments->timeout_s = quantity(state, "--timeout", text, DIM_TIME);
        if (arguments->timeout_s <= 0)
            argp_error(state, "--timeout is more than 0; leave it out for none");
        return 0;
    case ARGP_KEY_ARG:
        take_word(arguments, text, state);
        return 0;
    case ARGP_KEY_END:
        check(arguments, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

#define COMMON_OPTIONS                                                                                                 \
    {"on", 'o', "HOST", 0, "Host to run on (default: the first of the first site)", 0},                                \
        {"writable",                                                                                                   \
         'w',                                                                                                          \
         "DIR",                                                                                                        \
         0,                                                                                                            \
         "The one folder that can be written inside (default: the working directory, unless it holds the home "        \
         "folder, is right below /, or the system's)",                                                                 \
         0},                                                                                                           \
        {"memory", 'm', "SIZE", 0, "Memory of the lab (default: 2 GB)", 0},                                            \
        {"kernel", OPTION_KERNEL, "FILE", 0, "Kernel to start (default: the one that `longhaul lab build` made)", 0},  \
    {                                                                                                                  \
        "quiet", 'q', NULL, 0, "Do not say what the lab is made of", 0                                                 \
    }

static const struct argp_option run_options[] = {
    COMMON_OPTIONS,
    {"real-time", OPTION_REAL_TIME, NULL, 0, "Let time pass as outside, and computation cost what it costs", 0},
    {"timeout", OPTION_TIMEOUT, "DURATION", 0,
     "End it after this much time outside, with exit status 1 (default: none; with --strategies 10 min)", 0},
    {NULL, 0, NULL, 0, "Instead of a command:", 1},
    {"strategies", OPTION_STRATEGIES, NULL, 0,
     "Measure the scenario's training step, strategy by strategy, with one MPI rank a host", 1},
    {"json", 'j', "FILE", 0, "Write its result as JSON (longhaul.result/1) to FILE; - prints it instead of the table",
     1},
    {"timeline", 't', "FILE", 0, "Write the last measured step as a trace for Perfetto", 1},
    {"strategy", 's', "NAME", 0, "Only this strategy", 1},
    {"steps", 'n', "N", 0, "Steps to measure; one more comes before them (default: 3)", 1},
    {NULL, 0, NULL, 0, "Help:", -1},
    {0}};
static const struct argp_option shell_options[] = {COMMON_OPTIONS, {0}};
static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};

static const struct argp run_parser = {
    .options = run_options,
    .parser = take,
    .children = children,
    .args_doc = "SCENARIO -- COMMAND [ARGUMENTS]\nSCENARIO --strategies",
    .doc =
        "Runs a command, or the scenario's strategies on real MPI ranks, in a lab: a Linux of its own whose network is "
        "the scenario's sites, routers and WAN links. "
        "Needs "
        "neither root nor netem.\n\n"
        "Time inside is virtual: the clock stands still while any process runs and jumps when all of them sleep. So a "
        "21.3 ms link is 21.3 ms to the microsecond on any machine, and the same in every run; computation costs no "
        "time, a sleep costs what it says, and a process that polls without sleeping stops the clock. Ranks of an MPI "
        "program may: their polls wait, and MPI_Wtime is the virtual clock (other uses of the processor's counter are "
        "not).\v"
        "Inside: every host is a network namespace (`ip netns exec west-1 ...`), names are in /etc/hosts, the root "
        "file system is the host's, read-only but for one folder; /run, /dev/shm and (unless the lab needs what lies "
        "there) /tmp are empty and the lab's own, else TMPDIR, TMP and TEMP are /run/tmp. LONGHAUL_SCENARIO names the "
        "scenario as "
        "built (rates divided by lab.divide), LONGHAUL_HOST the host. TCP buffers grow to 128 MiB, MTU is 1500 byte. "
        "longhaul-emu shapes the links, netem the NICs. Open MPI is set up to run one rank a host over TCP: "
        "OMPI_MCA_... "
        "where you have not set them, a hostfile in /run/longhaul, and there also `rsh HOST COMMAND`. Programs built "
        "with address sanitizer do not run inside. "
        "Standard input is empty. The lab ends with the command, and with whatever that left running; Ctrl-C ends it "
        "at once.\n\n"
        "  longhaul lab run lab-2x4 -- ping -c 5 east-0\n"
        "  longhaul lab run lab-2x4 --on east-1 --set wan.rtt=50ms -- ./my-test --peer west-0\n"
        "  longhaul lab run twin-1536 --real-time --timeout 60s -- iperf3 -c iad-0\n"
        "  longhaul lab run lab-2x4 -- mpirun ./my-mpi-program\n"
        "  longhaul lab run lab-2x4 --strategies --json measured.json\n\n"
        "Exit status: the command's own (128 + N when signal N ended it; 127 when it is not found); 1 when the lab "
        "failed or the time was up, 2 wrong usage or a wrong scenario, 77 when the lab cannot run here.",
};
static const struct argp shell_parser = {
    .options = shell_options,
    .parser = take,
    .children = children,
    .args_doc = "SCENARIO",
    .doc =
        "An interactive shell ($SHELL) on a host of the lab, in real time: a virtual clock would race ahead while you "
        "think. Everything else is as in `longhaul lab run`.\v"
        "  longhaul lab shell lab-2x4 --on west-1\n"
        "  west-1# ping east-0\n\n"
        "Exit status: the shell's own; 1 when the lab failed, 2 wrong usage or a wrong scenario, 77 when the lab "
        "cannot run here.",
};

/* ---- */

static void describe(const struct topology *topology, bool real_time)
{
    const struct scenario *scenario = topology->scenario;
    fprintf(stderr, "lab: %zu site%s, %zu hosts", scenario->site_count, scenario->site_count == 1 ? "" : "s",
            topology->host_count);
    for (size_t i = 0; i < scenario->wan_count && i < LINKS_SHOWN; i++) {
        const struct wan_link *wan = &scenario->wan[i];
        char rtt[32], rate[32];
        double bit_per_s = (double)wan->waves * wan->wave_bit_per_s;
        fprintf(stderr, "; %s-%s RTT %s, %s", scenario->sites[wan->between[0]].name,
                scenario->sites[wan->between[1]].name, units_format(wan->rtt_s, DIM_TIME, 6, rtt, sizeof rtt),
                isfinite(bit_per_s) ? units_format(bit_per_s, DIM_RATE, 4, rate, sizeof rate) : "no rate");
    }
    if (scenario->wan_count > LINKS_SHOWN)
        fprintf(stderr, "; %zu links more", scenario->wan_count - LINKS_SHOWN);
    if (scenario->scale > 1)
        fprintf(stderr, " (bytes and rates are 1/%ld)", scenario->scale);
    fprintf(stderr, "; %s\n", real_time ? "real time" : "virtual time: computing costs none, sleeping and sending do");
}

/* What a program computes is most of what its user expects to see. */
static void describe_mpi(const char *command)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun"};
    const char *name = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!strcmp(name, launchers[i]))
            fputs("lab: what its ranks compute costs no time, unless they sleep for as long as it takes; with "
                  "--real-time it costs what it costs here\n",
                  stderr);
}

/* The user's terminal passes every byte while a shell of the lab runs on it. */
static int raw_terminal(struct termios *before, struct spec *spec, struct err *err)
{
    struct winsize size = {0};
    struct termios raw;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, before))
        return err_set(err, EINVAL,
                       "standard input is no terminal; `longhaul lab run SCENARIO -- sh -c '...'` needs none");
    (void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
    spec->rows = size.ws_row, spec->columns = size.ws_col;
    raw = *before;
    cfmakeraw(&raw);
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) ? err_set(err, errno, "no terminal: %s", strerror(errno)) : 0;
}

static void tell_terminals(struct spec *spec)
{
    struct winsize size = {0};
    for (int i = 0; i < 2; i++) {
        spec->terminal[i] = isatty(STDOUT_FILENO + i);
        if (spec->terminal[i] && !ioctl(STDOUT_FILENO + i, TIOCGWINSZ, &size))
            spec->rows = size.ws_row, spec->columns = size.ws_col;
    }
}

/* Runs it; *code is the command's own. */
static int run_lab(struct arguments *arguments, const struct topology *topology, struct spec *spec, int *code,
                   struct err *err)
{
    char kernel[PATH_MAX];
    struct termios before;
    struct machine machine;
    struct pump_options pump = {-1, {STDOUT_FILENO, STDERR_FILENO}, arguments->timeout_s, NULL, &arguments->strategies};
    int rc = kernel_find(arguments->kernel, kernel, err);
    spec->shell = arguments->shell;
    spec->real_time = arguments->real_time || arguments->shell;
    if (!rc && !arguments->quiet) {
        describe(topology, spec->real_time);
        if (!spec->real_time && !arguments->runs_strategies)
            describe_mpi(spec->argv[0]);
    }
    if (!rc && spec->shell)
        rc = raw_terminal(&before, spec, err);
    else if (!arguments->runs_strategies)
        tell_terminals(spec);
    if (rc)
        return rc;
    struct machine_options options = {.kernel = kernel,
                                      .spec = spec,
                                      .memory_bytes = arguments->memory_bytes,
                                      .terminal = spec->shell ? STDIN_FILENO : -1,
                                      .settings = &before};
    if (spec->shell)
        pump.input = STDIN_FILENO;
    if (arguments->runs_strategies) {
        memcpy(pump.output, arguments->strategies.output, sizeof pump.output);
        pump.tick = isatty(STDERR_FILENO) && !arguments->quiet ? strategies_tick : NULL;
    }
    rc = machine_start(&options, &machine, err);
    rc = rc ? rc : pump_run(&machine, &pump, code, err);
    if (spec->shell)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return rc;
}

static int run_command(struct arguments *arguments, struct err *err)
{
    struct scenario scenario = {0};
    struct topology topology = {0};
    struct spec spec = {0};
    int code = EXIT_FAILED;
    double needed_bytes = MEMORY_DEFAULT;
    int rc = prepare(&arguments->request, &scenario, &topology, &spec, err);
    if (!rc && arguments->runs_strategies)
        rc = strategies_memory(&scenario, &needed_bytes, err);
    if (arguments->memory_bytes == 0)
        arguments->memory_bytes = fmax(MEMORY_DEFAULT, needed_bytes);
    rc = rc ? rc : run_lab(arguments, &topology, &spec, &code, err);
    if (!rc && arguments->runs_strategies)
        rc = strategies_report(&arguments->strategies, &scenario, code, err);
    spec_free(&spec);
    topology_free(&topology);
    scenario_free(&scenario);
    return rc == 0 || rc == -EINTR ? code : rc;
}

static int run_strategies(struct arguments *arguments, struct err *err)
{
    if (arguments->timeout_s == 0)
        arguments->timeout_s = STRATEGIES_TIMEOUT_S;
    int rc = strategies_open(&arguments->strategies, isatty(STDERR_FILENO) && !arguments->quiet, err);
    rc = rc ? rc : strategies_efficiency(&arguments->request, &arguments->request.kernel_efficiency, err);
    arguments->request.command = arguments->strategies.words;
    rc = rc ? rc : run_command(arguments, err);
    strategies_close(&arguments->strategies);
    return rc;
}

static int run_arguments(struct arguments *arguments)
{
    struct err err = {""};
    arguments->request.sets = arguments->sets.texts;
    arguments->request.set_count = arguments->sets.count;
    int rc = arguments->runs_strategies ? run_strategies(arguments, &err) : run_command(arguments, &err);
    if (rc < 0)
        fprintf(stderr, "longhaul lab: %s\n", err.text);
    return rc < 0 ? err_exit_code(rc) : rc;
}

int verb_run(int argc, char **argv)
{
    struct arguments arguments = {0};
    argp_parse(&run_parser, argc, argv, ARGP_IN_ORDER, NULL, &arguments);
    return run_arguments(&arguments);
}

int verb_shell(int argc, char **argv)
{
    char *shell = getenv("SHELL"), fallback[] = "/bin/sh";
    char *command[] = {shell && *shell == '/' && access(shell, X_OK) == 0 ? shell : fallback, NULL};
    struct arguments arguments = {.shell = true};
    argp_parse(&shell_parser, argc, argv, ARGP_IN_ORDER, NULL, &arguments);
    arguments.request.command = command;
    return run_arguments(&arguments);
}
