/* sim/training/schedule.c: valid lists, bubbles by formula, CrossPipe's published points. */
#include "sim/training/schedule.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

static double evaluate(struct schedule_shape shape, struct schedule_cost cost, double *ready_s)
{
    struct err err = {.text = ""};
    double end_s = -1;

    ck_assert_msg(schedule_evaluate(&shape, &cost, &end_s, ready_s, &err) == 0, "%s", err.text);
    return end_s;
}

/* Every op once, a forward before its backward, micro-batches of a chunk in order, one last_of_chunk per chunk. (Plain
 * conditions: a check per op would write each to Check's log.) */
static bool list_is_valid(const struct schedule_shape *shape, const struct op *ops, size_t count)
{
    long cells = shape->chunks * shape->micro_batches, last = 0;
    bool *seen = calloc((size_t)(2 * cells), sizeof(*seen));
    bool fine = count == (size_t)(2 * cells);

    for (size_t i = 0; fine && i < count; i++) {
        long cell = ops[i].chunk * shape->micro_batches + ops[i].micro_batch;
        bool ends = ops[i].micro_batch == shape->micro_batches - 1;
        bool *mine = &seen[ops[i].backward ? cells : 0];

        fine = ops[i].chunk >= 0 && ops[i].chunk < shape->chunks && ops[i].micro_batch >= 0 &&
               ops[i].micro_batch < shape->micro_batches && !mine[cell] && (!ops[i].backward || seen[cell]) &&
               (ops[i].micro_batch == 0 || mine[cell - 1]) && ops[i].last_of_chunk == (ops[i].backward && ends);
        mine[cell] = true;
        last += ops[i].last_of_chunk;
    }
    free(seen);
    return fine && last == shape->chunks;
}

/* What a stage sends to a neighbour must be what the neighbour waits for, in the same order: else a transport that
 * matches messages in order would mix them up. */
static bool neighbours_agree(const struct schedule_shape *shape, struct op **ops, size_t count, long stage,
                             bool backward)
{
    long to = (stage + (backward ? shape->stages - 1 : 1)) % shape->stages, from = -1, target = -1;
    bool fine = true;
    size_t at = 0;
    int chunk, unused;

    for (size_t i = 0; fine && i < count; i++) {
        if (ops[stage][i].backward != backward || !schedule_target(shape, stage, &ops[stage][i], &target, &chunk))
            continue;
        while (at < count &&
               (ops[to][at].backward != backward || !schedule_source(shape, to, &ops[to][at], &from, &unused)))
            at++;
        fine = at < count && target == to && from == stage && ops[to][at].chunk == chunk &&
               ops[to][at].micro_batch == ops[stage][i].micro_batch;
        at++;
    }
    return fine;
}

static void check_shape(struct schedule_shape shape)
{
    struct op **ops = calloc((size_t)shape.stages, sizeof(*ops));
    size_t count = 0;
    bool fine = true;

    for (long stage = 0; stage < shape.stages; stage++) {
        ck_assert_int_eq(schedule_build(&shape, stage, &ops[stage], &count, NULL), 0);
        fine = fine && list_is_valid(&shape, ops[stage], count);
    }
    for (long stage = 0; fine && stage < shape.stages; stage++)
        fine = neighbours_agree(&shape, ops, count, stage, false) && neighbours_agree(&shape, ops, count, stage, true);
    ck_assert_msg(fine, "p %ld v %ld m %ld", shape.stages, shape.chunks, shape.micro_batches);
    for (long stage = 0; stage < shape.stages; stage++)
        free(ops[stage]);
    free(ops);
}

/* Relative to m v (f + b), the time without a bubble: (p - 1) / (v m) (arXiv 2104.04473, section 2.2).
 * schedule_evaluate fails on a deadlock, so every shape is also shown to end. */
static void check_bubble(struct schedule_shape shape)
{
    struct schedule_cost cost = {.forward_s = 1.0, .backward_s = 2.3};
    double ideal_s = (double)(shape.micro_batches * shape.chunks) * 3.3;
    double bubble = (double)(shape.stages - 1) / (double)(shape.chunks * shape.micro_batches);
    double end_s = evaluate(shape, cost, NULL);

    ck_assert_msg(fabs(end_s / (ideal_s * (1 + bubble)) - 1) < 1e-9, "p %ld v %ld m %ld: %.12g s instead of %.12g s",
                  shape.stages, shape.chunks, shape.micro_batches, end_s, ideal_s * (1 + bubble));
}

