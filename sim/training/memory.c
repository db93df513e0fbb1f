#include "model.h"

#include <errno.h>
#include <math.h>

#include "schedule.h"

/* Everything here is bytes on one GPU. Symbols as in arXiv 2205.05198 (Korthikanti et al.): a heads, b micro-batch,
 * h hidden, L layers, p stages, s sequence, t tensor-parallel GPUs, V vocabulary (theirs: v), v chunks per stage
 * (theirs: m). Activations are 16 bit, dropout masks 8 bit, logits 32 bit, as there. Tensor parallelism always comes
 * with sequence parallelism, so everything is divided by t. */

/* Activations one layer stores without recomputation, bytes per s b h (eq. 1 and 4: 34 + 5 a s / h with f = 4h, no
 * grouping). Theirs term by term, written so that grouped queries (k of a) and any FFN fit:
 *   attention  input 2, query 2, key and value 2 + 2 (x k/a), input of the output projection 2, dropout mask 1
 *   ffn        input 2, dropout mask 1, input of the activation and of the second matrix 2 + 2 (x f/h; gated: 3 x 2)
 *   two layer norms 4
 *   scores     softmax 2, its dropout mask 1 and output 2 (x a s / h)
 * Selective recomputation drops the scores (eq. 6: 34). So do fused kernels (FlashAttention) of their own accord: a run
 * that uses them and recomputes nothing has the memory of RECOMPUTE_SELECTIVE. */
static double stored_per_sbh(const struct scenario *scenario, enum recompute recompute)
{
    const struct model_spec *model = &scenario->model;
    double hidden = (double)model->hidden, heads = (double)model->heads;
    double attention = 7 + 4 * (double)model->kv_heads / heads;
    double ffn = 3 + (model->gated ? 6 : 4) * (double)model->ffn / hidden;
    double scores = 5 * heads * (double)scenario->training.sequence / hidden;

    return attention + ffn + 4 + (recompute == RECOMPUTE_NONE ? scores : 0);
}

/* s b h / t. */
static double sbh_per_gpu(const struct scenario *scenario)
{
    const struct training *training = &scenario->training;

    return (double)training->sequence * (double)training->micro_batch * (double)scenario->model.hidden /
           (double)training->tensor;
}

/* Full recomputation keeps a layer's input only: 2 s b h / t (table 2 has 2 s b h, without sequence parallelism, under
 * which Megatron-LM keeps the scattered input). */
double model_layer_activation_bytes(const struct scenario *scenario)
{
    if (scenario->training.recompute == RECOMPUTE_FULL)
        return 2 * sbh_per_gpu(scenario);
    return stored_per_sbh(scenario, scenario->training.recompute) * sbh_per_gpu(scenario);
}

/* Micro-batches whose activations a stage holds at once, in units of all its chunks: warm-up forwards plus one. On
 * stage 0 that is min(p, m), interleaved p (1 + (p - 1) / (p v)) (section 4.2.3). */
static double in_flight(const struct schedule_shape *shape, long stage)
{
    double chunks = fmin((double)schedule_warm_up(shape, stage) + 1, (double)(shape->micro_batches * shape->chunks));

    return chunks / (double)shape->chunks;
}

/* Layers x micro-batches in flight. Besides, under full recomputation, the one layer just rebuilt (its attention taken
 * as fused, or its scores would be rebuilt once more); on the first stage the embedding's dropout mask, s b h per
 * micro-batch; on the last the final norm, the output layer's input and the logits, 4 s b h (1 + V/h) (section 4.3). */
static double activation_bytes(const struct scenario *scenario, const struct schedule_shape *shape, long stage)
{
    double sbh = sbh_per_gpu(scenario);
    double layers = (double)scenario->model.layers / (double)shape->stages;
    double held = in_flight(shape, stage);
    double bytes = layers * held * model_layer_activation_bytes(scenario);

    if (scenario->training.recompute == RECOMPUTE_FULL)
        bytes += stored_per_sbh(scenario, RECOMPUTE_SELECTIVE) * sbh;
    if (stage == 0)
        bytes += sbh * held;
    if (stage == shape->stages - 1)
        bytes += 4 * sbh * (1 + (double)scenario->model.vocabulary / (double)scenario->model.hidden);
    return bytes;
}

/* Parameters of one GPU of a stage: its layers, the input embedding on the first stage, the output layer on the last (a
 * copy of its own when tied to an embedding on another stage), all over t. */
static double stage_parameters(const struct scenario *scenario, long stage)
{
    const struct model_spec *model = &scenario->model;
    const struct training *training = &scenario->training;
    double embedding = (double)model->vocabulary * (double)model->hidden;
    double parameters = (double)model->layers / (double)training->pipeline * model_layer_parameters(model);

    if (stage == 0)
        parameters += embedding;
    if (stage == training->pipeline - 1 && !(stage == 0 && model->tied))
        parameters += embedding;
    return parameters / (double)training->tensor;
}

/* Replicas over which one copy of the state is spread: those of a site when the collective is hierarchical (of the site
 * with the fewest), all of them in one ring. */
