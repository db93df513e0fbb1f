#include "configs/keys.h"

#include <stddef.h>

#include "configs/scenario.h"

const char *const dtype_names[] = {
    [DTYPE_FP32] = "fp32", [DTYPE_TF32] = "tf32", [DTYPE_BF16] = "bf16", [DTYPE_FP16] = "fp16",
    [DTYPE_FP8] = "fp8",   [DTYPE_INT8] = "int8", [DTYPE_INT4] = "int4", [DTYPE_COUNT] = NULL,
};
const char *const jitter_shape_names[] = {[JITTER_NORMAL] = "normal",
                                          [JITTER_PARETO] = "pareto",
                                          [JITTER_PARETONORMAL] = "paretonormal",
                                          [JITTER_UNIFORM] = "uniform",
                                          NULL};
const char *const reference_metrics[] = {"efficiency", "step", "tokens_per_s", "mfu", NULL};

static const char *const recompute_names[] = {
    [RECOMPUTE_NONE] = "none", [RECOMPUTE_SELECTIVE] = "selective", [RECOMPUTE_FULL] = "full", NULL};
static const char *const convention_names[] = {
    [FLOPS_GQA] = "gqa", [FLOPS_MHA] = "mha", [FLOPS_UNSTATED] = "unstated", NULL};
static const char *const protocol_names[] = {[PROTOCOL_IDEAL] = "ideal", [PROTOCOL_TCP] = "tcp", NULL};
static const char *const allreduce_names[] = {
    [ALLREDUCE_RING] = "ring", [ALLREDUCE_HIERARCHICAL] = "hierarchical", NULL};
static const char *const order_names[] = {[ORDER_CONTIGUOUS] = "contiguous", [ORDER_INTERLEAVED] = "interleaved", NULL};
static const char *const sharding_names[] = {
    [SHARD_NONE] = "none", [SHARD_OPTIMIZER] = "optimizer", [SHARD_PARAMETERS] = "parameters", NULL};

/* The widest values that still mean something; they keep every product of the model finite. */
#define TIME_MAX 1e7   /* s */
#define BYTES_MAX 1e18 /* byte */
#define RATE_MAX 1e18  /* bit/s */
#define FLOPS_MAX 1e18 /* flop/s */
#define COUNT_MAX 1e6  /* waves, widths, heads */
#define TOKENS_MAX 1e8

#define TIME .kind = KEY_QUANTITY, .dimension = DIM_TIME, .high = TIME_MAX
#define BYTES_TO(most) .kind = KEY_QUANTITY, .dimension = DIM_BYTES, .high = (most)
#define BYTES BYTES_TO(BYTES_MAX)
#define RATE .kind = KEY_QUANTITY, .dimension = DIM_RATE, .high = RATE_MAX, .above = true
#define BYTE_RATE .kind = KEY_QUANTITY, .dimension = DIM_BYTE_RATE, .high = RATE_MAX / 8, .above = true
#define RATIO_TO(most) .kind = KEY_QUANTITY, .dimension = DIM_RATIO, .high = (most), .above = true
#define RATIO RATIO_TO(1)
#define FLOPS .kind = KEY_QUANTITY, .dimension = DIM_FLOPS, .high = FLOPS_MAX
#define COUNT .kind = KEY_COUNT, .low = 1, .high = COUNT_MAX
#define TEXT .kind = KEY_TEXT, .high = 256
#define NAME .kind = KEY_NAME, .high = NAME_MAX_LENGTH, .required = true
#define CHOICE(list) .kind = KEY_CHOICE, .choices = list
#define AT(type, field) .offset = offsetof(struct type, field)
#define TABLE(rows) .keys = rows, .count = sizeof rows / sizeof rows[0]

