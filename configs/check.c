#include <math.h>

#include "configs/keys.h"
#include "configs/read.h"

/* Points at a key's value, or at the nearest thing above it that the file has. */
#define FAIL(path, ...) node_fail(node_nearest(root, path), err, __VA_ARGS__)

/* Points at list[index].key. */
static const struct node *element(const struct node *root, const char *list, size_t index, const char *key)
{
    const struct node *node = node_get(root, list);
    node = node ? node_at(node, index) : root;
    const struct node *member = node_get(node, key);
    return member ? member : node;
}

/* Every site must be reachable from the first. */
static int check_paths(const struct node *root, const struct scenario *scenario, struct err *err)
{
    bool reached[SITES_MAX] = {true};
    for (bool grew = true; grew;) {
        grew = false;
        for (size_t i = 0; i < scenario->wan_count; i++) {
            const size_t *between = scenario->wan[i].between;
            if (reached[between[0]] != reached[between[1]])
                reached[between[0]] = reached[between[1]] = grew = true;
        }
    }
    for (size_t i = 0; i < scenario->site_count; i++)
        if (!reached[i])
            return node_fail(
                element(root, "datacenters", i, "name"), err,
                "no path over the WAN from '%s' to '%s'; add a link to 'wan', like {between: [%s, %s], ...}",
                scenario->sites[0].name, scenario->sites[i].name, scenario->sites[0].name, scenario->sites[i].name);
    return 0;
}

/* Each direction has half of the delay and, its jitter being independent, 1/sqrt(2) of the standard deviation. */
static int check_jitter(const struct node *place, const struct wan_link *link, struct err *err)
{
    char jitter[48], each[48], delay[48], most[48];
    double one_way_s = link->rtt_s / 2;
    if (link->jitter_s / M_SQRT2 <= one_way_s)
        return 0;
    units_format(link->jitter_s, DIM_TIME, 4, jitter, sizeof jitter);
    units_format(link->jitter_s / M_SQRT2, DIM_TIME, 4, each, sizeof each);
    units_format(one_way_s, DIM_TIME, 4, delay, sizeof delay);
    units_format(link->rtt_s / M_SQRT2 * 0.999, DIM_TIME, 4, most, sizeof most); /* may be rounded up */
    return node_fail(place, err,
                     "jitter %s (sd of the RTT) is %s one way, more than the one-way delay of %s; at most %s fits this "
                     "rtt",
                     jitter, each, delay, most);
}

/* Gilbert: bursts end with probability 1/burst a packet and so begin with loss / (burst (1 - loss)), which is at
 * most 1. Independent losses (burst 1) are another model and fit every loss. */
static int check_loss(const struct node *place, const struct wan_link *link, struct err *err)
{
    char loss[48];
    double least = link->loss_ratio / (1 - link->loss_ratio);
    if (link->loss_burst <= 1)
        return 0;
    if (link->loss_ratio <= 0)
        return node_fail(place, err, "loss_burst without loss; add one, like 'loss: 0.1 %%', or remove loss_burst");
    if (link->loss_burst < least)
        return node_fail(place, err,
                         "%s loss cannot come in bursts of %g packets: less than a packet would be between them; "
                         "loss_burst %g or more would fit",
                         units_format(link->loss_ratio, DIM_RATIO, 4, loss, sizeof loss), link->loss_burst,
                         ceil(least * 1000) / 1000);
    return 0;
}

static int check_impairments(const struct node *root, const struct scenario *scenario, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < scenario->wan_count; i++) {
        rc = check_jitter(element(root, "wan", i, "jitter"), &scenario->wan[i], err);
        rc = rc ? rc : check_loss(element(root, "wan", i, "loss_burst"), &scenario->wan[i], err);
    }
    return rc;
}

static int check_model(const struct node *root, const struct scenario *scenario, struct err *err)
{
    const struct model_spec *model = &scenario->model;
    if (model->hidden % model->heads)
        return FAIL("model.heads", "%ld heads do not divide hidden %ld", model->heads, model->hidden);
    if (model->heads % model->kv_heads)
        return FAIL("model.kv_heads", "%ld key-value heads do not divide %ld heads", model->kv_heads, model->heads);
    return 0;
}

static int check_peak(const struct node *root, const struct scenario *scenario, struct err *err)
{
    enum dtype format = scenario->training.compute;
    for (size_t i = 0; i < scenario->site_count; i++)
        if (scenario->sites[i].gpu.flop_per_s[format] <= 0)
            return FAIL("training.compute",
                        "GPU '%s' of '%s' has no %s peak; add it to the GPU's flops or compute in another format",
                        scenario->sites[i].gpu.name, scenario->sites[i].name, dtype_names[format]);
    return 0;
}

