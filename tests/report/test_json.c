/* The JSON of a result: schema, definitions, null for what is not finite, the same bytes for the same result. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/fixture.h"
#include "tests/report/runner.h"

static char *dump(const struct result *result)
{
    char *text = NULL;
    size_t size = 0;
    struct err err = {0};
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(result_dump_json(result, out, &err), 0);
    fclose(out);
    return text;
}

static json_t *parse(const struct result *result)
{
    char *text = dump(result);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(json != NULL, "%s", error.text);
    free(text);
    return json;
}

START_TEST(schema_fields)
{
    struct fixture *fixture = fixture_new(2);
    json_t *json = parse(&fixture->result);
    const char *schema, *name, *hash, *version, *backend, *strategy;
    json_int_t seed, messages;
    double step, gqa, mha, memory, efficiency;
    ck_assert_int_eq(json_unpack(json, "{s:s, s:{s:s, s:s}, s:I, s:s, s:s, s:{s:s, s:F}, s:{s:b}}", "schema", &schema,
                                 "scenario", "name", &name, "hash", &hash, "seed", &seed, "version", &version,
                                 "backend", &backend, "baseline", "strategy", &strategy, "step_s", &step, "calibration",
                                 "calibrated", &(int){0}),
                     0);
    ck_assert_str_eq(schema, "longhaul.result/1");
    ck_assert_str_eq(name, "twin-1536");
    ck_assert_str_eq(hash, "0123456789abcdef");
    ck_assert_str_eq(version, LONGHAUL_VERSION);
    ck_assert_str_eq(backend, "sim");
    ck_assert_str_eq(strategy, "har-chunked");
    ck_assert_int_eq(seed, 7);
    ck_assert_double_eq(step, 10.3);
    json_t *last = json_array_get(json_object_get(json, "strategies"), 3);
    ck_assert_int_eq(json_unpack(last, "{s:s, s:F, s:{s:F, s:F}, s:F, s:F, s:I}", "name", &name, "step_s", &step, "mfu",
                                 "gqa", &gqa, "mha", &mha, "efficiency", &efficiency, "memory_per_gpu_bytes", &memory,
                                 "messages", &messages),
                     0);
    ck_assert_str_eq(name, "har-chunked");
    ck_assert_double_eq(step, 10.7305);
    ck_assert_double_eq(gqa, fixture->result.strategies[3].step.mfu[FLOPS_GQA]);
    ck_assert_double_eq(mha, fixture->result.strategies[3].step.mfu[FLOPS_MHA]);
    ck_assert_double_eq(efficiency, 10.3 / 10.7305);
    ck_assert_double_eq(memory, 50.86e9);
    ck_assert_int_eq(messages, 4 * 18642);
    static const char *const required[] = {"bound_by", "tokens_per_s", "exposed_comm_s", "slack_s",   "floor_s",
                                           "floor_by", "gain_s",       "bubble_s",       "compute_s", "wan",
                                           "memory",   "fidelity",     "baseline"};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        ck_assert_msg(json_object_get(last, required[i]) != NULL, "no %s", required[i]);
    const char *bound = json_string_value(json_object_get(last, "bound_by"));
    ck_assert_double_eq(json_real_value(json_object_get(json_object_get(last, "gain_s"), bound)), 7.9);
    json_decref(json);
    fixture_free(fixture);
}
END_TEST

START_TEST(wan_both_directions)
{
    struct fixture *fixture = fixture_new(4);
    json_t *json = parse(&fixture->result);
    json_t *wan = json_object_get(json_array_get(json_object_get(json, "strategies"), 2), "wan");
    ck_assert_uint_eq(json_array_size(wan), 8);
    const char *from, *to;
    double bytes, mean, peak, rate;
    ck_assert_int_eq(json_unpack(json_array_get(wan, 1), "{s:s, s:s, s:F, s:F, s:F, s:F!}", "from", &from, "to", &to,
                                 "bytes", &bytes, "utilisation", &mean, "peak_utilisation", &peak,
                                 "rate_per_gpu_bit_per_s", &rate),
                     0);
    ck_assert_str_eq(from, "iad");
    ck_assert_str_eq(to, "ord");
    ck_assert_double_eq(bytes, 680e9);
    ck_assert_double_eq(peak, 1);
    json_decref(json);
    fixture_free(fixture);
}
END_TEST

START_TEST(references_and_readings)
{
    struct fixture *fixture = fixture_new(2);
    json_t *json = parse(&fixture->result);
    json_t *references = json_object_get(json, "references");
    ck_assert_uint_eq(json_array_size(references), 4); /* an MFU without a convention is compared under both */
    static const char *const conventions[] = {NULL, "gqa", "mha", NULL};
    for (size_t i = 0; i < 4; i++) {
        json_t *reference = json_array_get(references, i);
        double value = json_real_value(json_object_get(reference, "value"));
        double predicted = json_real_value(json_object_get(reference, "predicted"));
        double error = json_real_value(json_object_get(reference, "error"));
        ck_assert_double_eq_tol(error, predicted / value - 1, 1e-12);
        const char *convention = json_string_value(json_object_get(reference, "convention"));
        ck_assert_pstr_eq(convention, conventions[i]);
        ck_assert(json_is_string(json_object_get(reference, "source")));
    }
    json_t *other = json_object_get(json, "other_reading");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(other, "calibration"), "convention")), "gqa");
    ck_assert_ptr_null(json_object_get(other, "other_reading"));
    json_decref(json);
    fixture_free(fixture);
}
END_TEST

