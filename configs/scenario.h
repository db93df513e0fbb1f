/* A scenario: what is asked of longhaul, read from YAML, checked, every default filled in.
 *
 * All quantities are SI with the unit in the name. The loader is the only place that reads user text; everything below
 * it may rely on the ranges given here. README's scenario reference lists the YAML keys.
 */
#ifndef LONGHAUL_SCENARIO_H
#define LONGHAUL_SCENARIO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "configs/err.h"
#include "configs/prefix.h"

enum dtype { DTYPE_FP32, DTYPE_TF32, DTYPE_BF16, DTYPE_FP16, DTYPE_FP8, DTYPE_INT8, DTYPE_INT4, DTYPE_COUNT };

/* Name as in YAML ("bf16") and size in bytes (int4: 0.5). */
const char *dtype_name(enum dtype dtype);
double dtype_bytes(enum dtype dtype);

struct gpu_spec {
    char *name;                     /* preset name, or "inline" */
    double flop_per_s[DTYPE_COUNT]; /* dense peak; 0 where the part cannot */
    double memory_bytes;            /* > 0 */
    double power_w;                 /* > 0, board power limit */
    double nvlink_byte_per_s;       /* > 0, one direction, per GPU */
    double nic_bit_per_s;           /* > 0, one direction, of the NIC usually paired with one GPU */
    char *source;                   /* where the figures come from */
};

struct model_spec {
    char *name;      /* preset name, or "inline" */
    long layers;     /* L >= 1 */
    long hidden;     /* h >= 1 */
    long heads;      /* >= 1, divides hidden */
    long kv_heads;   /* >= 1, divides heads */
    long ffn;        /* >= 1, width of the feed-forward layer */
    bool gated;      /* gated feed-forward (SwiGLU): three matrices instead of two */
    long vocabulary; /* V >= 1 */
    bool tied;       /* input and output embedding share their weights */
    char *source;
};

struct site {
    char *name;
    long nodes;         /* >= 1 */
    long gpus_per_node; /* >= 1 */
    struct gpu_spec gpu;
};

struct fabric {
    long nics_per_node;       /* >= 1 */
    double nic_bit_per_s;     /* > 0, one direction; INFINITY allowed */
    double latency_s;         /* >= 0, one way, between two nodes of a site */
    double nvlink_byte_per_s; /* > 0, one direction, per GPU */
    double nvlink_latency_s;  /* >= 0, one way, between two GPUs of a node */
    double oversubscription;  /* >= 1: a site's core carries nodes x node rate / this */
};

/* How the delay of a packet is spread around its mean; every shape has mean 0 and the standard deviation asked for. */
enum jitter_shape { JITTER_NORMAL, JITTER_PARETO, JITTER_PARETONORMAL, JITTER_UNIFORM };

struct wan_link {
    size_t between[2];     /* indices into sites, different */
    long waves;            /* >= 1 */
    double wave_bit_per_s; /* > 0, one direction; INFINITY allowed */
    double rtt_s;          /* >= 0; one way is half of it */
    double jitter_s;       /* >= 0: standard deviation of the round trip; each direction has 1/sqrt(2) of it */
    enum jitter_shape jitter_shape;
    double loss_ratio; /* [0, 1): packets lost, one direction, on average */
    double loss_burst; /* >= 1: mean packets lost in a row (Gilbert); 1: independent losses */
};

/* Where a site's nodes are in the address plan of a real cluster. */
struct emu_site {
    size_t site; /* index into sites */
    size_t prefix_count;
    struct prefix *prefixes; /* of different sites: disjoint */
};

/* The scale model of the lab: rates and bytes divided by the same factor, times left alone. */
struct lab_settings {
    long hosts; /* >= 1 per site, at most 64 and the site's nodes; default: the nodes of the smallest site, at most 4 */
    long divide; /* >= 1; default: the smallest power of 10 that brings every WAN link to 1 Gb/s or less */
};

enum transport_protocol {
    PROTOCOL_IDEAL, /* bytes and rates are what the application sees, a window is open at once */
    PROTOCOL_TCP    /* Linux TCP over Ethernet; sim/engine/tcp.h */
};

/* How messages move; see sim/training/transport.h for the semantics. */
struct transport_settings {
    double eager_bytes; /* >= 0: messages up to this size leave without the receiver being ready; 0: none do */
    long handshakes; /* >= 0 round trips before a message above eager_bytes leaves; 0: leaves when both sides are ready
                      */
    long channels;   /* >= 1 rings (or pairs) that share a collective's bytes */
    long slices;     /* >= 1 pieces a ring segment is sent in */
    double window_bytes; /* > 0 bytes in flight per connection across the WAN; INFINITY: no limit */
    long connections;    /* >= 1 connections per pair of ranks across the WAN */
    enum transport_protocol protocol;
    double mtu_bytes; /* PROTOCOL_TCP: IP packet, 576 to 65535 */
};

enum recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL };

struct training {
    long tensor;     /* GPUs per tensor-parallel group, >= 1; divides gpus_per_node of every site */
    long pipeline;   /* stages, >= 1 */
    long interleave; /* model chunks per stage (virtual pipeline), >= 1; pipeline x interleave divides layers */
    long data; /* replicas over all sites, >= 1; tensor x pipeline x data = GPUs; a whole number of replicas per site */
    long sequence;                        /* tokens */
    long global_batch;                    /* sequences per step */
    long micro_batch;                     /* sequences; global_batch = data x micro_batch x a whole number */
    enum dtype compute;                   /* whose peak MFU is measured against */
    enum dtype parameter;                 /* as gathered and as kept for compute */
    enum dtype gradient;                  /* as reduced */
    double optimizer_bytes_per_parameter; /* Adam in fp32 with master weights: 12 */
    enum recompute recompute;
    double kernel_efficiency;     /* (0, 1]: share of peak that the kernels reach; used, and said to be assumed, where
                                     nothing calibrates */
    bool kernel_efficiency_given; /* it differs from the default of 60 %: the user chose it */
};

