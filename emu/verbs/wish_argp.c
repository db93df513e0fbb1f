/* The flags of wishes, and what is typed after them. */
#include "emu/verbs/wish_parts.h"

enum { KEY_FLAG = 0x400 /* + enum wish_flag */, KEY_TO = 0x480 };

static const struct argp_option option_list[] = {
    {"dev", 'd', "DEVICE", 0, "Device to shape; otherwise the one that the kernel would send by", 1},
    {"at", KEY_FLAG + WISH_AT, "egress|ingress", 0,
     "Shape what leaves (default), or what arrives, which costs the sender's TCP less", 1},
    {"gso-off", KEY_FLAG + WISH_GSO_OFF, NULL, 0,
     "Switch segmentation offload off while applied, so that loss hits single packets, not segments of up to 64 kB", 1},
    {"limit", KEY_FLAG + WISH_LIMIT, "PACKETS", 0, "Queue limit; default: never full at the bandwidth-delay product",
     1},

    {NULL, 0, NULL, 0, "By flags alone, each ONE WAY (with the same at the other end an RTT has twice the delay):", 2},
    {"to", KEY_TO, "PREFIX", 0, "Addresses at the other end, like 10.2.0.0/16 or fd00:2::/32. Repeatable", 2},
    {"delay", KEY_FLAG + WISH_DELAY, "TIME", 0, "Delay ONE WAY, like 10.65ms: half of the RTT", 2},
    {"jitter", KEY_FLAG + WISH_JITTER, "TIME", 0,
     "Standard deviation of the delay ONE WAY (of an RTT: 1.41 times as much). Packets stay in order", 2},
    {"jitter-shape", KEY_FLAG + WISH_JITTER_SHAPE, "SHAPE", 0, "normal (default), pareto, paretonormal or uniform", 2},
    {"jitter-table", KEY_FLAG + WISH_JITTER_TABLE, "FILE", 0,
     "Shape from a file in tc's .dist format: --jitter times the file's own mean and deviation (8192 is 1)", 2},
    {"correlation", KEY_FLAG + WISH_CORRELATION, "RATIO", 0,
     "Of a packet's jitter with the one before, like 25%; kept by the kernel, yet without effect on delays", 2},
    {"loss", KEY_FLAG + WISH_LOSS, "RATIO", 0, "Packets lost ONE WAY, on average, like 0.1%", 2},
    {"loss-burst", KEY_FLAG + WISH_LOSS_BURST, "PACKETS", 0,
     "Mean length of a loss burst (Gilbert-Elliott), 1 or more; 1 (default): independent losses", 2},
    {"loss-in-burst", KEY_FLAG + WISH_LOSS_IN_BURST, "RATIO", 0,
     "Packets lost inside a burst (1-h of Gilbert-Elliott), default 100%", 2},
    {"reorder", KEY_FLAG + WISH_REORDER, "RATIO", 0, "Packets sent at once, past those delayed, ONE WAY", 2},
    {"duplicate", KEY_FLAG + WISH_DUPLICATE, "RATIO", 0, "Packets sent twice, ONE WAY", 2},
    {"corrupt", KEY_FLAG + WISH_CORRUPT, "RATIO", 0, "Packets with one bit flipped, ONE WAY", 2},
    {"rate", KEY_FLAG + WISH_RATE, "RATE", 0, "Rate ONE WAY of this device to all --to together, like 10Gb/s", 2},
    {"seed", KEY_FLAG + WISH_SEED, "N", 0, "Seed of the random numbers (Linux 6.4 and later)", 2},

    {NULL, 0, NULL, 0, "With a SCENARIO:", 3},
    {"site", KEY_FLAG + WISH_SITE, "NAME", 0,
     "This machine's site; otherwise the one whose prefixes hold one of its addresses", 3},
    {"via", KEY_FLAG + WISH_VIA, "SITE", 0,
     "This device is a router's end of the WAN link to SITE: shape that link itself, for all that is reached over it",
     3},
    {"share", KEY_FLAG + WISH_SHARE, "RATIO|1/N", 0,
     "This node's part of the link's rate ONE WAY; default: 1 / nodes of its site, with --via all of it", 3},
    {0}};

const char *const wish_flag_names[WISH_FLAG_COUNT] = {
    [WISH_DEV] = "--dev",
    [WISH_DELAY] = "--delay",
    [WISH_JITTER] = "--jitter",
    [WISH_JITTER_SHAPE] = "--jitter-shape",
    [WISH_JITTER_TABLE] = "--jitter-table",
    [WISH_CORRELATION] = "--correlation",
    [WISH_LOSS] = "--loss",
    [WISH_LOSS_BURST] = "--loss-burst",
    [WISH_LOSS_IN_BURST] = "--loss-in-burst",
    [WISH_REORDER] = "--reorder",
    [WISH_DUPLICATE] = "--duplicate",
    [WISH_CORRUPT] = "--corrupt",
    [WISH_RATE] = "--rate",
    [WISH_LIMIT] = "--limit",
    [WISH_SEED] = "--seed",
    [WISH_AT] = "--at",
    [WISH_GSO_OFF] = "--gso-off",
    [WISH_SITE] = "--site",
    [WISH_VIA] = "--via",
    [WISH_SHARE] = "--share",
};

static void take_flag(struct wish_arguments *arguments, enum wish_flag flag, const char *text)
{
    if (arguments->texts[flag] && flag != WISH_GSO_OFF)
        arguments->given_twice = wish_flag_names[flag];
    arguments->texts[flag] = text ? text : "";
}

static void take_scenario(struct wish_arguments *arguments, const char *text)
{
    if (arguments->scenario)
        arguments->excess = text;
    else
        arguments->scenario = text;
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct wish_arguments *arguments = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &arguments->sets;
    else if (key == ARGP_KEY_ARG)
        take_scenario(arguments, argument);
    else if (key == 'd')
        take_flag(arguments, WISH_DEV, argument);
    else if (key >= KEY_FLAG && key < KEY_FLAG + WISH_FLAG_COUNT)
        take_flag(arguments, (enum wish_flag)(key - KEY_FLAG), argument);
    else if (key == KEY_TO && arguments->to_count < WISH_TO_MAX)
        arguments->to[arguments->to_count++] = argument;
    else if (key == KEY_TO)
        arguments->to_count++;
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_child children[] = {{&options_argp, 0, NULL, 3}, {0}};
const struct argp wish_argp = {.options = option_list, .parser = take_argument, .children = children};
