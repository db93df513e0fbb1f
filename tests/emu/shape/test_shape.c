/* Impairments, jitter tables, netem's attributes there and back, the plan. No kernel is asked. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netlink/attr.h>

#include "emu/shape/distribution.h"
#include "emu/shape/netem.h"
#include "emu/shape/plan.h"
#include "tests/report/runner.h"

static const struct wan_link brief = {
    .waves = 8, .wave_bit_per_s = 100e9, .rtt_s = 21.3e-3, .jitter_s = 0.7e-3, .loss_burst = 1};

START_TEST(half_the_rtt_and_its_deviation_over_root_two)
{
    struct impairment it;
    struct err err = {""};
    ck_assert_int_eq(impairment_of_link(&brief, 7, 1.0 / 192, &it, &err), 0);
    ck_assert_uint_eq(it.delay_ns, 10650000);
    ck_assert_uint_eq(it.jitter_ns, 494975); /* 0.7 ms / sqrt 2 */
    ck_assert_uint_eq(it.rate_byte_per_s, 520833333);
    ck_assert(it.seed_given && it.seed == 7);
    impairment_free(&it);
}
END_TEST

START_TEST(bursts_keep_the_mean)
{
    struct wan_link link = brief;
    struct impairment it;
    struct err err = {""};
    link.loss_ratio = 0.02;
    link.loss_burst = 8;
    ck_assert_int_eq(impairment_of_link(&link, 1, 1, &it, &err), 0);
    ck_assert_int_eq(it.loss.kind, LOSS_GILBERT_ELLIOTT);
    ck_assert(fabs(1 / it.loss.r - 8) < 1e-12);
    ck_assert(fabs(it.loss.p / (it.loss.p + it.loss.r) - 0.02) < 1e-12);
    impairment_free(&it);
}
END_TEST

START_TEST(links_in_a_row_are_one)
{
    struct wan_link slow = {
        .waves = 1, .wave_bit_per_s = 10e9, .rtt_s = 4e-3, .jitter_s = 0.3e-3, .loss_ratio = 0.01, .loss_burst = 1};
    struct impairment it, next;
    struct err err = {""};
    const char *note;
    ck_assert_int_eq(impairment_of_link(&brief, 7, 1, &it, &err), 0);
    ck_assert_int_eq(impairment_of_link(&slow, 7, 1, &next, &err), 0);
    ck_assert_int_eq(impairment_append(&it, &next, &note, &err), 0);
    ck_assert_ptr_null(note);
    ck_assert_uint_eq(it.delay_ns, 12650000);
    ck_assert(fabs(it.jitter_ns - 1e9 * hypot(0.7e-3, 0.3e-3) / sqrt(2)) < 1);
    ck_assert_uint_eq(it.rate_byte_per_s, 1250000000);
    ck_assert(fabs(it.loss.ratio - 0.01) < 1e-12);
    impairment_free(&it);
    impairment_free(&next);
}
END_TEST

static const double limits_s[][2] = {{800e9, 21.3e-3}, {10e9, 50e-3}, {1e6, 300}, {INFINITY, 0}};

START_TEST(the_limit_holds_twice_the_bdp)
{
    struct wan_link link = {.waves = 1, .wave_bit_per_s = limits_s[_i][0], .rtt_s = limits_s[_i][1], .loss_burst = 1};
    struct impairment it;
    struct err err = {""};
    ck_assert_int_eq(impairment_of_link(&link, 1, 1, &it, &err), 0);
    double bdp_packets = isinf(limits_s[_i][0]) ? 0 : limits_s[_i][0] / 8 * limits_s[_i][1] / 2 / 1514;
    ck_assert(it.limit_packets >= 2 * bdp_packets && it.limit_packets >= 1000);
    impairment_free(&it);
}
END_TEST

