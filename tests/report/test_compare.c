/* The comparison from made-up results: arithmetic against formulas, lists of values, what the tables show. */
#include "sim/report/compare.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/text.h"
#include "tests/report/fixture.h"
#include "tests/report/runner.h"

enum { POINTS = 3 };

static const char *const rtts[POINTS] = {"wan.rtt=1ms", "wan.rtt=5ms", "wan.rtt=20ms"};

/* Points of two fixtures each, the predicted steps scaled by these. */
struct made {
    struct fixture *predicted[POINTS], *measured[POINTS];
    struct compare_point points[POINTS];
    char *sets[POINTS][1];
    char *values[POINTS];
    struct vary vary;
    struct compare compare;
    struct compare_summary summary;
};

static const double factors[POINTS] = {1.02, 0.9, 1.05};

static void make_point(struct made *made, size_t i)
{
    struct compare_point *point = &made->points[i];
    made->predicted[i] = fixture_new(2);
    made->measured[i] = fixture_new(2);
    fixture_measure(made->measured[i]);
    for (size_t j = 0; j < 4; j++) {
        struct strategy_result *predicted = &made->predicted[i]->result.strategies[j];
        predicted->step.step_s *= factors[i];
        made->measured[i]->result.strategies[j].slow_start_s = 0.04;
    }
    made->predicted[i]->scenario.scale = 1;
    made->sets[i][0] = strdup(rtts[i]);
    *point = (struct compare_point){.set_count = 1, .sets = made->sets[i]};
    point->full = point->lab = made->predicted[i]->scenario;
    point->lab.scale = 1000;
    point->predicted = made->predicted[i]->result;
    point->measured = made->measured[i]->result;
    point->full_predicted = made->predicted[i]->result;
    point->scaled = true;
    ck_assert_int_eq(compare_rows(point, NULL, 0, NULL), 0);
}

static struct made *make(size_t points)
{
    struct made *made = calloc(1, sizeof *made);
    for (size_t i = 0; i < POINTS; i++) {
        make_point(made, i);
        made->values[i] = strchr(made->sets[i][0], '=') + 1;
    }
    made->vary = (struct vary){.key = "wan.rtt", .count = POINTS, .values = made->values};
    made->compare = (struct compare){
        .vary_count = points > 1, .varies = &made->vary, .point_count = points, .points = made->points};
    if (points == 1)
        made->points[0].set_count = 0;
    ck_assert_int_eq(compare_summarise(&made->compare, &made->summary, NULL), 0);
    return made;
}

static void made_free(struct made *made)
{
    for (size_t i = 0; i < POINTS; i++) {
        free(made->points[i].rows);
        free(made->sets[i][0]);
        fixture_free(made->predicted[i]);
        fixture_free(made->measured[i]);
    }
    free(made);
}

static char *print(const struct made *made, int width)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    compare_print(&made->compare, &made->summary, out, false, width);
    fclose(out);
    return text;
}

static void expect(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in:\n%s", part, text);
}

START_TEST(errors_and_parts)
{
    struct made *made = make(POINTS);
    for (size_t i = 0; i < POINTS; i++)
        for (size_t j = 0; j < 4; j++) {
            const struct compare_row *row = &made->points[i].rows[j];
            double sum = 0, measured = 0;
            for (int part = 0; part < PART_COUNT; part++) {
                sum += row->predicted_part_s[part];
                measured += row->measured_part_s[part];
            }
            ck_assert_double_eq_tol(row->error, factors[i] - 1, 1e-12);
            ck_assert_double_eq_tol(sum, row->predicted->step.step_s, 1e-9);
            ck_assert_double_eq_tol(measured, row->measured->step.step_s, 1e-9);
            ck_assert_int_eq(row->arises, PART_WAIT);
            ck_assert_double_eq(row->predicted_part_s[PART_SLOW_START], 0.05);
        }
    ck_assert_double_eq_tol(made->summary.median_error, 0.05, 1e-12);
    ck_assert_double_eq_tol(made->summary.worst_error, -0.1, 1e-12);
    ck_assert_uint_eq(made->summary.worst_point, 1);
    made_free(made);
}
END_TEST

