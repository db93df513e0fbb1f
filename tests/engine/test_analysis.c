/* Whole results of small scenarios: what the words mean, and cases that once went wrong. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/engine/analysis.h"
#include "tests/engine/rig.h"

enum { SETS_MAX = 12 };

/* lab-2x4 with ideal transport, unless the sets say otherwise. */
static void analyse(const char *const *sets, enum analysis_fidelity fidelity, struct scenario *scenario,
                    struct result *result)
{
    struct err err = {""};
    struct analysis_options options = {.fidelity = fidelity, .workers = 2};
    const char *all[SETS_MAX + 1] = {"transport.protocol=ideal"};
    size_t count = 1;
    for (; count <= SETS_MAX && sets[count - 1]; count++)
        all[count] = sets[count - 1];
    ck_assert_msg(scenario_load("lab-2x4", all, count, scenario, &err) == 0, "%s", err.text);
    ck_assert_msg(analysis_run(scenario, &options, result, &err) == 0, "%s", err.text);
}

static void finish(struct scenario *scenario, struct result *result)
{
    result_free(result);
    scenario_free(scenario);
}

#define HARDWARE(nodes, per_node) "nodes: " #nodes ", gpus_per_node: " #per_node ", gpu: h100-sxm"
#define TWO_SITES(west, east) "datacenters=[{name: west, " west "}, {name: east, " east "}]"
#define SITE(name) "{name: " #name ", " HARDWARE(3, 1) "}"
#define FREE_LINK(from, to) "{between: [" #from ", " #to "], waves: 1, wave_rate: inf, rtt: 0 ms}"

/* The network is free across sites: however many sites are one. Hops inside a site differ by latency alone. */
static const char *const free_wan[][SETS_MAX] = {
    {"wan.rtt=0 ms", "wan.wave_rate=inf"},
    {"wan.rtt=0 ms", "wan.wave_rate=inf", "training.pipeline=2", "training.data=4", "training.global_batch=16"},
    {"wan.rtt=0 ms", "wan.wave_rate=inf", "transport.slices=1", "transport.channels=2"},
    {"datacenters=[" SITE(a) "]", "wan=", "training.data=3", "training.global_batch=6"},
    {"datacenters=[" SITE(a) ", " SITE(b) ", " SITE(c) "]", "wan=[" FREE_LINK(a, b) ", " FREE_LINK(b, c) "]",
     "training.data=9", "training.global_batch=18"},
    {"datacenters=[" SITE(a) ", " SITE(b) ", " SITE(c) ", " SITE(d) "]",
     "wan=[" FREE_LINK(a, b) ", " FREE_LINK(b, c) ", " FREE_LINK(c, d) "]", "training.data=12",
     "training.global_batch=24"},
};

START_TEST(a_free_wan_is_one_site)
{
    struct scenario scenario;
    struct result result;
    analyse(free_wan[_i], ANALYSIS_AUTO, &scenario, &result);
    for (size_t i = 0; i < result.strategy_count; i++) {
        const struct strategy_result *strategy = &result.strategies[i];
        /* 2 x 4 GPUs: 8 hops hierarchical, 14 as a ring */
        double messages = 8 * scenario.fabric.latency_s;
        ck_assert_msg(fabs(strategy->step.step_s - strategy->baseline.step_s) < messages, "%s: %.9g s, one site %.9g s",
                      scenario.strategies[i].name, strategy->step.step_s, strategy->baseline.step_s);
    }
    finish(&scenario, &result);
}
END_TEST

