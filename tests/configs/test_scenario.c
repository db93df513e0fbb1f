#include "configs/scenario.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/yaml.h"
#include "tests/configs/sample.h"

static void load(const char *text, const char *const *sets, size_t set_count, struct scenario *scenario)
{
    struct err err = {""};
    ck_assert_msg(!scenario_parse("f", text, strlen(text), sets, set_count, scenario, &err), "%s", err.text);
}

static void load_sample(const char *const *sets, size_t set_count, struct scenario *scenario)
{
    char *text = sample_with(0, NULL);
    load(text, sets, set_count, scenario);
    free(text);
}

START_TEST(fills_in_defaults)
{
    struct scenario scenario;
    load_sample(NULL, 0, &scenario);
    ck_assert_str_eq(scenario.name, "sample");
    ck_assert_uint_eq(scenario.site_count, 2);
    ck_assert_int_eq(scenario_gpus(&scenario), 32);
    ck_assert_int_eq(scenario.fabric.nics_per_node, 8);
    ck_assert_double_eq(scenario.fabric.nic_bit_per_s, 400e9);
    ck_assert_double_eq(scenario.fabric.nvlink_byte_per_s, 450e9);
    ck_assert_double_eq(scenario.fabric.latency_s, 5e-6);
    ck_assert_double_eq(scenario.fabric.nvlink_latency_s, 2e-6);
    ck_assert_double_eq(scenario.fabric.oversubscription, 1);
    ck_assert_int_eq(scenario.wan[0].waves, 1);
    ck_assert_double_eq(scenario.wan[0].rtt_s, 21.3e-3);
    ck_assert_double_eq(scenario.transport.eager_bytes, 0);
    ck_assert_int_eq(scenario.transport.slices, 2);
    ck_assert(isinf(scenario.transport.window_bytes));
    ck_assert_int_eq(scenario.training.data, 2);
    ck_assert_int_eq(scenario.training.interleave, 1);
    ck_assert_int_eq(scenario.training.sequence, 4096);
    ck_assert_int_eq(scenario.training.micro_batch, 1);
    ck_assert_int_eq(scenario.training.gradient, DTYPE_BF16);
    ck_assert_double_eq(scenario.training.optimizer_bytes_per_parameter, 12);
    ck_assert(!scenario.training.kernel_efficiency_given);
    ck_assert_int_eq(scenario.model.kv_heads, scenario.model.heads);
    ck_assert_int_eq(scenario.model.ffn, 4 * scenario.model.hidden);
    ck_assert(!scenario.calibrate.present);
    ck_assert_int_eq(scenario.strategies[0].sharding, SHARD_NONE);
    ck_assert_int_eq(scenario.strategies[0].overlap, OVERLAP_NONE);
    ck_assert_uint_eq(scenario.seed, 1);
    ck_assert_int_eq(scenario_micro_batches(&scenario), 4);
    ck_assert_int_eq(site_replicas(&scenario, 1), 1);
    ck_assert_uint_eq(strlen(scenario.hash), 16);
    scenario_free(&scenario);
}
END_TEST

START_TEST(sets_reach_lists_names_and_presets)
{
    static const char *const sets[] = {
        "wan.rtt=5ms",
        "strategies.flat.overlap.depth=3",
        "model.layers=48",
        "datacenters.b.gpu.memory=100 GB",
        "training.tensor=4",
        "datacenters.nodes=4",
        "fabric.nic_rate=100Gb/s",
        "training.global_batch=64",
    };
    struct scenario scenario;
    load_sample(sets, sizeof sets / sizeof sets[0], &scenario);
    ck_assert_double_eq(scenario.wan[0].rtt_s, 5e-3);
    ck_assert_int_eq(scenario.strategies[0].overlap, OVERLAP_CHUNKS);
    ck_assert_int_eq(scenario.strategies[0].chunk_layers, 1);
    ck_assert_int_eq(scenario.strategies[0].depth, 3);
    ck_assert_int_eq(scenario.model.layers, 48);
    ck_assert_int_eq(scenario.model.hidden, 2048);
    ck_assert_double_eq(scenario.sites[0].gpu.memory_bytes, 80e9);
    ck_assert_double_eq(scenario.sites[1].gpu.memory_bytes, 100e9);
    ck_assert_int_eq(scenario.training.data, 8); /* derived: follows nodes and tensor */
    ck_assert_double_eq(scenario.fabric.nic_bit_per_s, 100e9);
    scenario_free(&scenario);
}
END_TEST

