/* longhaul-emu plan: what apply would do, for people and as tc commands; nothing is changed. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/options.h"
#include "emu/host/apply.h"
#include "emu/host/entry.h"
#include "emu/host/wish_json.h"
#include "emu/verbs/output.h"
#include "emu/verbs/verbs.h"
#include "emu/verbs/wish.h"

struct arguments {
    struct wish_arguments wish;
    const char *json;
};

/* One wish and what it comes to on this machine. */
struct outlook {
    const struct wish *wish;
    struct plan plan;
    char stands[160]; /* what is there now, "" for the driver's default */
    size_t command_count;
    char **commands; /* owned: all of them, those that are not netlink's included */
};

static void outlook_free(struct outlook *outlook)
{
    for (size_t i = 0; i < outlook->command_count; i++)
        free(outlook->commands[i]);
    free(outlook->commands);
    plan_free(&outlook->plan);
}

static int add_command(struct outlook *outlook, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int add_command(struct outlook *outlook, struct err *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char **grown = reallocarray(outlook->commands, outlook->command_count + 1, sizeof *grown), *text = NULL;
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    outlook->commands = grown ? grown : outlook->commands;
    if (!grown || length < 0) {
        free(length < 0 ? NULL : text);
        return err_set(err, ENOMEM, "out of memory");
    }
    grown[outlook->command_count++] = text;
    return 0;
}

static int list_commands(const struct device *device, struct outlook *outlook, struct err *err)
{
    int rc = 0, ifb = device->ifindex;
    if (outlook->wish->gso_off)
        rc = add_command(outlook, err, "ethtool -K %s gso off tso off", device->name);
    if (!rc && outlook->wish->at == PLAN_INGRESS) {
        rc = add_command(outlook, err, "ip link add " PLAN_IFB_PREFIX "%d type ifb", ifb);
        rc = rc ? rc : add_command(outlook, err, "ip link set " PLAN_IFB_PREFIX "%d up", ifb);
    }
    for (size_t i = 0; !rc && i < outlook->plan.count; i++)
        rc = add_command(outlook, err, "%s", outlook->plan.steps[i].tc);
    return rc;
}

static int look_at_device(struct netlink *netlink, const struct device *device, struct outlook *outlook,
                          struct err *err)
{
    struct snapshot now;
    bool ingress = outlook->wish->at == PLAN_INGRESS;
    int rc = snapshot_take(netlink, device->ifindex, ingress ? SNAPSHOT_INGRESS : SNAPSHOT_EGRESS, &now, err);
    if (rc)
        return rc;
    const struct entry *stands = ingress ? snapshot_ingress(&now) : snapshot_root(&now);
    char text[96];
    if (stands && apply_is_ours(&now, outlook->wish->at))
        snprintf(outlook->stands, sizeof outlook->stands, "an earlier apply; it is replaced");
    else if (stands) {
        entry_text(stands, text, sizeof text);
        snprintf(outlook->stands, sizeof outlook->stands, "%s; apply needs --take-over to replace it", text);
    }
    snapshot_free(&now);
    return 0;
}

static int foresee(struct netlink *netlink, const struct wish *wish, struct outlook *outlook, struct err *err)
{
    struct device device;
    int ifb = 0;
    *outlook = (struct outlook){.wish = wish};
    int rc = device_find(netlink, wish->device, &device, err);
    rc = rc ? rc : look_at_device(netlink, &device, outlook, err);
    if (!rc && wish->at == PLAN_INGRESS && device_ifb_find(netlink, &device, &ifb, NULL))
        ifb = device.ifindex; /* apply creates it; the commands name it */
    rc = rc ? rc : plan_build(wish, device.ifindex, ifb, &outlook->plan, err);
    return rc ? rc : list_commands(&device, outlook, err);
}

static void print_path(const struct path *path)
{
    const struct impairment *it = &path->impairment;
    char *text = impairment_text(it);
    double clamped = impairment_clamped(it);
    fputs("  ", stdout);
    output_path(stdout, path);
    printf("\n    %s\n    queue limit %u packets%s\n", text ? text : "", it->limit_packets,
           it->limit_given ? " (as asked)" : " (twice the bandwidth-delay product and more: drops only by your loss)");
    if (clamped > 0)
        printf("    note: %.2g %% of the packets would get less than no delay and get none: the mean rises, the sd "
               "falls\n",
               100 * clamped);
    free(text);
}

static void print_outlook(const struct outlook *outlook)
{
    output_heading(stdout, outlook->wish);
    printf("  there now: %s\n", *outlook->stands ? outlook->stands : "the driver's default");
    for (size_t i = 0; i < outlook->wish->path_count; i++)
        print_path(&outlook->wish->paths[i]);
    puts("\n  the same by hand:");
    for (size_t i = 0; i < outlook->command_count; i++)
        printf("    %s\n", outlook->commands[i]);
}

static json_t *commands_json(const struct outlook *outlook)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < outlook->command_count; i++)
        json_array_append_new(list, json_string(outlook->commands[i]));
    return list;
}

