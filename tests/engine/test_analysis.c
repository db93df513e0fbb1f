/* Whole results of small scenarios: what the words mean, and cases that once went wrong. */
#include <math.h>

#include "sim/engine/analysis.h"
#include "tests/engine/rig.h"

enum { SETS_MAX = 12 };

static void analyse(const char *const *sets, enum analysis_fidelity fidelity, struct scenario *scenario,
                    struct result *result)
{
    struct err err = {""};
    struct analysis_options options = {.fidelity = fidelity, .workers = 2};
    size_t count = 0;
    while (count < SETS_MAX && sets[count])
        count++;
    ck_assert_msg(scenario_load("lab-2x4", sets, count, scenario, &err) == 0, "%s", err.text);
    ck_assert_msg(analysis_run(scenario, &options, result, &err) == 0, "%s", err.text);
}

static void finish(struct scenario *scenario, struct result *result)
{
    result_free(result);
    scenario_free(scenario);
}

#define HARDWARE(nodes, per_node) "nodes: " #nodes ", gpus_per_node: " #per_node ", gpu: h100-sxm"

/* The network is free across sites: two sites are one. Hops inside a site differ by latency alone. */
static const char *const free_wan[][SETS_MAX] = {
    {"wan.rtt=0 ms", "wan.wave_rate=inf"},
    {"wan.rtt=0 ms", "wan.wave_rate=inf", "training.pipeline=2", "training.data=4", "training.global_batch=16"},
    {"wan.rtt=0 ms", "wan.wave_rate=inf", "transport.slices=1", "transport.channels=2"},
};

START_TEST(a_free_wan_is_one_site)
{
    struct scenario scenario;
    struct result result;
    analyse(free_wan[_i], ANALYSIS_AUTO, &scenario, &result);
    for (size_t i = 0; i < result.strategy_count; i++) {
        const struct strategy_result *strategy = &result.strategies[i];
        double messages = 100 * scenario.fabric.latency_s; /* a step's chain is far shorter */
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

/* Once a hang, a crash, a wrong baseline or a fold that did not hold. */
#define RINGS                                                                                                          \
    "strategies=[{name: a, allreduce: ring, sharding: optimizer, overlap: {chunk: 1 layer, depth: 1}}, {name: b, "     \
    "allreduce: "                                                                                                      \
    "hierarchical, sharding: optimizer}, {name: c, allreduce: ring, order: interleaved}]"
#define TWO_SITES(west, east) "datacenters=[{name: west, " west "}, {name: east, " east "}]"
#define THREE_SITES                                                                                                    \
    "datacenters=[{name: west, " HARDWARE(4, 1) "}, {name: east, " HARDWARE(4, 1) "}, {name: north, " HARDWARE(4,      \
                                                                                                               1) "}]"
#define THREE_LINKS                                                                                                    \
    "wan=[{between: [west, east], waves: 2, wave_rate: 10 Gb/s, rtt: 21.3 ms}, {between: [east, north], waves: 1, "    \
    "wave_rate: 1 Gb/s, rtt: 1 ms}]"
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

int main(void)
{
    TCase *tests = tcase_create("analysis");
    tcase_add_loop_test(tests, a_free_wan_is_one_site, 0, sizeof free_wan / sizeof *free_wan);
    tcase_add_loop_test(tests, what_is_scarce_bounds, 0, sizeof bounds / sizeof *bounds);
    tcase_add_loop_test(tests, longer_and_slower_links_never_help, 0, 2);
    tcase_add_loop_test(tests, what_auto_folds_is_what_messages_give, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, a_baseline_holds_all_gpus);
    tcase_add_test(tests, calibration_gives_back_what_was_measured);
    return rig_main("engine-analysis", tests);
}
