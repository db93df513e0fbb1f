#include "emu/host/wish_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const shape_names[] = {[JITTER_NORMAL] = "normal",
                                          [JITTER_PARETO] = "pareto",
                                          [JITTER_PARETONORMAL] = "paretonormal",
                                          [JITTER_UNIFORM] = "uniform"};
static const char *const loss_names[] = {
    [LOSS_NONE] = "none", [LOSS_INDEPENDENT] = "independent", [LOSS_GILBERT_ELLIOTT] = "gilbert-elliott"};
static const char *const at_names[] = {[PLAN_EGRESS] = "egress", [PLAN_INGRESS] = "ingress"};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* JSON's integers here are signed 64-bit; a count beyond them is text. */
static json_t *whole(uint64_t value)
{
    char text[24];
    if (value <= INT64_MAX)
        return json_integer((json_int_t)value);
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

static json_t *loss_to_json(const struct loss *loss)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "kind", loss_names[loss->kind], "ratio", loss->ratio, "p",
                     loss->p, "r", loss->r, "lost_bad", loss->lost_bad, "lost_good", loss->lost_good);
}

json_t *impairment_to_json(const struct impairment *it)
{
    return json_pack(
        "{s:o, s:o, s:f, s:s, s:s?, s:o, s:f, s:f, s:f, s:o?, s:I, s:b, s:o?}", "delay_one_way_ns", whole(it->delay_ns),
        "jitter_one_way_sd_ns", whole(it->jitter_ns), "correlation", it->correlation, "jitter_shape",
        shape_names[it->jitter_shape], "jitter_table", it->table_file, "loss", loss_to_json(&it->loss), "reorder",
        it->reorder, "duplicate", it->duplicate, "corrupt", it->corrupt, "rate_byte_per_s",
        it->rate_byte_per_s == IMPAIRMENT_RATE_NONE ? NULL : whole(it->rate_byte_per_s), "limit_packets",
        (json_int_t)it->limit_packets, "limit_given", it->limit_given, "seed", it->seed_given ? whole(it->seed) : NULL);
}

static json_t *path_to_json(const struct path *path)
{
    json_t *prefixes = json_array();
    int failed = prefixes ? 0 : -1;
    for (size_t i = 0; !failed && i < path->prefix_count; i++) {
        char text[PREFIX_TEXT_MAX];
        failed = json_array_append_new(prefixes, json_string(prefix_format(&path->prefixes[i], text, sizeof text)));
    }
    if (failed) {
        json_decref(prefixes);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:o}", "name", path->name ? path->name : "", "prefixes", prefixes, "impairment",
                     impairment_to_json(&path->impairment));
}

json_t *wish_to_json(const struct wish *wish)
{
    json_t *paths = json_array();
    int failed = paths ? 0 : -1;
    for (size_t i = 0; !failed && i < wish->path_count; i++)
        failed = json_array_append_new(paths, path_to_json(&wish->paths[i]));
    if (failed) {
        json_decref(paths);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:b, s:o}", "device", wish->device, "at", at_names[wish->at], "gso_off", wish->gso_off,
                     "paths", paths);
}

/* Reading: every member has to be there and of its kind. */

static bool take_name(const json_t *json, const char *key, const char *const *names, size_t count, int *value)
{
    const char *text = json_string_value(json_object_get(json, key));
    for (size_t i = 0; text && i < count; i++)
        if (!strcmp(text, names[i])) {
            *value = (int)i;
            return true;
        }
    return false;
}

static bool take_whole(const json_t *json, const char *key, uint64_t *value)
{
    const json_t *member = json_object_get(json, key);
    char *end;
    if (json_is_integer(member)) {
        *value = (uint64_t)json_integer_value(member);
        return json_integer_value(member) >= 0;
    }
    if (!json_is_string(member) || *json_string_value(member) < '0' || *json_string_value(member) > '9')
        return false;
    *value = strtoull(json_string_value(member), &end, 10);
    return *end == '\0';
}

