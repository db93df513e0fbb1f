/* longhaul-emu clear: puts back what stood before. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "configs/options.h"
#include "emu/host/apply.h"
#include "emu/verbs/output.h"
#include "emu/verbs/verbs.h"

struct arguments {
    const char *device; /* NULL: all */
    const char *json;
};

static const char *const outcome_names[] = {
    [CLEAR_NOTHING] = "nothing", [CLEAR_DONE] = "restored", [CLEAR_UNRECORDED] = "deleted", [CLEAR_GONE] = "gone"};

static void print_outcome(const char *device, enum clear_outcome outcome)
{
    static const char *const lines[] = {
        [CLEAR_NOTHING] = "nothing of longhaul-emu is there",
        [CLEAR_DONE] = "cleared; what stood before stands again",
        [CLEAR_UNRECORDED] = "cleared; the record of what stood before is lost, the driver's default stands now",
        [CLEAR_GONE] = "the device is gone, and with it what was applied; its record is dropped",
    };
    printf("%s: %s\n", device, lines[outcome]);
}

/* One device; the first error is kept, the others are still cleared. */
static int clear_one(struct netlink *netlink, const char *device, const struct arguments *arguments, json_t *list,
                     struct err *err)
{
    enum clear_outcome outcome = CLEAR_NOTHING;
    struct err own = {""};
    int rc = apply_clear(netlink, device, &outcome, &own);
    if (rc && err->text[0])
        fprintf(stderr, "longhaul-emu clear: %s\n", own.text);
    else if (rc)
        *err = own;
    else if (!arguments->json)
        print_outcome(device, outcome);
    json_array_append_new(list, json_pack("{s:s, s:s, s:s?}", "device", device, "outcome",
                                          rc ? "failed" : outcome_names[outcome], "error", rc ? own.text : NULL));
    return rc;
}

static int clear_all(struct netlink *netlink, const struct arguments *arguments, json_t *list, struct err *err)
{
    char **names = NULL;
    size_t count = 0;
    int first = apply_list(netlink, &names, &count, err);
    bool none = !first && count == 0;
    for (size_t i = 0; i < count; i++) {
        int rc = first && !err->text[0] ? first : clear_one(netlink, names[i], arguments, list, err);
        first = first ? first : rc;
        free(names[i]);
    }
    free(names);
    if (none && !arguments->json)
        puts("nothing of longhaul-emu is there");
    return first;
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (key == 'd')
        arguments->device = argument;
    else if (key == 'j')
        arguments->json = argument ? argument : "-";
    else if (key == ARGP_KEY_ARG)
        argp_error(state, "takes no argument '%s'; name a device with --dev", argument);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option options[] = {
    {"dev", 'd', "DEVICE", 0, "This device only; otherwise all that longhaul-emu changed", 0},
    {"json", 'j', "FILE", OPTION_ARG_OPTIONAL, "What was done, as JSON (longhaul.emu-clear/1)", 0},
    {0}};
static const struct argp parser = {
    .options = options,
    .parser = take_argument,
    .doc = "Puts back, exactly, what stood before `longhaul-emu apply': qdiscs, classes, filters, offloads. Clearing "
           "twice is clearing once.\v"
           "Example:\n\n"
           "  longhaul-emu apply --dev eth0 --to 10.2.0.0/16 --delay 10.65ms\n"
           "  longhaul-emu clear --dev eth0\n\n"
           "Exit status: 0 cleared or nothing to clear, 1 failed, 2 wrong usage or no such device.",
};

int verb_clear(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct err err = {""};
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    struct netlink *netlink = netlink_open(&err);
    json_t *list = json_array();
    int rc = netlink && list ? 0 : -EIO;
    if (!rc && arguments.device)
        rc = clear_one(netlink, arguments.device, &arguments, list, &err);
    else if (!rc)
        rc = clear_all(netlink, &arguments, list, &err);
    netlink_close(netlink);
    if (arguments.json) {
        struct err json_err = {""};
        int written = output_json(json_pack("{s:s, s:o}", "schema", "longhaul.emu-clear/1", "devices", list),
                                  arguments.json, &json_err);
        if (!rc && written) {
            rc = written;
            err = json_err;
        }
    } else {
        json_decref(list);
    }
    return output_end("clear", rc, &err);
}