static const struct {
    const char *sets[SETS_MAX];
    enum bound bound;
} bounds[] = {
    {{"wan.wave_rate=100 Mb/s"}, BOUND_WAN_RATE},
    {{"transport.window=64 kB", "wan.rtt=100 ms"}, BOUND_WINDOW},
    {{"wan.rtt=20 s", "wan.wave_rate=100 Gb/s"}, BOUND_WAN_LATENCY},
    {{"wan.rtt=0 ms", "wan.wave_rate=inf", "fabric.nic_rate=inf"}, BOUND_COMPUTE},
    {{"wan.rtt=0 ms", "wan.wave_rate=inf", "fabric.nic_rate=20 Mb/s"}, BOUND_FABRIC},
    /* Free compute has no bubble either: the bubble bounds only where stages also wait long for activations. */
    {{"training={pipeline: 2, data: 4, sequence: 512, global_batch: 4, micro_batch: 1}", "fabric.nic_rate=50 Mb/s",
      "wan.wave_rate=100 Mb/s", "strategies=[{name: a, allreduce: ring}]"},
     BOUND_BUBBLE},
};

START_TEST(what_is_scarce_bounds)
{
    struct scenario scenario;
    struct result result;
    analyse(bounds[_i].sets, ANALYSIS_AUTO, &scenario, &result);
    for (size_t i = 0; i < result.strategy_count; i++) {
        const struct strategy_result *strategy = &result.strategies[i];
        ck_assert_msg(strategy->bound_by == bounds[_i].bound, "%s is bound by %s, not %s", scenario.strategies[i].name,
                      bound_name(strategy->bound_by), bound_name(bounds[_i].bound));
        ck_assert(strategy->exposed_comm_s >= 0 && strategy->slack_s >= 0);
        ck_assert(strategy->floor_s <= strategy->step.step_s * (1 + 1e-9));
    }
    finish(&scenario, &result);
}
END_TEST

START_TEST(longer_and_slower_links_never_help)
{
    static const char *const sweeps[][5] = {
        {"wan.rtt=0 ms", "wan.rtt=1 ms", "wan.rtt=21.3 ms", "wan.rtt=100 ms", "wan.rtt=21.3 s"},
        {"wan.wave_rate=inf", "wan.wave_rate=10 Gb/s", "wan.wave_rate=1 Gb/s", "wan.wave_rate=100 Mb/s",
         "wan.wave_rate=1 Mb/s"},
    };
    double before_s[8] = {0}, first_s[8] = {0};
    for (int k = 0; k < 5; k++) {
        struct scenario scenario;
        struct result result;
        const char *sets[SETS_MAX] = {sweeps[_i][k]};
        analyse(sets, ANALYSIS_AUTO, &scenario, &result);
        for (size_t i = 0; i < result.strategy_count; i++) {
            double step_s = result.strategies[i].step.step_s;
            ck_assert_msg(step_s >= before_s[i] * (1 - 1e-9), "%s at %s", scenario.strategies[i].name, sets[0]);
            before_s[i] = step_s;
            first_s[i] = k ? first_s[i] : step_s;
            ck_assert_msg(k < 4 || step_s > 10 * first_s[i], "%s hardly feels %s", scenario.strategies[i].name,
                          sets[0]);
        }
        finish(&scenario, &result);
    }
}
END_TEST

/* Where the NICs are slow, a late chunk's bytes leave other chunks' room on them, and its delay costs nothing at first.
 * On a fast fabric slack is 0: the last gradients are ready when compute ends and still have to cross. */
#define SLOW_NICS                                                                                                      \
    "fabric.nic_rate=1 Gb/s", "wan.wave_rate=100 Gb/s",                                                                \
        "strategies=[{name: a, allreduce: hierarchical, overlap: {chunk: 1 layer, depth: 8}}]"

static double step_at(double rtt_s, double *slack_s)
{
    char rtt[64];
    const char *sets[SETS_MAX] = {SLOW_NICS, rtt};
    struct scenario scenario;
    struct result result;
    snprintf(rtt, sizeof rtt, "wan.rtt=%.12f ms", 1e3 * rtt_s);
    analyse(sets, ANALYSIS_AUTO, &scenario, &result);
    double step_s = result.strategies[0].step.step_s;
    if (slack_s)
        *slack_s = result.strategies[0].slack_s;
    finish(&scenario, &result);
    return step_s;
}