START_TEST(unknown_figures)
{
    struct made *made = make(1);
    made->measured[0]->result.strategies[0].slow_start_s = NAN;
    made->measured[0]->result.strategies[1].step.step_s = NAN;
    free(made->points[0].rows);
    made->points[0].row_count = 0;
    made->points[0].measured.strategy_count = 3;
    ck_assert_int_eq(compare_rows(&made->points[0], NULL, 0, NULL), 0);
    ck_assert_int_eq(compare_summarise(&made->compare, &made->summary, NULL), 0);
    const struct compare_row *rows = made->points[0].rows;
    ck_assert(isnan(rows[0].measured_part_s[PART_SLOW_START]) && isnan(rows[0].measured_part_s[PART_WAIT]));
    ck_assert_int_eq(rows[0].arises, PART_COUNT);
    ck_assert(isnan(rows[1].error));
    ck_assert_ptr_null(rows[3].measured);
    ck_assert(isnan(rows[3].error));
    ck_assert_uint_eq(made->summary.count, 2);
    char *text = print(made, 200);
    ck_assert_ptr_null(strstr(text, "nan"));
    json_t *json = compare_to_json(&made->compare, &made->summary);
    ck_assert_ptr_nonnull(json);
    json_decref(json);
    free(text);
    made_free(made);
}
END_TEST

START_TEST(nothing_known)
{
    struct made *made = make(1);
    made->points[0].row_count = 0;
    ck_assert_int_eq(compare_summarise(&made->compare, &made->summary, NULL), 0);
    ck_assert_uint_eq(made->summary.count, 0);
    char *text = print(made, 100);
    expect(text, "Nothing was both predicted and measured.");
    json_t *json = compare_to_json(&made->compare, &made->summary);
    ck_assert(json_is_null(json_object_get(json_object_get(json, "summary"), "median_error")));
    json_decref(json);
    free(text);
    made_free(made);
}
END_TEST

START_TEST(one_point_shows)
{
    static const char *const parts[] = {
        "twin-1536: predicted by the simulator and measured on real ranks in the lab, both at the lab's scale, ",
        "scale, 192 hosts a site, bytes and rates divided by 1000.",
        "arises in",
        "17.97 s",            /* har predicted: 17.62 s x 1.02 */
        "17.44 s to 17.97 s", /* 0.99 and 1.02 of the median */
        "+2.0 %",
        "wait +342 ms", /* 0.02 x 17.62 s, less the 0.01 s that slow start differs by */
        "slow start   50.00 ms  40.00 ms    +10.0 ms",
        "negative where communication hides behind computation",
        "- predicted: The WAN is ideal apart from the window",
        "- measured: Computing is waited for.",
        "Error: median 2.0 %, worst +2.0 % (",
    };
    struct made *made = make(1);
    char *text = print(made, 1000);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        expect(text, parts[i]);
    ck_assert_ptr_null(strstr(text, "error over"));
    free(text);
    made_free(made);
}
END_TEST

START_TEST(points_show)
{
    struct made *made = make(POINTS);
    char *text = print(made, 1000);
    expect(text, "strategy          wan.rtt  predicted");
    expect(text, "error over wan.rtt     1ms      5ms    20ms");
    expect(text, "har                 +2.0 %  -10.0 %  +5.0 %");
    expect(text, "Error: median 5.0 %, worst -10.0 % (");
    expect(text, " at 5ms); 12 compared.");
    size_t notes = 0;
    for (const char *note = text; (note = strstr(note, "- measured: Computing")) != NULL; note++)
        notes++;
    ck_assert_uint_eq(notes, 1);
    free(text);
    made_free(made);
}
END_TEST

