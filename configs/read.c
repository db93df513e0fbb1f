#include "configs/read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/keys.h"
#include "configs/preset.h"
#include "configs/suggest.h"

/* What every reader of a list element gets. */
struct reader {
    struct node *root;
    struct scenario *scenario;
    struct err *err;
};

typedef int read_element(struct reader *reader, struct node *element, void *into);

/* An absent section and one whose keys are all commented out are the same. */
static struct node *section(const struct node *map, const char *key)
{
    struct node *node = node_get(map, key);
    return node && node_is_empty(node) ? NULL : node;
}

/* Reads a list into a new array. count grows element by element, so that what was read can be freed after an error. */
static int read_list(struct reader *reader, const char *key, size_t least, size_t most, size_t element_size,
                     void **elements, size_t *count, read_element *read)
{
    struct node *list = section(reader->root, key);
    if (!list && !least)
        return 0;
    if (!list)
        return node_fail(reader->root, reader->err, "a scenario needs '%s': a list with at least one element", key);
    if (list->kind != NODE_LIST)
        return node_fail(list, reader->err, "%s is a list; write '- {...}' for each element", key);
    if (list->count < least || list->count > most)
        return node_fail(list, reader->err, "%s has %zu elements; %zu to %zu are possible", key, list->count, least,
                         most);
    *elements = calloc(list->count ? list->count : 1, element_size);
    if (!*elements)
        return err_set(reader->err, ENOMEM, "out of memory");
    int rc = 0;
    for (struct node *element = list->first; !rc && element; element = element->next) {
        char *into = *elements;
        rc = read(reader, element, into + (*count)++ * element_size);
    }
    return rc;
}

