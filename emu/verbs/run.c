/* longhaul-emu run: a training step on a cluster whose links are shaped for as long as it takes. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "configs/options.h"
#include "configs/scenario.h"
#include "configs/units.h"
#include "emu/verbs/verbs.h"
#include "sim/report/child.h"

#define TIMEOUT_S 600
#define SPARE_S 300 /* the shape outlives the deadline by this, should nobody be left to take it away */
#define SLOW_S 2

enum { WORDS_MAX = 400, KEY_RSH = 256, KEY_TIMEOUT, KEY_SPIN };

struct arguments {
    struct options_sets sets;
    const char *scenario, *hosts, *rsh, *json, *timeline, *strategy, *steps;
    bool spin;
    double timeout_s;
};

struct cluster {
    const struct arguments *arguments;
    size_t count, shaped; /* hosts; those that may be shaped, from the first on */
    char **hosts;
    size_t site_count, *site_first; /* [site]: its first host */
    const char *doing;
    time_t begin;
    int signal;
};

/* ---- command line */

static error_t take(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    struct err err = {""};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->sets;
        return 0;
    case 'H':
        arguments->hosts = text;
        return 0;
    case KEY_RSH:
        arguments->rsh = text;
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
        arguments->steps = text;
        return 0;
    case KEY_SPIN:
        arguments->spin = true;
        return 0;
    case KEY_TIMEOUT:
        if (units_parse(text, DIM_TIME, &arguments->timeout_s, &err) || !(arguments->timeout_s > 0))
            argp_error(state, "--timeout %s: %s", text, err.text[0] ? err.text : "it is more than 0");
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->scenario)
            argp_error(state, "more than one scenario: %s and %s", arguments->scenario, text);
        arguments->scenario = text;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->scenario || !arguments->hosts)
            argp_error(state, "needs a scenario and --hosts FILE, like: run mine.yaml --hosts hosts");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option option_list[] = {
    {"hosts", 'H', "FILE", 0, "Hosts as Open MPI's hostfile has them, a line each, site after site", 0},
    {"rsh", KEY_RSH, "COMMAND", 0, "How to run a command on a host (default: ssh -o BatchMode=yes)", 0},
    {"timeout", KEY_TIMEOUT, "DURATION", 0, "End the ranks after this, with exit status 1 (default: 10 min)", 0},
    {"strategy", 's', "NAME", 0, "Only this strategy", 0},
    {"steps", 'n', "N", 0, "Steps to measure; one more comes before them (default: 3)", 0},
    {"spin", KEY_SPIN, NULL, 0, "Compute by spinning instead of sleeping", 0},
    {"json", 'j', "FILE", 0, "Write the result as JSON (longhaul.result/1) to FILE; - prints it instead of the table",
     0},
    {"timeline", 't', "FILE", 0, "Write the last measured step as a trace for Perfetto, on the first host", 0},
    {0},
};
static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
static const struct argp parser = {
    .options = option_list,
    .parser = take,
    .args_doc = "SCENARIO --hosts FILE",
    .children = children,
    .doc =
        "Shapes the links between the sites on all hosts (longhaul-emu apply), measures them (verify), runs the "
        "scenario's training step there, one rank a host (mpirun longhaul-rank), and clears all hosts, whatever "
        "happens.\v"
        "The scenario says under emu: which addresses each site has. It, longhaul-emu and longhaul-rank are at the "
        "same path, or on PATH, on every host. Should this command be killed, the shapes expire by themselves, 5 min "
        "after --timeout. A link is verified between the first hosts of the first and of each other site.\n\n"
        "  longhaul-emu run mine.yaml --hosts hosts --json measured.json\n\n"
        "Exit status: 0; 1 when something failed, a link was not as asked, or the time was up; 2 wrong usage or input; "
        "77 when mpirun is not here.",
};

/* ---- hosts */

static int add_host(struct cluster *cluster, const char *name, struct err *err)
{
    char **more = realloc(cluster->hosts, (cluster->count + 1) * sizeof *more);
    if (more)
        cluster->hosts = more;
    char *copy = more ? strdup(name) : NULL;
    if (!copy)
        return err_set(err, ENOMEM, "out of memory");
    cluster->hosts[cluster->count++] = copy;
    return 0;
}