START_TEST(calibration_and_references)
{
    char *text = sample_with(8, "strategies: [{name: x, allreduce: ring}, {name: y, allreduce: hierarchical}]\n"
                                "calibrate: {mfu: 51 %, data: 4, strategy: y, source: somebody}\n"
                                "reference:\n"
                                "  - {strategy: y, efficiency: 96 %, source: s}\n"
                                "  - {strategy: x, tokens_per_s: 146000, source: s}\n");
    struct scenario scenario;
    load(text, NULL, 0, &scenario);
    ck_assert(scenario.calibrate.present);
    ck_assert_double_eq(scenario.calibrate.mfu, 0.51);
    ck_assert_double_eq(scenario.calibrate.step_s, 0);
    ck_assert_int_eq(scenario.calibrate.convention, FLOPS_UNSTATED);
    ck_assert_uint_eq(scenario.calibrate.strategy, 1);
    ck_assert_int_eq(scenario.calibrate.global_batch, 16);
    ck_assert_uint_eq(scenario.reference_count, 2);
    ck_assert_str_eq(scenario.references[0].metric, "efficiency");
    ck_assert_double_eq(scenario.references[0].value, 0.96);
    ck_assert_str_eq(scenario.references[1].metric, "tokens_per_s");
    ck_assert_double_eq(scenario.references[1].value, 146000);
    scenario_free(&scenario);
    free(text);
}
END_TEST

/* The hash follows what decides a result, and nothing else. */
START_TEST(hash_ignores_names_and_sources)
{
    static const struct {
        const char *set;
        bool same;
    } changes[] = {
        {"name=other", true},
        {"model.source=other", true},
        {"reference=[{strategy: flat, step: 3 s, source: s}]", true},
        {"wan.rtt=21300 us", true},
        {"training.data=2", true},
        {"wan.rtt=21.4 ms", false},
        {"seed=2", false},
        {"training.global_batch=16", false},
        {"strategies.flat.order=interleaved", false},
        {"model.tied=true", false},
        {"datacenters.0.gpu.power=600 W", false},
    };
    struct scenario plain, changed;
    load_sample(NULL, 0, &plain);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        load_sample(&changes[i].set, 1, &changed);
        ck_assert_msg((strcmp(plain.hash, changed.hash) == 0) == changes[i].same, "%s", changes[i].set);
        scenario_free(&changed);
    }
    scenario_free(&plain);
}
END_TEST

/* YAML written by hand and JSON of the same content are the same scenario; free text survives. */
START_TEST(dump_loads_again)
{
    static const char *const sets[] = {
        "wan.rtt=21.300000000000001 ms",
        "transport.window=4 MiB",
        "wan.wave_rate=inf",
        "strategies.flat.overlap.chunk=2 layers",
        "model.source=\"a: b # c \\\"d\\\" - \xc3\xa9\"",
        "training.kernel_efficiency=0.123456789",
        "fabric.oversubscription=1.5",
        "calibrate={step: 1 s, source: '- x'}",
        "seed=9007199254740991",
    };
    struct scenario first, second;
    load_sample(sets, sizeof sets / sizeof sets[0], &first);
    json_t *json = scenario_to_json(&first);
    char *yaml, *text = json_dumps(json, JSON_INDENT(2));
    ck_assert_int_eq(yaml_emit(json, &yaml, NULL), 0);
    const char *dumps[] = {yaml, text};
    for (int i = 0; i < 2; i++) {
        load(dumps[i], NULL, 0, &second);
        json_t *again = scenario_to_json(&second);
        ck_assert(json_equal(json, again));
        ck_assert_str_eq(first.hash, second.hash);
        ck_assert_str_eq(second.model.source, "a: b # c \"d\" - \xc3\xa9");
        ck_assert(second.training.kernel_efficiency_given);
        json_decref(again);
        scenario_free(&second);
    }
    json_decref(json);
    free(yaml);
    free(text);
    scenario_free(&first);
    scenario_free(&first); /* a zeroed one is fine */
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("scenario");
    tcase_add_test(cases, fills_in_defaults);
    tcase_add_test(cases, sets_reach_lists_names_and_presets);
    tcase_add_test(cases, calibration_and_references);
    tcase_add_test(cases, hash_ignores_names_and_sources);
    tcase_add_test(cases, dump_loads_again);
    return sample_run("scenario", cases);
}