static const struct key scenario_keys[] = {
    {"name", NAME, AT(scenario, name), .meaning = "what results are filed under"},
    {"datacenters", KEY_SECTION, .meaning = "list: the sites, at least one"},
    {"fabric", KEY_SECTION, .meaning = "the network inside a site, the same in all"},
    {"wan", KEY_SECTION, .meaning = "list: links between sites; every pair of sites needs a path"},
    {"transport", KEY_SECTION, .meaning = "how messages move"},
    {"model", KEY_SECTION, .meaning = "a preset's name, or a mapping"},
    {"training", KEY_SECTION, .meaning = "parallelism, batch, number formats"},
    {"calibrate", KEY_SECTION, .meaning = "one measured single-site figure that fixes the compute time"},
    {"strategies", KEY_SECTION, .meaning = "list: communication strategies to compare, at least one"},
    {"reference", KEY_SECTION, .meaning = "list: published or measured figures, shown beside the prediction"},
    {"emu", KEY_SECTION, .meaning = "which addresses each site has on a real cluster, for longhaul-emu"},
    {"lab", KEY_SECTION, .meaning = "the scale model of the virtual-time lab"},
    {"scale", .kind = KEY_COUNT, .low = 1, .high = LAB_DIVIDE_MAX, AT(scenario, scale), .initial = "1",
     .meaning = "the model's bytes are divided by this: a scale model, whose rates are given divided too"},
    {"seed", .kind = KEY_COUNT, AT(scenario, seed), .high = 9007199254740991.0, .initial = "1",
     .meaning = "of everything drawn at random"},
};
const struct table table_scenario = {"a scenario", "", TABLE(scenario_keys)};

static const struct key site_keys[] = {
    {"name", NAME, AT(site, name), .meaning = "of the site; unique"},
    {"nodes", .kind = KEY_COUNT, .low = 1, .high = GPUS_MAX, AT(site, nodes), .required = true, .meaning = "servers"},
    {"gpus_per_node", .kind = KEY_COUNT, .low = 1, .high = 1024, AT(site, gpus_per_node), .initial = "8",
     .meaning = "GPUs of one server, joined by NVLink"},
    {"gpu", KEY_SECTION, .meaning = "a preset's name, or a mapping"},
};
const struct table table_site = {"a data centre", "datacenters[]", TABLE(site_keys)};

static const struct key gpu_keys[] = {
    {"preset", KEY_SECTION, .meaning = "a shipped GPU to start from; keys beside it override it"},
    {"flops", KEY_SECTION, .meaning = "dense peak by number format, at least one"},
    {"memory", BYTES, .above = true, AT(gpu_spec, memory_bytes), .required = true, .meaning = "of one GPU"},
    {"power", .kind = KEY_QUANTITY, .dimension = DIM_POWER, .high = 1e6, .above = true, AT(gpu_spec, power_w),
     .required = true, .meaning = "board power limit"},
    {"nvlink", BYTE_RATE, AT(gpu_spec, nvlink_byte_per_s), .required = true, .meaning = "one direction, one GPU"},
    {"nic", RATE, AT(gpu_spec, nic_bit_per_s), .required = true, .meaning = "one direction, the NIC usual for one GPU"},
    {"source", TEXT, AT(gpu_spec, source), .meaning = "where the figures come from"},
};
const struct table table_gpu = {"a GPU", "datacenters[].gpu", TABLE(gpu_keys)};

#define DENSE(format) FLOPS, AT(gpu_spec, flop_per_s[format]), .meaning = "dense peak; absent: the part has none"
static const struct key flops_keys[] = {
    {"fp32", DENSE(DTYPE_FP32)}, {"tf32", DENSE(DTYPE_TF32)}, {"bf16", DENSE(DTYPE_BF16)}, {"fp16", DENSE(DTYPE_FP16)},
    {"fp8", DENSE(DTYPE_FP8)},   {"int8", DENSE(DTYPE_INT8)}, {"int4", DENSE(DTYPE_INT4)},
};
const struct table table_flops = {"the peak flops of a GPU", "datacenters[].gpu.flops", TABLE(flops_keys)};

static const struct key fabric_keys[] = {
    {"nics_per_node", .kind = KEY_COUNT, .low = 1, .high = 1024, AT(fabric, nics_per_node),
     .meaning = "default: gpus_per_node of the first site"},
    {"nic_rate", RATE, .endless = true, AT(fabric, nic_bit_per_s),
     .meaning = "one direction, one NIC; default: the first site's GPU says"},
    {"latency", TIME, AT(fabric, latency_s), .initial = "5 us", .meaning = "one way, between two nodes of a site"},
    {"nvlink", BYTE_RATE, .endless = true, AT(fabric, nvlink_byte_per_s),
     .meaning = "one direction, one GPU; default: the first site's GPU says"},
    {"nvlink_latency", TIME, AT(fabric, nvlink_latency_s), .initial = "2 us",
     .meaning = "one way, between two GPUs of a node"},
    {"oversubscription", .kind = KEY_NUMBER, .low = 1, .high = 1000, AT(fabric, oversubscription), .initial = "1",
     .meaning = "a site's core carries nodes x node rate / this"},
};
const struct table table_fabric = {"the fabric", "fabric", TABLE(fabric_keys)};

