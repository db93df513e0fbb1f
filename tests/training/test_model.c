/* sim/training/model.c against published sizes, flops and utilisations. */
#include "sim/training/model.h"

#include <check.h>
#include <math.h>

#define H100_FLOP_PER_S 989e12 /* bf16 dense, as NeMo, dgxc-benchmarking and FACTS.md count it */

static const struct model_spec nemotron = {
    .layers = 96, .hidden = 18432, .heads = 96, .kv_heads = 8, .ffn = 73728, .vocabulary = 256000};
static const struct model_spec llama = {
    .layers = 126, .hidden = 16384, .heads = 128, .kv_heads = 8, .ffn = 53248, .gated = true, .vocabulary = 128256};
static const struct model_spec gpt3 = {
    .layers = 96, .hidden = 12288, .heads = 96, .kv_heads = 96, .ffn = 49152, .vocabulary = 50257, .tied = true};

static void check_relative(double value, double expected, double tolerance, const char *what)
{
    ck_assert_msg(fabs(value / expected - 1) <= tolerance, "%s: %.6g instead of %.6g (%+.3g %%)", what, value, expected,
                  100 * (value / expected - 1));
}

/* Tolerances are half a unit of the last digit published, plus norms, biases and GPT-3's learned positions (25 M). */
START_TEST(test_parameters)
{
    check_relative((double)nemotron.layers * model_layer_parameters(&nemotron), 331.6e9, 2e-4, "Nemotron-4, layers");
    check_relative(model_embedding_parameters(&nemotron), 9.44e9, 6e-4,
                   "Nemotron-4, embeddings"); /* arXiv 2406.11704 */
    check_relative(model_parameters(&llama), 405.9e9, 2e-4,
                   "Llama-3 405B");                                  /* 405,853 M in Meta's release, 2407.21783 */
    check_relative(model_parameters(&gpt3), 174.6e9, 4e-4, "GPT-3"); /* 174,600 M, arXiv 2005.14165 table D.1 */
}
END_TEST

START_TEST(test_flop_per_token)
{
    double h = 18432, layers = 96, s = 4096, v = 256000;

    check_relative(model_flop_per_token(&nemotron, 4096, FLOPS_GQA), 2.105e12, 3e-4, "GQA");
    check_relative(model_flop_per_token(&nemotron, 4096, FLOPS_MHA), 2.464e12, 3e-4, "MHA");
    check_relative(model_flop_per_token(&nemotron, 4096, FLOPS_MHA),
                   72 * layers * h * h + 12 * layers * h * s + 6 * v * h, 1e-12, "MHA formula");
    check_relative(model_flop_per_token(&gpt3, 2048, FLOPS_GQA), model_flop_per_token(&gpt3, 2048, FLOPS_MHA), 1e-12,
                   "the conventions agree without grouping");
    check_relative(3 * 96 * model_forward_flop_per_token(&nemotron, 4096),
                   model_flop_per_token(&nemotron, 4096, FLOPS_GQA), 1e-12, "three forwards");
    ck_assert(isnan(model_flop_per_token(&nemotron, 4096, FLOPS_UNSTATED)));
}
END_TEST

/* arXiv 2104.04473 table 1 (A100, s 2048, V 51200, full recomputation): parameters by its eq. 2, flop per iteration by
 * its eq. 3, which is ours plus one more forward of the layers; seconds follow from its achieved TF/GPU. */
static const struct {
    struct model_spec model;
    double parameters, gpus, batch, flop_per_s_gpu, iteration_s;
} megatron[] = {
    {{.layers = 48, .hidden = 8192, .heads = 64, .kv_heads = 64, .ffn = 32768, .vocabulary = 51200, .tied = true},
     39.1e9,
     512,
     1536,
     138e12,
     14.45},
    {{.layers = 60, .hidden = 10240, .heads = 80, .kv_heads = 80, .ffn = 40960, .vocabulary = 51200, .tied = true},
     76.1e9,
     1024,
     1792,
     140e12,
     16.06},
    {{.layers = 96, .hidden = 16384, .heads = 128, .kv_heads = 128, .ffn = 65536, .vocabulary = 51200, .tied = true},
     310.1e9,
     1920,
     2160,
     155e12,
     37.61},
    {{.layers = 105, .hidden = 20480, .heads = 128, .kv_heads = 128, .ffn = 81920, .vocabulary = 51200, .tied = true},
     529.6e9,
     2520,
     2520,
     163e12,
     54.08},
};