static int check_gpu_count(const struct node *root, const struct scenario *scenario, struct err *err)
{
    const struct training *training = &scenario->training;
    long gpus = scenario_gpus(scenario), group = training->tensor * training->pipeline;
    if (gpus > GPUS_MAX)
        return FAIL("datacenters", "%ld GPUs in all; at most %d are possible", gpus, GPUS_MAX);
    if (group * training->data == gpus)
        return 0;
    const char *place = node_get(node_get(root, "training"), "data") ? "training.data" : "training.pipeline";
    if (gpus % group)
        return FAIL(place, "tensor %ld x pipeline %ld = %ld GPUs a replica do not divide the %ld GPUs",
                    training->tensor, training->pipeline, group, gpus);
    return FAIL(place, "tensor %ld x pipeline %ld x data %ld = %ld, but there are %ld GPUs; data %ld would fit",
                training->tensor, training->pipeline, training->data, group * training->data, gpus, gpus / group);
}

static int check_site_shape(const struct node *root, const struct scenario *scenario, struct err *err)
{
    const struct training *training = &scenario->training;
    long group = training->tensor * training->pipeline;
    for (size_t i = 0; i < scenario->site_count; i++) {
        const struct site *site = &scenario->sites[i];
        if (site->gpus_per_node % training->tensor)
            return FAIL("training.tensor", "tensor %ld does not divide the %ld GPUs of a node in '%s'",
                        training->tensor, site->gpus_per_node, site->name);
        if (site_gpus(site) % group)
            return FAIL(
                "training.pipeline",
                "the %ld GPUs of '%s' do not hold a whole number of replicas of tensor %ld x pipeline %ld = %ld",
                site_gpus(site), site->name, training->tensor, training->pipeline, group);
    }
    return 0;
}

static int check_layers(const struct node *root, const struct scenario *scenario, struct err *err)
{
    const struct training *training = &scenario->training;
    if (scenario->model.layers % training->pipeline)
        return FAIL("training.pipeline", "pipeline %ld does not divide the model's %ld layers", training->pipeline,
                    scenario->model.layers);
    if (scenario->model.layers / training->pipeline % training->interleave)
        return FAIL("training.interleave", "pipeline %ld x interleave %ld does not divide the model's %ld layers",
                    training->pipeline, training->interleave, scenario->model.layers);
    return 0;
}

/* The batch of one run, and that its pipeline can be filled. */
static int check_batch(const struct node *place, const struct training *training, long data, long global_batch,
                       struct err *err)
{
    long wave = data * training->micro_batch;
    if (global_batch % wave)
        return node_fail(place, err,
                         "global_batch %ld is no multiple of data %ld x micro_batch %ld = %ld; %ld would fit",
                         global_batch, data, training->micro_batch, wave, (global_batch / wave + 1) * wave);
    long micro_batches = global_batch / wave;
    if (training->interleave > 1 && micro_batches % training->pipeline)
        return node_fail(
            place, err,
            "interleave %ld needs a multiple of pipeline %ld micro-batches a replica, not %ld; global_batch %ld "
            "would fit",
            training->interleave, training->pipeline, micro_batches,
            (micro_batches / training->pipeline + 1) * training->pipeline * wave);
    return 0;
}

static int check_batches(const struct node *root, const struct scenario *scenario, struct err *err)
{
    const struct training *training = &scenario->training;
    const struct calibrate *calibrate = &scenario->calibrate;
    int rc =
        check_batch(node_nearest(root, "training.global_batch"), training, training->data, training->global_batch, err);
    if (rc || !calibrate->present)
        return rc;
    return check_batch(node_nearest(root, "calibrate.global_batch"), training, calibrate->data, calibrate->global_batch,
                       err);
}

static int check_strategies(const struct node *root, const struct scenario *scenario, struct err *err)
{
    const struct training *training = &scenario->training;
    long chunk = scenario->model.layers / (training->pipeline * training->interleave);
    for (size_t i = 0; i < scenario->strategy_count; i++) {
        const struct strategy *strategy = &scenario->strategies[i];
        if (strategy->order == ORDER_INTERLEAVED && strategy->allreduce != ALLREDUCE_RING)
            return node_fail(element(root, "strategies", i, "order"), err,
                             "order is for allreduce: ring; remove it or choose ring");
        if (strategy->overlap == OVERLAP_CHUNKS && chunk % strategy->chunk_layers)
            return node_fail(
                element(root, "strategies", i, "overlap"), err,
                "chunk %ld does not divide the %ld layers of a model chunk (layers / pipeline / interleave)",
                strategy->chunk_layers, chunk);
    }
    return 0;
}

static int (*const checks[])(const struct node *root, const struct scenario *scenario, struct err *err) = {
    check_paths,      check_impairments, check_model,   check_peak,       check_gpu_count,
    check_site_shape, check_layers,      check_batches, check_strategies, emulation_check,
};

int scenario_check(const struct node *root, const struct scenario *scenario, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof checks / sizeof checks[0]; i++)
        rc = checks[i](root, scenario, err);
    return rc;
}
