/* The command line of longhaul-emu verify. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/units.h"
#include "emu/verbs/verify_parts.h"

enum {
    KEY_PEER = 0x500,
    KEY_ADDRESS,
    KEY_RSH,
    KEY_PROGRAM,
    KEY_PORT,
    KEY_KEY,
    KEY_ONE_SIDED,
    KEY_PROBES,
    KEY_INTERVAL,
    KEY_SIZE,
    KEY_GOODPUT,
    KEY_TOLERANCE,
    KEY_BYSTANDER,
    KEY_BYSTANDER_ADDRESS,
    KEY_BYSTANDER_RTT,
};

static double quantity(const char *flag, const char *text, enum dimension dimension, struct argp_state *state)
{
    struct err err;
    double value = 0;
    if (units_parse(text, dimension, &value, &err))
        argp_error(state, "%s: %s", flag, err.text);
    return value;
}

static double duration_above_0(const char *flag, const char *text, struct argp_state *state)
{
    double value = quantity(flag, text, DIM_TIME, state);
    if (!(value > 0 && value < 1e6))
        argp_error(state, "%s: '%s' is not more than 0 and less than 1e6 s; write e.g. 10ms", flag, text);
    return value;
}

static uint64_t whole(const char *flag, const char *text, uint64_t least, uint64_t most, struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text < '0' || *text > '9' || value < least || value > most)
        argp_error(state, "%s: '%s' is no whole number from %llu to %llu", flag, text, (unsigned long long)least,
                   (unsigned long long)most);
    return value;
}

static uint64_t payload(const char *text, struct argp_state *state)
{
    double bytes = quantity("--size", text, DIM_BYTES, state);
    if (!(bytes >= VERIFY_PAYLOAD_MIN && bytes <= VERIFY_PAYLOAD_MAX) || bytes != floor(bytes))
        argp_error(state, "--size: '%s' is not from %dB to %dB, whole", text, VERIFY_PAYLOAD_MIN, VERIFY_PAYLOAD_MAX);
    return (uint64_t)bytes;
}

static double factor(const char *text, struct argp_state *state)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || !(value > 0))
        argp_error(state, "--tolerance: '%s' is no number above 0; write e.g. 2 for twice as much as usual", text);
    return value;
}

/* Texts are kept as they are. NULL: key is none of them. */
static const char **text_of(int key, struct verify_arguments *arguments)
{
    switch (key) {
    case KEY_PEER:
        return &arguments->peer;
    case KEY_ADDRESS:
        return &arguments->address;
    case KEY_RSH:
        return &arguments->rsh;
    case KEY_PROGRAM:
        return &arguments->program;
    case KEY_KEY:
        return &arguments->key;
    case KEY_BYSTANDER:
        return &arguments->bystander;
    case KEY_BYSTANDER_ADDRESS:
        return &arguments->bystander_address;
    case 'j':
        return &arguments->json;
    default:
        return NULL;
    }
}

