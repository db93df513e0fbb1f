/* What a model costs: parameters, flops, memory. Closed formulas, sources in model.c and memory.c. */
#ifndef LONGHAUL_MODEL_H
#define LONGHAUL_MODEL_H

#include "configs/scenario.h"

/* Parameters of all layers, and of the embedding(s). Norms and biases are left out (below 0.05 %). */
double model_layer_parameters(const struct model_spec *model);     /* one layer */
double model_embedding_parameters(const struct model_spec *model); /* input and, unless tied, output */
double model_parameters(const struct model_spec *model);

/* flop per token of one step, forward and backward (3 x forward), under a convention:
 * FLOPS_GQA: 6 (P_nonemb + V h) + 12 L h s; FLOPS_MHA: 24 L h^2 + 12 L h s + 48 L h^2 + 6 V h for a 4h two-matrix FFN
 * (generally: attention counted as full multi-head). Recomputation is never counted (it is not the model's work).
 * sequence >= 1. FLOPS_UNSTATED names no formula: NAN. */
double model_flop_per_token(const struct model_spec *model, long sequence, enum flops_convention convention);
/* flop that one forward pass of one layer really executes, per token (GQA-aware), and with the output layer spread
 * evenly over the layers: the compute that the schedule runs is proportional to it. 3 L of it is FLOPS_GQA. */
double model_forward_flop_per_token(const struct model_spec *model, long sequence);

/* Share of the GPUs' peak that a step's model flops took: flop_per_token x tokens / (step_s x gpus x peak_flop_per_s).
 * All arguments > 0. */
double model_mfu(double flop_per_token, double tokens, double step_s, double gpus, double peak_flop_per_s);

/* Bytes that one tensor-parallel group sends to the next stage per micro-batch: s x h x micro-batch x 2 bytes (bf16),
 * each GPU its 1/tensor share over its own NIC. */
double model_activation_bytes(const struct scenario *scenario);

/* Bytes that one layer keeps of one micro-batch until its backward, per GPU, under tensor and sequence parallelism. */
double model_layer_activation_bytes(const struct scenario *scenario);

/* Memory per GPU of the fullest stage, bytes. Not in it: the driver's context, communication buffers, fragmentation. */
struct memory {
    double parameters; /* as kept for compute; with sharded parameters also the gathered working layers */
    double gradients;  /* as reduced; with sharded parameters also the working layers' before they are reduced */
    double optimizer;
    double activations; /* of all micro-batches in flight, the working layer and the logits */
    double total;
    double available;   /* of the smallest GPU of the scenario */
    bool out_of_memory; /* total > available */
    long stage;         /* the fullest one: 0 or the last */
    double shards;      /* replicas that share one copy of the optimiser state (and of what else is sharded) */
};
/* Fills *memory for a strategy with the replicas on `sites` sites: the scenario's site_count, or 1 for the baseline
 * (the same GPUs in one site, where hierarchical sharding has all replicas to spread over). Errors: -EINVAL when sites
 * is neither, or when layers, replicas or micro-batches do not divide as scenario.h asks. */
int model_memory(const struct scenario *scenario, const struct strategy *strategy, size_t sites, struct memory *memory,
                 struct err *err);

#endif
