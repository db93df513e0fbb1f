/* longhaul-emu respond: the other end of verify. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "configs/units.h"
#include "emu/verbs/output.h"
#include "emu/verbs/verbs.h"
#include "emu/verify/verify.h"

enum { KEY_ADDRESS = 0x500, KEY_PORT, KEY_IDLE, KEY_ATTACHED };

static uint16_t take_port(const char *text, struct argp_state *state)
{
    char *end;
    long port = strtol(text, &end, 10);
    if (end == text || *end || *text < '0' || *text > '9' || port < 1 || port > UINT16_MAX)
        argp_error(state, "--port: '%s' is no whole number from 1 to %d", text, UINT16_MAX);
    return (uint16_t)port;
}

static double take_idle(const char *text, struct argp_state *state)
{
    struct err err;
    double seconds = 0;
    if (units_parse(text, DIM_TIME, &seconds, &err))
        argp_error(state, "--idle: %s", err.text);
    else if (!(seconds > 0 && seconds < 1e9))
        argp_error(state, "--idle: must be more than 0, as in 60s");
    return seconds;
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct respond_options *options = state->input;
    if (key == KEY_ADDRESS)
        options->address = argument;
    else if (key == KEY_PORT)
        options->port = take_port(argument, state);
    else if (key == KEY_IDLE)
        options->idle_s = take_idle(argument, state);
    else if (key == KEY_ATTACHED)
        options->stop_fd = STDIN_FILENO;
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "takes no argument '%s'", argument);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option option_list[] = {
    {"address", KEY_ADDRESS, "ADDRESS", 0, "Listen on this address only; default: any", 0},
    {"port", KEY_PORT, "N", 0, "TCP port, and UDP port where it is free; default: one that is free", 0},
    {"idle", KEY_IDLE, "TIME", 0, "End when nobody has used it for so long; default 60s", 0},
    {"attached", KEY_ATTACHED, NULL, 0, "End when standard input ends: with whoever started it", 0},
    {0}};
static const struct argp parser = {
    .options = option_list,
    .parser = take_argument,
    .doc =
        "Answers the probes of a longhaul-emu verify, which starts it by itself over ssh. Started by hand, it prints "
        "the port and the key that verify wants. Only packets with that key, from the host that showed it, are "
        "answered.\v"
        "Example:\n\n"
        "  longhaul-emu respond --idle 10min\n\n"
        "Exit status: 0 ended (idle, or standard input did), 1 failed, 2 wrong usage.",
};

int verb_respond(int argc, char **argv)
{
    struct respond_options options = {.idle_s = 60, .stop_fd = -1};
    struct err err = {""};
    argp_parse(&parser, argc, argv, 0, NULL, &options);
    return output_end("respond", respond_run(&options, stdout, &err), &err);
}
