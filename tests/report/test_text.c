/* Widths, counts, cleaning and wrapping of text. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/text.h"
#include "tests/report/runner.h"

START_TEST(columns)
{
    ck_assert_int_eq(text_columns(""), 0);
    ck_assert_int_eq(text_columns("abc"), 3);
    ck_assert_int_eq(text_columns("\xc3\xa9\xe2\x86\x92"), 2);
}
END_TEST

static const struct {
    const char *dirty, *clean;
} cleanings[] = {
    {"plain", "plain"},
    {"\xf0\x9f\x9a\x80", "\xf0\x9f\x9a\x80"},                                 /* U+1F680 */
    {"\xc0\xaf", "\xEF\xBF\xBD\xEF\xBF\xBD"},                                 /* overlong */
    {"\xed\xa0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                 /* surrogate */
    {"\xf4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* above U+10FFFF */
    {"a\xe2\x86", "a\xEF\xBF\xBD\xEF\xBF\xBD"},                               /* cut */
};

START_TEST(cleaning)
{
    char *clean = text_clean(cleanings[_i].dirty);
    ck_assert_str_eq(clean, cleanings[_i].clean);
    free(clean);
}
END_TEST

static const struct {
    double count;
    const char *text;
} counts[] = {
    {0, "0"},         {7, "7"},        {999, "999"},      {999.6, "1.00k"}, {1234, "1.23k"}, {18642, "18.6k"},
    {152000, "152k"}, {99960, "100k"}, {999600, "1.00M"}, {4.5e9, "4.50G"}, {1e18, "1000P"},
};

START_TEST(counting)
{
    char buffer[16];
    ck_assert_str_eq(text_count(counts[_i].count, buffer, sizeof buffer), counts[_i].text);
}
END_TEST

START_TEST(wrapping)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    text_wrap(out, "aaa bbb ccc averyverylongword d", 8, 2);
    fclose(out);
    ck_assert_str_eq(text, "aaa bbb\n  ccc\n  averyverylongword\n  d\n");
    free(text);
}
END_TEST

START_TEST(times)
{
    char buffer[32];
    ck_assert_str_eq(text_time(1e-15, 3, buffer, sizeof buffer), "0 s");
    ck_assert_str_eq(text_time(-1e-15, 3, buffer, sizeof buffer), "0 s");
    ck_assert_str_eq(text_time(0.0213, 3, buffer, sizeof buffer), "21.3 ms");
    ck_assert_str_eq(text_time(10.3, 4, buffer, sizeof buffer), "10.30 s");
    ck_assert_str_eq(text_time(8, 3, buffer, sizeof buffer), "8.00 s");
    ck_assert_str_eq(text_time(100, 3, buffer, sizeof buffer), "100 s");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, columns);
    tcase_add_loop_test(tests, cleaning, 0, sizeof cleanings / sizeof *cleanings);
    tcase_add_loop_test(tests, counting, 0, sizeof counts / sizeof *counts);
    tcase_add_test(tests, wrapping);
    tcase_add_test(tests, times);
    return run_cases("report/text", tests);
}
