/* longhaul-emu apply: shapes the traffic to the other sites. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "configs/options.h"
#include "configs/units.h"
#include "emu/host/apply.h"
#include "emu/host/wish_json.h"
#include "emu/verbs/output.h"
#include "emu/verbs/verbs.h"
#include "emu/verbs/wish.h"

struct arguments {
    struct wish_arguments wish;
    struct apply_options options;
    const char *json;
};

static const char *const outcome_names[] = {
    [APPLY_DONE] = "applied", [APPLY_ALREADY] = "already applied", [APPLY_REPLACED] = "replaced the earlier apply"};

static void print_outcome(const struct wish *wish, enum apply_outcome outcome, double expires_s)
{
    char text[32];
    output_heading(stdout, wish);
    for (size_t i = 0; i < wish->path_count; i++) {
        char *impairment = impairment_text(&wish->paths[i].impairment);
        fputs("  ", stdout);
        output_path(stdout, &wish->paths[i]);
        printf(": %s\n", impairment ? impairment : "");
        free(impairment);
    }
    printf("  %s, read back from the kernel as asked; ", outcome_names[outcome]);
    if (expires_s > 0)
        printf("expires in %s\n", output_duration(expires_s, text, sizeof text));
    else
        puts("stays until longhaul-emu clear");
}

static json_t *outcome_json(const struct wish *wish, enum apply_outcome outcome, double expires_s)
{
    return json_pack("{s:s, s:o?, s:o, s:o}", "outcome", outcome_names[outcome], "expires_in_s",
                     expires_s > 0 ? json_real(expires_s) : NULL, "rdma", output_rdma_json(wish->device), "wish",
                     wish_to_json(wish));
}

static int report(const struct wishes *wishes, const enum apply_outcome *outcomes, const struct arguments *arguments,
                  FILE *out, struct err *err)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < wishes->count; i++) {
        const struct wish *wish = &wishes->wishes[i];
        if (arguments->json)
            json_array_append_new(list, outcome_json(wish, outcomes[i], arguments->options.expires_s));
        else
            print_outcome(wish, outcomes[i], arguments->options.expires_s);
        output_rdma_warning("apply", wish);
    }
    if (arguments->json)
        return output_json_to(out,
                              json_pack("{s:s, s:o, s:o}", "schema", "longhaul.emu-apply/1", "devices", list, "notes",
                                        output_notes_json(wishes)),
                              arguments->json, err);
    output_notes(stdout, wishes);
    json_decref(list);
    return options_close(stdout, "-", err);
}

static int apply(struct netlink *netlink, const struct arguments *arguments, struct err *err)
{
    struct wishes wishes = {0};
    enum apply_outcome *outcomes = NULL;
    int rc = wishes_resolve(&arguments->wish, netlink, &wishes, err);
    if (!rc && !(outcomes = calloc(wishes.count + 1, sizeof *outcomes)))
        rc = err_set(err, ENOMEM, "out of memory");
    /* Before anything changes: a report that has nowhere to go. */
    FILE *out = !rc && arguments->json ? options_open(arguments->json, err) : NULL;
    if (!rc && arguments->json && !out)
        rc = -EIO;
    rc = rc ? rc : apply_run(netlink, wishes.wishes, wishes.count, &arguments->options, outcomes, err);
    if (!rc && (rc = report(&wishes, outcomes, arguments, out, err)))
        err_prefix(err, "applied, but not reported");
    else if (rc && out)
        options_close(out, arguments->json, NULL);
    free(outcomes);
    wishes_free(&wishes);
    return rc;
}

enum { KEY_FOR = 0x500, KEY_TAKE_OVER, KEY_FORCE };

static void take_duration(const char *argument, double *seconds, struct argp_state *state)
{
    struct err err;
    if (units_parse(argument, DIM_TIME, seconds, &err))
        argp_error(state, "--for: %s", err.text);
    else if (!(*seconds > 0))
        argp_error(state, "--for: must be more than 0, as in 1h; leave it out to stay until clear");
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->wish;
        return 0;
    case 'j':
        arguments->json = argument ? argument : "-";
        return 0;
    case KEY_FOR:
        take_duration(argument, &arguments->options.expires_s, state);
        return 0;
    case KEY_TAKE_OVER:
        arguments->options.take_over = true;
        return 0;
    case KEY_FORCE:
        arguments->options.force = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"for", KEY_FOR, "DURATION", 0,
     "Take it back by itself after this time (1h, 90min), also if longhaul-emu or its job is killed. Without: stays "
     "until clear",
     0},
    {"take-over", KEY_TAKE_OVER, NULL, 0, "Replace a qdisc that somebody else set; clear puts it back exactly", 0},
    {"force", KEY_FORCE, NULL, 0, "Even where the connection of this very session would be shaped", 0},
    {"json", 'j', "FILE", OPTION_ARG_OPTIONAL, "What was done, as JSON (longhaul.emu-apply/1)", 0},
    {0}};
static const struct argp_child children[] = {{&wish_argp, 0, NULL, 0}, {0}};
static const struct argp parser = {
    .options = options,
    .parser = take_argument,
    .children = children,
    .args_doc = "[SCENARIO]",
    .doc =
        "Shapes this machine's traffic to the other sites, and nothing else. What stands is recorded first; all of it "
        "is done or, where anything fails, nothing. Applying twice is applying once.\v"
        "Examples:\n\n"
        "  longhaul-emu apply --dev eth0 --to 10.2.0.0/16 --delay 10.65ms --for 1h\n"
        "  srun --ntasks-per-node=1 longhaul-emu apply cluster.yaml --for 8h\n\n"
        "Delays are one way: with the same at the other end, the round trip is twice that.\n\n"
        "Exit status: 0 applied, 1 failed or refused (nothing is changed; or `applied, but not reported'), 2 wrong "
        "usage or wrong scenario, 77 this "
        "kernel cannot.",
};

int verb_apply(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct err err = {""};
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    struct netlink *netlink = netlink_open(&err);
    int rc = netlink ? apply(netlink, &arguments, &err) : -EIO;
    netlink_close(netlink);
    return output_end("apply", rc, &err);
}
