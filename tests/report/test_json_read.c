/* A result comes back from its JSON as it was, and JSON that is no result of the scenario is refused with a reason. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/fixture.h"
#include "tests/report/runner.h"

enum { KINDS = 4 };

/* Simulated with 2 and with 4 sites, measured, and one with all that is odd. */
static struct fixture *make(int kind)
{
    struct fixture *fixture = fixture_new(kind == 1 ? 4 : 2);
    if (kind == 2)
        fixture_measure(fixture);
    if (kind != 3)
        return fixture;
    fixture->scenario.seed = UINT64_MAX;
    fixture->strategies[1].name = (char *)"\xff odd";
    fixture->sites[0].name = (char *)"a\"b\xfe";
    fixture->result.strategies[1].slack_s = INFINITY;
    fixture->result.strategies[2].step.messages = UINT64_MAX;
    fixture->result.strategies[2].slow_start_s = NAN;
    fixture->result.strategies[2].bound_by = BOUND_COUNT;
    fixture->result.calibration.calibrated = false;
    return fixture;
}

static char *dump(const struct result *result)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(result_dump_json(result, out, NULL), 0);
    fclose(out);
    return text;
}

START_TEST(round_trip)
{
    struct fixture *fixture = make(_i);
    struct result read;
    struct err err = {""};
    char *before = dump(&fixture->result);
    json_t *json = json_loads(before, 0, NULL);
    ck_assert_msg(result_from_json(json, &fixture->scenario, &read, &err) == 0, "%s", err.text);
    json_decref(json);
    char *after = dump(&read);
    ck_assert_str_eq(before, after);
    ck_assert(read.strategies[0].step.fidelity == fixture->result.strategies[0].step.fidelity);
    ck_assert(isinf(read.strategies[1].slack_s) == isinf(fixture->result.strategies[1].slack_s));
    ck_assert_int_eq(read.strategies[3].measured.steps, fixture->result.strategies[3].measured.steps);
    char *table = fixture_print(&fixture->result, false, 100), *again = fixture_print(&read, false, 100);
    ck_assert_str_eq(table, again);
    free(table);
    free(again);
    free(before);
    free(after);
    result_free(&read);
    fixture_free(fixture);
}
END_TEST

/* Reads it: either as if nothing were wrong (what is derived is not read) or refused with one line. */
static bool refused(const json_t *json, const struct fixture *fixture, char *message)
{
    struct result read;
    struct err err = {""};
    int rc = result_from_json(json, &fixture->scenario, &read, &err);
    ck_assert(rc == 0 || rc == -EINVAL);
    if (rc < 0) {
        ck_assert_uint_gt(strlen(err.text), 0);
        ck_assert_uint_eq(read.strategy_count, 0);
    }
    json_t *again = rc == 0 ? result_to_json(&read) : NULL;
    ck_assert(rc < 0 || again != NULL);
    json_decref(again);
    result_free(&read);
    strcpy(message, err.text);
    return rc < 0;
}

/* Members that are derived from the rest or from the scenario, and so are not read. */
static bool derived(const char *path, const char *key)
{
    static const char *const keys[] = {"best",   "references", "memory_per_gpu_bytes", "name", "mfu",
                                       "source", "baseline",   "other_reading"};
    static const char *const paths[] = {"", "", "/strategies", "/scenario", "/calibration", "/calibration", "", ""};
    const char *other = "/other_reading";
    path += strncmp(path, other, strlen(other)) == 0 ? strlen(other) : 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0 && strcmp(paths[i], path) == 0)
            return true;
    return strncmp(path, "/references", 11) == 0 || strncmp(path, "/baseline", 9) == 0;
}

static size_t tried;

static void spoil(json_t *document, json_t *node, const char *path, const struct fixture *fixture);