START_TEST(tables_have_mean_0_and_deviation_1)
{
    struct distribution distribution;
    struct err err;
    double mean, sd;
    ck_assert_int_eq(distribution_of_shape((enum jitter_shape)_i, &distribution, &err), 0);
    distribution_moments(&distribution, &mean, &sd);
    ck_assert_msg(fabs(mean) < 1e-4 && fabs(sd - 1) < 1e-4, "shape %d: mean %g, sd %g", _i, mean, sd);
    for (size_t i = 1; i < distribution.count; i++)
        ck_assert_int_ge(distribution.table[i], distribution.table[i - 1]);
    distribution_free(&distribution);
}
END_TEST

/* Published quantiles of the standard normal: 0.8413 at 1, 0.9772 at 2, 0.99865 at 3 standard deviations. */
START_TEST(the_normal_table_is_normal)
{
    static const double shares[] = {0.841344746, 0.977249868, 0.998650102};
    struct distribution distribution;
    struct err err;
    ck_assert_int_eq(distribution_of_shape(JITTER_NORMAL, &distribution, &err), 0);
    for (int k = 0; k < 3; k++) {
        double value = distribution.table[(size_t)(shares[k] * distribution.count)] / (double)DISTRIBUTION_SCALE;
        ck_assert_msg(fabs(value - (k + 1)) < 0.04, "%d sd: %g", k + 1, value);
    }
    distribution_free(&distribution);
}
END_TEST

/* Deciles 1, 5 and 9 of the tables that iproute2 installs (normal.dist, pareto.dist, paretonormal.dist of 6.1),
 * whatever the scale and the middle. */
START_TEST(shapes_are_those_of_iproute2)
{
    static const double deciles[][3] = {[JITTER_NORMAL] = {-1.282, 0.000, 1.281},
                                        [JITTER_PARETO] = {-0.619, -0.320, 0.872},
                                        [JITTER_PARETONORMAL] = {-0.785, -0.240, 0.974}};
    const double *theirs = deciles[_i];
    struct distribution ours;
    struct err err;
    ck_assert_int_eq(distribution_of_shape((enum jitter_shape)_i, &ours, &err), 0);
    double low = ours.table[ours.count / 10], middle = ours.table[ours.count / 2],
           high = ours.table[ours.count * 9 / 10];
    double skew = (high - middle) / (middle - low), expected = (theirs[2] - theirs[1]) / (theirs[1] - theirs[0]);
    ck_assert_msg(fabs(skew / expected - 1) < 0.01, "shape %d: %g, tc's %g", _i, skew, expected);
    distribution_free(&ours);
}
END_TEST

/* Pareto of shape 3, x >= 1, cut off at c: mean 3/2 - 1/(2 c^2), mean square 3 - 2/c. c stands 4 sd above the mean. */
START_TEST(the_pareto_table_is_pareto_cut_at_4_sd)
{
    struct distribution distribution;
    struct err err;
    double low = 1.5, high = 100, mean = 0, sd = 1;
    for (int i = 0; i < 60; i++) {
        double c = (low + high) / 2;
        mean = 1.5 - 1 / (2 * c * c);
        sd = sqrt(3 - 2 / c - mean * mean);
        *((c - mean) / sd < 4 ? &low : &high) = c;
    }
    ck_assert_int_eq(distribution_of_shape(JITTER_PARETO, &distribution, &err), 0);
    for (int decile = 1; decile <= 9; decile++) {
        double value = distribution.table[distribution.count * decile / 10] / (double)DISTRIBUTION_SCALE;
        double exact = (pow(1 - decile / 10.0, -1.0 / 3) - mean) / sd;
        ck_assert_msg(fabs(value - exact) < 0.01, "decile %d: %g, exact %g", decile, value, exact);
    }
    distribution_free(&distribution);
}
END_TEST

static int read_text(const char *text, struct distribution *distribution, struct err *err)
{
    char path[] = "/tmp/distribution-XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    int rc = distribution_read(path, distribution, err);
    unlink(path);
    return rc;
}

