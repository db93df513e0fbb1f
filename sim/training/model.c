#include "model.h"

#include <math.h>

enum { ACTIVATION_BYTES = 2 }; /* activations travel in 16 bit whatever the compute type (Megatron-LM, fp8 included) */

/* Parameters of the attention matrices of one layer with k of a heads' worth of keys and values:
 * query and output h x h each, key and value h x (h k / a) each (grouped queries, arXiv 2305.13245). */
static double attention_parameters(double hidden, double heads, double kv_heads)
{
    return 2 * hidden * hidden + 2 * hidden * hidden * kv_heads / heads;
}

/* Two matrices h x f, or three when gated (arXiv 2002.05202). */
static double ffn_parameters(const struct model_spec *model)
{
    return (model->gated ? 3.0 : 2.0) * (double)model->hidden * (double)model->ffn;
}

double model_layer_parameters(const struct model_spec *model)
{
    return attention_parameters((double)model->hidden, (double)model->heads, (double)model->kv_heads) +
           ffn_parameters(model);
}

double model_embedding_parameters(const struct model_spec *model)
{
    return (model->tied ? 1.0 : 2.0) * (double)model->vocabulary * (double)model->hidden;
}

double model_parameters(const struct model_spec *model)
{
    return (double)model->layers * model_layer_parameters(model) + model_embedding_parameters(model);
}

/* Scores and their product with the values: 2 matrix products of s x h per token and layer, 2 flop each, so 4 h s
 * forward and 12 h s for a step. Causal kernels skip half of it; both conventions (arXiv 2104.04473 section 5,
 * 2204.02311 appendix B) count it whole. */
static double score_flop_per_token(const struct model_spec *model, long sequence)
{
    return 4.0 * (double)model->hidden * (double)sequence;
}

/* A matrix parameter costs a token 2 flop forward; backward is twice that (by activation and by weight): 6 in all.
 *   GQA  6 (L (attention + ffn) + V h) + 12 L h s        attention as it is
 *   MHA  6 (L (4 h^2 + ffn) + V h) + 12 L h s            attention as if every head had its own keys and values
 * MHA with a 4h two-matrix FFN is 72 L h^2 (1 + s/(6h) + V/(12 L h)), arXiv 2104.04473 eq. 3 without its recomputation,
 * and what NeMo's and dgxc-benchmarking's MFU use for Nemotron-4. The output layer counts whether tied or not. */
double model_flop_per_token(const struct model_spec *model, long sequence, enum flops_convention convention)
{
    double hidden = (double)model->hidden, layers = (double)model->layers;
    double attention;

    if (convention == FLOPS_GQA)
        attention = attention_parameters(hidden, (double)model->heads, (double)model->kv_heads);
    else if (convention == FLOPS_MHA)
        attention = attention_parameters(hidden, 1, 1);
    else
        return NAN;
    return 6 * (layers * (attention + ffn_parameters(model)) + (double)model->vocabulary * hidden) +
           3 * layers * score_flop_per_token(model, sequence);
}

double model_forward_flop_per_token(const struct model_spec *model, long sequence)
{
    double output = (double)model->vocabulary * (double)model->hidden / (double)model->layers;

    return 2 * (model_layer_parameters(model) + output) + score_flop_per_token(model, sequence);
}

double model_mfu(double flop_per_token, double tokens, double step_s, double gpus, double peak_flop_per_s)
{
    return flop_per_token * tokens / (step_s * gpus * peak_flop_per_s);
}

double model_activation_bytes(const struct scenario *scenario)
{
    return (double)scenario->training.sequence * (double)scenario->model.hidden *
           (double)scenario->training.micro_batch * ACTIVATION_BYTES / (double)scenario->scale;
}
