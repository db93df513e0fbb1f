#include "configs/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/keys.h"
#include "configs/preset.h"

/* Every function here returns a new JSON value, or NULL when out of memory; jansson's setters accept NULL and then
 * fail. */

static json_t *object_of(const struct table *table, const void *from)
{
    json_t *object = json_object();
    if (object && table_write(table, from, object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* Sets a member of an object that is still whole; gives up the object where that fails. */
static json_t *with(json_t *object, const char *key, json_t *value)
{
    if (!object) {
        json_decref(value);
        return NULL;
    }
    if (json_object_set_new(object, key, value)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *with_preset(json_t *object, enum preset_kind kind, const char *name)
{
    return preset_find(kind, name) ? with(object, "preset", json_string(name)) : object;
}

static json_t *gpu_to_json(const struct gpu_spec *gpu)
{
    json_t *flops = json_object();
    for (size_t i = 0; i < table_flops.count; i++) {
        const struct key *key = &table_flops.keys[i];
        if (gpu->flop_per_s[i] > 0)
            flops = with(flops, key->name, key_write(key, (const char *)gpu + key->offset));
    }
    json_t *object = with_preset(json_object(), PRESET_GPU, gpu->name);
    object = with(object, "flops", flops);
    if (object && table_write(&table_gpu, gpu, object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *model_to_json(const struct model_spec *model)
{
    json_t *object = with_preset(json_object(), PRESET_MODEL, model->name);
    if (object && table_write(&table_model, model, object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *site_to_json(const struct scenario *scenario, size_t i)
{
    return with(object_of(&table_site, &scenario->sites[i]), "gpu", gpu_to_json(&scenario->sites[i].gpu));
}

static json_t *wan_to_json(const struct scenario *scenario, size_t i)
{
    const struct wan_link *link = &scenario->wan[i];
    json_t *between = json_pack("[ss]", scenario->sites[link->between[0]].name, scenario->sites[link->between[1]].name);
    json_t *object = with(json_object(), "between", between);
    if (object && table_write(&table_wan, link, object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *strategy_to_json(const struct scenario *scenario, size_t i)
{
    const struct strategy *strategy = &scenario->strategies[i];
    json_t *overlap = strategy->overlap == OVERLAP_CHUNKS ? object_of(&table_overlap, strategy) : json_string("none");
    return with(object_of(&table_strategy, strategy), "overlap", overlap);
}

static json_t *reference_to_json(const struct scenario *scenario, size_t i)
{
    const struct reference *reference = &scenario->references[i];
    json_t *object = with(json_object(), "strategy", json_string(scenario->strategies[reference->strategy].name));
    if (object && table_write(&table_reference, reference, object)) {
        json_decref(object);
        return NULL;
    }
    /* The metrics share a field, so the table wrote all of them. */
    for (size_t k = 0; object && reference_metrics[k]; k++)
        if (strcmp(reference_metrics[k], reference->metric))
            json_object_del(object, reference_metrics[k]);
    if (object && strcmp(reference->metric, "mfu"))
        json_object_del(object, "convention");
    return object;
}

static json_t *calibrate_to_json(const struct scenario *scenario)
{
    const struct calibrate *calibrate = &scenario->calibrate;
    json_t *object = object_of(&table_calibrate, calibrate);
    if (object)
        json_object_del(object, calibrate->mfu > 0 ? "step" : "mfu");
    object = with(object, "on", json_string("one-datacenter"));
    return with(object, "strategy", json_string(scenario->strategies[calibrate->strategy].name));
}

static json_t *emu_site_to_json(const struct scenario *scenario, size_t i)
{
    const struct emu_site *site = &scenario->emu_sites[i];
    json_t *prefixes = json_array();
    for (size_t k = 0; prefixes && k < site->prefix_count; k++) {
        char text[PREFIX_TEXT_MAX];
        if (json_array_append_new(prefixes, json_string(prefix_format(&site->prefixes[k], text, sizeof text)))) {
            json_decref(prefixes);
            prefixes = NULL;
        }
    }
    return with(with(json_object(), "site", json_string(scenario->sites[site->site].name)), "prefixes", prefixes);
}

static json_t *list_of(const struct scenario *scenario, size_t count,
                       json_t *(*element)(const struct scenario *scenario, size_t i))
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++)
        if (json_array_append_new(list, element(scenario, i))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *scenario_to_json(const struct scenario *scenario)
{
    json_t *object = with(json_object(), "name", json_string(scenario->name));
    object = with(object, "datacenters", list_of(scenario, scenario->site_count, site_to_json));
    object = with(object, "fabric", object_of(&table_fabric, &scenario->fabric));
    object = with(object, "wan", list_of(scenario, scenario->wan_count, wan_to_json));
    object = with(object, "transport", object_of(&table_transport, &scenario->transport));
    object = with(object, "model", model_to_json(&scenario->model));
    object = with(object, "training", object_of(&table_training, &scenario->training));
    if (scenario->calibrate.present)
        object = with(object, "calibrate", calibrate_to_json(scenario));
    object = with(object, "strategies", list_of(scenario, scenario->strategy_count, strategy_to_json));
    if (scenario->reference_count)
        object = with(object, "reference", list_of(scenario, scenario->reference_count, reference_to_json));
    if (scenario->emu_site_count)
        object = with(object, "emu",
                      with(json_object(), "sites", list_of(scenario, scenario->emu_site_count, emu_site_to_json)));
    object = with(object, "lab", object_of(&table_lab, &scenario->lab));
    if (scenario->scale > 1)
        object = with(object, "scale", json_integer(scenario->scale));
    return with(object, "seed", json_integer((json_int_t)scenario->seed));
}

/* Removes what does not change a result. */
static void strip(json_t *object)
{
    static const char *const silent[] = {"source", "preset", "reference"};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        json_object_del(object, silent[i]);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t index;
        json_t *element;
        strip(value);
        json_array_foreach(value, index, element) strip(element);
    }
}

int scenario_hash(struct scenario *scenario)
{
    json_t *json = scenario_to_json(scenario);
    if (!json)
        return -ENOMEM;
    strip(json);
    static const char *const aside[] = {"name", "emu", "lab"}; /* where it is run, not what */
    for (size_t i = 0; i < sizeof aside / sizeof aside[0]; i++)
        json_object_del(json, aside[i]);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(json);
    if (!text)
        return -ENOMEM;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, 64 bit */
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    free(text);
    snprintf(scenario->hash, sizeof scenario->hash, "%016" PRIx64, hash);
    return 0;
}