START_TEST(a_table_file_is_taken_as_it_is)
{
    struct distribution distribution;
    struct err err = {""};
    ck_assert_msg(!read_text("# tc's format\n -8192 0 # middle\n\n8192\t0\n", &distribution, &err), "%s", err.text);
    ck_assert_uint_eq(distribution.count, 4);
    ck_assert_int_eq(distribution.table[0], -8192);
    double mean, sd;
    distribution_moments(&distribution, &mean, &sd);
    ck_assert(fabs(mean) < 1e-12 && fabs(sd - sqrt(0.5)) < 1e-12);
    distribution_free(&distribution);
}
END_TEST

static const char *const bad_tables[][2] = {
    {"", ":1:1: 0 numbers"},
    {"5\n", ":2:1: 1 numbers"},
    {"# 1 2 3\n# 4\n5 # 6", ":3:6: 1 numbers"},
    {"1 2\n3 x\n", ":2:3: 'x"},
    {"1 40000\n", ":1:3: 40000"},
    {"1.5 2\n", ":1:1: '1.5"},
    {"1 2 -40000", ":1:5: "},
    {"1 99999999999999999999", ":1:3"},
    {"0x10 3", ":1:1: '0x10' is no"},
    {"1 2\n 3 -\n", ":2:4: '-' is no"},
    {"1 2\v3", ":1:3: '2"},
};

START_TEST(what_is_no_text_is_no_table)
{
    struct distribution distribution;
    struct err err = {""};
    ck_assert_int_eq(distribution_read("/dev/zero", &distribution, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "/dev/zero is no table") != NULL, "%s", err.text);
    ck_assert_int_eq(distribution_read("/", &distribution, &err), -EINVAL);
    ck_assert_int_eq(distribution_read("/nowhere/x.dist", &distribution, &err), -ENOENT);
    ck_assert_ptr_null(distribution.table);
}
END_TEST

START_TEST(a_bad_table_file_is_refused)
{
    struct distribution distribution;
    struct err err = {""};
    ck_assert_int_eq(read_text(bad_tables[_i][0], &distribution, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, bad_tables[_i][1]) != NULL, "%s", err.text);
    ck_assert_ptr_null(distribution.table);
}
END_TEST

/* As a kernel would dump it: what was asked for comes back, exactly. */
START_TEST(netem_there_and_back)
{
    struct impairment asked, got;
    struct err err = {""};
    struct nl_msg *message = nlmsg_alloc_size(65536);
    impairment_init(&asked);
    asked.delay_ns = 300000000001;
    asked.jitter_ns = 495003;
    asked.correlation = 0.25;
    asked.loss = _i ? (struct loss){LOSS_GILBERT_ELLIOTT, 0, 0.01, 0.1, 0.9, 0.001}
                    : (struct loss){.kind = LOSS_INDEPENDENT, .ratio = 1e-6};
    asked.reorder = 0.05;
    asked.duplicate = 0.0005;
    asked.corrupt = 1e-6;
    asked.rate_byte_per_s = UINT64_C(100000000000);
    asked.seed_given = true;
    asked.seed = UINT64_C(0xfedcba9876543210);
    impairment_limit(&asked);
    ck_assert_int_eq(impairment_check(&asked, &err), 0);
    ck_assert_int_eq(netem_put(message, &asked, NULL, &err), 0);
    impairment_init(&got);
    ck_assert_int_eq(netem_parse(nlmsg_find_attr(nlmsg_hdr(message), 0, TCA_OPTIONS), &got, &err), 0);
    ck_assert(impairment_equal(&asked, &got));
    nlmsg_free(message);
}
END_TEST