/* One member removed, then of other types, then whatever is below it. */
static void spoil_member(json_t *document, json_t *object, const char *path, const char *key,
                         const struct fixture *fixture)
{
    char message[ERR_TEXT_MAX], below[512];
    json_t *value = json_incref(json_object_get(object, key));
    bool not_read = derived(path, key);
    json_object_del(object, key);
    ck_assert_msg(refused(document, fixture, message) != not_read, "%s/%s removed: '%s'", path, key, message);
    ck_assert_msg(not_read || strstr(message, "missing") != NULL, "%s/%s removed: '%s'", path, key, message);
    json_t *others[] = {json_true(), json_array(), json_object(), json_string("x"), json_integer(-1), json_real(1e300)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        json_object_set_new(object, key, others[i]);
        bool wrong = refused(document, fixture, message);
        if (!not_read && i == 0 && !json_is_boolean(value))
            ck_assert_msg(wrong && strstr(message, key) != NULL, "%s/%s true: '%s'", path, key, message);
        tried++;
    }
    json_object_set(object, key, value);
    snprintf(below, sizeof below, "%s/%s", path, key);
    spoil(document, value, below, fixture);
    json_decref(value);
}

static void spoil(json_t *document, json_t *node, const char *path, const struct fixture *fixture)
{
    const char *keys[64];
    size_t count = 0, index;
    const char *key;
    json_t *value;
    json_object_foreach(node, key, value) keys[count++] = key;
    for (size_t i = 0; i < count; i++) {
        char name[64]; /* the member's own goes when it is removed */
        snprintf(name, sizeof name, "%s", keys[i]);
        spoil_member(document, node, path, name, fixture);
    }
    json_array_foreach(node, index, value) if (index < 2) spoil(document, value, path, fixture);
}

START_TEST(every_key_spoilt)
{
    struct fixture *fixture = make(_i);
    json_t *json = result_to_json(&fixture->result);
    spoil(json, json, "", fixture);
    ck_assert_uint_gt(tried, 300);
    json_decref(json);
    fixture_free(fixture);
}
END_TEST

static const struct {
    const char *patch, *message;
} strangers[] = {
    {"{\"schema\": \"longhaul.collective/1\"}", "schema: 'longhaul.collective/1' is not longhaul.result/1"},
    {"{\"schema\": \"longhaul.result/2\"}", "schema: 'longhaul.result/2' is another version than longhaul.result/1"},
    {"{\"version\": \"0.0.7\"}", "version: written by longhaul 0.0.7, this is longhaul " LONGHAUL_VERSION},
    {"{\"scenario\": {\"hash\": \"beef\"}}",
     "scenario.hash: beef is a result of another scenario than twin-1536, which has 0123456789abcdef"},
    {"{\"seed\": 8}", "seed: the scenario has another"},
    {"{\"backend\": \"ns3\"}", "backend: 'ns3' is none of sim, emu"},
    {"{\"calibration\": null}", "calibration: must be an object, is null"},
    {"{\"strategies\": [1]}", "strategies[0]: must be an object, is a number"},
    {"{\"strategies\": [{\"name\": \"nope\"}]}", "strategies[0].name: the scenario has no strategy 'nope'"},
    {"{\"notes\": [\"a\", 1]}", "notes[1]: must be a string, is a number"},
};

START_TEST(strangers_are_told_apart)
{
    struct fixture *fixture = make(2);
    char message[ERR_TEXT_MAX];
    json_t *json = result_to_json(&fixture->result), *patch = json_loads(strangers[_i].patch, 0, NULL);
    ck_assert_int_eq(json_object_update(json, patch), 0);
    ck_assert(refused(json, fixture, message));
    ck_assert_str_eq(message, strangers[_i].message);
    json_decref(patch);
    json_decref(json);
    fixture_free(fixture);
}
END_TEST

START_TEST(readings_do_not_nest)
{
    struct fixture *fixture = make(0);
    char message[ERR_TEXT_MAX];
    json_t *json = result_to_json(&fixture->result);
    json_t *other = json_object_get(json, "other_reading");
    json_object_set_new(other, "other_reading", json_deep_copy(other));
    ck_assert(refused(json, fixture, message));
    ck_assert_str_eq(message, "other_reading.other_reading: there is one already");
    json_decref(json);
    json = json_array();
    ck_assert(refused(json, fixture, message));
    ck_assert_str_eq(message, "not a JSON object");
    json_decref(json);
    fixture_free(fixture);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("json_read");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, round_trip, 0, KINDS);
    tcase_add_loop_test(tests, every_key_spoilt, 0, KINDS);
    tcase_add_loop_test(tests, strangers_are_told_apart, 0, sizeof strangers / sizeof *strangers);
    tcase_add_test(tests, readings_do_not_nest);
    return run_cases("report/json_read", tests);
}