static const struct key wan_keys[] = {
    {"between", KEY_SECTION, .meaning = "[a, b]: names of two sites"},
    {"waves", COUNT, AT(wan_link, waves), .initial = "1", .meaning = "wavelengths of this rate side by side"},
    {"wave_rate", RATE, .endless = true, AT(wan_link, wave_bit_per_s), .required = true,
     .meaning = "one direction, one wave"},
    {"rtt", TIME, AT(wan_link, rtt_s), .required = true, .meaning = "round trip; one way is half of it"},
    {"jitter", TIME, AT(wan_link, jitter_s), .initial = "0 s",
     .meaning = "standard deviation of the round trip; one direction has 1/sqrt(2) of it"},
    {"jitter_shape", CHOICE(jitter_shape_names), AT(wan_link, jitter_shape), .initial = "normal",
     .meaning = "how delays are spread around their mean"},
    {"loss", .kind = KEY_QUANTITY, .dimension = DIM_RATIO, .high = 1, .below = true, AT(wan_link, loss_ratio),
     .initial = "0 %", .meaning = "packets lost, one direction, on average"},
    {"loss_burst", .kind = KEY_NUMBER, .low = 1, .high = 1e6, AT(wan_link, loss_burst), .initial = "1",
     .meaning = "mean packets lost in a row; 1: losses are independent"},
};
const struct table table_wan = {"a WAN link", "wan[]", TABLE(wan_keys)};

static const struct key transport_keys[] = {
    {"eager", BYTES, AT(transport_settings, eager_bytes), .initial = "0 B",
     .meaning = "messages up to this size leave before the receiver is ready"},
    {"handshakes", .kind = KEY_COUNT, .high = 16, AT(transport_settings, handshakes), .initial = "0",
     .meaning = "round trips before a larger message leaves"},
    {"channels", .kind = KEY_COUNT, .low = 1, .high = 64, AT(transport_settings, channels), .initial = "1",
     .meaning = "rings (or pairs) that share a collective's bytes"},
    {"slices", .kind = KEY_COUNT, .low = 1, .high = 1024, AT(transport_settings, slices), .initial = "2",
     .meaning = "pieces a ring segment is sent in"},
    {"window", BYTES, .above = true, .endless = true, AT(transport_settings, window_bytes), .initial = "inf",
     .meaning = "in flight per connection across the WAN"},
    {"connections", .kind = KEY_COUNT, .low = 1, .high = 1024, AT(transport_settings, connections), .initial = "1",
     .meaning = "per pair of ranks across the WAN"},
    {"protocol", CHOICE(protocol_names), AT(transport_settings, protocol), .initial = "ideal",
     .meaning = "ideal: no headers, open windows; tcp: headers, slow start, restart after idle"},
    {"mtu", .kind = KEY_QUANTITY, .dimension = DIM_BYTES, .low = 576, .high = 65535, AT(transport_settings, mtu_bytes),
     .initial = "1500 B", .meaning = "of tcp: largest IP packet"},
};
const struct table table_transport = {"the transport", "transport", TABLE(transport_keys)};