static bool take_number(const json_t *json, const char *key, double *value)
{
    const json_t *member = json_object_get(json, key);
    *value = json_number_value(member);
    return json_is_number(member);
}

static bool take_loss(const json_t *json, struct loss *loss)
{
    int kind;
    if (!take_name(json, "kind", loss_names, COUNT(loss_names), &kind))
        return false;
    loss->kind = (enum loss_kind)kind;
    return take_number(json, "ratio", &loss->ratio) && take_number(json, "p", &loss->p) &&
           take_number(json, "r", &loss->r) && take_number(json, "lost_bad", &loss->lost_bad) &&
           take_number(json, "lost_good", &loss->lost_good);
}

/* Those that may be left out (null) keep what impairment_init gave. */
static bool take_optional(const json_t *json, struct impairment *it)
{
    const json_t *table = json_object_get(json, "jitter_table");
    if (json_is_string(table) && !(it->table_file = strdup(json_string_value(table))))
        return false;
    it->seed_given = !json_is_null(json_object_get(json, "seed"));
    return (!it->seed_given || take_whole(json, "seed", &it->seed)) &&
           (json_is_null(json_object_get(json, "rate_byte_per_s")) ||
            take_whole(json, "rate_byte_per_s", &it->rate_byte_per_s));
}

static bool take_impairment(const json_t *json, struct impairment *it)
{
    int shape;
    uint64_t limit;
    impairment_init(it);
    if (!take_name(json, "jitter_shape", shape_names, COUNT(shape_names), &shape) ||
        !take_whole(json, "limit_packets", &limit) || limit > UINT32_MAX)
        return false;
    it->jitter_shape = (enum jitter_shape)shape;
    it->limit_packets = (uint32_t)limit;
    it->limit_given = json_is_true(json_object_get(json, "limit_given"));
    return take_whole(json, "delay_one_way_ns", &it->delay_ns) &&
           take_whole(json, "jitter_one_way_sd_ns", &it->jitter_ns) &&
           take_number(json, "correlation", &it->correlation) && take_number(json, "reorder", &it->reorder) &&
           take_number(json, "duplicate", &it->duplicate) && take_number(json, "corrupt", &it->corrupt) &&
           take_loss(json_object_get(json, "loss"), &it->loss) && take_optional(json, it);
}

static bool take_path(const json_t *json, struct path *path)
{
    const json_t *prefixes = json_object_get(json, "prefixes");
    const char *name = json_string_value(json_object_get(json, "name"));
    size_t count = json_array_size(prefixes);
    impairment_init(&path->impairment);
    path->name = name ? strdup(name) : NULL;
    path->prefixes = calloc(count + 1, sizeof *path->prefixes);
    if (!path->name || !path->prefixes)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(prefixes, i));
        if (!text || prefix_parse(text, &path->prefixes[i], NULL))
            return false;
        path->prefix_count++;
    }
    return take_impairment(json_object_get(json, "impairment"), &path->impairment);
}

static bool take_wish(const json_t *json, struct wish *wish)
{
    int at;
    const json_t *paths = json_object_get(json, "paths");
    const char *device = json_string_value(json_object_get(json, "device"));
    size_t count = json_array_size(paths);
    if (!device || strlen(device) >= sizeof wish->device || !take_name(json, "at", at_names, COUNT(at_names), &at) ||
        count == 0 || count > PLAN_PATHS_MAX)
        return false;
    strcpy(wish->device, device);
    wish->at = (enum plan_at)at;
    wish->gso_off = json_is_true(json_object_get(json, "gso_off"));
    wish->paths = calloc(count, sizeof *wish->paths);
    for (size_t i = 0; wish->paths && i < count; i++) {
        wish->path_count++;
        if (!take_path(json_array_get(paths, i), &wish->paths[i]))
            return false;
    }
    return wish->paths != NULL;
}

int wish_from_json(const json_t *json, struct wish *wish, struct err *err)
{
    *wish = (struct wish){0};
    if (take_wish(json, wish))
        return 0;
    wish_free(wish);
    *wish = (struct wish){0};
    return err_set(err, EBADMSG, "what was applied cannot be read");
}