START_TEST(slack_costs_nothing_and_more_does)
{
    static const double rtts_s[] = {0, 1e-3, 5e-3};
    double rtt_s = rtts_s[_i], slack_s, step_s = step_at(rtt_s, &slack_s);
    ck_assert_msg(slack_s > 1e-3 && slack_s < step_s, "slack %.9g s", slack_s);
    double at_s = step_at(rtt_s + 2 * slack_s, NULL), beyond_s = step_at(rtt_s + 2 * 1.01 * slack_s, NULL);
    rig_assert_close(at_s, step_s, 1e-8, "step %.9g s, with its slack of %.9g s %.9g s", step_s, slack_s, at_s);
    ck_assert_msg(beyond_s > step_s * (1 + 1e-6), "beyond its slack of %.9g s the step stays %.9g s", slack_s, step_s);
}
END_TEST

/* Once a hang, a crash, a wrong baseline or a fold that did not hold. */
#define RINGS                                                                                                          \
    "strategies=[{name: a, allreduce: ring, sharding: optimizer, overlap: {chunk: 1 layer, depth: 1}}, {name: b, "     \
    "allreduce: "                                                                                                      \
    "hierarchical, sharding: optimizer}, {name: c, allreduce: ring, order: interleaved}]"
#define THREE_SITES                                                                                                    \
    "datacenters=[{name: west, " HARDWARE(4, 1) "}, {name: east, " HARDWARE(4, 1) "}, {name: north, " HARDWARE(4,      \
                                                                                                               1) "}]"
#define THREE_LINKS                                                                                                    \
    "wan=[{between: [west, east], waves: 2, wave_rate: 10 Gb/s, rtt: 21.3 ms}, {between: [east, north], waves: 1, "    \
    "wave_rate: 1 Gb/s, rtt: 1 ms}]"
#define PIPELINE(replicas, batch)                                                                                      \
    "training={pipeline: 2, interleave: 2, data: " #replicas ", sequence: 512, global_batch: " #batch                  \
    ", micro_batch: 1}"
#define SHARDED                                                                                                        \
    "strategies=[{name: a, allreduce: ring, sharding: parameters}, {name: b, allreduce: ring, order: interleaved, "    \
    "sharding: parameters, overlap: {chunk: 1 layer, depth: 2}}, {name: c, allreduce: hierarchical, sharding: "        \
    "parameters, overlap: {chunk: 2 layers, depth: 2}}, {name: d, allreduce: hierarchical, overlap: {chunk: 1 "        \
    "layer, depth: 4}}]"
static const char *const cases[][SETS_MAX] = {
    {TWO_SITES(HARDWARE(1, 1), HARDWARE(1, 1)), "training.data=2", "wan.wave_rate=100 Mb/s"},
    {RINGS, "transport={handshakes: 1, slices: 4}"},
    {RINGS, "transport={channels: 2, slices: 2}"},
    {RINGS, "fabric.oversubscription=4"},
    {RINGS, "transport={window: 4 MiB, handshakes: 1}", "training.pipeline=2", "training.data=4"},
    {THREE_SITES, THREE_LINKS, RINGS, "training.data=12", "training.global_batch=24"},
    {THREE_SITES, THREE_LINKS, RINGS, "training.data=12", "training.global_batch=24",
     "transport={handshakes: 1, slices: 4}"},
    {THREE_SITES, THREE_LINKS, RINGS, "training.pipeline=2", "training.data=6", "training.global_batch=24"},
    {PIPELINE(4, 16)},
    {PIPELINE(4, 16), RINGS, "transport={handshakes: 1, channels: 2}", "fabric.oversubscription=2"},
    {THREE_SITES, THREE_LINKS, PIPELINE(6, 24), RINGS, "transport={handshakes: 1, channels: 2}"},
    {SHARDED, "transport={channels: 2, slices: 4}"},
    {SHARDED, "transport={handshakes: 1}", "fabric.oversubscription=2"},
    {THREE_SITES, THREE_LINKS, SHARDED, "training.data=12", "training.global_batch=24"},
};

