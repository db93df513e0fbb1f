/* The table for people: what is on it, that it fits the terminal, plain without colour. Run with an argument ("2 100",
 * sites and width) it prints the fixture's table instead. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/text.h"
#include "tests/report/fixture.h"
#include "tests/report/runner.h"

static void expect(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no '%s' in:\n%s", part, text);
}

START_TEST(says_everything)
{
    static const char *const parts[] = {
        "twin-1536: 2 x 192 nodes x 8 h100-sxm (ord, iad), 3.2 Tb/s per node; WAN ord-iad 8 x 100 Gb/s, RTT 21.3 ms",
        "TP 8 x PP 12 (interleave 8) x DP 32; sequence 4096, global batch 1536 (48 micro-batches of 1 per replica)",
        "one site",
        "har-chunked",
        "WAN latency",
        "96.0 %",
        "TOO MUCH",
        "folded 18.6k",
        "680 GB",
        "flat is out of memory: it needs 131 GB per GPU of 80 GB",
        "har-chunked mfu, read as gqa",
        "+0.0 %",
        "NVIDIA NeMo 25.02 blog",
        "51.0 % MFU read as mha (not stated by its source)",
        "Read as gqa instead: flat 18.91 s at 56.1 %;",
        "no loss, no slow start",
        "Best: har-chunked, 10.73 s a step (586k tokens/s), 96.0 % of its speed in one site, bound by compute.",
        "faster GPUs or kernels, at most 7.90 s a step (73.6 %); on the network side by more WAN rate",
    };
    struct fixture *fixture = fixture_new(2);
    char *text = fixture_print(&fixture->result, false, 1000);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        expect(text, parts[i]);
    free(text);
    fixture_free(fixture);
}
END_TEST

START_TEST(fits_the_terminal)
{
    static const size_t site_counts[] = {1, 2, 4};
    static const int widths[] = {80, 100, 132, 160};
    struct fixture *fixture = fixture_new(site_counts[_i / 4 % 3]);
    int width = widths[_i % 4];
    if (_i >= 12)
        fixture_measure(fixture);
    char *text = fixture_print(&fixture->result, false, width);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        ck_assert_msg(text_columns(line) <= width, "wider than %d: %s", width, line);
        ck_assert_msg(line[strlen(line) - 1] != ' ', "ends in a space: %s", line);
    }
    free(text);
    fixture_free(fixture);
}
END_TEST

START_TEST(colour_only_when_asked)
{
    struct fixture *fixture = fixture_new(2);
    char *plain = fixture_print(&fixture->result, false, 0);
    char *coloured = fixture_print(&fixture->result, true, 0);
    ck_assert_ptr_null(strchr(plain, '\033'));
    ck_assert_ptr_nonnull(strchr(coloured, '\033'));
    free(plain);
    free(coloured);
    fixture_free(fixture);
}
END_TEST

START_TEST(none_fits)
{
    struct fixture *fixture = fixture_new(2);
    for (size_t i = 0; i < 4; i++)
        fixture->result.strategies[i].memory.out_of_memory = 1;
    fixture->result.strategies[2].memory.total = 90e9;
    fixture->result.strategies[1].memory.total = 91e9;
    fixture->result.strategies[3].memory.total = 92e9;
    char *text = fixture_print(&fixture->result, false, 1000);
    expect(text, "No strategy fits in memory; har comes closest, with 90 GB per GPU of 80 GB.");
    ck_assert_ptr_null(result_best(&fixture->result));
    free(text);
    fixture_free(fixture);
}
END_TEST

START_TEST(slower_but_more_efficient)
{
    struct fixture *fixture = fixture_new(2);
    fixture->result.strategies[2].efficiency = 0.99;
    char *text = fixture_print(&fixture->result, false, 1000);
    expect(text, "har keeps more of its own one-site speed (99.0 %) but is slower.");
    free(text);
    fixture_free(fixture);
}
END_TEST

START_TEST(assumed_and_no_wan)
{
    struct fixture *fixture = fixture_new(1);
    fixture->result.calibration.calibrated = false;
    fixture->scenario.reference_count = 0;
    for (size_t i = 0; i < 4; i++)
        fixture->result.strategies[i].slack_s = INFINITY;
    for (int bound = 0; bound < BOUND_COUNT; bound++)
        fixture->result.strategies[3].gain_s[bound] = 1e-17;
    char *text = fixture_print(&fixture->result, false, 1000);
    expect(text, "Compute time: assumed, not measured; kernels reach 55.3 % of peak");
    expect(text, "; no WAN;");
    expect(text, "Nothing modelled here would improve it by more than 0.1 %.");
    ck_assert_ptr_null(strstr(text, "inf"));
    free(text);
    fixture_free(fixture);
}
END_TEST

/* A measurement has no baseline and no what-ifs: nothing is said about them. */
START_TEST(measured_on_real_ranks)
{
    static const char *const parts[] = {
        "measured 5",
        "Words: step = the median of those measured on real ranks;",
        "Compute time: waited for, not computed; kernels are taken to reach 55.3 % of peak",
        "har: measured on real ranks, median of 5 steps, from 17.44 s to 17.97 s; TCP sent 702 MB",
        "; TCP sent 702 MB across the WAN a step; 12.4 segments a step were sent again; the values of 1.5 GB",
        "Best: har-chunked, 10.73 s a step (586k tokens/s), measured on real ranks, median of 5 steps, from 10.62 s",
        "har-chunked tokens/s",
        "16/- %",
        "bf16 gradients. Bytes and rates are divided by 1000.\n",
    };
    static const char *const lies[] = {"one site",         "bound by compute", "would be gained",
                                       "Nothing modelled", "calibrated",       "nan",
                                       "predicted",        "simulated",        "unknown -"};
    struct fixture *fixture = fixture_new(2);
    fixture_measure(fixture);
    fixture->scenario.scale = 1000;
    char *text = fixture_print(&fixture->result, false, 1000);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        expect(text, parts[i]);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        ck_assert_msg(strstr(text, lies[i]) == NULL, "'%s' in:\n%s", lies[i], text);
    free(text);
    fixture_free(fixture);
}
END_TEST

START_TEST(measured_without_bytes)
{
    struct fixture *fixture = fixture_new(2);
    fixture_measure(fixture);
    fixture->result.calibration.forward_s = NAN;
    struct measured *measured = &fixture->result.strategies[3].measured;
    *measured = (struct measured){.steps = 1, .least_s = 2, .most_s = 2, .retransmits = NAN, .wan_wire_bytes = NAN};
    char *text = fixture_print(&fixture->result, false, 1000);
    expect(text, "har-chunked: measured on real ranks, median of 1 step, from 2.000 s to 2.000 s.\n");
    expect(text, "reach 55.3 % of peak.\n");
    free(text);
    fixture_free(fixture);
}
END_TEST

static int show(size_t sites, int width)
{
    struct fixture *fixture = fixture_new(sites);
    result_print(&fixture->result, stdout, false, width);
    fixture_free(fixture);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return show((size_t)atoi(argv[1]), atoi(argv[2]));
    TCase *tests = tcase_create("table");
    tcase_add_test(tests, says_everything);
    tcase_add_loop_test(tests, fits_the_terminal, 0, 24);
    tcase_add_test(tests, colour_only_when_asked);
    tcase_add_test(tests, none_fits);
    tcase_add_test(tests, slower_but_more_efficient);
    tcase_add_test(tests, assumed_and_no_wan);
    tcase_add_test(tests, measured_on_real_ranks);
    tcase_add_test(tests, measured_without_bytes);
    return run_cases("report/table", tests);
}