/* NAME [slots=N] [max_slots=N]. */
static int read_line(struct cluster *cluster, char *line, int number, struct err *err)
{
    char *rest, *begin = line;
    line[strcspn(line, "#\r\n")] = '\0';
    char *name = strtok_r(line, " \t", &rest);
    for (char *word; name && (word = strtok_r(NULL, " \t", &rest)) != NULL;)
        if (strncmp(word, "slots=", 6) != 0 && strncmp(word, "max_slots=", 10) != 0)
            return err_set(err, EINVAL, "%s:%d:%d: '%s' is no host's; right would be: %s slots=1",
                           cluster->arguments->hosts, number, (int)(word - begin) + 1, word, name);
    if (name && (*name == '-' || strpbrk(name, "'\"\\$`;&|<>()")))
        return err_set(err, EINVAL, "%s:%d:%d: '%s' is no host's name", cluster->arguments->hosts, number,
                       (int)(name - begin) + 1, name);
    return name ? add_host(cluster, name, err) : 0;
}

static int read_hosts(struct cluster *cluster, struct err *err)
{
    FILE *file = fopen(cluster->arguments->hosts, "r");
    char *line = NULL;
    size_t room = 0;
    if (!file)
        return err_set(err, EINVAL, "%s: %s", cluster->arguments->hosts, strerror(errno));
    int rc = 0;
    for (int number = 1; rc == 0 && getline(&line, &room, file) >= 0; number++)
        rc = read_line(cluster, line, number, err);
    free(line);
    (void)fclose(file);
    return rc;
}

/* One rank a host, site after site. */
static int place(struct cluster *cluster, struct err *err)
{
    const struct arguments *arguments = cluster->arguments;
    struct scenario scenario;
    size_t needed = 0;
    int rc = scenario_load(arguments->scenario, arguments->sets.texts, arguments->sets.count, &scenario, err);
    if (rc)
        return rc;
    cluster->site_first = calloc(scenario.site_count, sizeof *cluster->site_first);
    cluster->site_count = scenario.site_count;
    for (size_t site = 0; cluster->site_first && site < scenario.site_count; site++) {
        cluster->site_first[site] = needed;
        needed += (size_t)(site_gpus(&scenario.sites[site]) / scenario.training.tensor);
    }
    if (!cluster->site_first)
        rc = err_set(err, ENOMEM, "out of memory");
    else if (scenario.emu_site_count == 0)
        rc = err_set(err, EINVAL, "%s: has no emu.sites; right would be the prefixes of each site's addresses",
                     arguments->scenario);
    else if (needed != cluster->count)
        rc = err_set(err, EINVAL, "%s: %zu hosts, but the scenario has %zu ranks; one a host", arguments->hosts,
                     cluster->count, needed);
    scenario_free(&scenario);
    return rc;
}

/* ---- commands */

struct command {
    size_t count;
    bool full;
    char *words[WORDS_MAX]; /* owned */
};

static void add(struct command *command, const char *word)
{
    char *copy = command->count < WORDS_MAX - 1 ? strdup(word) : NULL;
    command->full |= copy == NULL;
    if (copy)
        command->words[command->count++] = copy;
}

/* As a shell at the other end reads it. */
static void add_quoted(struct command *command, const char *word)
{
    char *quoted = malloc(4 * strlen(word) + 3), *end = quoted;
    if (!quoted) {
        command->full = true;
        return;
    }
    *end++ = '\'';
    for (; *word; word++)
        end = *word == '\'' ? stpcpy(end, "'\\''") : (*end = *word, end + 1);
    *end++ = '\'', *end = '\0';
    add(command, quoted);
    free(quoted);
}

static void free_words(struct command *command)
{
    for (size_t i = 0; i < command->count; i++)
        free(command->words[i]);
}

static void tick(void *context)
{
    const struct cluster *cluster = context;
    long passed = (long)(time(NULL) - cluster->begin);
    if (passed >= SLOW_S && isatty(STDERR_FILENO))
        fprintf(stderr, "\r%s, %ld s\033[K", cluster->doing, passed);
}