START_TEST(what_auto_folds_is_what_messages_give)
{
    struct scenario scenario, again;
    struct result folded, messages;
    analyse(cases[_i], ANALYSIS_AUTO, &scenario, &folded);
    analyse(cases[_i], ANALYSIS_MESSAGE, &again, &messages);
    for (size_t i = 0; i < folded.strategy_count; i++)
        rig_assert_close(folded.strategies[i].step.step_s, messages.strategies[i].step.step_s, 0.001,
                         "%s: %.9g s, message by message %.9g s", scenario.strategies[i].name,
                         folded.strategies[i].step.step_s, messages.strategies[i].step.step_s);
    finish(&scenario, &folded);
    finish(&again, &messages);
}
END_TEST

/* Not interleaved rings, whose every hop crosses the WAN, and not with handshakes: those stay messages. */
static const char *const in_bulk[][SETS_MAX] = {
    {"strategies=[{name: a, allreduce: ring}, {name: b, allreduce: hierarchical}, {name: c, allreduce: hierarchical, "
     "sharding: optimizer}]"},
    {THREE_SITES, THREE_LINKS, "training.data=12", "training.global_batch=24",
     "strategies=[{name: a, allreduce: ring}, {name: b, allreduce: ring, sharding: optimizer}]"},
};

START_TEST(bulk_is_what_messages_give)
{
    struct scenario scenario, again;
    struct result bulk, messages;
    analyse(in_bulk[_i], ANALYSIS_BULK, &scenario, &bulk);
    analyse(in_bulk[_i], ANALYSIS_MESSAGE, &again, &messages);
    for (size_t i = 0; i < bulk.strategy_count; i++) {
        const struct step_result *step = &bulk.strategies[i].step;
        ck_assert_msg(step->fidelity == FIDELITY_BULK, "%s runs %s", scenario.strategies[i].name,
                      fidelity_name(step->fidelity));
        rig_assert_close(step->step_s, messages.strategies[i].step.step_s, 0.01,
                         "%s: %.9g s, message by message %.9g s", scenario.strategies[i].name, step->step_s,
                         messages.strategies[i].step.step_s);
    }
    finish(&scenario, &bulk);
    finish(&again, &messages);
}
END_TEST

/* Windows are open where steps of 16 MB follow each other at 21.3 ms: then TCP costs its headers, on the WAN and on the
 * NICs, and nothing else. */
START_TEST(tcp_costs_its_headers)
{
    static const char *const ideal_sets[SETS_MAX] = {"strategies=[{name: flat, allreduce: ring}]"};
    static const char *const tcp_sets[SETS_MAX] = {"strategies=[{name: flat, allreduce: ring}]",
                                                   "transport.protocol=tcp"};
    struct scenario scenario, again;
    struct result ideal, tcp;
    analyse(ideal_sets, ANALYSIS_AUTO, &scenario, &ideal);
    analyse(tcp_sets, ANALYSIS_AUTO, &again, &tcp);
    const struct strategy_result *with = tcp.strategies, *without = ideal.strategies;
    double headers_s = without->wan_busy_s * (1514.0 / 1448 - 1);
    ck_assert_double_eq_tol(with->wan_busy_s, without->wan_busy_s + headers_s, 1e-9);
    ck_assert_double_eq_tol(with->step.step_s - without->step.step_s, headers_s, 0.05 * headers_s);
    ck_assert_double_eq_tol(with->slow_start_s, 0, 1e-9);
    ck_assert_int_eq(with->step.fidelity, FIDELITY_MESSAGE);
    finish(&scenario, &ideal);
    finish(&again, &tcp);
}
END_TEST

