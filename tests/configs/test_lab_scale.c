/* A scenario at the scale of the lab: bytes and rates divided, times kept. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/scenario.h"

static void load(const char *name, const char *const *sets, size_t count, struct scenario *scenario)
{
    struct err err = {""};
    ck_assert_msg(scenario_load(name, sets, count, scenario, &err) == 0, "%s", err.text);
}

static void scale(const struct scenario *scenario, double efficiency, struct scenario *scaled)
{
    struct err err = {""};
    ck_assert_msg(scenario_lab_scale(scenario, efficiency, scaled, &err) == 0, "%s", err.text);
}

static const char *const names[] = {"twin-1536", "twin-1536-hsdp", "quad-768", "dgxc-512"};

START_TEST(rates_and_bytes_are_divided)
{
    struct scenario full, lab;
    load(names[_i], NULL, 0, &full);
    scale(&full, 0.5, &lab);
    double divide = (double)full.lab.divide;
    ck_assert_int_eq(lab.scale, full.lab.divide);
    ck_assert_uint_eq(lab.site_count, full.site_count);
    ck_assert_uint_eq(lab.wan_count, full.wan_count);
    for (size_t i = 0; i < full.wan_count; i++) {
        ck_assert_int_eq(lab.wan[i].waves, 1);
        ck_assert_double_eq_tol(lab.wan[i].wave_bit_per_s,
                                (double)full.wan[i].waves * full.wan[i].wave_bit_per_s / divide, 1e-3);
        ck_assert_double_eq(lab.wan[i].rtt_s, full.wan[i].rtt_s);
        ck_assert_double_eq(lab.wan[i].jitter_s, full.wan[i].jitter_s);
        ck_assert_double_eq(lab.wan[i].loss_ratio, full.wan[i].loss_ratio);
    }
    /* A rank's share of its node's NICs. */
    double rank = (double)full.fabric.nics_per_node * full.fabric.nic_bit_per_s * (double)full.training.tensor /
                  (double)full.sites[0].gpus_per_node;
    ck_assert_double_eq_tol(lab.fabric.nic_bit_per_s * (double)lab.fabric.nics_per_node, rank / divide, 1e-3);
    ck_assert_double_eq(lab.fabric.latency_s, full.fabric.latency_s);
    ck_assert_int_eq(lab.transport.protocol, PROTOCOL_TCP);
    ck_assert(!lab.calibrate.present);
    ck_assert_double_eq(lab.training.kernel_efficiency, 0.5);
    scenario_free(&full);
    scenario_free(&lab);
}
END_TEST

/* One rank a host; a stage computes as long: layers of a stage x micro-batches, to one micro-batch. */
START_TEST(a_rank_computes_as_long)
{
    struct scenario full, lab;
    load(names[_i], NULL, 0, &full);
    scale(&full, 0, &lab);
    for (size_t i = 0; i < lab.site_count; i++)
        ck_assert_int_eq(site_gpus(&lab.sites[i]), full.lab.hosts * full.training.tensor);
    ck_assert_int_eq(lab.training.pipeline * lab.training.data, full.lab.hosts * (long)full.site_count);
    double layers = (double)full.model.layers;
    double before = layers / (double)full.training.pipeline * (double)scenario_micro_batches(&full);
    double after = layers / (double)lab.training.pipeline * (double)scenario_micro_batches(&lab);
    double one = layers / (double)lab.training.pipeline;
    long more = lab.training.interleave > 1 ? lab.training.pipeline : 1; /* interleaving needs whole groups */
    ck_assert_double_eq_tol(after, before, one * (double)more);
    scenario_free(&full);
    scenario_free(&lab);
}
END_TEST

START_TEST(twice_is_once)
{
    struct scenario full, lab, again;
    load(names[_i], NULL, 0, &full);
    scale(&full, 0.5, &lab);
    scale(&lab, 0.25, &again);
    ck_assert_str_eq(lab.hash, again.hash);
    ck_assert_double_eq(again.training.kernel_efficiency, 0.5);
    scenario_free(&full);
    scenario_free(&lab);
    scenario_free(&again);
}
END_TEST

START_TEST(lab_scenarios_are_at_its_scale)
{
    static const char *const labs[] = {"lab-2x4", "lab-3x2"};
    struct scenario full, lab;
    load(labs[_i], NULL, 0, &full);
    scale(&full, 0, &lab);
    ck_assert_str_eq(full.hash, lab.hash);
    scenario_free(&full);
    scenario_free(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lab scale");
    TCase *tests = tcase_create("lab scale");
    int count = (int)(sizeof names / sizeof *names);
    tcase_add_loop_test(tests, rates_and_bytes_are_divided, 0, count);
    tcase_add_loop_test(tests, a_rank_computes_as_long, 0, count);
    tcase_add_loop_test(tests, twice_is_once, 0, count);
    tcase_add_loop_test(tests, lab_scenarios_are_at_its_scale, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
