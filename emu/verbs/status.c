/* longhaul-emu status: what is applied, read back from the kernel, with counters. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "configs/options.h"
#include "configs/units.h"
#include "emu/host/apply.h"
#include "emu/host/readback.h"
#include "emu/host/wish_json.h"
#include "emu/verbs/output.h"
#include "emu/verbs/verbs.h"

/* One device as found. */
struct found {
    const char *name;
    bool recorded;
    struct err trouble; /* why there is no record, or why the kernel cannot be read */
    struct record record;
    struct path_state *states; /* of record.wish's paths; NULL: could not be read */
};

static void found_free(struct found *found)
{
    for (size_t i = 0; found->states && i < found->record.wish.path_count; i++)
        impairment_free(&found->states[i].impairment);
    free(found->states);
    record_free(&found->record);
    *found = (struct found){0};
}

static int read_states(struct netlink *netlink, const struct device *device, struct found *found)
{
    int holder = device->ifindex, rc = 0;
    const struct wish *wish = &found->record.wish;
    if (wish->at == PLAN_INGRESS)
        rc = device_ifb_find(netlink, device, &holder, &found->trouble);
    if (rc)
        return rc;
    found->states = calloc(wish->path_count, sizeof *found->states);
    rc = found->states ? readback_paths(netlink, holder, wish, found->states, &found->trouble) : -ENOMEM;
    if (rc) {
        free(found->states);
        found->states = NULL;
    }
    return rc ? rc : readback_filters(netlink, holder, wish, &found->trouble);
}

static int look(struct netlink *netlink, const char *name, struct found *found, struct err *err)
{
    struct device device;
    struct snapshot now;
    *found = (struct found){.name = name};
    int rc = device_find(netlink, name, &device, err);
    if (rc)
        return rc;
    rc = record_read(&device, &found->record, &found->trouble);
    found->recorded = rc == 0;
    if (found->recorded) {
        (void)read_states(netlink, &device, found); /* said in trouble */
        return 0;
    }
    rc = snapshot_take(netlink, device.ifindex, SNAPSHOT_EGRESS | SNAPSHOT_INGRESS, &now, err);
    if (rc)
        return rc;
    bool ours = apply_is_ours(&now, PLAN_EGRESS) || apply_is_ours(&now, PLAN_INGRESS);
    snapshot_free(&now);
    if (ours && !found->trouble.text[0])
        err_set(&found->trouble, ENOENT, "%s: applied, but the record of it is lost; longhaul-emu clear removes it",
                name);
    return 0;
}

static double seconds_left(const struct record *record)
{
    return (double)(record->expires_boot_ns - watch_boot_ns()) / 1e9;
}

static void print_expiry(const struct record *record)
{
    char text[32];
    if (!record->expires_boot_ns) {
        puts("  stays until cleared");
        return;
    }
    double left = seconds_left(record);
    bool alive = watch_alive(record->watcher, record->watcher_start);
    printf("  expires in %s (process %d is %s)\n", output_duration(left > 0 ? left : 0, text, sizeof text),
           (int)record->watcher, alive ? "waiting for it" : "GONE: it will not expire by itself; apply again or clear");
}

static void print_path(const struct path *path, const struct path_state *state)
{
    char difference[400], size[32], backlog[32];
    fputs("  ", stdout);
    output_path(stdout, path);
    char *text = impairment_text(&path->impairment);
    bool same = state && readback_same(&path->impairment, state, difference, sizeof difference);
    printf("\n    asked   %s\n    kernel  %s\n", text ? text : "",
           !state ? "not read"
           : same ? "as asked"
                  : difference);
    free(text);
    if (state && state->present)
        printf("    sent %" PRIu64 " packets (%s), dropped %" PRIu64 ", overlimits %" PRIu64 ", waiting %" PRIu64
               " packets (%s)\n",
               state->sent_packets, units_format((double)state->sent_bytes, DIM_BYTES, 3, size, sizeof size),
               state->dropped_packets, state->overlimits, state->backlog_packets,
               units_format((double)state->backlog_bytes, DIM_BYTES, 3, backlog, sizeof backlog));
}

static void print_found(const struct found *found)
{
    if (found->trouble.text[0])
        puts(found->trouble.text);
    else if (!found->recorded)
        printf("%s: nothing of longhaul-emu is there\n", found->name);
    if (!found->recorded)
        return;
    output_heading(stdout, &found->record.wish);
    if (!found->record.complete)
        puts("  CUT OFF in the middle of an apply: clear, or apply again");
    print_expiry(&found->record);
    for (size_t i = 0; i < found->record.wish.path_count; i++)
        print_path(&found->record.wish.paths[i], found->states ? &found->states[i] : NULL);
}

