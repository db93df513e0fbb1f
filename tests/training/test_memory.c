/* sim/training/memory.c against arXiv 2205.05198 and the optimiser arithmetic of FACTS.md. */
#include "sim/training/model.h"

#include <check.h>
#include <errno.h>
#include <math.h>

#include "sim/training/schedule.h"

static void check_relative(double value, double expected, double tolerance, const char *what)
{
    ck_assert_msg(fabs(value / expected - 1) <= tolerance, "%s: %.6g instead of %.6g (%+.3g %%)", what, value, expected,
                  100 * (value / expected - 1));
}

/* arXiv 2205.05198 table 3: s 2048, V 51200, A100 80 GB, no sharding, interleaving v. */
static const struct shape {
    long heads, hidden, layers, pipeline, interleave, gpus, global_batch, micro_batch;
} paper[] = {
    {64, 6144, 48, 1, 1, 8, 4, 4},
    {96, 12288, 96, 8, 3, 64, 64, 1},
    {128, 20480, 105, 35, 3, 280, 280, 1},
    {160, 25600, 128, 64, 1, 512, 512, 1},
};
enum { PAPER_ROWS = sizeof(paper) / sizeof(paper[0]) };

static const struct strategy plain = {.sharding = SHARD_NONE};

static struct scenario paper_scenario(const struct shape *row, struct site *site, enum recompute recompute)
{
    *site = (struct site){.nodes = row->gpus / 8, .gpus_per_node = 8, .gpu = {.memory_bytes = 80e9}};
    return (struct scenario){
        .site_count = 1,
        .scale = 1,
        .sites = site,
        .model = {.layers = row->layers,
                  .hidden = row->hidden,
                  .heads = row->heads,
                  .kv_heads = row->heads,
                  .ffn = 4 * row->hidden,
                  .vocabulary = 51200,
                  .tied = true},
        .training = {.tensor = 8,
                     .pipeline = row->pipeline,
                     .interleave = row->interleave,
                     .data = 1,
                     .sequence = 2048,
                     .global_batch = row->global_batch,
                     .micro_batch = row->micro_batch,
                     .parameter = DTYPE_BF16,
                     .gradient = DTYPE_FP32,
                     .optimizer_bytes_per_parameter = 12,
                     .recompute = recompute},
    };
}

static struct memory memory_of(const struct scenario *scenario, const struct strategy *strategy, size_t sites)
{
    struct memory memory = {.total = NAN};
    struct err err = {.text = ""};

    ck_assert_msg(model_memory(scenario, strategy, sites, &memory, &err) == 0, "%s", err.text);
    check_relative(memory.parameters + memory.gradients + memory.optimizer + memory.activations, memory.total, 1e-12,
                   "sum");
    return memory;
}

/* Table 2, per layer: s b h (34 + 5 a s / h) / t with sequence parallelism, 34 s b h / t with selective recomputation.
 */
START_TEST(test_layer_table_2)
{
    const struct shape *row = &paper[_i];
    double sbh = 2048.0 * (double)row->micro_batch * (double)row->hidden;
    struct site site;
    struct scenario none = paper_scenario(row, &site, RECOMPUTE_NONE);
    struct scenario selective = paper_scenario(row, &site, RECOMPUTE_SELECTIVE);
    struct scenario full = paper_scenario(row, &site, RECOMPUTE_FULL);

    check_relative(model_layer_activation_bytes(&none),
                   sbh / 8 * (34 + 5.0 * (double)row->heads * 2048 / (double)row->hidden), 1e-12, "none");
    check_relative(model_layer_activation_bytes(&selective), 34 * sbh / 8, 1e-12, "selective");
    full.training.tensor = 1;
    check_relative(model_layer_activation_bytes(&full), 2 * sbh, 1e-12, "full");
}
END_TEST

/* Section 5: selective recomputation saves 70 % of GPT-3's and 65 % of MT-NLG 530B's activations. Abstract and figure
 * 7: with sequence parallelism 5 times less than tensor parallelism alone, s b h (10 + 24/t + 5 a s / (h t)). */
START_TEST(test_savings)
{
    static const double saved[] = {NAN, .70, .65, NAN};
    const struct shape *row = &paper[_i];
    struct site site;
    struct scenario none = paper_scenario(row, &site, RECOMPUTE_NONE);
    struct scenario selective = paper_scenario(row, &site, RECOMPUTE_SELECTIVE);
    double ratio = model_layer_activation_bytes(&selective) / model_layer_activation_bytes(&none);
    double sbh = 2048.0 * (double)row->micro_batch * (double)row->hidden;
    double tensor_only = sbh * (10 + 3 + 5.0 * (double)row->heads * 2048 / ((double)row->hidden * 8));

    if (!isnan(saved[_i]))
        ck_assert_double_eq_tol(1 - ratio, saved[_i], .005);
    ck_assert_double_gt(tensor_only / model_layer_activation_bytes(&selective), 4.9);
    ck_assert_double_lt(tensor_only / model_layer_activation_bytes(&selective), 6.3);
}
END_TEST

