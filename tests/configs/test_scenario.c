#include "configs/scenario.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
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
    ck_assert_double_eq(scenario.wan[0].jitter_s, 0);
    ck_assert_int_eq(scenario.wan[0].jitter_shape, JITTER_NORMAL);
    ck_assert_double_eq(scenario.wan[0].loss_ratio, 0);
    ck_assert_double_eq(scenario.wan[0].loss_burst, 1);
    ck_assert_uint_eq(scenario.emu_site_count, 0);
    ck_assert_int_eq(scenario.lab.hosts, 2);
    ck_assert_int_eq(scenario.lab.divide, 100);
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

START_TEST(impairments)
{
    static const char *const sets[] = {"wan.jitter=0.7ms", "wan.jitter_shape=uniform", "wan.loss=0.1%",
                                       "wan.loss_burst=35"};
    struct scenario scenario;
    load_sample(sets, sizeof sets / sizeof sets[0], &scenario);
    ck_assert_double_eq(scenario.wan[0].jitter_s, 0.7e-3);
    ck_assert_int_eq(scenario.wan[0].jitter_shape, JITTER_UNIFORM);
    ck_assert_double_eq(scenario.wan[0].loss_ratio, 0.001);
    ck_assert_double_eq(scenario.wan[0].loss_burst, 35);
    scenario_free(&scenario);
}
END_TEST

/* What is just possible: one way's jitter as large as its delay; bursts with one packet between them. */
START_TEST(impairments_at_their_limits)
{
    static const char *const limits[][2] = {
        {"wan.jitter=30.122 ms", "wan.loss=0"},       {"wan.rtt=0", "wan.jitter=0"},
        {"wan.loss=60 %", "wan.loss_burst=1.5"},      {"wan.loss=99.9 %", "wan.loss_burst=1"},
        {"wan.loss=0.1 %", "wan.loss_burst=1000000"},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct scenario scenario;
        const char *sets[] = {"wan.rtt=42.6 ms", limits[i][0], limits[i][1]};
        load_sample(sets, 3, &scenario);
        scenario_free(&scenario);
    }
}
END_TEST

START_TEST(addresses_of_sites)
{
    static const char *const sets[] = {
        "emu={sites: [{site: b, prefixes: [10.2.0.0/16, fd00:2::/32, 10.2.7.0/24]}, {site: a, prefixes: [10.9.9.9]}]}",
        "emu.sites.a.prefixes=[10.1.0.0/16, 10.1.2.3]",
    };
    struct scenario scenario;
    char text[PREFIX_TEXT_MAX];
    load_sample(sets, 2, &scenario);
    ck_assert_uint_eq(scenario.emu_site_count, 2);
    ck_assert_uint_eq(scenario.emu_sites[0].site, 1);
    ck_assert_uint_eq(scenario.emu_sites[0].prefix_count, 3);
    ck_assert_str_eq(prefix_format(&scenario.emu_sites[0].prefixes[1], text, sizeof text), "fd00:2::/32");
    ck_assert_uint_eq(scenario.emu_sites[1].site, 0);
    ck_assert_uint_eq(scenario.emu_sites[1].prefix_count, 2);
    ck_assert_str_eq(prefix_format(&scenario.emu_sites[1].prefixes[1], text, sizeof text), "10.1.2.3");
    scenario_free(&scenario);
}
END_TEST