static error_t take_value(int key, char *argument, struct verify_arguments *arguments, struct argp_state *state)
{
    switch (key) {
    case KEY_PORT:
        arguments->port = (uint16_t)whole("--port", argument, 1, UINT16_MAX, state);
        return 0;
    case KEY_ONE_SIDED:
        arguments->one_sided = true;
        return 0;
    case KEY_PROBES:
        arguments->probes = whole("--probes", argument, 2, VERIFY_PROBES_MAX, state);
        return 0;
    case KEY_INTERVAL:
        arguments->interval_s = duration_above_0("--interval", argument, state);
        return 0;
    case KEY_SIZE:
        arguments->payload_bytes = payload(argument, state);
        return 0;
    case KEY_GOODPUT:
        arguments->goodput_s = quantity("--goodput", argument, DIM_TIME, state);
        return 0;
    case KEY_TOLERANCE:
        arguments->relative = factor(argument, state);
        return 0;
    case KEY_BYSTANDER_RTT:
        arguments->bystander_rtt_s = duration_above_0("--bystander-rtt", argument, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void check(const struct verify_arguments *arguments, struct argp_state *state)
{
    if (!arguments->peer)
        argp_error(state, "--peer is missing; name the host at the other end, like --peer node7");
    if (!arguments->port != !arguments->key)
        argp_error(state, "--port and --key belong together: both are what longhaul-emu respond printed");
    if (arguments->bystander_address && !arguments->bystander)
        argp_error(state, "--bystander-address: --bystander HOST is missing");
    if (!(arguments->goodput_s < 1e6))
        argp_error(state, "--goodput: less than 1e6 s, please");
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct verify_arguments *arguments = state->input;
    const char **text = text_of(key, arguments);
    if (text)
        *text = argument ? argument : "-";
    else if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &arguments->wish;
    else if (key == ARGP_KEY_END)
        check(arguments, state);
    else
        return take_value(key, argument, arguments, state);
    return 0;
}

static const struct argp_option options[] = {
    {"peer", KEY_PEER, "HOST", 0, "Host at the other end, as --rsh knows it", 0},
    {"address", KEY_ADDRESS, "ADDRESS", 0, "Its address on the shaped path; default: that of HOST", 0},
    {"rsh", KEY_RSH, "COMMAND", 0,
     "Starts the responder there, as COMMAND HOST PROGRAM respond; split at spaces. Default \"ssh -o BatchMode=yes\"",
     0},
    {"remote-program", KEY_PROGRAM, "PATH", 0, "longhaul-emu there; default: found on its PATH", 0},
    {"port", KEY_PORT, "N", 0, "Use a responder that runs there already: the port that it printed", 0},
    {"key", KEY_KEY, "KEY", 0, "... and its key", 0},
    {"one-sided", KEY_ONE_SIDED, NULL, 0, "Only this end is shaped; otherwise both directions are expected to be", 0},
    {"probes", KEY_PROBES, "N", 0, "UDP probes; default 1000", 0},
    {"interval", KEY_INTERVAL, "TIME", 0, "Between them; default 10ms, more where jitter needs it", 0},
    {"size", KEY_SIZE, "SIZE", 0, "Of a probe's UDP payload; default 64B", 0},
    {"goodput", KEY_GOODPUT, "TIME", 0, "Length of the TCP measurement after its warm-up; default 5s, 0s: none", 0},
    {"tolerance", KEY_TOLERANCE, "RATIO", 0, "Factor on the relative tolerances; default 1", 0},
    {"bystander", KEY_BYSTANDER, "HOST", 0, "A host whose path must be unchanged: measured as well", 0},
    {"bystander-address", KEY_BYSTANDER_ADDRESS, "ADDRESS", 0, "Its address; default: that of HOST", 0},
    {"bystander-rtt", KEY_BYSTANDER_RTT, "TIME", 0, "At most this much RTT (p50) to it; default 500us", 0},
    {"json", 'j', "FILE", OPTION_ARG_OPTIONAL, "As JSON (longhaul.emu-verify/1), in SI units", 0},
    {0}};
static const struct argp_child children[] = {{&wish_argp, 0, "What to compare with (default: what is applied):", 1},
                                             {0}};
static const struct argp parser = {
    .options = options,
    .parser = take_argument,
    .children = children,
    .args_doc = "[SCENARIO]",
    .doc =
        "Measures the path to another host and shows what was requested beside it: RTT by UDP probes with this end's "
        "monotonic clock, loss, order and duplicates of each direction, TCP goodput. The responder at the other end "
        "is started by itself and ends with this program.\v"
        "Examples:\n\n"
        "  longhaul-emu verify --peer node7\n"
        "  longhaul-emu verify cluster.yaml --peer node7 --bystander node2\n"
        "  longhaul-emu verify --delay 10.65ms --peer 10.2.0.7 --port 40123 --key 6b1f... # respond runs there\n\n"
        "Tolerances: RTT mean 1 % + 0.1 ms, sd 10 %, goodput 5 % of rate x MSS / (MTU + 14), or five deviations of "
        "the sampling error where those are more; loss: requested inside the 99 % interval; no reordering unless "
        "asked for.\n\n"
        "Exit status: 0 as requested, 1 something is out of tolerance or nobody answers, 2 wrong usage or wrong "
        "scenario.",
};

void verify_arguments_parse(int argc, char **argv, struct verify_arguments *arguments)
{
    *arguments = (struct verify_arguments){.rsh = "ssh -o BatchMode=yes",
                                           .program = "longhaul-emu",
                                           .probes = 1000,
                                           .payload_bytes = 64,
                                           .goodput_s = 5,
                                           .relative = 1,
                                           .bystander_rtt_s = 500e-6};
    argp_parse(&parser, argc, argv, 0, NULL, arguments);
}