static const struct {
    struct impairment it;
    const char *says;
} impossible[] = {
    {{.jitter_ns = 1000, .limit_packets = 1, .rate_byte_per_s = 1}, "jitter without a delay"},
    {{.delay_ns = 1, .correlation = 0.5, .limit_packets = 1, .rate_byte_per_s = 1}, "correlation without jitter"},
    {{.reorder = 0.5, .limit_packets = 1, .rate_byte_per_s = 1}, "reordering without a delay"},
    {{.delay_ns = 1, .jitter_ns = UINT64_C(2147483648), .limit_packets = 1, .rate_byte_per_s = 1}, "2.147483647 s"},
    {{.limit_packets = 1, .rate_byte_per_s = 0}, "a rate of 0"},
    {{.limit_packets = 1, .rate_byte_per_s = IMPAIRMENT_RATE_MAX + 1}, "8 Tb/s"},
    {{.limit_packets = 0, .rate_byte_per_s = 1}, "queue limit of 0"},
    {{.corrupt = 1.5, .limit_packets = 1, .rate_byte_per_s = 1}, "corruption of 1.5"},
    {{.loss = {LOSS_GILBERT_ELLIOTT, 0.9, 9, 1, 1, 0}, .limit_packets = 1, .rate_byte_per_s = 1}, "at most 1"},
    {{.loss = {.kind = LOSS_INDEPENDENT, .ratio = 1e-11}, .limit_packets = 1, .rate_byte_per_s = 1}, "1 in 2^32"},
    {{.loss = {LOSS_GILBERT_ELLIOTT, 1e-6, 1e-12, 1e-6, 1, 0}, .limit_packets = 1, .rate_byte_per_s = 1},
     "shorter bursts"},
    {{.delay_ns = UINT64_C(2000000000000000), .limit_packets = 1, .rate_byte_per_s = 1}, "1000000 s"},
};

START_TEST(the_impossible_is_refused)
{
    struct err err = {""};
    ck_assert_int_eq(impairment_check(&impossible[_i].it, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, impossible[_i].says) != NULL, "%s", err.text);
}
END_TEST

/* Normal, sd half the mean: Phi(-2) = 2.28 % would be negative. */
START_TEST(clamped_is_the_tail)
{
    struct impairment it;
    impairment_init(&it);
    it.delay_ns = 2000000;
    it.jitter_ns = 1000000;
    ck_assert(fabs(impairment_clamped(&it) - 0.02275) < 1e-3);
    it.delay_ns = 10000000;
    ck_assert(impairment_clamped(&it) <= 0);
}
END_TEST

static void one_path(struct wish *wish, struct path *paths, struct prefix *prefixes, const char *const *texts,
                     size_t count)
{
    struct err err;
    *wish = (struct wish){.device = "eth0", .path_count = count, .paths = paths};
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(prefix_parse(texts[i], &prefixes[i], &err), 0);
        paths[i].prefixes = &prefixes[i];
        paths[i].prefix_count = 1;
        impairment_init(&paths[i].impairment);
    }
}

START_TEST(the_longest_prefix_is_matched_first)
{
    static const char *const texts[] = {"0.0.0.0/0", "10.1.0.0/16", "10.1.2.3", "fd00::/8", "10.0.0.0/8"};
    enum { COUNT = sizeof texts / sizeof *texts };
    struct path paths[COUNT] = {{0}};
    struct prefix prefixes[COUNT];
    struct wish wish;
    struct plan plan;
    struct err err = {""};
    one_path(&wish, paths, prefixes, texts, COUNT);
    ck_assert_msg(!plan_build(&wish, 7, 0, &plan, &err), "%s", err.text);
    ck_assert_uint_eq(plan.count, 1 + 3 * COUNT);
    static const char *const order[] = {"10.1.2.3/32 ", "10.1.0.0/16 ", "10.0.0.0/8 ", "0.0.0.0/0 ", "fd00::/8 "};
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_msg(strstr(plan.steps[1 + 2 * COUNT + i].tc, order[i]) != NULL, "%s",
                      plan.steps[1 + 2 * COUNT + i].tc);
    plan_free(&plan);
}
END_TEST

static const struct {
    const char *file, *environment, *word;
} tables[] = {
    {"/srv/a.dist", "TC_LIB_DIR=/srv tc qdisc add dev ", " distribution a rate "},
    {"/a.dist.dist", "TC_LIB_DIR=/ tc ", " distribution a.dist rate "},
    {"a", "TC_LIB_DIR=. tc ", " distribution a rate "},
    {"/my tables/it's.dist", "TC_LIB_DIR='/my tables' tc ", " distribution 'it'\\''s' rate "},
};

