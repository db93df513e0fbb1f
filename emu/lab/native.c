/* longhaul-lab up and down: the lab's network on this machine's own kernel. */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/options.h"
#include "emu/lab/lab.h"
#include "emu/lab/network.h"
#include "emu/lab/prepare.h"
#include "emu/lab/tree.h"

#define PREFIX "longhaul-"
#define STATE_FOLDER "/run/longhaul-lab"
#define SCENARIO_FILE STATE_FOLDER "/scenario.yaml" /* written before anything is built, removed after all is gone */
#define WHOLE_FILE STATE_FOLDER "/whole"            /* written after all is built, removed before anything goes */

struct arguments {
    struct options_sets sets;
    const char *scenario;
    bool native, json, down;
};

/* ---- command line */

static error_t take(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->sets;
        return 0;
    case 'n':
        arguments->native = true;
        return 0;
    case 'j':
        arguments->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->scenario)
            argp_error(state, "'%s' is one word too many", text);
        arguments->scenario = text;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->native)
            argp_error(state, "needs --native: namespaces and links are made on this machine's own kernel (a lab that "
                              "leaves it alone is `longhaul lab run`)");
        if (!arguments->scenario && !arguments->down)
            argp_error(state, "needs a scenario: a file, or a name such as lab-2x4");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

#define NATIVE                                                                                                         \
    {                                                                                                                  \
        "native", 'n', NULL, 0, "On this machine's own kernel; needs root and netem", 0                                \
    }
static const struct argp_option up_options[] = {NATIVE, {"json", 'j', NULL, 0, "Print JSON", 0}, {0}};
static const struct argp_option down_options[] = {NATIVE, {0}};
static const struct argp_child children[] = {{&options_argp, 0, NULL, 0}, {0}};
static const struct argp up_parser = {
    .options = up_options,
    .parser = take,
    .children = children,
    .args_doc = "SCENARIO --native",
    .doc =
        "Builds the lab's hosts, routers and links as network namespaces (longhaul-west-0, ...) of this machine's own "
        "kernel, in real time. All or nothing; the same scenario twice is the same as once; another scenario is "
        "refused until `down`. Nothing outside these namespaces is touched.\v"
        "  longhaul lab up --native lab-2x4\n"
        "  ip netns exec longhaul-west-0 ping 10.2.1.2\n"
        "  longhaul lab down --native\n\n"
        "Exit status: 0 up, 1 failed and nothing is left, 2 wrong usage or a wrong scenario, 77 no root, or this "
        "kernel has no netem.",
};
static const struct argp down_parser = {
    .options = down_options,
    .parser = take,
    .children = children,
    .args_doc = "[SCENARIO] --native",
    .doc = "Takes away all that `longhaul lab up --native` built. Twice is the same as once. SCENARIO is needed only "
           "where the record of what is up was lost.\v"
           "Exit status: 0 nothing is up any more, 1 failed, 2 wrong usage, 77 no root.",
};

/* ---- state */

/* One up or down at a time. Returns a file that holds the lock. */
static int lock_state(struct err *err)
{
    if (mkdir(STATE_FOLDER, 0755) && errno != EEXIST)
        return err_set(err, errno, STATE_FOLDER ": %s", strerror(errno));
    int fd = open(STATE_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX))
        return err_set(err, errno, STATE_FOLDER ": %s", strerror(errno));
    return fd;
}

static int write_file(const char *path, const char *text, struct err *err)
{
    FILE *file = fopen(path, "w");
    int failed = !file || fputs(text, file) < 0;
    if (file)
        failed |= fclose(file) != 0;
    return failed ? err_set(err, EIO, "%s: cannot be written: %s", path, strerror(errno)) : 0;
}

/* ---- up */

static json_t *host_to_json(const struct topology *topology, const struct lab_host *host)
{
    char netns[96], four[PREFIX_TEXT_MAX], six[PREFIX_TEXT_MAX];
    snprintf(netns, sizeof netns, PREFIX "%s", host->name);
    return json_pack("{ss ss ss ss ss}", "name", host->name, "site", topology->scenario->sites[host->site].name,
                     "netns", netns, "ipv4", prefix_format(&host->ipv4, four, sizeof four), "ipv6",
                     prefix_format(&host->ipv6, six, sizeof six));
}

static int print_json(const struct topology *topology, bool already)
{
    json_t *hosts = json_array();
    for (size_t i = 0; i < topology->host_count; i++)
        json_array_append_new(hosts, host_to_json(topology, &topology->hosts[i]));
    json_t *root =
        json_pack("{ss ss so}", "status", already ? "already up" : "up", "scenario", SCENARIO_FILE, "hosts", hosts);
    int failed = !root || json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
    return failed ? -EIO : 0;
}

static void print_text(const struct topology *topology, bool already)
{
    printf("%s; `ip netns exec %s%s COMMAND` runs a command there, `longhaul lab down --native` takes all away\n",
           already ? "already up" : "up", PREFIX, topology->hosts[0].name);
    for (size_t i = 0; i < topology->host_count; i++) {
        const struct lab_host *host = &topology->hosts[i];
        char four[PREFIX_TEXT_MAX], six[PREFIX_TEXT_MAX];
        printf("  " PREFIX "%-16s %-15s %s\n", host->name, prefix_format(&host->ipv4, four, sizeof four),
               prefix_format(&host->ipv6, six, sizeof six));
    }
}