static const struct key model_keys[] = {
    {"preset", KEY_SECTION, .meaning = "a shipped model to start from; keys beside it override it"},
    {"layers", .kind = KEY_COUNT, .low = 1, .high = 1e5, AT(model_spec, layers), .required = true,
     .meaning = "transformer layers"},
    {"hidden", COUNT, AT(model_spec, hidden), .required = true, .meaning = "width"},
    {"heads", COUNT, AT(model_spec, heads), .required = true, .meaning = "attention heads; divides hidden"},
    {"kv_heads", COUNT, AT(model_spec, kv_heads), .meaning = "key and value heads; divides heads; default: heads"},
    {"ffn", .kind = KEY_COUNT, .low = 1, .high = 4 * COUNT_MAX, AT(model_spec, ffn),
     .meaning = "width of the feed-forward layer; default: 4 x hidden"},
    {"gated", KEY_BOOL, AT(model_spec, gated), .initial = "false", .meaning = "SwiGLU: three matrices instead of two"},
    {"vocabulary", .kind = KEY_COUNT, .low = 1, .high = 1e8, AT(model_spec, vocabulary), .required = true,
     .meaning = "tokens known"},
    {"tied", KEY_BOOL, AT(model_spec, tied), .initial = "false",
     .meaning = "input and output embedding share their weights"},
    {"source", TEXT, AT(model_spec, source), .meaning = "where the shape comes from"},
};
const struct table table_model = {"a model", "model", TABLE(model_keys)};

static const struct key training_keys[] = {
    {"tensor", .kind = KEY_COUNT, .low = 1, .high = 1024, AT(training, tensor), .initial = "1",
     .meaning = "GPUs per tensor-parallel group; divides gpus_per_node"},
    {"pipeline", .kind = KEY_COUNT, .low = 1, .high = 1e5, AT(training, pipeline), .initial = "1",
     .meaning = "stages, inside one site"},
    {"interleave", .kind = KEY_COUNT, .low = 1, .high = 1e5, AT(training, interleave), .initial = "1",
     .meaning = "model chunks per stage; pipeline x interleave divides layers"},
    {"data", .kind = KEY_COUNT, .low = 1, .high = GPUS_MAX, AT(training, data),
     .meaning = "replicas over all sites; default: GPUs / (tensor x pipeline)"},
    {"sequence", .kind = KEY_COUNT, .low = 1, .high = TOKENS_MAX, AT(training, sequence), .initial = "4096",
     .meaning = "tokens of one sequence"},
    {"global_batch", .kind = KEY_COUNT, .low = 1, .high = TOKENS_MAX, AT(training, global_batch), .required = true,
     .meaning = "sequences per step; data x micro_batch divides it"},
    {"micro_batch", COUNT, AT(training, micro_batch), .initial = "1",
     .meaning = "sequences a replica works on at once"},
    {"compute", CHOICE(dtype_names), AT(training, compute), .initial = "bf16",
     .meaning = "number format whose peak MFU is measured against"},
    {"parameter", CHOICE(dtype_names), AT(training, parameter), .initial = "bf16",
     .meaning = "format of parameters, as gathered and as computed with"},
    {"gradient", CHOICE(dtype_names), AT(training, gradient), .initial = "bf16",
     .meaning = "format of gradients, as reduced"},
    {"optimizer", BYTES_TO(1024), AT(training, optimizer_bytes_per_parameter), .initial = "12 B",
     .meaning = "state per parameter; Adam in fp32 with master weights: 12 B"},
    {"recompute", CHOICE(recompute_names), AT(training, recompute), .initial = "selective",
     .meaning = "activations computed again in the backward pass"},
    {"kernel_efficiency", RATIO, AT(training, kernel_efficiency), .initial = "60 %",
     .meaning =
         "share of peak that kernels reach; used where nothing calibrates; at its default it is reported as assumed"},
};
const struct table table_training = {"training", "training", TABLE(training_keys)};

static const struct key calibrate_keys[] = {
    {"mfu", RATIO, AT(calibrate, mfu), .meaning = "measured; this or step"},
    {"step", TIME, .above = true, AT(calibrate, step_s), .meaning = "measured; this or mfu"},
    {"convention", CHOICE(convention_names), AT(calibrate, convention), .initial = "unstated",
     .meaning = "how mfu counts flops; unstated: both readings are printed"},
    {"on", KEY_SECTION, .meaning = "one-datacenter (the only and default value): what was measured"},
    {"data", .kind = KEY_COUNT, .low = 1, .high = GPUS_MAX, AT(calibrate, data),
     .meaning = "replicas of the measured run; default: training.data"},
    {"global_batch", .kind = KEY_COUNT, .low = 1, .high = 1e15, AT(calibrate, global_batch),
     .meaning = "of the measured run; default: as many sequences per replica as in training"},
    {"strategy", KEY_SECTION, .meaning = "name of the strategy that was measured; default: the first"},
    {"source", TEXT, AT(calibrate, source), .meaning = "where the figure comes from"},
};
const struct table table_calibrate = {"a calibration", "calibrate", TABLE(calibrate_keys)};