/* MFU conventions of FACTS.md; UNSTATED: calibrate and print under both. */
enum flops_convention { FLOPS_GQA, FLOPS_MHA, FLOPS_UNSTATED };

struct calibrate {
    bool present;
    double mfu;                       /* (0, 1], or 0 where step_s is given instead */
    double step_s;                    /* > 0, or 0 where mfu is given */
    enum flops_convention convention; /* of mfu */
    long data;                        /* replicas of the measured single-site run; default: training.data */
    long global_batch;                /* of the measured run; default: training.global_batch x data / training.data */
    size_t strategy;                  /* index of the strategy the measured run used; default 0 */
    char *source;                     /* may be NULL */
};

enum allreduce { ALLREDUCE_RING, ALLREDUCE_HIERARCHICAL };
enum ring_order { ORDER_CONTIGUOUS, ORDER_INTERLEAVED };
enum sharding {
    SHARD_NONE,      /* every replica keeps everything; gradients are all-reduced */
    SHARD_OPTIMIZER, /* gradients reduce-scattered, parameters all-gathered at the start of the step (ZeRO-1) */
    SHARD_PARAMETERS /* parameters gathered per layer, forward and backward (FSDP; hierarchical: HSDP) */
};
enum overlap { OVERLAP_NONE, OVERLAP_CHUNKS };

struct strategy {
    char *name; /* unique in the scenario */
    enum allreduce allreduce;
    enum ring_order order; /* ring only */
    enum sharding sharding;
    enum overlap overlap;
    long chunk_layers; /* OVERLAP_CHUNKS: layers per chunk, >= 1, divides the layers of a model chunk */
    long depth;        /* OVERLAP_CHUNKS: chunks in flight at once, >= 1 */
};

struct reference {
    size_t strategy;                  /* index into strategies */
    char *metric;                     /* "efficiency", "step", "tokens_per_s", "mfu" */
    double value;                     /* SI: ratio, s, 1/s */
    enum flops_convention convention; /* for mfu */
    char *source;                     /* never NULL */
};

struct scenario {
    char *name;
    size_t site_count; /* >= 1 */
    struct site *sites;
    struct fabric fabric;
    size_t wan_count;
    struct wan_link *wan; /* every pair of sites has a path */
    struct transport_settings transport;
    struct model_spec model;
    struct training training;
    struct calibrate calibrate;
    size_t strategy_count; /* >= 1 */
    struct strategy *strategies;
    size_t reference_count;
    struct reference *references;
    size_t emu_site_count;
    struct emu_site *emu_sites; /* either none or one for every site */
    struct lab_settings lab;
    long scale; /* >= 1: the model's bytes are divided by this; 1: full scale */
    uint64_t seed;
    char hash[17]; /* 64-bit FNV-1a, in hex, of the resolved scenario without its name, sources, references, emu, lab */
};

/* Loads a scenario: path_or_preset is a file if it exists or contains '/', else a shipped preset's name.
 * sets: set_count texts "KEY=VALUE" as given to --set, applied before validation (wan.rtt=5ms touches every WAN link,
 * wan.0.rtt one, strategies.har.overlap.depth the one of that name; "KEY=" removes the key, so that its default
 * applies). On success *scenario is filled (free with scenario_free). On failure returns -EINVAL / -ENOENT / -ENOMEM
 * with one line "file:line:column: what is wrong; what would be right" and leaves *scenario zeroed. Never prints. */
int scenario_load(const char *path_or_preset, const char *const *sets, size_t set_count, struct scenario *scenario,
                  struct err *err);
/* The same from text in memory; file names it in messages. */
int scenario_parse(const char *file, const char *text, size_t length, const char *const *sets, size_t set_count,
                   struct scenario *scenario, struct err *err);
void scenario_free(struct scenario *scenario); /* frees what it owns and zeroes it; a zeroed scenario is fine */

/* The scenario as the lab runs it: lab.hosts nodes a site, one rank (tensor-parallel group) each, bytes and rates
 * divided by lab.divide, times and the compute of a step left alone. Where the pipeline is too long for a site's hosts
 * it gets the longest that divides its own and, if it can, leaves two replicas a site; micro-batches become fewer so
 * that a stage computes as long. A calibration is replaced by the kernel efficiency it gave (kernel_efficiency, (0, 1];
 * 0: training's own), references of the full scale are dropped, a core's oversubscription too; the waves of a link
 * become one, and the transport the lab's: TCP. A scenario that is at lab scale comes back the same. Errors as
 * scenario_load. */
int scenario_lab_scale(const struct scenario *scenario, double kernel_efficiency, struct scenario *scaled,
                       struct err *err);

/* The resolved scenario, every default visible, with units in the values, in the keys of the YAML input (so the dump
 * can be loaded again and gives the same scenario). Caller owns the result; NULL when out of memory. */
json_t *scenario_to_json(const struct scenario *scenario);

/* Derived counts that several modules need. */
long scenario_gpus(const struct scenario *scenario);
long site_gpus(const struct site *site);
/* Micro-batches per replica and step. */
long scenario_micro_batches(const struct scenario *scenario);
/* Replicas held by one site (its GPUs / (tensor x pipeline)). */
long site_replicas(const struct scenario *scenario, size_t site);

#endif
