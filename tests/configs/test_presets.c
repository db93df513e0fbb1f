#include "configs/preset.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "configs/scenario.h"
#include "configs/yaml.h"
#include "tests/configs/sample.h"

static void load(const char *name, const char *const *sets, size_t set_count, struct scenario *scenario)
{
    struct err err = {""};
    ck_assert_msg(!scenario_load(name, sets, set_count, scenario, &err), "%s", err.text);
}

/* Every shipped scenario loads, is named after its file, and its dump is the same scenario. */
START_TEST(scenarios_load_and_round_trip)
{
    size_t count;
    const struct preset *presets = preset_list(PRESET_SCENARIO, &count);
    ck_assert_uint_ge(count, 6);
    for (size_t i = 0; i < count; i++) {
        struct scenario scenario, again;
        struct err err = {""};
        load(presets[i].name, NULL, 0, &scenario);
        ck_assert_str_eq(scenario.name, presets[i].name);
        json_t *json = scenario_to_json(&scenario);
        char *yaml;
        ck_assert_int_eq(yaml_emit(json, &yaml, &err), 0);
        ck_assert_msg(!scenario_parse("dump", yaml, strlen(yaml), NULL, 0, &again, &err), "%s\n%s", err.text, yaml);
        ck_assert_str_eq(scenario.hash, again.hash);
        free(yaml);
        json_decref(json);
        scenario_free(&again);
        scenario_free(&scenario);
    }
}
END_TEST

/* Every model and GPU can be put into a scenario, and says where its figures come from. */
START_TEST(models_and_gpus_load)
{
    char set[128], *text = sample_with(7, "training: {global_batch: 32}");
    const char *sets[] = {set};
    for (int kind = PRESET_MODEL; kind <= PRESET_GPU; kind++) {
        size_t count;
        const struct preset *presets = preset_list((enum preset_kind)kind, &count);
        for (size_t i = 0; i < count; i++) {
            struct scenario scenario;
            struct err err = {""};
            snprintf(set, sizeof set, "%s=%s", kind == PRESET_GPU ? "datacenters.gpu" : "model", presets[i].name);
            ck_assert_msg(!scenario_parse("f", text, strlen(text), sets, 1, &scenario, &err), "%s", err.text);
            ck_assert_ptr_nonnull(scenario.model.source);
            ck_assert_ptr_nonnull(scenario.sites[0].gpu.source);
            ck_assert_str_eq(kind == PRESET_GPU ? scenario.sites[0].gpu.name : scenario.model.name, presets[i].name);
            scenario_free(&scenario);
        }
    }
    free(text);
}
END_TEST

/* The job of FACTS.md: 2 x 192 x 8 H100, 3.2 Tb/s a node, 8 x 100 Gb/s, 21.3 ms; TP8 PP12 DP32. */
START_TEST(twin_1536_is_the_proposal)
{
    struct scenario scenario;
    load("twin-1536", NULL, 0, &scenario);
    ck_assert_uint_eq(scenario.site_count, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(site_gpus(&scenario.sites[i]), 1536);
        ck_assert_int_eq(site_replicas(&scenario, i), 16);
        ck_assert_double_eq(scenario.sites[i].gpu.flop_per_s[DTYPE_BF16], 989e12);
        ck_assert_double_eq(scenario.sites[i].gpu.power_w, 700);
    }
    ck_assert_double_eq((double)scenario.fabric.nics_per_node * scenario.fabric.nic_bit_per_s, 3.2e12);
    ck_assert_double_eq((double)scenario.wan[0].waves * scenario.wan[0].wave_bit_per_s, 800e9);
    ck_assert_double_eq(scenario.wan[0].rtt_s, 21.3e-3);
    ck_assert_double_eq(scenario.wan[0].jitter_s, 0.7e-3);
    ck_assert_double_eq(scenario.wan[0].loss_ratio, 0);
    ck_assert_int_eq(scenario_micro_batches(&scenario), 48);
    ck_assert_uint_eq(scenario.strategy_count, 4);
    ck_assert_int_eq(scenario.calibrate.convention, FLOPS_UNSTATED);
    scenario_free(&scenario);
}
END_TEST

static const struct {
    const char *name;
    size_t sites;
    long gpus, data, micro_batches;
} shapes[] = {
    {"twin-1536", 2, 3072, 32, 48}, {"twin-1536-hsdp", 2, 3072, 3072, 1},
    {"quad-768", 4, 3072, 32, 48},  {"lab-2x4", 2, 8, 8, 2},
    {"lab-3x2", 3, 6, 6, 2},        {"dgxc-512", 1, 512, 8, 16},
    {"dgxc-2048", 1, 2048, 32, 16},
};

START_TEST(has_the_shape)
{
    struct scenario scenario;
    load(shapes[_i].name, NULL, 0, &scenario);
    ck_assert_uint_eq(scenario.site_count, shapes[_i].sites);
    ck_assert_int_eq(scenario_gpus(&scenario), shapes[_i].gpus);
    ck_assert_int_eq(scenario.training.data, shapes[_i].data);
    ck_assert_int_eq(scenario_micro_batches(&scenario), shapes[_i].micro_batches);
    scenario_free(&scenario);
}
END_TEST

/* Real ranks run it as it is, also where somebody makes its link faster. */
START_TEST(lab_is_not_scaled)
{
    static const char *const sets[] = {"wan.wave_rate=10 Gb/s"};
    for (size_t count = 0; count < 2; count++) {
        struct scenario scenario;
        load("lab-2x4", sets, count, &scenario);
        ck_assert_int_eq(scenario.lab.hosts, 4);
        ck_assert_int_eq(scenario.lab.divide, 1);
        scenario_free(&scenario);
    }
}
END_TEST

/* 12 h^2 a layer and one embedding, in bf16: about the 16 MB that real ranks move in a moment. */
START_TEST(lab_gradient_is_16_mb)
{
    struct scenario scenario;
    load("lab-2x4", NULL, 0, &scenario);
    const struct model_spec *model = &scenario.model;
    long parameters = model->layers * 12 * model->hidden * model->hidden + model->vocabulary * model->hidden;
    double bytes = (double)parameters * dtype_bytes(scenario.training.gradient);
    ck_assert_double_eq_tol(bytes, 16e6, 0.1e6);
    scenario_free(&scenario);
}
END_TEST

START_TEST(titles_and_suggestions)
{
    char text[512];
    ck_assert_str_eq(preset_title(preset_find(PRESET_GPU, "h100-sxm"), text, sizeof text), "NVIDIA H100 80 GB SXM5");
    preset_unknown(PRESET_GPU, "h10-sxm", text, sizeof text);
    ck_assert_msg(strstr(text, "did you mean 'h100-sxm'") != NULL, "%s", text);
    ck_assert_ptr_null(preset_find(PRESET_MODEL, "h100-sxm"));
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("presets");
    tcase_add_test(cases, scenarios_load_and_round_trip);
    tcase_add_test(cases, models_and_gpus_load);
    tcase_add_test(cases, twin_1536_is_the_proposal);
    tcase_add_loop_test(cases, has_the_shape, 0, sizeof shapes / sizeof shapes[0]);
    tcase_add_test(cases, lab_is_not_scaled);
    tcase_add_test(cases, lab_gradient_is_16_mb);
    tcase_add_test(cases, titles_and_suggestions);
    return sample_run("presets", cases);
}