static json_t *state_json(const struct path *path, const struct path_state *state)
{
    char difference[400];
    bool same = readback_same(&path->impairment, state, difference, sizeof difference);
    return json_pack("{s:b, s:s?, s:o?, s:I, s:I, s:I, s:I, s:I, s:I}", "as_asked", same, "difference",
                     same ? NULL : difference, "set", state->present ? impairment_to_json(&state->impairment) : NULL,
                     "sent_bytes", (json_int_t)state->sent_bytes, "sent_packets", (json_int_t)state->sent_packets,
                     "dropped_packets", (json_int_t)state->dropped_packets, "overlimits", (json_int_t)state->overlimits,
                     "backlog_bytes", (json_int_t)state->backlog_bytes, "backlog_packets",
                     (json_int_t)state->backlog_packets);
}

static json_t *states_json(const struct found *found)
{
    json_t *list = json_array();
    for (size_t i = 0; list && found->states && i < found->record.wish.path_count; i++)
        json_array_append_new(list, state_json(&found->record.wish.paths[i], &found->states[i]));
    return list;
}

static json_t *found_json(const struct found *found)
{
    const struct record *record = &found->record;
    const char *trouble = found->trouble.text[0] ? found->trouble.text : NULL;
    json_t *rdma = output_rdma_json(found->name);
    if (!found->recorded)
        return json_pack("{s:s, s:b, s:s?, s:o}", "device", found->name, "applied", 0, "trouble", trouble, "rdma",
                         rdma);
    bool expires = record->expires_boot_ns != 0;
    double left = expires ? seconds_left(record) : 0;
    return json_pack("{s:s, s:b, s:s?, s:o, s:b, s:o, s:o, s:I, s:o?, s:s?}", "device", found->name, "applied", 1,
                     "trouble", trouble, "rdma", rdma, "complete", record->complete, "wish",
                     wish_to_json(&record->wish), "paths", states_json(found), "applied_unix_s",
                     (json_int_t)record->applied_unix_s, "expires_in_s",
                     expires ? json_real(left > 0 ? left : 0) : NULL, "watcher",
                     !expires                                              ? NULL
                     : watch_alive(record->watcher, record->watcher_start) ? "alive"
                                                                           : "gone");
}

struct arguments {
    const char *device;
    const char *json;
};

static int report(struct netlink *netlink, const char *name, const struct arguments *arguments, json_t *list,
                  struct err *err)
{
    struct found found;
    int rc = look(netlink, name, &found, err);
    if (!rc && arguments->json)
        json_array_append_new(list, found_json(&found));
    else if (!rc)
        print_found(&found);
    found_free(&found);
    return rc;
}

/* A device that went away while its record stayed is worth a line, not a failure. */
static int report_all(struct netlink *netlink, const struct arguments *arguments, json_t *list, struct err *err)
{
    char **names = NULL;
    size_t count = 0;
    int rc = apply_list(netlink, &names, &count, err);
    if (!rc && count == 0 && !arguments->json)
        puts("nothing of longhaul-emu is there");
    for (size_t i = 0; i < count; i++) {
        int one = rc ? rc : report(netlink, names[i], arguments, list, err);
        if (one == -ENOENT)
            fprintf(stderr, "longhaul-emu status: %s: the device is gone; longhaul-emu clear drops its record\n",
                    names[i]);
        else
            rc = one;
        free(names[i]);
    }
    free(names);
    return rc;
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
    {"json", 'j', "FILE", OPTION_ARG_OPTIONAL, "As JSON (longhaul.emu-status/1), times in ns and one way", 0},
    {0}};
static const struct argp parser = {
    .options = options,
    .parser = take_argument,
    .doc = "Shows what is applied on this machine: what was asked, whether the kernel has it so, how long it stays, "
           "what it sent, dropped and holds. Changes nothing.\v"
           "Example:\n\n"
           "  longhaul-emu status --json | jq '.devices[].paths[].as_asked'\n\n"
           "Exit status: 0 shown, 1 failed, 2 wrong usage or no such device.",
};

int verb_status(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct err err = {""};
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    struct netlink *netlink = netlink_open(&err);
    json_t *list = json_array();
    int rc = netlink && list ? 0 : -EIO;
    if (!rc && arguments.device)
        rc = report(netlink, arguments.device, &arguments, list, &err);
    else if (!rc)
        rc = report_all(netlink, &arguments, list, &err);
    netlink_close(netlink);
    if (!rc && arguments.json)
        rc = output_json(json_pack("{s:s, s:O}", "schema", "longhaul.emu-status/1", "devices", list), arguments.json,
                         &err);
    json_decref(list);
    return output_end("status", rc, &err);
}
