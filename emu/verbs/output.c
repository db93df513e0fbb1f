#include "emu/verbs/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "configs/options.h"
#include "configs/units.h"
#include "emu/host/device.h"

int output_json_to(FILE *out, json_t *json, const char *path, struct err *err)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (text)
        fprintf(out, "%s\n", text);
    bool whole = text != NULL;
    free(text);
    int rc = options_close(out, path, err);
    return whole ? rc : err_set(err, ENOMEM, "out of memory");
}

int output_json(json_t *json, const char *path, struct err *err)
{
    FILE *out = options_open(path, err);
    if (out)
        return output_json_to(out, json, path, err);
    json_decref(json);
    return -EIO;
}

int output_end(const char *verb, int rc, const struct err *err)
{
    if (rc)
        fprintf(stderr, "longhaul-emu %s: %s\n", verb, err->text);
    return err_exit_code(rc);
}

void output_rdma_warning(const char *verb, const struct wish *wish)
{
    char names[256];
    device_rdma(wish->device, names, sizeof names);
    if (*names)
        fprintf(stderr,
                "longhaul-emu %s: WARNING: RDMA traffic (RoCE, InfiniBand) of %s bypasses this emulation on %s: it "
                "never meets a qdisc. Run NCCL over sockets (NCCL_IB_DISABLE=1) to have it shaped.\n",
                verb, names, wish->device);
}

json_t *output_rdma_json(const char *device)
{
    char names[256], *rest = names;
    device_rdma(device, names, sizeof names);
    json_t *list = json_array();
    for (char *name; list && (name = strsep(&rest, " "));)
        if (*name)
            json_array_append_new(list, json_string(name));
    return list;
}

void output_path(FILE *out, const struct path *path)
{
    enum { SHOWN = 4 };
    char text[PREFIX_TEXT_MAX] = "";
    if (path->prefix_count)
        prefix_format(&path->prefixes[0], text, sizeof text);
    if (path->prefix_count != 1 || strcmp(text, path->name))
        fprintf(out, "%s: ", path->name);
    for (size_t i = 0; i < path->prefix_count && i < SHOWN; i++)
        fprintf(out, "%s%s", i ? ", " : "", prefix_format(&path->prefixes[i], text, sizeof text));
    if (path->prefix_count > SHOWN)
        fprintf(out, " and %zu more", path->prefix_count - SHOWN);
}

char *output_duration(double seconds, char *buffer, size_t size)
{
    static const struct {
        unsigned long s;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    if (seconds < 60 || seconds > 1e12)
        return units_format(seconds, DIM_TIME, 3, buffer, size);
    unsigned long rest = (unsigned long)(seconds + 0.5);
    size_t used = 0;
    int shown = 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0] && shown < 2 && used < size; i++) {
        unsigned long count = rest / units[i].s;
        rest %= units[i].s;
        if (!count && !shown)
            continue;
        shown++; /* the two largest are enough */
        if (count)
            used += (size_t)snprintf(buffer + used, size - used, "%s%lu %s", used ? " " : "", count, units[i].name);
    }
    return buffer;
}

void output_heading(FILE *out, const struct wish *wish)
{
    fprintf(out, "%s (%s): %zu path%s%s\n", wish->device,
            wish->at == PLAN_INGRESS ? "ingress: what arrives" : "egress: what leaves", wish->path_count,
            wish->path_count == 1 ? "" : "s", wish->gso_off ? ", segmentation offload off" : "");
}

void output_notes(FILE *out, const struct wishes *wishes)
{
    for (size_t i = 0; i < wishes->note_count; i++)
        fprintf(out, "note: %s\n", wishes->notes[i]);
}

json_t *output_notes_json(const struct wishes *wishes)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < wishes->note_count; i++)
        json_array_append_new(list, json_string(wishes->notes[i]));
    return list;
}