/* Figure 1: all four models fit 80 GB with sequence parallelism and selective recomputation, none does without. */
START_TEST(test_figure_1)
{
    struct site site;
    struct scenario selective = paper_scenario(&paper[_i], &site, RECOMPUTE_SELECTIVE);
    struct scenario none = paper_scenario(&paper[_i], &site, RECOMPUTE_NONE);

    ck_assert(!memory_of(&selective, &plain, 1).out_of_memory);
    ck_assert(memory_of(&none, &plain, 1).out_of_memory);
}
END_TEST

/* Section 4.3, eq. 5 and after: layers s b h L / t (34 + 5 a s / h) (1 + (p - 1) / (p v)), embedding dropout
 * s b h p / t (1 + (p - 1) / (p v)), and for p = 1 the output 4 s b h / t (1 + V / h). */
START_TEST(test_total_activations)
{
    const struct shape *row = &paper[_i];
    double p = (double)row->pipeline, v = (double)row->interleave, h = (double)row->hidden;
    double penalty = row->interleave > 1 ? 1 + (p - 1) / (p * v) : 1;
    double sbh = 2048.0 * (double)row->micro_batch * h / 8;
    double expected = sbh * (34 * (double)row->layers + p) * penalty + (p == 1 ? 4 * sbh * (1 + 51200 / h) : 0);
    struct site site;
    struct scenario scenario = paper_scenario(row, &site, RECOMPUTE_SELECTIVE);
    struct memory memory = memory_of(&scenario, &plain, 1);

    ck_assert_int_eq(memory.stage, 0);
    check_relative(memory.activations, expected, 1e-12, "activations");
}
END_TEST

/* Fewer micro-batches than stages: only those are in flight. */
START_TEST(test_few_micro_batches)
{
    struct site site;
    struct scenario scenario = paper_scenario(&paper[3], &site, RECOMPUTE_SELECTIVE);
    double sbh = 2048.0 * 25600 / 8;

    scenario.training.global_batch = 4;
    check_relative(memory_of(&scenario, &plain, 1).activations, sbh * (34 * 2 + 1) * 4, 1e-12, "four in flight");
}
END_TEST

/* Grouped queries keep less, a gated feed-forward keeps a third product. */
START_TEST(test_layer_of_other_shapes)
{
    struct site site;
    struct scenario scenario = paper_scenario(&paper[1], &site, RECOMPUTE_SELECTIVE);
    double sbh = 2048.0 * 12288 / 8;

    scenario.model.kv_heads = 8;
    check_relative(model_layer_activation_bytes(&scenario), (34 - 4 + 4 * 8 / 96.0) * sbh, 1e-12, "8 of 96 heads");
    scenario.model.kv_heads = 96;
    scenario.model.gated = true;
    scenario.model.ffn = 32768;
    check_relative(model_layer_activation_bytes(&scenario), (18 + 6 * 32768 / 12288.0) * sbh, 1e-12, "gated");
}
END_TEST

static const struct model_spec nemotron = {
    .layers = 96, .hidden = 18432, .heads = 96, .kv_heads = 8, .ffn = 73728, .vocabulary = 256000};

/* Two sites of 192 x 8 H100. */
static struct scenario twin(struct site sites[2], struct training training)
{
    for (int i = 0; i < 2; i++)
        sites[i] = (struct site){.nodes = 192, .gpus_per_node = 8, .gpu = {.memory_bytes = 80e9}};
    training.sequence = 4096;
    training.micro_batch = 1;
    training.parameter = training.gradient = DTYPE_BF16;
    training.optimizer_bytes_per_parameter = 12;
    return (struct scenario){.scale = 1, .site_count = 2, .sites = sites, .model = nemotron, .training = training};
}

static const struct training hsdp = {
    .tensor = 1, .pipeline = 1, .interleave = 1, .data = 3072, .global_batch = 3072, .recompute = RECOMPUTE_FULL};

/* FACTS.md: Adam m + v in fp32 of 340 B is 2.72 TB; 2.66 GB per GPU with the fp32 master over 1536 shards. */
START_TEST(test_adam)
{
    struct strategy strategy = {.sharding = SHARD_OPTIMIZER, .allreduce = ALLREDUCE_HIERARCHICAL};
    struct site sites[2];
    struct scenario scenario = twin(sites, hsdp);
    struct memory memory = memory_of(&scenario, &strategy, 2);

    ck_assert_double_eq(memory.shards, 1536);
    check_relative(memory.optimizer, 2.66e9, 2e-3, "m, v and master over 1536");
    scenario.training.optimizer_bytes_per_parameter = 8;
    check_relative(memory_of(&scenario, &plain, 2).optimizer, 2.72e12, 4e-3, "m and v in all");
    check_relative(memory_of(&scenario, &plain, 2).parameters, 2 * model_parameters(&nemotron), 1e-12,
                   "bf16 parameters");
}
END_TEST