START_TEST(same_result_same_bytes)
{
    struct fixture *one = fixture_new(4);
    struct fixture *two = fixture_new(4);
    char *first = dump(&one->result);
    char *second = dump(&two->result);
    ck_assert_str_eq(first, second);
    char efficiency[32];
    snprintf(efficiency, sizeof efficiency, "%.17g", 10.3 / 10.7305);
    ck_assert_ptr_nonnull(strstr(first, efficiency));
    ck_assert_int_eq(first[strlen(first) - 1], '\n');
    free(first);
    free(second);
    fixture_free(one);
    fixture_free(two);
}
END_TEST

START_TEST(never_nan)
{
    struct fixture *fixture = fixture_new(2);
    struct strategy_result *strategy = &fixture->result.strategies[1];
    strategy->slack_s = INFINITY;
    strategy->efficiency = NAN;
    strategy->gain_s[BOUND_WINDOW] = -INFINITY;
    strategy->wan[0].bytes = NAN;
    strategy->memory.total = INFINITY;
    char *text = dump(&fixture->result);
    ck_assert_ptr_null(strstr(text, "nan"));
    ck_assert_ptr_null(strstr(text, "inf\""));
    json_t *json = json_loads(text, 0, NULL);
    json_t *second = json_array_get(json_object_get(json, "strategies"), 1);
    ck_assert(json_is_null(json_object_get(second, "slack_s")));
    ck_assert(json_is_null(json_object_get(second, "efficiency")));
    ck_assert(json_is_null(json_object_get(second, "memory_per_gpu_bytes")));
    ck_assert(json_is_null(json_object_get(json_object_get(second, "gain_s"), "window")));
    json_decref(json);
    free(text);
    fixture_free(fixture);
}
END_TEST

START_TEST(any_name_and_seed)
{
    struct fixture *fixture = fixture_new(2);
    fixture->scenario.name = (char *)"a\"b\\c\n\xff\xc3\xa9";
    fixture->scenario.seed = UINT64_MAX;
    json_t *json = parse(&fixture->result);
    json_t *name = json_object_get(json_object_get(json, "scenario"), "name");
    ck_assert_str_eq(json_string_value(name), "a\"b\\c\n\xEF\xBF\xBD\xc3\xa9");
    ck_assert_str_eq(json_string_value(json_object_get(json, "seed")), "18446744073709551615");
    json_decref(json);
    fixture_free(fixture);
}
END_TEST

START_TEST(measured_fields)
{
    struct fixture *fixture = fixture_new(2);
    json_t *json = parse(&fixture->result);
    json_t *strategy = json_array_get(json_object_get(json, "strategies"), 0);
    ck_assert_ptr_null(json_object_get(strategy, "measured"));
    ck_assert_double_eq(json_real_value(json_object_get(strategy, "slow_start_s")), 0.05);
    ck_assert_double_eq(json_real_value(json_object_get(strategy, "wan_busy_s")), 6.8);
    json_decref(json);
    fixture_measure(fixture);
    json = parse(&fixture->result);
    strategy = json_array_get(json_object_get(json, "strategies"), 0);
    static const char *const unknown[] = {"bound_by", "floor_by", "floor_s", "slow_start_s", "slack_s", "baseline"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        ck_assert_msg(json_is_null(json_object_get(strategy, unknown[i])), "%s is known", unknown[i]);
    int steps;
    double least, most, again, wire, checked;
    ck_assert_int_eq(json_unpack(strategy, "{s:{s:i, s:F, s:F, s:F, s:F, s:F!}}", "measured", "steps", &steps,
                                 "least_s", &least, "most_s", &most, "retransmits", &again, "wan_wire_bytes", &wire,
                                 "checked_bytes", &checked),
                     0);
    ck_assert_int_eq(steps, 5);
    ck_assert_double_eq(wire, 702e6);
    ck_assert(json_is_null(json_object_get(json, "baseline")));
    ck_assert_str_eq(json_string_value(json_object_get(strategy, "fidelity")), "measured");
    json_decref(json);
    fixture_free(fixture);
}
END_TEST

START_TEST(write_error_is_told)
{
    struct fixture *fixture = fixture_new(2);
    struct err err = {0};
    FILE *full = fopen("/dev/full", "w");
    if (full != NULL) {
        ck_assert_int_eq(result_dump_json(&fixture->result, full, &err), -5);
        ck_assert_ptr_nonnull(strstr(err.text, "cannot write"));
        fclose(full);
    }
    fixture_free(fixture);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("json");
    tcase_add_test(tests, schema_fields);
    tcase_add_test(tests, wan_both_directions);
    tcase_add_test(tests, references_and_readings);
    tcase_add_test(tests, same_result_same_bytes);
    tcase_add_test(tests, never_nan);
    tcase_add_test(tests, any_name_and_seed);
    tcase_add_test(tests, measured_fields);
    tcase_add_test(tests, write_error_is_told);
    return run_cases("report/json", tests);
}
