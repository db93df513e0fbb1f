#include "configs/units.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/configs/sample.h"

static const struct {
    const char *text;
    enum dimension dimension;
    double value;
} good[] = {
    {"21.3 ms", DIM_TIME, 21.3e-3},
    {"5us", DIM_TIME, 5e-6},
    {" 2 min ", DIM_TIME, 120},
    {"1 h", DIM_TIME, 3600},
    {"0", DIM_TIME, 0},
    {".5 s", DIM_TIME, 0.5},
    {"1e3 ns", DIM_TIME, 1e-6},
    {"64 MB", DIM_BYTES, 64e6},
    {"2 PB", DIM_BYTES, 2e15},
    {"4 MiB", DIM_BYTES, 4194304},
    {"inf", DIM_BYTES, INFINITY},
    {"100 Gb/s", DIM_RATE, 100e9},
    {"450 GB/s", DIM_RATE, 3600e9},
    {"inf", DIM_RATE, INFINITY},
    {"450 GB/s", DIM_BYTE_RATE, 450e9},
    {"400 Gb/s", DIM_BYTE_RATE, 50e9},
    {"51 %", DIM_RATIO, 0.51},
    {"0.1%", DIM_RATIO, 0.001},
    {"0.1 %", DIM_RATIO, 0.001},
    {"25%", DIM_RATIO, 0.25},
    {"1e-6", DIM_RATIO, 1e-6},
    {"0.51", DIM_RATIO, 0.51},
    {"1", DIM_RATIO, 1},
    {"104 %", DIM_RATIO, 1.04},
    {"989 TF", DIM_FLOPS, 989e12},
    {"2.25 PF/s", DIM_FLOPS, 2.25e15},
    {"700 W", DIM_POWER, 700},
    {"1.2 kW", DIM_POWER, 1200},
    {"0.02 $/GB", DIM_PRICE_PER_BYTE, 0.02e-9},
    {"90 $/TB", DIM_PRICE_PER_BYTE, 90e-12},
};

START_TEST(parses)
{
    double value = -1;
    struct err err = {""};
    ck_assert_msg(units_parse(good[_i].text, good[_i].dimension, &value, &err) == 0, "%s", err.text);
    if (isinf(good[_i].value))
        ck_assert(isinf(value));
    else
        ck_assert_double_eq_tol(value, good[_i].value, fabs(good[_i].value) * 1e-15 + 1e-300);
}
END_TEST

static const struct {
    const char *text;
    enum dimension dimension;
    const char *says;
} bad[] = {
    {"21", DIM_TIME, "'21' has no unit; a time is written like '21 ms'"},
    {"100", DIM_RATE, "'100' has no unit; a rate is written like '100 Gb/s'"},
    {"51", DIM_RATIO, "'51 %'"},
    {"21 gb/s", DIM_RATE, "(did you mean 'Gb/s'?)"},
    {"21 Gbs", DIM_RATE, "(did you mean 'Gb/s'?)"},
    {"21 MS", DIM_TIME, "(did you mean 'ms'?)"},
    {"21 sec", DIM_TIME, "units"},
    {"5 KB", DIM_BYTES, "(did you mean 'kB'?)"},
    {"21.3 ms extra", DIM_TIME, "is no unit for a time"},
    {"21.3 ms", DIM_RATE, "is no unit for a rate"},
    {"-5 ms", DIM_TIME, "negative"},
    {"+5 ms", DIM_TIME, "is not a time"},
    {"nan", DIM_TIME, "is not a time"},
    {"NaN ms", DIM_TIME, "is not a time"},
    {"inf", DIM_TIME, "is not a time"},
    {"0x10 ms", DIM_TIME, "is no unit"},
    {"1e400 s", DIM_TIME, "too large"},
    {"1e99999999999999999999 s", DIM_TIME, "too large"},
    {"1e-400 s", DIM_TIME, "too small"},
    {"1,5 ms", DIM_TIME, "is no unit"},
    {"1.2.3 ms", DIM_TIME, "is no unit"},
    {"", DIM_TIME, "write it like '21.3 ms'"},
    {".", DIM_TIME, "is not a time"},
    {"ms", DIM_TIME, "is not a time"},
    {"1111111111111111111111111111111111111111111111111111111111111111111111 s", DIM_TIME, "is not a time"},
};

START_TEST(refuses)
{
    double value = 7;
    struct err err = {""};
    ck_assert_int_eq(units_parse(bad[_i].text, bad[_i].dimension, &value, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, bad[_i].says) != NULL, "'%s': %s", bad[_i].text, err.text);
    ck_assert_double_eq(value, 7);
}
END_TEST

START_TEST(refuses_very_long_text)
{
    char text[10000];
    memset(text, '1', sizeof text);
    text[sizeof text - 1] = '\0';
    double value;
    struct err err;
    ck_assert_int_eq(units_parse(text, DIM_TIME, &value, &err), -EINVAL);
}
END_TEST

static const struct {
    double value;
    enum dimension dimension;
    int digits;
    const char *text;
} written[] = {
    {21.3e-3, DIM_TIME, 3, "21.3 ms"},
    {21.3e-3, DIM_TIME, 0, "21.3 ms"},
    {5e-6, DIM_TIME, 3, "5 us"},
    {999.9996e-3, DIM_TIME, 3, "1 s"},
    {100e9, DIM_RATE, 1, "100 Gb/s"},
    {0, DIM_TIME, 3, "0 s"},
    {0.02e-9, DIM_PRICE_PER_BYTE, 0, "0.02 $/GB"},
    {0.51, DIM_RATIO, 0, "51 %"},
    {1234567, DIM_BYTES, 4, "1.235 MB"},
    {INFINITY, DIM_RATE, 3, "inf"},
    {450e9, DIM_BYTE_RATE, 3, "450 GB/s"},
    {0.5e-9, DIM_TIME, 0, "0.5 ns"},
    {86400, DIM_TIME, 0, "86400 s"},
};

START_TEST(writes)
{
    char text[64];
    ck_assert_str_eq(units_format(written[_i].value, written[_i].dimension, written[_i].digits, text, sizeof text),
                     written[_i].text);
}
END_TEST

/* What is written reads back exactly: with 17 digits and with the shortest text, over 40 orders of magnitude. */
START_TEST(round_trip)
{
    unsigned long long state = 88172645463325252ULL;
    for (int i = 0; i < 4000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double value = ldexp((double)(state >> 11), (int)(state % 130) - 110), back;
        for (int digits = 0; digits <= 17; digits += 17) {
            char text[64];
            struct err err = {""};
            units_format(value, (enum dimension)_i, digits, text, sizeof text);
            int rc = units_parse(text, (enum dimension)_i, &back, &err);
            ck_assert_msg(!rc && back >= value && back <= value, "%a -> %s -> %a %s", value, text, back, err.text);
        }
    }
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("units");
    tcase_add_loop_test(cases, parses, 0, sizeof good / sizeof good[0]);
    tcase_add_loop_test(cases, refuses, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(cases, refuses_very_long_text);
    tcase_add_loop_test(cases, writes, 0, sizeof written / sizeof written[0]);
    tcase_add_loop_test(cases, round_trip, 0, DIM_COUNT);
    return sample_run("units", cases);
}