/* Runs it and frees its words. Where it failed err has the first line of ours that it printed, else its last. */
static int run_command(struct cluster *cluster, struct command *command, double timeout_s, char **printed,
                       struct err *err)
{
    struct child_output output = {0};
    const struct child_watch watch = {timeout_s, tick, cluster};
    int rc = command->full ? err_set(err, ENOMEM, "too many words, or out of memory")
                           : child_run((const char *const *)command->words, &watch, &output, err);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (rc == -EINTR)
        cluster->signal = output.signal;
    if (rc == 0)
        rc = child_words(&output, printed, err);
    child_output_free(&output);
    free_words(command);
    return rc;
}

/* What is wrong there is no fault of this command line. */
static int run_remote(struct cluster *cluster, struct command *command, double timeout_s, struct err *err)
{
    int rc = run_command(cluster, command, timeout_s, NULL, err);
    return rc == 0 || rc == -EINTR ? rc : -EIO;
}

/* RSH HOST longhaul-emu VERB */
static void begin_remote(const struct cluster *cluster, size_t host, const char *verb, struct command *command)
{
    char *split = strdup(cluster->arguments->rsh), *rest = split;
    *command = (struct command){0};
    add(command, "/usr/bin/env");
    for (char *word; split && (word = strsep(&rest, " ")) != NULL;)
        if (*word)
            add(command, word);
    add(command, cluster->hosts[host]);
    add(command, "longhaul-emu");
    add(command, verb);
    command->full |= split == NULL;
    free(split);
}

static void add_scenario(const struct cluster *cluster, struct command *command, bool remote)
{
    const struct arguments *arguments = cluster->arguments;
    (remote ? add_quoted : add)(command, arguments->scenario);
    for (size_t i = 0; i < arguments->sets.count; i++) {
        add(command, "--set");
        (remote ? add_quoted : add)(command, arguments->sets.texts[i]);
    }
}

/* ---- the run */

static int apply_all(struct cluster *cluster, struct err *err)
{
    char duration[32];
    int rc = 0;
    snprintf(duration, sizeof duration, "%.0fs", cluster->arguments->timeout_s + SPARE_S);
    cluster->doing = "shaping the links";
    for (size_t i = 0; i < cluster->count && rc == 0; i++) {
        struct command command;
        cluster->shaped = i + 1;
        begin_remote(cluster, i, "apply", &command);
        add_scenario(cluster, &command, true);
        add(&command, "--for");
        add(&command, duration);
        rc = run_remote(cluster, &command, cluster->arguments->timeout_s, err);
        if (rc < 0 && rc != -EINTR)
            err_prefix(err, "%s", cluster->hosts[i]);
    }
    return rc;
}

static int verify_all(struct cluster *cluster, struct err *err)
{
    int rc = 0;
    cluster->doing = "verifying the links";
    for (size_t site = 1; site < cluster->site_count && rc == 0; site++) {
        struct command command;
        const char *peer = cluster->hosts[cluster->site_first[site]];
        begin_remote(cluster, 0, "verify", &command);
        add_scenario(cluster, &command, true);
        add(&command, "--peer");
        add(&command, peer);
        add(&command, "--rsh");
        add_quoted(&command, cluster->arguments->rsh);
        rc = run_remote(cluster, &command, cluster->arguments->timeout_s, err);
        if (rc < 0 && rc != -EINTR)
            err_prefix(err, "%s to %s is not as asked", cluster->hosts[0], peer);
    }
    return rc;
}

static void add_option(struct command *command, const char *option, const char *value)
{
    if (!value)
        return;
    add(command, option);
    add(command, value);
}

