/* What a model costs: parameters, flops, memory. Closed formulas, sources in model.c and memory.c. */
#ifndef LONGHAUL_MODEL_H
#define LONGHAUL_MODEL_H

#include "configs/scenario.h"

/* Parameters of all layers, and of the embedding(s). Norms and biases are left out (below 0.01 %). */
double model_layer_parameters(const struct model_spec *model); /* one layer */
double model_embedding_parameters(const struct model_spec *model); /* input and, unless tied, output */
double model_parameters(const struct model_spec *model);

/* flop per token of one step, forward and backward (3 x forward), under a convention:
 * FLOPS_GQA: 6 (P_nonemb + V h) + 12 L h s; FLOPS_MHA: 24 L h^2 + 12 L h s + 48 L h^2 + 6 V h for a 4h two-matrix FFN
 * (generally: attention counted as full multi-head). FLOPS_UNSTATED is invalid. */
double model_flop_per_token(const struct model_spec *model, long sequence, enum flops_convention convention);
/* flop that one forward pass of one layer really executes, per token (GQA-aware), and with the output layer spread evenly over
 * the layers: the compute that the schedule runs is proportional to it. */
double model_forward_flop_per_token(const struct model_spec *model, long sequence);

/* Bytes that one tensor-parallel group sends to the next stage per micro-batch: s x h x micro-batch x 2 bytes (bf16),
 * each GPU its 1/tensor share over its own NIC. */
double model_activation_bytes(const struct scenario *scenario);

/* Memory per GPU of the fullest stage, bytes. */
struct memory {
    double parameters, gradients, optimizer, activations;
    double total;
    double available;  /* of the smallest GPU of the scenario */
    int out_of_memory; /* total > available */
};
/* `sites` is how many sites the replicas are spread over (1 for a baseline). */
struct memory model_memory(const struct scenario *scenario, const struct strategy *strategy);

#endif