START_TEST(test_every_shape)
{
    for (long p = 1; p <= 16; p++)
        for (long v = 1; v <= 8; v++)
            for (long groups = 1; groups <= 3; groups++) {
                struct schedule_shape shape = {p, v, p * groups};

                check_shape(shape);
                check_bubble(shape);
            }
}
END_TEST

START_TEST(test_any_micro_batches_without_interleaving)
{
    for (long p = 1; p <= 16; p++)
        for (long m = 1; m <= 40; m++) {
            check_shape((struct schedule_shape){p, 1, m});
            check_bubble((struct schedule_shape){p, 1, m});
        }
}
END_TEST

/* Megatron-LM's documented order for 4 stages, 2 chunks, 8 micro-batches on the first stage: 2 * 3 + 4 = 10 forwards.
 */
START_TEST(test_interleaved_order)
{
    static const int warm_up[10][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}, {1, 2}, {1, 3}, {0, 4}, {0, 5}};
    struct schedule_shape shape = {4, 2, 8};
    struct op *ops = NULL;
    size_t count;

    ck_assert_int_eq(schedule_build(&shape, 0, &ops, &count, NULL), 0);
    ck_assert_int_eq(schedule_warm_up(&shape, 0), 10);
    for (int i = 0; i < 10; i++) {
        ck_assert(!ops[i].backward);
        ck_assert_int_eq(ops[i].chunk, warm_up[i][0]);
        ck_assert_int_eq(ops[i].micro_batch, warm_up[i][1]);
    }
    ck_assert(!ops[10].backward && ops[10].chunk == 0 && ops[10].micro_batch == 6);
    ck_assert(ops[11].backward && ops[11].chunk == 1 && ops[11].micro_batch == 0);
    ck_assert_int_eq(schedule_warm_up(&shape, 3), 4);
    free(ops);
}
END_TEST

/* CrossPipe, arXiv 2507.00217: PP 8, 16 micro-batches, T_F 0.038 s, stages 0-3 and 4-7 in two DCs; latency and
 * bandwidth time of the one slow hop in units of T_F; s per micro-batch by a plain dependency graph as in FACTS.md. T_B
 * is not in FACTS.md; it follows from the first row, (m + p - 1) / m (T_F + T_B) = .151: 0.067 s. The other four rows
 * are then predictions. The system they measured is slower with a slow hop, its sends block: .151 .168 .241 .242 .321.
 */
START_TEST(test_crosspipe)
{
    static const double rows[][3] = {{0, 0, .151}, {.25, .25, .168}, {.25, 2, .226}, {2, .25, .226}, {2, 2, .284}};
    struct schedule_shape shape = {8, 1, 16};
    double forward_s = 0.038, backward_s = .151 * 16 / 23 - 0.038;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct schedule_hop hops[8] = {[3] = {rows[i][0] * forward_s, rows[i][1] * forward_s}};
        double each_s = evaluate(shape, (struct schedule_cost){forward_s, backward_s, hops}, NULL) / 16;

        ck_assert_msg(fabs(each_s / rows[i][2] - 1) < 0.01, "row %zu: %.4f s instead of %.3f s", i, each_s, rows[i][2]);
    }
}
END_TEST

/* Two stages, the messages slower than the work: the link is what paces. Forward i leaves the link at 1 + 10 (i + 1) +
 * arrives 3 later; the last of m forwards therefore arrives at 1 + 10 m + 3; its backward (1 s) goes back in 10 + 3,
 * then 1 s. */
START_TEST(test_occupancy_serialises_latency_does_not)
{
    struct schedule_hop hops[2] = {[0] = {.latency_s = 3, .occupancy_s = 10}};

    /* one micro-batch: f, hop, f, b, hop, b */
    ck_assert_double_eq_tol(evaluate((struct schedule_shape){2, 1, 1}, (struct schedule_cost){1, 1, hops}, NULL), 30,
                            1e-9);
    /* two: forwards have left by 11 and 21, arrive at 14 and 24; stage 1 ends their backwards at 16 and 26; these
     * have left by 26 and 36, arrive at 29 and 39; stage 0 ends at 40 */
    ck_assert_double_eq_tol(evaluate((struct schedule_shape){2, 1, 2}, (struct schedule_cost){1, 1, hops}, NULL), 40,
                            1e-9);
    hops[0] = (struct schedule_hop){.latency_s = 13};
    /* latency alone: forwards end at 1, 2, arrive 14, 15; stage 1: f 15 b 16 f 17 b 18; back at 29, 31; stage 0 ends at
     * 32 */
    ck_assert_double_eq_tol(evaluate((struct schedule_shape){2, 1, 2}, (struct schedule_cost){1, 1, hops}, NULL), 32,
                            1e-9);
}
END_TEST

