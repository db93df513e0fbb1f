/* sim/training/step.c on the loopback: every strategy ends, sends over the WAN what its formula says, and with free
 * communication takes as long as the dependency graph. */
#include "sim/training/step.h"

#include <math.h>
#include <stdlib.h>

#include "tests/training/sums.h"

/* Variants of shipped scenarios; lab-2x4 has 2 sites of 4 GPUs and 8 layers. */
static const struct variant {
    const char *scenario;
    const char *sets[10]; /* up to NULL */
} variants[] = {
    {"lab-2x4", {0}},
    {"lab-2x4", {"transport.channels=3", "transport.slices=1"}},
    {"lab-2x4", {"training.pipeline=2", "training.data=4"}},
    {"lab-2x4", {"training.pipeline=2", "training.data=4", "training.interleave=2"}},
    {"lab-2x4", {"training.pipeline=2", "training.data=4", "training.interleave=4", "transport.channels=2"}},
    {"lab-2x4", {"training.pipeline=4", "training.data=2"}},
    {"lab-2x4", {"training.pipeline=4", "training.data=2", "training.interleave=2"}},
    {"lab-2x4",
     {"training.pipeline=4", "training.data=2", "training.global_batch=2"}}, /* fewer micro-batches than stages */
    {"lab-2x4", {"datacenters.0.gpus_per_node=2", "datacenters.1.gpus_per_node=2", "training.data=16"}}, /* two rails */
    {"quad-768",
     {"datacenters.0.nodes=2", "datacenters.1.nodes=2", "datacenters.2.nodes=2", "datacenters.3.nodes=2", "model=1b",
      "training.pipeline=2", "training.data=4", "training.interleave=1", "training.global_batch=16"}},
    {"quad-768",
     {"datacenters.0.nodes=1", "datacenters.1.nodes=1", "datacenters.2.nodes=1", "datacenters.3.nodes=1", "model=1b",
      "training.pipeline=1", "training.data=32", "training.interleave=1", "training.tensor=1",
      "training.global_batch=64"}},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static const struct strategy strategies[] = {
    {.name = (char[]){"ring"}, .allreduce = ALLREDUCE_RING},
    {.name = (char[]){"interleaved"}, .allreduce = ALLREDUCE_RING, .order = ORDER_INTERLEAVED},
    {.name = (char[]){"hierarchical"}, .allreduce = ALLREDUCE_HIERARCHICAL},
};
static const enum sharding shardings[] = {SHARD_NONE, SHARD_OPTIMIZER, SHARD_PARAMETERS};
static const long depths[] = {0, 1, 2, 4}; /* 0: no overlap */
enum { STRATEGIES = sizeof strategies / sizeof strategies[0], SHARDINGS = 3, DEPTHS = 4 };

struct run {
    struct step_plan plan;
    struct loopback *loopback;
    int *site_of; /* [ranks] */
    int ranks;
    char context[128];
};

static struct loopback *counted_loopback(int ranks)
{
    const size_t regions[LOOPBACK_REGIONS] = {LOOPBACK_COUNTED, LOOPBACK_COUNTED, LOOPBACK_COUNTED};
    struct loopback *loopback = loopback_new(ranks, regions);
    ck_assert_ptr_nonnull(loopback);
    return loopback;
}

static void place_ranks(struct run *run)
{
    run->ranks = (int)(run->plan.placement.stages * run->plan.placement.replicas);
    run->site_of = calloc((size_t)run->ranks, sizeof *run->site_of);
    ck_assert_ptr_nonnull(run->site_of);
    for (int i = 0; i < run->ranks; i++)
        run->site_of[i] = (int)placement_site(&run->plan.placement, i);
}

/* Every collective may be off by two elements a rank, lap and channel. */
static double rounding_bytes(const struct run *run)
{
    const struct step_plan *plan = &run->plan;
    return 16.0 * run->ranks *
           (double)(plan->scenario->transport.channels * plan->units * 3 * plan->shape.micro_batches);
}

static void check_wan(const struct run *run)
{
    size_t sites = run->plan.placement.sites;
    double *gradient = calloc(2 * sites * sites, sizeof *gradient), *parameter = gradient + sites * sites;
    ck_assert_ptr_nonnull(gradient);
    ck_assert_int_eq(step_wan_bytes(&run->plan, gradient, parameter, NULL), 0);
    for (size_t pair = 0; pair < sites * sites; pair++) {
        double expected = gradient[pair] + parameter[pair];
        double sent =
            (double)loopback_site_bytes(run->loopback, run->site_of, (int)(pair / sites), (int)(pair % sites));
        ck_assert_msg(pair / sites == pair % sites || fabs(sent - expected) <= 1e-6 * expected + rounding_bytes(run),
                      "%s: %.0f bytes from site %zu to %zu, formula %.0f", run->context, sent, pair / sites,
                      pair % sites, expected);
    }
    free(gradient);
}

static void check_time(const struct run *run)
{
    double end_s, took_s = loopback_time(run->loopback);
    ck_assert_int_eq(step_free(&run->plan, &end_s, NULL, NULL), 0);
    ck_assert_msg(fabs(took_s / end_s - 1) < 1e-9, "%s: %.9g s, the dependency graph says %.9g s", run->context, took_s,
                  end_s);
    ck_assert_double_ge(end_s * (1 + 1e-9), step_compute_s(&run->plan));
}

/* Gradients cannot leave before they exist, nor after the step. */
static void check_ready(const struct run *run)
{
    const struct step_plan *plan = &run->plan;
    size_t count = (size_t)(plan->shape.stages * plan->units);
    double end_s, *ready_s = calloc(count, sizeof *ready_s);
    ck_assert_ptr_nonnull(ready_s);
    ck_assert_int_eq(step_free(plan, &end_s, ready_s, NULL), 0);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(ready_s[i] > 0 && ready_s[i] <= end_s * (1 + 1e-12), "%s: unit %zu ready at %g of %g s",
                      run->context, i, ready_s[i], end_s);
    free(ready_s);
}

static void run_strategy(const struct scenario *scenario, const struct strategy *strategy, size_t variant)
{
    struct run run = {0};
    struct err err = {""};
    snprintf(run.context, sizeof run.context, "variant %zu, %s, sharding %d, depth %ld", variant, strategy->name,
             strategy->sharding, strategy->overlap == OVERLAP_CHUNKS ? strategy->depth : 0);
    int rc = step_plan_init(&run.plan, scenario, strategy, 0.6, &err);
    ck_assert_msg(rc == 0, "%s: %s", run.context, err.text);
    place_ranks(&run);
    run.loopback = counted_loopback(run.ranks);
    sums_run(run.loopback, step_main, &run.plan, run.context);
    ck_assert_int_eq(run.plan.failure, 0);
    check_wan(&run);
    check_time(&run);
    check_ready(&run);
    loopback_free(run.loopback);
    free(run.site_of);
    step_plan_free(&run.plan);
}

static void load(const struct variant *variant, struct scenario *scenario)
{
    struct err err = {""};
    size_t sets = 0;
    while (sets < 10 && variant->sets[sets])
        sets++;
    ck_assert_msg(scenario_load(variant->scenario, variant->sets, sets, scenario, &err) == 0, "%s", err.text);
}

static void run_depths(const struct scenario *scenario, struct strategy strategy, size_t variant)
{
    for (size_t d = 0; d < DEPTHS; d++) {
        strategy.overlap = depths[d] ? OVERLAP_CHUNKS : OVERLAP_NONE;
        strategy.chunk_layers = 1;
        strategy.depth = depths[d];
        run_strategy(scenario, &strategy, variant);
    }
}

START_TEST(every_strategy)
{
    struct scenario scenario;
    load(&variants[_i], &scenario);
    for (size_t s = 0; s < STRATEGIES; s++)
        for (size_t k = 0; k < SHARDINGS; k++) {
            struct strategy strategy = strategies[s];
            strategy.sharding = shardings[k];
            if (strategy.sharding != SHARD_PARAMETERS || scenario.training.pipeline == 1)
                run_depths(&scenario, strategy, (size_t)_i);
        }
    scenario_free(&scenario);
}
END_TEST

/* What a strategy cannot do is refused with the reason. */
START_TEST(refused)
{
    struct scenario scenario;
    struct step_plan plan;
    struct err err = {""};
    struct strategy strategy = {.name = (char[]){"s"}, .allreduce = ALLREDUCE_RING, .sharding = SHARD_PARAMETERS};
    load(&variants[2], &scenario);
    ck_assert_int_lt(step_plan_init(&plan, &scenario, &strategy, 0.6, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "needs training.pipeline: 1"));
    scenario_free(&scenario);
    load(&(struct variant){"lab-2x4", {"datacenters.0.nodes=3", "training.data=7", "training.global_batch=14"}},
         &scenario);
    strategy = strategies[2];
    ck_assert_int_lt(step_plan_init(&plan, &scenario, &strategy, 0.6, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "the same number of replicas in every site"));
    scenario_free(&scenario);
}
END_TEST

/* Published bytes (FACTS.md): two sites, gradient S: hierarchical S each way, a contiguous ring of n 2(n-1)/n S,
 * sharded the same in two halves. */
START_TEST(published_bytes)
{
    static const struct {
        size_t strategy;
        enum sharding sharding;
        double factor;
    } rows[] = {{0, SHARD_NONE, 2 * 7.0 / 8},
                {0, SHARD_OPTIMIZER, 2 * 7.0 / 8},
                {2, SHARD_NONE, 1},
                {2, SHARD_OPTIMIZER, 1},
                {1, SHARD_NONE, 4 * 2 * 7.0 / 8}};
    struct scenario scenario;
    load(&variants[0], &scenario);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct strategy strategy = strategies[rows[i].strategy];
        struct step_plan plan;
        double gradient[4], parameter[4];
        strategy.sharding = rows[i].sharding;
        ck_assert_int_eq(step_plan_init(&plan, &scenario, &strategy, 0.6, NULL), 0);
        ck_assert_int_eq(step_wan_bytes(&plan, gradient, parameter, NULL), 0);
        double bytes = (double)plan.gradient_bytes * rows[i].factor;
        ck_assert_double_eq_tol((gradient[1] + parameter[1]) / bytes, 1, 1e-9);
        ck_assert_double_eq_tol((gradient[2] + parameter[2]) / bytes, 1, 1e-9);
        step_plan_free(&plan);
    }
    scenario_free(&scenario);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("step");
    tcase_add_loop_test(cases, every_strategy, 0, VARIANTS);
    tcase_add_test(cases, refused);
    tcase_add_test(cases, published_bytes);
    return sums_suite("step", cases);
}