START_TEST(a_baseline_holds_all_gpus)
{
    static const char *const sets[SETS_MAX] = {TWO_SITES(HARDWARE(1, 8), HARDWARE(3, 4)),
                                               "fabric=",
                                               "training.data=20",
                                               "training.global_batch=40",
                                               "wan.rtt=0 ms",
                                               "wan.wave_rate=inf",
                                               "strategies=[{name: a, allreduce: ring}]"};
    struct scenario scenario;
    struct result result;
    analyse(sets, ANALYSIS_AUTO, &scenario, &result);
    double mfu = result.strategies[0].baseline.mfu[FLOPS_GQA] * result.strategies[0].baseline.step_s;
    double own = result.strategies[0].step.mfu[FLOPS_GQA] * result.strategies[0].step.step_s;
    rig_assert_close(mfu, own, 1e-12, "the same flops on the same GPUs: %.9g, %.9g", mfu, own);
    finish(&scenario, &result);
}
END_TEST

START_TEST(calibration_gives_back_what_was_measured)
{
    static const char *const sets[SETS_MAX] = {"calibrate={mfu: 40 %}"};
    struct scenario scenario;
    struct result result;
    analyse(sets, ANALYSIS_AUTO, &scenario, &result);
    ck_assert_ptr_nonnull(result.other_reading);
    rig_assert_close(result.strategies[0].baseline.mfu[FLOPS_MHA], 0.4, 1e-4, "MFU read as MHA");
    rig_assert_close(result.other_reading->strategies[0].baseline.mfu[FLOPS_GQA], 0.4, 1e-4, "MFU read as GQA");
    finish(&scenario, &result);
}
END_TEST

START_TEST(calibration_gives_back_a_step)
{
    static const char *const sets[SETS_MAX] = {"calibrate={step: 600 ms}"};
    struct scenario scenario;
    struct result result;
    analyse(sets, ANALYSIS_AUTO, &scenario, &result);
    ck_assert_ptr_null(result.other_reading);
    double step_s = result.strategies[0].baseline.step_s;
    rig_assert_close(step_s, 0.6, 1e-4, "%.9g s, measured 0.6 s", step_s);
    finish(&scenario, &result);
}
END_TEST

START_TEST(an_impossible_measurement_is_refused)
{
    static const char *const sets[] = {"calibrate={mfu: 100 %}", "calibrate={step: 1 us}"};
    struct analysis_options options = {.fidelity = ANALYSIS_AUTO, .workers = 2};
    struct scenario scenario;
    struct result result;
    struct err err = {""};
    ck_assert_msg(scenario_load("lab-2x4", &sets[_i], 1, &scenario, &err) == 0, "%s", err.text);
    ck_assert_int_eq(analysis_run(&scenario, &options, &result, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "calibrate: strategy flat cannot take"), "%s", err.text);
    scenario_free(&scenario);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("analysis");
    tcase_add_loop_test(tests, a_free_wan_is_one_site, 0, sizeof free_wan / sizeof *free_wan);
    tcase_add_loop_test(tests, what_is_scarce_bounds, 0, sizeof bounds / sizeof *bounds);
    tcase_add_loop_test(tests, longer_and_slower_links_never_help, 0, 2);
    tcase_add_loop_test(tests, what_auto_folds_is_what_messages_give, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, tcp_costs_its_headers);
    tcase_add_test(tests, a_baseline_holds_all_gpus);
    tcase_add_test(tests, calibration_gives_back_what_was_measured);
    tcase_add_test(tests, calibration_gives_back_a_step);
    tcase_add_loop_test(tests, an_impossible_measurement_is_refused, 0, 2);
    tcase_add_loop_test(tests, slack_costs_nothing_and_more_does, 0, 3);
    tcase_add_loop_test(tests, bulk_is_what_messages_give, 0, sizeof in_bulk / sizeof *in_bulk);
    return rig_main("engine-analysis", tests);
}