START_TEST(test_ready)
{
    double ready_s[6];
    double end_s = evaluate((struct schedule_shape){2, 3, 2}, (struct schedule_cost){1, 2, NULL}, ready_s);

    /* the last chunk's gradients are ready first; stage 0's chunk 0 ends the step; one chunk's two backwards, 4 s,
     * apart */
    ck_assert_double_eq_tol(ready_s[0 * 3 + 0], end_s, 1e-12);
    ck_assert_double_eq_tol(ready_s[0 * 3 + 1], end_s - 4, 1e-12);
    ck_assert_double_eq_tol(ready_s[1 * 3 + 0], end_s - 2, 1e-12);
    for (int stage = 0; stage < 2; stage++)
        ck_assert(ready_s[stage * 3 + 2] < ready_s[stage * 3 + 1] && ready_s[stage * 3 + 1] < ready_s[stage * 3]);
}
END_TEST

/* More latency or occupancy on any hop never ends sooner. */
START_TEST(test_monotonic_in_hops)
{
    struct schedule_shape shape = {4, 2, 8};
    double before_s = 0;

    for (int step = 0; step < 20; step++) {
        struct schedule_hop hops[4];
        double end_s;

        for (int i = 0; i < 4; i++)
            hops[i] = (struct schedule_hop){.latency_s = 0.1 * step, .occupancy_s = 0.07 * step * i};
        end_s = evaluate(shape, (struct schedule_cost){1, 2, hops}, NULL);
        ck_assert(end_s >= before_s);
        before_s = end_s;
    }
}
END_TEST

START_TEST(test_bad_shapes)
{
    static const struct schedule_shape bad[] = {
        {0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {-1, 1, 1}, {4, 2, 6}, {1L << 40, 1, 1}, {1L << 20, 1L << 20, 1L << 20}};
    struct schedule_cost cost = {1, 2, NULL};
    struct schedule_shape good = {2, 1, 2};
    struct op *ops;
    size_t count;
    double end_s;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = {.text = ""};

        ck_assert_int_eq(schedule_build(&bad[i], 0, &ops, &count, &err), -EINVAL);
        ck_assert_str_ne(err.text, "");
        ck_assert_int_eq(schedule_evaluate(&bad[i], &cost, &end_s, NULL, NULL), -EINVAL);
    }
    ck_assert_int_eq(schedule_build(&good, 2, &ops, &count, NULL), -EINVAL);
    ck_assert_int_eq(schedule_build(&good, -1, &ops, &count, NULL), -EINVAL);
    cost.forward_s = NAN;
    ck_assert_int_eq(schedule_evaluate(&good, &cost, &end_s, NULL, NULL), -EINVAL);
    cost = (struct schedule_cost){1, 2, (const struct schedule_hop[]){{0, 0}, {-1, 0}}};
    ck_assert_int_eq(schedule_evaluate(&good, &cost, &end_s, NULL, NULL), -EINVAL);
}
END_TEST

START_TEST(test_zero_cost)
{
    ck_assert_double_eq(evaluate((struct schedule_shape){4, 2, 8}, (struct schedule_cost){0, 0, NULL}, NULL), 0);
}
END_TEST

static double seconds(struct schedule_shape shape)
{
    struct timespec start, end;
    double best_s = INFINITY;

    for (int i = 0; i < 5; i++) {
        clock_gettime(CLOCK_MONOTONIC, &start);
        evaluate(shape, (struct schedule_cost){1, 2, NULL}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &end);
        best_s = fmin(best_s, (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    }
    return best_s;
}

/* 3 ms for p 12, v 8, m 48 without sanitizers; ten times that leaves room for them and for a busy machine. And linear:
 * 16 times the ops cost less than 64 times the time. */
START_TEST(test_cost)
{
    double once_s = seconds((struct schedule_shape){12, 8, 48}), more_s = seconds((struct schedule_shape){12, 8, 768});

    ck_assert_msg(once_s < 0.03, "%g s", once_s);
    ck_assert_msg(more_s < 64 * once_s, "%g s for 16 times the ops of %g s", more_s, once_s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tcase = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, test_every_shape);
    tcase_add_test(tcase, test_any_micro_batches_without_interleaving);
    tcase_add_test(tcase, test_interleaved_order);
    tcase_add_test(tcase, test_crosspipe);
    tcase_add_test(tcase, test_occupancy_serialises_latency_does_not);
    tcase_add_test(tcase, test_ready);
    tcase_add_test(tcase, test_monotonic_in_hops);
    tcase_add_test(tcase, test_bad_shapes);
    tcase_add_test(tcase, test_zero_cost);
    tcase_add_test(tcase, test_cost);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
