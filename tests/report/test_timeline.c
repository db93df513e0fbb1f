/* The timeline: valid JSON for any name, the fields Perfetto reads, order within a track, a million events. */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/timeline.h"
#include "tests/report/runner.h"

static json_t *events_of(const struct timeline *timeline)
{
    char *text = NULL;
    size_t size = 0;
    struct err err = {0};
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(timeline_write(timeline, out, &err), 0);
    fclose(out);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(json != NULL, "%s", error.text);
    json_t *events = json_incref(json_object_get(json, "traceEvents"));
    ck_assert(json_is_array(events));
    json_decref(json);
    free(text);
    return events;
}

static void expect_event(json_t *event, const char *ph, const char *name, int process)
{
    const char *got_ph, *got_name;
    int pid;
    ck_assert_int_eq(json_unpack(event, "{s:s, s:s, s:i}", "ph", &got_ph, "name", &got_name, "pid", &pid), 0);
    ck_assert_str_eq(got_ph, ph);
    ck_assert_str_eq(got_name, name);
    ck_assert_int_eq(pid, process);
}

START_TEST(fields)
{
    struct timeline *timeline = timeline_new();
    timeline_name(timeline, 3, "rank 3", 0, "compute");
    timeline_name(timeline, 3, "rank 3", 1, "network");
    timeline_counter(timeline, 9, "ord-iad", 0.5, 8e11);
    timeline_span(timeline, 3, 1, "send", "reduce", 2.0, 2.5, 1e9);
    timeline_span(timeline, 3, 0, "compute", "F0", 0.001, 0.0015, 0);
    json_t *events = events_of(timeline);
    ck_assert_uint_eq(json_array_size(events), 7);
    expect_event(json_array_get(events, 0), "M", "process_name", 3);
    expect_event(json_array_get(events, 1), "M", "process_sort_index", 3);
    expect_event(json_array_get(events, 2), "M", "thread_name", 3);
    expect_event(json_array_get(events, 3), "M", "thread_name", 3);
    expect_event(json_array_get(events, 4), "X", "F0", 3);
    expect_event(json_array_get(events, 5), "X", "reduce", 3);
    expect_event(json_array_get(events, 6), "C", "ord-iad", 9);
    double time, duration, bytes, value;
    ck_assert_int_eq(json_unpack(json_array_get(events, 4), "{s:F, s:F}", "ts", &time, "dur", &duration), 0);
    ck_assert_double_eq_tol(time, 1000, 1e-9);
    ck_assert_double_eq_tol(duration, 500, 1e-9);
    ck_assert_ptr_null(json_object_get(json_array_get(events, 4), "args"));
    ck_assert_int_eq(json_unpack(json_array_get(events, 5), "{s:{s:F}}", "args", "bytes", &bytes), 0);
    ck_assert_double_eq(bytes, 1e9);
    ck_assert_int_eq(json_unpack(json_array_get(events, 6), "{s:F, s:{s:F}}", "ts", &time, "args", "value", &value), 0);
    ck_assert_double_eq(time, 500000);
    ck_assert_double_eq(value, 8e11);
    json_decref(events);
    timeline_free(timeline);
}
END_TEST

START_TEST(any_name)
{
    const char *name = "quote \" slash \\ line \n bell \a bad \xff good \xe2\x86\x92 </script>";
    struct timeline *timeline = timeline_new();
    timeline_name(timeline, 0, name, 0, "");
    timeline_span(timeline, 0, 0, name, name, 0, 1, 0);
    timeline_counter(timeline, 0, name, 0, 1);
    json_t *events = events_of(timeline);
    const char *got;
    ck_assert_int_eq(json_unpack(json_array_get(events, 3), "{s:s}", "name", &got), 0);
    ck_assert_str_eq(got, "quote \" slash \\ line \n bell \a bad \xEF\xBF\xBD good \xe2\x86\x92 </script>");
    json_decref(events);
    timeline_free(timeline);
}
END_TEST

START_TEST(sorted_within_tracks)
{
    struct timeline *timeline = timeline_new();
    for (int i = 0; i < 1000; i++) {
        double start = (double)(i * 7919 % 1000);
        timeline_span(timeline, i % 3, i % 2, "compute", "op", start, start + 0.5, 0);
    }
    json_t *events = events_of(timeline);
    ck_assert_uint_eq(json_array_size(events), 1000);
    int last_pid = -1, last_tid = -1;
    double last = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        int pid, tid;
        double time;
        ck_assert_int_eq(
            json_unpack(json_array_get(events, i), "{s:i, s:i, s:F}", "pid", &pid, "tid", &tid, "ts", &time), 0);
        if (pid == last_pid && tid == last_tid)
            ck_assert_double_ge(time, last);
        last_pid = pid;
        last_tid = tid;
        last = time;
    }
    json_decref(events);
    timeline_free(timeline);
}
END_TEST

START_TEST(empty)
{
    struct timeline *timeline = timeline_new();
    json_t *events = events_of(timeline);
    ck_assert_uint_eq(json_array_size(events), 0);
    json_decref(events);
    timeline_free(timeline);
    timeline_free(NULL);
}
END_TEST

START_TEST(bad_times_are_told)
{
    static const double times[][2] = {{NAN, 1}, {0, INFINITY}, {2, 1}};
    struct err err = {0};
    struct timeline *timeline = timeline_new();
    timeline_span(timeline, 0, 0, "send", "x", times[_i][0], times[_i][1], 0);
    ck_assert_int_eq(timeline_write(timeline, stdout, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "no finite time"));
    timeline_free(timeline);
}
END_TEST

START_TEST(full_disk_is_told)
{
    struct err err = {0};
    struct timeline *timeline = timeline_new();
    timeline_span(timeline, 0, 0, "send", "x", 0, 1, 0);
    FILE *full = fopen("/dev/full", "w");
    if (full != NULL) {
        ck_assert_int_eq(timeline_write(timeline, full, &err), -EIO);
        fclose(full);
    }
    timeline_free(timeline);
}
END_TEST

START_TEST(a_million_events)
{
    struct timeline *timeline = timeline_new();
    char name[16];
    for (int i = 0; i < 1000000; i++) {
        snprintf(name, sizeof name, "F%d", i % 48);
        timeline_span(timeline, i % 64, i % 2, "compute", name, i * 1e-6, i * 1e-6 + 1e-6, 4096);
    }
    FILE *out = fopen("/dev/null", "w");
    struct err err = {0};
    ck_assert_int_eq(timeline_write(timeline, out, &err), 0);
    fclose(out);
    timeline_free(timeline);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("timeline");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, fields);
    tcase_add_test(tests, any_name);
    tcase_add_test(tests, sorted_within_tracks);
    tcase_add_test(tests, empty);
    tcase_add_loop_test(tests, bad_times_are_told, 0, 3);
    tcase_add_test(tests, full_disk_is_told);
    tcase_add_test(tests, a_million_events);
    return run_cases("report/timeline", tests);
}