START_TEST(test_megatron)
{
    const struct model_spec *model = &megatron[_i].model;
    double h = (double)model->hidden, layers = (double)model->layers, s = 2048, v = 51200;
    double again = layers * model_forward_flop_per_token(model, 2048) - 2 * v * h;
    double flop = megatron[_i].batch * s * (model_flop_per_token(model, 2048, FLOPS_MHA) + again);

    check_relative(model_parameters(model), megatron[_i].parameters, 2e-3, "parameters");
    check_relative(model_parameters(model), 12 * layers * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * layers * h)),
                   1e-3, "parameters, eq. 2 (norms, biases and positions left out)");
    check_relative(flop, 96 * megatron[_i].batch * s * layers * h * h * (1 + s / (6 * h) + v / (16 * layers * h)),
                   1e-12, "flop, eq. 3");
    check_relative(flop / (megatron[_i].gpus * megatron[_i].flop_per_s_gpu), megatron[_i].iteration_s, 1e-3, "seconds");
}
END_TEST

/* Step times are published with two or three digits: 10.3 s is 0.5 % either way, 8.0 s 0.6 %, 4.61 s 0.1 %. */
static const struct {
    const char *what;
    enum flops_convention convention;
    double gpus, batch, step_s, mfu, tolerance;
} utilisations[] = {
    {"Nemotron-4 report, DP16", FLOPS_GQA, 1536, 768, 10.3, .424, .006},
    {"Nemotron-4 report, DP32", FLOPS_GQA, 3072, 1536, 10.3, .423, .006},
    {"Nemotron-4 report, DP64", FLOPS_GQA, 6144, 2304, 8.0, .410, .008},
    /* dgxc-benchmarking: TP8 PP8, GA16: DP = GPUs / 64, batch = 16 DP */
    {"dgxc 128", FLOPS_MHA, 128, 32, 4.61, .5538, .0012},
    {"dgxc 512", FLOPS_MHA, 512, 128, 4.70, .5432, .0012},
    {"dgxc 2048", FLOPS_MHA, 2048, 512, 4.84, .5275, .0012},
};

START_TEST(test_mfu)
{
    double flop_per_token = model_flop_per_token(&nemotron, 4096, utilisations[_i].convention);
    double mfu = model_mfu(flop_per_token, 4096 * utilisations[_i].batch, utilisations[_i].step_s,
                           utilisations[_i].gpus, H100_FLOP_PER_S);

    check_relative(mfu, utilisations[_i].mfu, utilisations[_i].tolerance, utilisations[_i].what);
}
END_TEST

/* The brief's 152k tokens/s on 1536 H100 is 21 % (GQA) or 25 % (MHA): "20 %" in FACTS.md, not the 51 % of the blog. */
START_TEST(test_brief)
{
    double gqa = model_mfu(model_flop_per_token(&nemotron, 4096, FLOPS_GQA), 152e3, 1, 1536, H100_FLOP_PER_S);
    double mha = model_mfu(model_flop_per_token(&nemotron, 4096, FLOPS_MHA), 152e3, 1, 1536, H100_FLOP_PER_S);

    ck_assert_double_eq_tol(gqa, .2106, 5e-4);
    ck_assert_double_eq_tol(mha, .2465, 5e-4);
}
END_TEST

START_TEST(test_activation_bytes)
{
    struct scenario scenario = {.scale = 1, .model = nemotron, .training = {.sequence = 4096, .micro_batch = 2}};

    ck_assert_double_eq(model_activation_bytes(&scenario), 4096.0 * 18432 * 2 * 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *tcase = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, test_parameters);
    tcase_add_test(tcase, test_flop_per_token);
    tcase_add_loop_test(tcase, test_megatron, 0, sizeof(megatron) / sizeof(megatron[0]));
    tcase_add_loop_test(tcase, test_mfu, 0, sizeof(utilisations) / sizeof(utilisations[0]));
    tcase_add_test(tcase, test_brief);
    tcase_add_test(tcase, test_activation_bytes);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