static json_t *clamped_json(const struct wish *wish)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < wish->path_count; i++)
        json_array_append_new(list, json_real(impairment_clamped(&wish->paths[i].impairment)));
    return list;
}

static json_t *outlook_json(const struct outlook *outlook)
{
    return json_pack("{s:o, s:s?, s:o, s:o, s:o}", "wish", wish_to_json(outlook->wish), "stands_now",
                     *outlook->stands ? outlook->stands : NULL, "jitter_clamped_ratio", clamped_json(outlook->wish),
                     "rdma", output_rdma_json(outlook->wish->device), "commands", commands_json(outlook));
}

static int report(struct netlink *netlink, const struct wishes *wishes, const struct arguments *arguments, json_t *list,
                  struct err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < wishes->count; i++) {
        struct outlook outlook;
        rc = foresee(netlink, &wishes->wishes[i], &outlook, err);
        if (!rc && arguments->json)
            json_array_append_new(list, outlook_json(&outlook));
        else if (!rc)
            print_outlook(&outlook);
        if (!rc)
            output_rdma_warning("plan", outlook.wish);
        outlook_free(&outlook);
    }
    if (!rc && !arguments->json)
        output_notes(stdout, wishes);
    return rc;
}

static error_t take_argument(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &arguments->wish;
    else if (key == 'j')
        arguments->json = argument ? argument : "-";
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option options[] = {
    {"json", 'j', "FILE", OPTION_ARG_OPTIONAL, "As JSON (longhaul.emu-plan/1), times in ns and one way", 0}, {0}};
static const struct argp_child children[] = {{&wish_argp, 0, NULL, 0}, {0}};
static const struct argp parser = {
    .options = options,
    .parser = take_argument,
    .children = children,
    .args_doc = "[SCENARIO]",
    .doc = "Shows what `longhaul-emu apply' would do with the same arguments, also as tc commands. Changes nothing and "
           "needs no root.\v"
           "Examples:\n\n"
           "  longhaul-emu plan --dev eth0 --to 10.2.0.0/16 --delay 10.65ms --rate 10Gb/s\n"
           "  longhaul-emu plan cluster.yaml --json | jq -r '.devices[].commands[]'\n\n"
           "Exit status: 0 shown, 1 failed, 2 wrong usage or wrong scenario.",
};

int verb_plan(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct wishes wishes = {0};
    struct err err = {""};
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    struct netlink *netlink = netlink_open(&err);
    json_t *list = json_array();
    int rc = netlink && list ? wishes_resolve(&arguments.wish, netlink, &wishes, &err) : -EIO;
    rc = rc ? rc : report(netlink, &wishes, &arguments, list, &err);
    if (!rc && arguments.json)
        rc = output_json(json_pack("{s:s, s:O, s:o}", "schema", "longhaul.emu-plan/1", "devices", list, "notes",
                                   output_notes_json(&wishes)),
                         arguments.json, &err);
    json_decref(list);
    wishes_free(&wishes);
    netlink_close(netlink);
    return output_end("plan", rc, &err);
}