static const struct key strategy_keys[] = {
    {"name", NAME, AT(strategy, name), .meaning = "unique"},
    {"allreduce", CHOICE(allreduce_names), AT(strategy, allreduce), .required = true,
     .meaning = "one ring over all sites, or reduce-scatter inside, all-reduce across, all-gather inside"},
    {"order", CHOICE(order_names), AT(strategy, order), .initial = "contiguous",
     .meaning = "of a ring: site after site, or alternating between sites"},
    {"sharding", CHOICE(sharding_names), AT(strategy, sharding), .initial = "none",
     .meaning = "what the replicas share out: nothing, optimiser states (ZeRO-1), parameters too (FSDP, HSDP)"},
    {"overlap", KEY_SECTION, .meaning = "none (default), or {chunk, depth}: reduce while backward runs"},
};
const struct table table_strategy = {"a strategy", "strategies[]", TABLE(strategy_keys)};

static const struct key overlap_keys[] = {
    {"chunk", KEY_LAYERS, .low = 1, .high = 1e5, AT(strategy, chunk_layers), .initial = "1 layer",
     .meaning = "layers reduced at once; divides the layers of a model chunk"},
    {"depth", .kind = KEY_COUNT, .low = 1, .high = 1024, AT(strategy, depth), .initial = "1",
     .meaning = "chunks in flight at once"},
};
const struct table table_overlap = {"an overlap", "strategies[].overlap", TABLE(overlap_keys)};

/* The four metrics share one field: a reference holds exactly one of them. */
static const struct key reference_keys[] = {
    {"strategy", KEY_SECTION, .meaning = "name of the strategy the figure is for"},
    {"efficiency", RATIO_TO(2), AT(reference, value), .meaning = "one-site step / step"},
    {"step", TIME, .above = true, AT(reference, value), .meaning = "time of a step"},
    {"tokens_per_s", .kind = KEY_NUMBER, .high = 1e15, .above = true, AT(reference, value),
     .meaning = "of the whole job"},
    {"mfu", RATIO, AT(reference, value), .meaning = "model flops utilisation"},
    {"convention", CHOICE(convention_names), AT(reference, convention), .initial = "unstated",
     .meaning = "how mfu counts flops"},
    {"source", TEXT, AT(reference, source), .required = true, .meaning = "where the figure comes from"},
};
const struct table table_reference = {"a reference", "reference[]", TABLE(reference_keys)};

static const struct key emu_keys[] = {
    {"sites", KEY_SECTION, .meaning = "list: one element for every site of datacenters"},
};
const struct table table_emu = {"emu", "emu", TABLE(emu_keys)};

static const struct key emu_site_keys[] = {
    {"site", KEY_SECTION, .meaning = "name of the site"},
    {"prefixes", KEY_SECTION,
     .meaning = "list: 1 to 4096 addresses or prefixes of its nodes, IPv4 or IPv6, like [10.1.0.0/16, fd00:1::/32]; "
                "those of different sites do not overlap"},
};
const struct table table_emu_site = {"a site's addresses", "emu.sites[]", TABLE(emu_site_keys)};

static const struct key lab_keys[] = {
    {"hosts", .kind = KEY_COUNT, .low = 1, .high = LAB_HOSTS_MAX, AT(lab_settings, hosts),
     .meaning = "per site, not above its nodes; default: the nodes of the smallest site, at most 4"},
    {"divide", .kind = KEY_COUNT, .low = 1, .high = LAB_DIVIDE_MAX, AT(lab_settings, divide),
     .meaning = "bytes and rates are divided by this, times are not; default: the smallest power of 10 that brings "
                "every WAN link to 1 Gb/s or less"},
};
const struct table table_lab = {"the lab", "lab", TABLE(lab_keys)};

const struct table *const tables_all[] = {
    &table_scenario,
    &table_site,
    &table_gpu,
    &table_flops,
    &table_fabric,
    &table_wan,
    &table_transport,
    &table_model,
    &table_training,
    &table_calibrate,
    &table_strategy,
    &table_overlap,
    &table_reference,
    &table_emu,
    &table_emu_site,
    &table_lab,
    NULL,
};