static int build(const struct topology *topology, const char *text, struct err *err)
{
    char shaper[PATH_MAX];
    size_t removed;
    char *programs = prepare_programs(err);
    int rc = programs ? prepare_shaper(programs, shaper, err) : -ENOMEM;
    free(programs);
    if (rc)
        return rc;
    rc = write_file(SCENARIO_FILE, text, err);
    rc = rc ? rc : network_build(topology, PREFIX, err);
    if (!rc && (rc = network_shape(topology, PREFIX, shaper, SCENARIO_FILE, err)))
        (void)network_remove(topology, PREFIX, shaper, &removed, NULL);
    if (!rc)
        rc = write_file(WHOLE_FILE, "", err);
    if (rc)
        (void)unlink(SCENARIO_FILE);
    return rc;
}

static int up(const struct arguments *arguments, const struct topology *topology, struct err *err)
{
    char *text = topology_scenario(topology, err), *stands = NULL;
    int lock = text ? lock_state(err) : -ENOMEM, rc = lock < 0 ? lock : 0;
    bool already = false;
    if (!rc && (stands = tree_read(SCENARIO_FILE)) != NULL) {
        bool whole = access(WHOLE_FILE, F_OK) == 0;
        already = whole && !strcmp(stands, text);
        if (!already)
            rc = err_set(err, EBUSY, "%s; `longhaul lab down --native` takes it away",
                         whole ? "another scenario is up" : "what an `up' built that was cut off is there");
    }
    if (!rc && !already)
        rc = build(topology, text, err);
    if (!rc && arguments->json)
        rc = print_json(topology, already);
    else if (!rc)
        print_text(topology, already);
    free(text);
    free(stands);
    if (lock >= 0)
        close(lock);
    return rc;
}

/* ---- down */

static int take_down(const struct topology *topology, struct err *err)
{
    char shaper[PATH_MAX];
    size_t count = 0;
    char *programs = prepare_programs(err);
    bool shaping = programs && !prepare_shaper(programs, shaper, err);
    (void)unlink(WHOLE_FILE);
    int rc = network_remove(topology, PREFIX, shaping ? shaper : NULL, &count, err);
    if (!rc)
        printf("down: %zu namespaces removed\n", count);
    free(programs);
    return rc;
}

static int down(const struct arguments *arguments, struct err *err)
{
    struct scenario scenario = {0};
    struct topology topology = {0};
    int lock = lock_state(err), rc = lock < 0 ? lock : 0;
    bool stands = !rc && access(SCENARIO_FILE, F_OK) == 0;
    if (!rc && !stands && !arguments->scenario) {
        puts("nothing is up");
    } else if (!rc) {
        rc = stands ? scenario_load(SCENARIO_FILE, NULL, 0, &scenario, err)
                    : scenario_load(arguments->scenario, arguments->sets.texts, arguments->sets.count, &scenario, err);
        rc = rc ? rc : topology_build(&scenario, &topology, err);
        rc = rc ? rc : take_down(&topology, err);
        if (!rc)
            (void)unlink(SCENARIO_FILE);
    }
    topology_free(&topology);
    scenario_free(&scenario);
    if (lock >= 0)
        close(lock);
    return rc;
}

/* ---- */

/* All or nothing: what would end this process waits for the end of what it does. */
static void hold_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT), sigaddset(&set, SIGTERM), sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* No root or no netem is no failure of ours. */
static int finish(int rc, const struct err *err)
{
    if (rc)
        fprintf(stderr, "longhaul lab: %s\n", err->text);
    return rc == -EPERM || rc == -EACCES ? EXIT_UNAVAILABLE : rc ? err_exit_code(rc) : EXIT_FINE;
}

static int need_root(struct err *err)
{
    return geteuid() == 0 ? 0 : err_set(err, EPERM, "--native needs root; `longhaul lab run` does not");
}

int verb_up(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct scenario scenario = {0};
    struct topology topology = {0};
    struct err err = {""};
    argp_parse(&up_parser, argc, argv, 0, NULL, &arguments);
    int rc = scenario_load(arguments.scenario, arguments.sets.texts, arguments.sets.count, &scenario, &err);
    rc = rc ? rc : topology_build(&scenario, &topology, &err);
    rc = rc ? rc : need_root(&err);
    rc = rc ? rc : network_probe(&err);
    hold_signals();
    rc = rc ? rc : up(&arguments, &topology, &err);
    topology_free(&topology);
    scenario_free(&scenario);
    return finish(rc, &err);
}

int verb_down(int argc, char **argv)
{
    struct arguments arguments = {.down = true};
    struct err err = {""};
    argp_parse(&down_parser, argc, argv, 0, NULL, &arguments);
    int rc = need_root(&err);
    hold_signals();
    rc = rc ? rc : down(&arguments, &err);
    return finish(rc, &err);
}