static int measure(struct cluster *cluster, char **printed, struct err *err)
{
    const struct arguments *arguments = cluster->arguments;
    struct command command = {0};
    char count[24];
    snprintf(count, sizeof count, "%zu", cluster->count);
    cluster->doing = "measuring";
    add(&command, "/usr/bin/env");
    add(&command, "NO_COLOR=1"); /* mpirun gives the first rank a terminal */
    add(&command, "mpirun");
    add(&command, "--quiet");
    add_option(&command, "-x", "NO_COLOR");
    add_option(&command, "--hostfile", arguments->hosts);
    add_option(&command, "--map-by", "node");
    add_option(&command, "-np", count);
    add_option(&command, "--mca", "plm_rsh_agent");
    add(&command, arguments->rsh);
    add_option(&command, "--mca", "pml"), add(&command, "ob1");
    add_option(&command, "--mca", "btl"), add(&command, "tcp,self");
    add(&command, "longhaul-rank");
    add_scenario(cluster, &command, false);
    add_option(&command, "--json", arguments->json ? "-" : NULL);
    add_option(&command, "--timeline", arguments->timeline);
    add_option(&command, "--strategy", arguments->strategy);
    add_option(&command, "--steps", arguments->steps);
    if (arguments->spin)
        add(&command, "--spin");
    int rc = run_command(cluster, &command, arguments->timeout_s, printed, err);
    return rc == -ETIMEDOUT ? err_set(err, ETIMEDOUT, "ended after --timeout: the ranks had not finished") : rc;
}

/* Every host, whatever fails; the first failure is kept where nothing failed before. */
static int clear_all(struct cluster *cluster, int before, struct err *err)
{
    int rc = before;
    cluster->doing = "clearing the links";
    for (size_t i = 0; i < cluster->shaped; i++) {
        struct command command;
        struct err own = {""};
        begin_remote(cluster, i, "clear", &command);
        int cleared = run_remote(cluster, &command, SPARE_S, &own);
        if (cleared < 0)
            fprintf(stderr, "longhaul-emu run: %s: not cleared: %s\n", cluster->hosts[i],
                    cleared == -EINTR ? "interrupted" : own.text);
        if (cleared < 0 && rc == 0)
            rc = err_set(err, EIO, "some hosts are still shaped; it expires by itself");
    }
    return rc;
}

static int print(const struct arguments *arguments, const char *text, struct err *err)
{
    const char *path = arguments->json ? arguments->json : "-";
    FILE *out = options_open(path, err);
    if (!out)
        return -EIO;
    fputs(text, out);
    return options_close(out, path, err);
}

static bool on_path(const char *program)
{
    const char *path = getenv("PATH");
    char *folders = strdup(path ? path : ""), *rest = folders, file[4096];
    bool found = false;
    for (char *folder; folders && !found && (folder = strsep(&rest, ":")) != NULL;)
        found = snprintf(file, sizeof file, "%s/%s", folder, program) < (int)sizeof file && access(file, X_OK) == 0;
    free(folders);
    return found;
}

static int run(struct cluster *cluster, struct err *err)
{
    char *printed = NULL;
    int rc = read_hosts(cluster, err);
    rc = rc ? rc : place(cluster, err);
    if (!rc && !on_path("mpirun"))
        rc =
            err_set(err, ENOTSUP, "mpirun is not installed here, and starts the ranks; install Open MPI (openmpi-bin)");
    rc = rc ? rc : apply_all(cluster, err);
    rc = rc ? rc : verify_all(cluster, err);
    rc = rc ? rc : measure(cluster, &printed, err);
    rc = clear_all(cluster, rc, err);
    rc = rc ? rc : print(cluster->arguments, printed ? printed : "", err);
    free(printed);
    return rc;
}

int verb_run(int argc, char **argv)
{
    struct arguments arguments = {.rsh = "ssh -o BatchMode=yes", .timeout_s = TIMEOUT_S};
    struct cluster cluster = {.arguments = &arguments, .begin = time(NULL)};
    struct err err = {""};
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    int rc = run(&cluster, &err);
    if (rc < 0 && rc != -EINTR)
        fprintf(stderr, "longhaul-emu run: %s\n", err.text);
    for (size_t i = 0; i < cluster.count; i++)
        free(cluster.hosts[i]);
    free(cluster.hosts);
    free(cluster.site_first);
    return rc == -EINTR ? 128 + cluster.signal : err_exit_code(rc);
}