/* Replicas of a site when hierarchical, all of them in one ring or in one site; the smallest site decides. */
START_TEST(test_shards)
{
    struct strategy har = {.sharding = SHARD_OPTIMIZER, .allreduce = ALLREDUCE_HIERARCHICAL};
    struct strategy ring = {.sharding = SHARD_OPTIMIZER, .allreduce = ALLREDUCE_RING};
    struct training training = {.tensor = 8, .pipeline = 12, .interleave = 1, .data = 32, .global_batch = 1536};
    struct site sites[2];
    struct scenario scenario;

    training.recompute = RECOMPUTE_SELECTIVE;
    scenario = twin(sites, training);
    ck_assert_double_eq(memory_of(&scenario, &har, 2).shards, 16);
    ck_assert_double_eq(memory_of(&scenario, &ring, 2).shards, 32);
    ck_assert_double_eq(memory_of(&scenario, &har, 1).shards, 32);
    ck_assert_double_eq(memory_of(&scenario, &plain, 2).shards, 1);
    ck_assert(!memory_of(&scenario, &har, 2).out_of_memory);
    check_relative(memory_of(&scenario, &har, 2).optimizer * 16, memory_of(&scenario, &plain, 2).optimizer, 1e-12,
                   "1/16");
    sites[0].nodes = 96;
    sites[1].nodes = 288;
    ck_assert_double_eq(memory_of(&scenario, &har, 2).shards, 8);
}
END_TEST

/* Parameters sharded over a site: two layers gathered beside the shard; fits an H100 where nothing else does. */
START_TEST(test_sharded_parameters)
{
    struct strategy strategy = {.sharding = SHARD_PARAMETERS,
                                .allreduce = ALLREDUCE_HIERARCHICAL,
                                .overlap = OVERLAP_CHUNKS,
                                .chunk_layers = 1,
                                .depth = 4};
    struct site sites[2];
    struct scenario scenario = twin(sites, hsdp);
    struct memory memory = memory_of(&scenario, &strategy, 2);
    double layer = model_layer_parameters(&nemotron), sbh = 4096.0 * 18432;

    check_relative(memory.parameters, 2 * (2 * layer + model_parameters(&nemotron) / 1536), 1e-12, "parameters");
    check_relative(memory.gradients, memory.parameters, 1e-12, "gradients in bf16");
    check_relative(memory.activations, sbh * (2 * 96 + 1 + (30 + 4 * 8 / 96.0) + 4 * (1 + 256000 / 18432.0)), 1e-12,
                   "activations");
    ck_assert(!memory.out_of_memory);
    strategy.overlap = OVERLAP_NONE;
    ck_assert_double_lt(memory_of(&scenario, &strategy, 2).parameters, memory.parameters);
    strategy.sharding = SHARD_OPTIMIZER;
    ck_assert(memory_of(&scenario, &strategy, 2).out_of_memory);
}
END_TEST

START_TEST(test_bad_scenarios)
{
    struct site sites[2];
    struct scenario good = twin(sites, hsdp), bad = good;
    struct memory memory;
    struct err err = {.text = ""};

    ck_assert_int_eq(model_memory(&good, &plain, 3, &memory, &err), -EINVAL);
    ck_assert_str_ne(err.text, "");
    bad.training.global_batch = 3073;
    ck_assert_int_eq(model_memory(&bad, &plain, 2, &memory, &err), -EINVAL);
    bad = good;
    bad.training.pipeline = 7;
    ck_assert_int_eq(model_memory(&bad, &plain, 2, &memory, &err), -EINVAL);
    bad = good;
    bad.training.tensor = 0;
    ck_assert_int_eq(model_memory(&bad, &plain, 2, &memory, &err), -EINVAL);
    bad = good;
    bad.model.hidden = 0;
    ck_assert_int_eq(model_memory(&bad, &plain, 2, &memory, &err), -EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tcase = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, test_layer_table_2, 0, PAPER_ROWS);
    tcase_add_loop_test(tcase, test_savings, 0, PAPER_ROWS);
    tcase_add_loop_test(tcase, test_figure_1, 0, PAPER_ROWS);
    tcase_add_loop_test(tcase, test_total_activations, 0, PAPER_ROWS);
    tcase_add_test(tcase, test_few_micro_batches);
    tcase_add_test(tcase, test_layer_of_other_shapes);
    tcase_add_test(tcase, test_adam);
    tcase_add_test(tcase, test_shards);
    tcase_add_test(tcase, test_sharded_parameters);
    tcase_add_test(tcase, test_bad_scenarios);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