static int copy_text(const char *text, char **copy, struct err *err)
{
    *copy = strdup(text);
    return *copy ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* The name of what preset_expand() made of a member. */
static int read_preset_name(const struct node *map, char **name, struct err *err)
{
    const struct node *preset = node_get(map, "preset");
    return copy_text(preset ? preset->text : "inline", name, err);
}

static int read_gpu(struct node *site, struct gpu_spec *gpu, struct err *err)
{
    struct node *node = section(site, "gpu");
    if (!node)
        return node_fail(site, err, "a data centre needs 'gpu'; write a preset's name, like 'gpu: h100-sxm'");
    int rc = preset_expand(site, "gpu", PRESET_GPU, err);
    if (rc)
        return rc;
    node = node_get(site, "gpu");
    const struct node *flops = section(node, "flops");
    rc = table_read(&table_gpu, node, node, gpu, err);
    rc = rc ? rc : read_preset_name(node, &gpu->name, err);
    if (!rc && !flops)
        rc = node_fail(node, err, "a GPU needs 'flops': peak by number format, like 'flops: {bf16: 989 TF}'");
    return rc ? rc : table_read(&table_flops, flops, flops, gpu, err);
}

static int read_site(struct reader *reader, struct node *node, void *into)
{
    struct site *site = into;
    int rc = table_read(&table_site, node, node, site, reader->err);
    for (const struct site *earlier = reader->scenario->sites; !rc && earlier < site; earlier++)
        if (!strcmp(earlier->name, site->name))
            rc = node_fail(node_get(node, "name"), reader->err,
                           "two data centres are named '%s'; give each its own name", site->name);
    return rc ? rc : read_gpu(node, &site->gpu, reader->err);
}

int read_site_name(const struct scenario *scenario, const struct node *name, size_t *index, struct err *err)
{
    char phrase[96], list[256];
    for (size_t i = 0; name->kind == NODE_SCALAR && i < scenario->site_count; i++)
        if (!strcmp(scenario->sites[i].name, name->text)) {
            *index = i;
            return 0;
        }
    const char *text = name->kind == NODE_SCALAR ? name->text : "";
    suggest_phrase(text, scenario->sites, scenario->site_count, sizeof scenario->sites[0], phrase, sizeof phrase);
    suggest_list(scenario->sites, scenario->site_count, sizeof scenario->sites[0], list, sizeof list);
    return node_fail(name, err, "no data centre '%.40s'%s; there are: %s", text, phrase, list);
}

static int read_wan(struct reader *reader, struct node *node, void *into)
{
    struct wan_link *link = into;
    int rc = table_read(&table_wan, node, node, link, reader->err);
    if (rc)
        return rc;
    const struct node *between = node_get(node, "between");
    if (!between || between->kind != NODE_LIST || between->count != 2)
        return node_fail(between ? between : node, reader->err,
                         "a WAN link joins two data centres; write 'between: [a, b]' with their names");
    rc = read_site_name(reader->scenario, between->first, &link->between[0], reader->err);
    rc = rc ? rc : read_site_name(reader->scenario, between->last, &link->between[1], reader->err);
    if (!rc && link->between[0] == link->between[1])
        rc = node_fail(between->last, reader->err, "a link from '%.40s' to itself; name two data centres",
                       between->last->text);
    return rc;
}

/* overlap: none (or absent), or {chunk, depth}. */
static int read_overlap(struct node *node, struct strategy *strategy, struct err *err)
{
    struct node *overlap = section(node, "overlap");
    if (!overlap || (overlap->kind == NODE_SCALAR && !strcmp(overlap->text, "none")))
        return 0;
    if (overlap->kind != NODE_MAP)
        return node_fail(overlap, err, "overlap is 'none' or a mapping like {chunk: 1 layer, depth: 4}");
    strategy->overlap = OVERLAP_CHUNKS;
    return table_read(&table_overlap, overlap, overlap, strategy, err);
}

static int read_strategy(struct reader *reader, struct node *node, void *into)
{
    struct strategy *strategy = into;
    int rc = table_read(&table_strategy, node, node, strategy, reader->err);
    for (const struct strategy *earlier = reader->scenario->strategies; !rc && earlier < strategy; earlier++)
        if (!strcmp(earlier->name, strategy->name))
            rc = node_fail(node_get(node, "name"), reader->err, "two strategies are named '%s'; give each its own name",
                           strategy->name);
    return rc ? rc : read_overlap(node, strategy, reader->err);
}

static int find_strategy(struct reader *reader, const struct node *name, size_t *index)
{
    const struct scenario *scenario = reader->scenario;
    char phrase[96], list[256];
    for (size_t i = 0; name->kind == NODE_SCALAR && i < scenario->strategy_count; i++)
        if (!strcmp(scenario->strategies[i].name, name->text)) {
            *index = i;
            return 0;
        }
    const char *text = name->kind == NODE_SCALAR ? name->text : "";
    suggest_phrase(text, scenario->strategies, scenario->strategy_count, sizeof scenario->strategies[0], phrase,
                   sizeof phrase);
    suggest_list(scenario->strategies, scenario->strategy_count, sizeof scenario->strategies[0], list, sizeof list);
    return node_fail(name, reader->err, "no strategy '%.40s'%s; there are: %s", text, phrase, list);
}

static int read_reference(struct reader *reader, struct node *node, void *into)
{
    struct reference *reference = into;
    int rc = table_read(&table_reference, node, node, reference, reader->err);
    if (rc)
        return rc;
    const struct node *strategy = node_get(node, "strategy");
    if (!strategy)
        return node_fail(node, reader->err, "a reference needs 'strategy': the name of one");
    size_t given = 0;
    const char *metric = "";
    for (size_t i = 0; reference_metrics[i]; i++)
        if (node_get(node, reference_metrics[i])) {
            metric = reference_metrics[i];
            given++;
        }
    if (given != 1)
        return node_fail(node, reader->err,
                         "a reference holds one figure, this one %zu; give one of efficiency, step, tokens_per_s, mfu",
                         given);
    rc = find_strategy(reader, strategy, &reference->strategy);
    return rc ? rc : copy_text(metric, &reference->metric, reader->err);
}

static int read_calibrate(struct reader *reader)
{
    struct calibrate *calibrate = &reader->scenario->calibrate;
    const struct training *training = &reader->scenario->training;
    struct node *node = section(reader->root, "calibrate");
    if (!node)
        return 0;
    int rc = table_read(&table_calibrate, node, node, calibrate, reader->err);
    if (rc)
        return rc;
    const struct node *on = node_get(node, "on"), *strategy = node_get(node, "strategy");
    if (on && (on->kind != NODE_SCALAR || strcmp(on->text, "one-datacenter")))
        return node_fail(on, reader->err, "calibration is on a single-site figure; write 'on: one-datacenter'");
    if (!node_get(node, "mfu") == !node_get(node, "step"))
        return node_fail(node, reader->err, "a calibration needs one measured figure; give either 'mfu' or 'step'");
    calibrate->present = true;
    if (!calibrate->data)
        calibrate->data = training->data;
    if (!calibrate->global_batch)
        calibrate->global_batch = training->global_batch / training->data * calibrate->data;
    return strategy ? find_strategy(reader, strategy, &calibrate->strategy) : 0;
}

static int read_model(struct reader *reader)
{
    struct model_spec *model = &reader->scenario->model;
    if (!section(reader->root, "model"))
        return node_fail(reader->root, reader->err,
                         "a scenario needs 'model'; write a preset's name, like 'model: gpt-3-175b'");
    int rc = preset_expand(reader->root, "model", PRESET_MODEL, reader->err);
    if (rc)
        return rc;
    const struct node *node = node_get(reader->root, "model");
    rc = table_read(&table_model, node, node, model, reader->err);
    if (!model->kv_heads)
        model->kv_heads = model->heads;
    if (!model->ffn)
        model->ffn = 4 * model->hidden;
    return rc ? rc : read_preset_name(node, &model->name, reader->err);
}

static int read_fabric(struct reader *reader)
{
    struct fabric *fabric = &reader->scenario->fabric;
    const struct site *first = &reader->scenario->sites[0];
    fabric->nics_per_node = first->gpus_per_node;
    fabric->nic_bit_per_s = first->gpu.nic_bit_per_s;
    fabric->nvlink_byte_per_s = first->gpu.nvlink_byte_per_s;
    return table_read(&table_fabric, section(reader->root, "fabric"), reader->root, fabric, reader->err);
}

static int read_training(struct reader *reader)
{
    struct training *training = &reader->scenario->training;
    struct node *node = section(reader->root, "training");
    int rc = table_read(&table_training, node, reader->root, training, reader->err);
    if (rc)
        return rc;
    /* scenario_check() refuses what does not divide; here only 0 must not come out. */
    long data = scenario_gpus(reader->scenario) / (training->tensor * training->pipeline);
    if (!training->data)
        training->data = data > 0 ? data : 1;
    training->kernel_efficiency_given = fabs(training->kernel_efficiency - 0.6) > 0;
    return 0;
}

static int read_sections(struct reader *reader)
{
    int rc = read_model(reader);
    rc = rc ? rc : read_fabric(reader);
    rc = rc ? rc : read_training(reader);
    struct node *transport = section(reader->root, "transport");
    return rc ? rc : table_read(&table_transport, transport, reader->root, &reader->scenario->transport, reader->err);
}

int scenario_read(struct node *root, struct scenario *scenario, struct err *err)
{
    struct reader reader = {root, scenario, err};
    int rc = table_read(&table_scenario, root, root, scenario, err);
    rc = rc ? rc
            : read_list(&reader, "datacenters", 1, SITES_MAX, sizeof *scenario->sites, (void **)&scenario->sites,
                        &scenario->site_count, read_site);
    rc = rc ? rc
            : read_list(&reader, "wan", 0, WAN_MAX, sizeof *scenario->wan, (void **)&scenario->wan,
                        &scenario->wan_count, read_wan);
    rc = rc ? rc : read_sections(&reader);
    rc = rc ? rc
            : read_list(&reader, "strategies", 1, STRATEGIES_MAX, sizeof *scenario->strategies,
                        (void **)&scenario->strategies, &scenario->strategy_count, read_strategy);
    rc = rc ? rc : read_calibrate(&reader);
    rc = rc ? rc
            : read_list(&reader, "reference", 0, REFERENCES_MAX, sizeof *scenario->references,
                        (void **)&scenario->references, &scenario->reference_count, read_reference);
    return rc ? rc : emulation_read(root, scenario, err);
}
