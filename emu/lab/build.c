/* longhaul-lab build. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "configs/options.h"
#include "emu/lab/kernel.h"
#include "emu/lab/lab.h"

enum { JOBS_MAX = 1024, INTERRUPTED = 130 };

struct arguments {
    const char *source;
    int jobs;
};

static error_t take(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (key == 's') {
        arguments->source = text;
    } else if (key == 'j') {
        char *end;
        long jobs = strtol(text, &end, 10);
        if (end == text || *end || jobs < 1 || jobs > JOBS_MAX)
            argp_error(state, "--jobs %s: a whole number from 1 to %d", text, JOBS_MAX);
        arguments->jobs = (int)jobs;
    } else if (key == ARGP_KEY_ARG) {
        argp_error(state, "takes no '%s'", text);
    } else {
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_option options[] = {
    {"source", 's', "FILE", 0, "Kernel source (default: the newest /usr/src/linux-source-*.tar.xz of 6.1 or later)", 0},
    {"jobs", 'j', "N", 0, "Compile N files at once (default: one per processor)", 0},
    {0}};
static const struct argp parser = {
    .options = options,
    .parser = take,
    .doc =
        "Builds the kernel of the lab, once: User-Mode Linux with virtual time, network namespaces and netem, from the "
        "distribution's kernel source. Takes about 5 minutes on 2 processors and 1.7 GB of disk while it runs; 5 MB "
        "are kept in $XDG_CACHE_HOME/longhaul or ~/.cache/longhaul. Does nothing where it is there already.\v"
        "  apt-get install linux-source-6.12 make gcc bc bison flex xz-utils\n"
        "  longhaul lab build\n"
        "  longhaul lab build --source ~/linux-source-6.12.tar.xz --jobs 4\n\n"
        "Exit status: 0 built or there already, 1 failed (the log is named), 2 wrong usage, 77 something is missing "
        "(named, with what to install).",
};

static int build(const struct kernel_source *source, const char *path, int jobs, struct err *err)
{
    char tools[128], packages[128];
    time_t start = time(NULL);
    kernel_missing_tools(tools, sizeof tools, packages, sizeof packages);
    if (*tools)
        return err_set(err, ENOTSUP, "missing: %s; install: apt-get install %s", tools, packages);
    int rc = kernel_build(source, path, jobs, err);
    if (!rc)
        printf("built %s from %s in %ld s\n", path, source->path, (long)(time(NULL) - start));
    return rc;
}

int verb_build(int argc, char **argv)
{
    char path[PATH_MAX];
    struct kernel_source source;
    struct err err = {""};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct arguments arguments = {.jobs = processors > 0 && processors <= JOBS_MAX ? (int)processors : 1};
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    int rc = kernel_source_find(arguments.source, &source, &err);
    if (rc == -ENOENT)
        rc = -ENOTSUP; /* not the user's input */
    rc = rc ? rc : kernel_path(&source, path, &err);
    if (!rc && access(path, X_OK) == 0)
        printf("already there: %s\n", path);
    else if (!rc)
        rc = build(&source, path, arguments.jobs, &err);
    if (rc)
        fprintf(stderr, "longhaul lab: %s\n", err.text);
    return rc == -EINTR ? INTERRUPTED : rc ? err_exit_code(rc) : EXIT_FINE;
}
