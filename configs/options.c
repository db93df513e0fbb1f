#include "configs/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static error_t parse_set(int key, char *argument, struct argp_state *state)
{
    struct options_sets *sets = state->input;
    if (key != 's')
        return ARGP_ERR_UNKNOWN;
    if (sets->count == OPTIONS_SETS_MAX)
        argp_error(state, "more than %d --set", OPTIONS_SETS_MAX);
    else
        sets->texts[sets->count++] = argument;
    return 0;
}

static const struct argp_option set_options[] = {
    {"set", 's', "KEY=VALUE", 0,
     "Change one key of the scenario, e.g. wan.rtt=5ms (all links), wan.0.rtt=5ms (the first), "
     "strategies.har.allreduce=ring (by name). Repeatable; KEY= restores the default.",
     0},
    {0}};

const struct argp options_argp = {.options = set_options, .parser = parse_set};

void options_setup(void)
{
    argp_program_version = "longhaul " LONGHAUL_VERSION;
    argp_err_exit_status = EXIT_USAGE;
}

FILE *options_open(const char *path, struct err *err)
{
    if (!strcmp(path, "-"))
        return stdout;
    FILE *file = fopen(path, "w");
    if (!file)
        err_set(err, errno, "%s: cannot be written: %s", path, strerror(errno));
    return file;
}

int options_close(FILE *file, const char *path, struct err *err)
{
    int failed = ferror(file);
    failed |= file == stdout ? fflush(file) : fclose(file);
    return failed ? err_set(err, EIO, "%s: writing failed", file == stdout ? "standard output" : path) : 0;
}

bool options_colour(FILE *file)
{
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fileno(file)) && !(off && *off) && terminal && strcmp(terminal, "dumb");
}

int options_width(FILE *file)
{
    struct winsize size;
    return ioctl(fileno(file), TIOCGWINSZ, &size) ? 0 : size.ws_col;
}