/* As many prefixes as fit load at once; one more is refused, and so is the one that two sites share. */
START_TEST(many_addresses)
{
    enum { MOST = 4096 };
    for (int extra = 0; extra < 3; extra++) {
        char *text, *whole;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        fputs("emu: {sites: [{site: a, prefixes: [", out);
        for (int i = 0; i < MOST + (extra == 1); i++)
            fprintf(out, "%s10.1.%d.%d", i ? ", " : "", i / 256, i % 256);
        fputs("]}, {site: b, prefixes: [", out);
        for (int i = 0; i < MOST; i++)
            fprintf(out, "%s10.2.%d.%d", i ? ", " : "", i / 256, i % 256);
        fputs("]}]}", out);
        fclose(out);
        if (extra == 2)
            memcpy(strstr(text, "10.2.1.17,"), "10.1.1.17,", 10);
        whole = sample_with(1, text);
        size = strlen(whole) + sizeof "name: sample\n";
        free(text);
        text = malloc(size);
        snprintf(text, size, "name: sample\n%s", whole);
        struct scenario scenario;
        struct err err = {""};
        int rc = scenario_parse("f", text, strlen(text), NULL, 0, &scenario, &err);
        ck_assert_msg(!rc == !extra, "%d: %s", extra, err.text);
        if (extra == 1)
            ck_assert_msg(strstr(err.text, "4097 elements; 1 to 4096") != NULL, "%s", err.text);
        if (extra == 2)
            ck_assert_msg(strstr(err.text, "10.1.1.17 of 'b' and 10.1.1.17 of 'a' overlap") != NULL, "%s", err.text);
        scenario_free(&scenario);
        free(whole);
        free(text);
    }
}
END_TEST

/* Defaults of the lab: by the smallest site and the fastest link; given, they stay. */
START_TEST(lab_scale)
{
    static const struct {
        const char *sets[3];
        long hosts, divide;
    } cases[] = {
        {{"datacenters.nodes=1", "training.pipeline=1", "wan.wave_rate=1 Gb/s"}, 1, 1},
        {{"datacenters.nodes=64", "training.global_batch=64", "wan.wave_rate=1001 Mb/s"}, 4, 10},
        {{"datacenters.0.nodes=8", "training.global_batch=10", "wan.waves=8"}, 2, 1000},
        {{"wan.wave_rate=inf", "wan.rtt=1 ms", "wan.waves=8"}, 2, 1},
        {{"wan.wave_rate=1000000 Tb/s", "wan.waves=1000000", "lab.hosts=1"}, 1, 1000000000000000},
        {{"lab.hosts=2", "lab.divide=7", "wan.waves=8"}, 2, 7},
        {{"lab=", "seed=2", "seed=1"}, 2, 100},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scenario scenario;
        load_sample(cases[i].sets, 3, &scenario);
        ck_assert_msg(scenario.lab.hosts == cases[i].hosts && scenario.lab.divide == cases[i].divide,
                      "%zu: %ld hosts, divided by %ld", i, scenario.lab.hosts, scenario.lab.divide);
        scenario_free(&scenario);
    }
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
        {"lab.hosts=1", true},
        {"lab.divide=7", true},
        {"emu={sites: [{site: a, prefixes: [10.1.0.0/16]}, {site: b, prefixes: [10.2.0.0/16]}]}", true},
        {"wan.jitter_shape=normal", true},
        {"wan.loss=0.1%", false},
        {"wan.jitter=0.7ms", false},
        {"wan.jitter_shape=pareto", false},
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
        "wan.jitter=0.7 ms",
        "wan.jitter_shape=paretonormal",
        "wan.loss=1e-6",
        "wan.loss_burst=2.5",
        "emu={sites: [{site: b, prefixes: [\"fd00::\", fd00:1::/32]}, {site: a, prefixes: [10.1.0.0/16, 10.1.2.3]}]}",
        "lab={hosts: 1, divide: 3}",
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
        ck_assert_double_eq(second.wan[0].loss_ratio, 1e-6);
        ck_assert_uint_eq(second.emu_site_count, 2);
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
    tcase_add_test(cases, impairments);
    tcase_add_test(cases, impairments_at_their_limits);
    tcase_add_test(cases, addresses_of_sites);
    tcase_add_test(cases, many_addresses);
    tcase_add_test(cases, lab_scale);
    tcase_add_test(cases, calibration_and_references);
    tcase_add_test(cases, hash_ignores_names_and_sources);
    tcase_add_test(cases, dump_loads_again);
    return sample_run("scenario", cases);
}