START_TEST(fits_the_terminal)
{
    static const int widths[] = {90, 100, 132};
    struct made *made = make(_i % 2 ? POINTS : 1);
    int width = widths[_i / 2];
    char *text = print(made, width);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        ck_assert_msg(text_columns(line) <= width, "wider than %d: %s", width, line);
        ck_assert_msg(line[strlen(line) - 1] != ' ', "ends in a space: %s", line);
    }
    free(text);
    made_free(made);
}
END_TEST

START_TEST(only_named_strategies)
{
    struct made *made = make(1);
    const char *names[] = {"har", "flat"};
    free(made->points[0].rows);
    made->points[0].row_count = 0;
    ck_assert_int_eq(compare_rows(&made->points[0], names, 2, NULL), 0);
    ck_assert_uint_eq(made->points[0].row_count, 2);
    ck_assert_uint_eq(made->points[0].rows[0].predicted->strategy, 0);
    ck_assert_uint_eq(made->points[0].rows[1].predicted->strategy, 2);
    made_free(made);
}
END_TEST

static const struct {
    const char *text;
    size_t count; /* 0: refused */
    const char *last;
} lists[] = {
    {"wan.rtt=1ms", 1, "1ms"},
    {"wan.rtt=1ms,5ms,20 ms", 3, "20 ms"},
    {"a={x: 1, y: 2},{x: 3, y: [4, 5]}", 2, "{x: 3, y: [4, 5]}"},
    {"a='1,2',\"3,4\"", 2, "\"3,4\""},
    {"a=b=c,d=e", 2, "d=e"},
    {"a=}],1", 2, "1"},
    {"wan.rtt", 0, "it is KEY=VALUE"},
    {"=1", 0, "it is KEY=VALUE"},
    {"", 0, "it is KEY=VALUE"},
    {"a=", 0, "a value is empty"},
    {"a=1,", 0, "a value is empty"},
    {"a=,1", 0, "a value is empty"},
    {"a=1,,2", 0, "a value is empty"},
};

START_TEST(lists_of_values)
{
    struct vary vary;
    struct err err = {""};
    int rc = vary_parse(lists[_i].text, &vary, &err);
    ck_assert_int_eq(rc, lists[_i].count > 0 ? 0 : -EINVAL);
    ck_assert_uint_eq(vary.count, lists[_i].count);
    if (rc == 0)
        ck_assert_str_eq(vary.values[vary.count - 1], lists[_i].last);
    else
        expect(err.text, lists[_i].last);
    vary_free(&vary);
}
END_TEST

START_TEST(cross_product)
{
    struct vary varies[2];
    struct err err = {""};
    ck_assert_int_eq(vary_parse("wan.rtt=1ms,5ms", &varies[0], &err), 0);
    ck_assert_int_eq(vary_parse("wan.waves=1,2,3", &varies[1], &err), 0);
    struct compare compare = {.vary_count = 2, .varies = varies};
    const char *const sets[] = {"wan.rtt=7ms", "lab.hosts=2"};
    ck_assert_msg(compare_points(&compare, "twin-1536", sets, 2, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(compare.point_count, 6);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_double_eq_tol(compare.points[i].full.wan[0].rtt_s, i < 3 ? 1e-3 : 5e-3, 1e-12);
        ck_assert_int_eq(compare.points[i].full.wan[0].waves, (long)i % 3 + 1);
        ck_assert_int_eq(compare.points[i].full.lab.hosts, 2);
    }
    ck_assert_str_eq(compare.points[5].sets[0], "wan.rtt=5ms");
    compare_free(&compare);
    vary_free(&varies[0]);
    vary_free(&varies[1]);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("compare");
    tcase_add_test(tests, errors_and_parts);
    tcase_add_test(tests, unknown_figures);
    tcase_add_test(tests, nothing_known);
    tcase_add_test(tests, one_point_shows);
    tcase_add_test(tests, points_show);
    tcase_add_loop_test(tests, fits_the_terminal, 0, 6);
    tcase_add_test(tests, only_named_strategies);
    tcase_add_loop_test(tests, lists_of_values, 0, sizeof lists / sizeof *lists);
    tcase_add_test(tests, cross_product);
    return run_cases("report/compare", tests);
}