static double shard_count(const struct scenario *scenario, const struct strategy *strategy, size_t sites)
{
    const struct training *training = &scenario->training;
    long shards = training->data;

    if (strategy->sharding == SHARD_NONE)
        return 1;
    if (sites == 1 || strategy->allreduce == ALLREDUCE_RING)
        return (double)shards;
    for (size_t i = 0; i < scenario->site_count; i++) {
        const struct site *site = &scenario->sites[i];
        long here = site->nodes * site->gpus_per_node / (training->tensor * training->pipeline);

        shards = here < shards ? here : shards;
    }
    return (double)shards;
}

/* Parameters that sharding has gathered (and gradients not yet scattered) at one moment. A unit is a layer, or a chunk
 * of layers under OVERLAP_CHUNKS; the embedding is gathered alone. Without overlap one unit; with it the unit at work
 * and those on their way: one in a hierarchical collective (what waits for the WAN is a shard), `depth` in a ring over
 * all sites. FSDP (arXiv 2304.11277, section 3.4, rate limiter) likewise has at most two gathers in flight. */
static double working_parameters(const struct scenario *scenario, const struct strategy *strategy)
{
    const struct model_spec *model = &scenario->model;
    double embedding = (double)model->vocabulary * (double)model->hidden;
    double layers = 1;

    if (strategy->overlap == OVERLAP_CHUNKS)
        layers = (double)strategy->chunk_layers *
                 (1 + (strategy->allreduce == ALLREDUCE_RING ? (double)strategy->depth : 1));
    layers = fmin(layers, (double)model->layers / (double)scenario->training.pipeline);
    return fmax(layers * model_layer_parameters(model), embedding) / (double)scenario->training.tensor;
}

static struct memory stage_memory(const struct scenario *scenario, const struct strategy *strategy, double shards,
                                  const struct schedule_shape *shape, long stage)
{
    const struct training *training = &scenario->training;
    double held = stage_parameters(scenario, stage), kept = held;
    struct memory memory = {.stage = stage, .shards = shards};

    if (strategy->sharding == SHARD_PARAMETERS)
        kept = fmin(held, held / shards + working_parameters(scenario, strategy));
    double scale = (double)scenario->scale;
    memory.parameters = kept * dtype_bytes(training->parameter) / scale;
    memory.gradients = kept * dtype_bytes(training->gradient) / scale;
    memory.optimizer = held * training->optimizer_bytes_per_parameter / shards / scale;
    memory.activations = activation_bytes(scenario, shape, stage) / scale;
    memory.total = memory.parameters + memory.gradients + memory.optimizer + memory.activations;
    return memory;
}

/* The ranges of scenario.h that the formulas divide by. */
static int check_scenario(const struct scenario *scenario, size_t sites, struct err *err)
{
    const struct model_spec *model = &scenario->model;
    const struct training *training = &scenario->training;
    long replica_batch = training->data * training->micro_batch;

    if (sites != 1 && sites != scenario->site_count)
        return err_set(err, EINVAL, "memory is known for 1 site or all %zu, not %zu", scenario->site_count, sites);
    if (model->layers < 1 || model->hidden < 1 || model->heads < 1)
        return err_set(err, EINVAL, "model %s has no layers, hidden size or heads",
                       model->name ? model->name : "inline");
    if (training->tensor < 1 || training->pipeline < 1 || training->interleave < 1 || replica_batch < 1)
        return err_set(err, EINVAL, "tensor, pipeline, interleave, data and micro_batch must be at least 1");
    if (model->layers % (training->pipeline * training->interleave) != 0)
        return err_set(err, EINVAL, "%ld layers do not divide into pipeline %ld x interleave %ld chunks", model->layers,
                       training->pipeline, training->interleave);
    if (training->global_batch < 1 || training->global_batch % replica_batch != 0)
        return err_set(err, EINVAL, "global_batch %ld is not data %ld x micro_batch %ld x a whole number",
                       training->global_batch, training->data, training->micro_batch);
    return 0;
}

/* Middle stages hold fewer micro-batches than the first and no embedding: the fullest is the first or the last. */
int model_memory(const struct scenario *scenario, const struct strategy *strategy, size_t sites, struct memory *memory,
                 struct err *err)
{
    const struct training *training = &scenario->training;
    struct schedule_shape shape = {.stages = training->pipeline, .chunks = training->interleave};
    struct memory last;
    double shards;
    int rc = check_scenario(scenario, sites, err);

    if (rc < 0)
        return rc;
    shape.micro_batches = training->global_batch / (training->data * training->micro_batch);
    rc = schedule_check(&shape, err);
    if (rc < 0)
        return rc;
    shards = shard_count(scenario, strategy, sites);
    *memory = stage_memory(scenario, strategy, shards, &shape, 0);
    last = stage_memory(scenario, strategy, shards, &shape, shape.stages - 1);
    if (last.total > memory->total)
        *memory = last;
    memory->available = INFINITY;
    for (size_t i = 0; i < scenario->site_count; i++)
        memory->available = fmin(memory->available, scenario->sites[i].gpu.memory_bytes);
    memory->out_of_memory = memory->total > memory->available;
    return 0;
}