/* A table's deviation is its own: only the shapes' is the jitter. */
START_TEST(words_say_what_the_figures_are)
{
    struct impairment it;
    impairment_init(&it);
    it.delay_ns = 10650000;
    it.jitter_ns = 495000;
    it.jitter_shape = JITTER_PARETO;
    char *text = impairment_text(&it);
    ck_assert_str_eq(text, "10.65 ms one way, jitter 495 us one way (sd, pareto), no rate limit");
    free(text);
    it.table_file = (char *)"/srv/a.dist";
    it.rate_byte_per_s = 125000000;
    it.loss = (struct loss){LOSS_GILBERT_ELLIOTT, 0.01, 0.0101, 0.1, 0.5, 0};
    text = impairment_text(&it);
    ck_assert_str_eq(text, "10.65 ms one way, jitter 495 us one way (times the table /srv/a.dist), loss 1 % in bursts "
                           "of 10 packets (of which 50 % are lost), 1 Gb/s");
    free(text);
}
END_TEST

/* tc looks for FOLDER/NAME.dist; the words are a shell's. */
START_TEST(a_table_is_named_as_tc_wants_it)
{
    struct impairment it;
    char *words = NULL;
    size_t size;
    FILE *out = open_memstream(&words, &size);
    impairment_init(&it);
    it.delay_ns = it.jitter_ns = 1000000;
    it.table_file = (char *)tables[_i].file;
    netem_print_tc_environment(out, &it);
    fputs("tc qdisc add dev eth0 ", out);
    netem_print_tc(out, &it);
    fclose(out);
    ck_assert_msg(!strncmp(words, tables[_i].environment, strlen(tables[_i].environment)), "%s", words);
    ck_assert_msg(strstr(words, tables[_i].word) != NULL, "%s", words);
    free(words);
}
END_TEST

START_TEST(a_prefix_has_one_path)
{
    static const char *const texts[] = {"10.1.0.0/16", "10.1.0.0/16"};
    struct path paths[2] = {{0}};
    struct prefix prefixes[2];
    struct wish wish;
    struct plan plan;
    struct err err = {""};
    one_path(&wish, paths, prefixes, texts, 2);
    ck_assert_int_eq(plan_build(&wish, 7, 0, &plan, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "10.1.0.0/16 is listed twice") != NULL, "%s", err.text);
    ck_assert_uint_eq(plan.count, 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shape");
    tcase_add_test(tests, half_the_rtt_and_its_deviation_over_root_two);
    tcase_add_test(tests, bursts_keep_the_mean);
    tcase_add_test(tests, links_in_a_row_are_one);
    tcase_add_loop_test(tests, the_limit_holds_twice_the_bdp, 0, sizeof limits_s / sizeof *limits_s);
    tcase_add_loop_test(tests, tables_have_mean_0_and_deviation_1, JITTER_NORMAL, JITTER_UNIFORM + 1);
    tcase_add_test(tests, the_normal_table_is_normal);
    tcase_add_loop_test(tests, shapes_are_those_of_iproute2, JITTER_NORMAL, JITTER_PARETONORMAL + 1);
    tcase_add_test(tests, the_pareto_table_is_pareto_cut_at_4_sd);
    tcase_add_test(tests, a_table_file_is_taken_as_it_is);
    tcase_add_loop_test(tests, a_bad_table_file_is_refused, 0, sizeof bad_tables / sizeof *bad_tables);
    tcase_add_test(tests, what_is_no_text_is_no_table);
    tcase_add_test(tests, words_say_what_the_figures_are);
    tcase_add_loop_test(tests, a_table_is_named_as_tc_wants_it, 0, sizeof tables / sizeof *tables);
    tcase_add_loop_test(tests, netem_there_and_back, 0, 2);
    tcase_add_loop_test(tests, the_impossible_is_refused, 0, sizeof impossible / sizeof *impossible);
    tcase_add_test(tests, clamped_is_the_tail);
    tcase_add_test(tests, the_longest_prefix_is_matched_first);
    tcase_add_test(tests, a_prefix_has_one_path);
    return run_cases("emu-shape", tests);
}
