/* What a path must show, against formulas and drawn samples; verdicts at both sides of each tolerance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emu/verify/judge.h"
#include "tests/report/runner.h"

#define US 1e-6
#define MS 1e-3

static struct impairment link_of(double delay_s, double jitter_s)
{
    struct impairment impairment;
    impairment_init(&impairment);
    impairment.delay_ns = (uint64_t)llrint(delay_s * 1e9);
    impairment.jitter_ns = (uint64_t)llrint(jitter_s * 1e9);
    return impairment;
}

static struct expected expect(const struct impairment *impairment, double bytes)
{
    struct expected expected;
    struct err err = {""};
    ck_assert_msg(!expect_direction(impairment, bytes, &expected, &err), "%s", err.text);
    return expected;
}

static bool near(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fabs(b);
}

START_TEST(delay_and_jitter_are_those_asked_for)
{
    for (int shape = JITTER_NORMAL; shape <= JITTER_UNIFORM; shape++) {
        struct impairment impairment = link_of(10.65 * MS, 495 * US);
        impairment.jitter_shape = (enum jitter_shape)shape;
        struct expected it = expect(&impairment, 106);
        ck_assert(near(it.delay_mean_s, 10.65 * MS, 1e-5) && near(sqrt(it.delay_variance), 495 * US, 1e-3));
        double kurtosis = it.delay_fourth / (it.delay_variance * it.delay_variance);
        if (shape == JITTER_NORMAL) /* 3, less what the table cuts off beyond 4 deviations */
            ck_assert(kurtosis > 2.9 && kurtosis < 3.001);
        if (shape == JITTER_UNIFORM)
            ck_assert(near(kurtosis, 1.8, 1e-2));
        ck_assert(isinf(it.rate_bit_per_s) && !it.hurts_tcp && it.burst == 0);
    }
}
END_TEST

START_TEST(a_rate_takes_its_time)
{
    struct impairment impairment = link_of(1 * MS, 0);
    impairment.rate_byte_per_s = 125000; /* 1 Mb/s */
    ck_assert(near(expect(&impairment, 125).delay_mean_s, 2 * MS, 1e-12));
    ck_assert(near(expect(&impairment, 125).rate_bit_per_s, 1e6, 1e-12));
}
END_TEST

/* A normal delay of mean 0, clamped at 0: mean sd / sqrt(2 pi), variance sd^2 (1/2 - 1 / (2 pi)). */
START_TEST(clamped_at_zero)
{
    struct impairment impairment = link_of(0, 1 * MS);
    struct expected it = expect(&impairment, 0);
    ck_assert(near(it.delay_mean_s, MS / sqrt(2 * M_PI), 2e-3));
    ck_assert(near(it.delay_variance, MS * MS * (0.5 - 0.5 / M_PI), 5e-3));
}
END_TEST

/* Two values: what overtakes is not delayed. */
START_TEST(reordered_packets_are_not_delayed)
{
    struct impairment impairment = link_of(20 * MS, 0);
    impairment.reorder = 0.25;
    struct expected it = expect(&impairment, 0);
    ck_assert(near(it.delay_mean_s, 15 * MS, 1e-9) && near(it.delay_variance, 75 * MS * MS, 1e-9));
    ck_assert(it.hurts_tcp && it.reorder == 0.25);
}
END_TEST

/* Draws the chain of sch_netem.c and counts. */
static void draw(const struct loss *loss, long count, double *ratio, double *burst)
{
    unsigned short state[3] = {3, 1, 4};
    long lost = 0, runs = 0;
    bool bad = false, before = false;
    for (long i = 0; i < count; i++) {
        bool here = erand48(state) < (bad ? loss->lost_bad : loss->lost_good);
        if (erand48(state) < (bad ? loss->r : loss->p))
            bad = !bad;
        lost += here;
        runs += here && !before;
        before = here;
    }
    *ratio = (double)lost / (double)count;
    *burst = (double)lost / (double)runs;
}

static const struct loss chains[] = {
    {.kind = LOSS_GILBERT_ELLIOTT, .p = 0.005, .r = 0.25, .lost_bad = 1},
    {.kind = LOSS_GILBERT_ELLIOTT, .p = 0.02, .r = 0.1, .lost_bad = 0.6, .lost_good = 0.01},
    {.kind = LOSS_GILBERT_ELLIOTT, .p = 0.3, .r = 0.9, .lost_bad = 1},
};

START_TEST(bursts_as_the_kernels_chain_draws_them)
{
    const struct loss *loss = &chains[_i];
    struct impairment impairment = link_of(MS, 0);
    double ratio, burst;
    impairment.loss = *loss;
    struct expected it = expect(&impairment, 0);
    draw(loss, 4000000, &ratio, &burst);
    ck_assert_msg(near(it.loss_low, ratio, 0.03) && it.loss_high == it.loss_low, "%g %g", it.loss_low, ratio);
    ck_assert_msg(near(it.burst, burst, 0.02), "%g %g", it.burst, burst);
    if (loss->lost_bad >= 1)
        ck_assert(near(it.burst, 1 / loss->r, 1e-9));
    ck_assert(it.loss_dependence >= 1 && it.bursts);
}
END_TEST

/* Many samples of 2000: their variance is dependence times the binomial one. */
START_TEST(dependent_losses_say_less)
{
    enum { SAMPLES = 3000, SIZE = 2000 };
    const struct loss *loss = &chains[0];
    struct impairment impairment = link_of(MS, 0);
    impairment.loss = *loss;
    struct expected it = expect(&impairment, 0);
    unsigned short state[3] = {2, 7, 1};
    double sum = 0, squares = 0;
    bool bad = false;
    for (int sample = 0; sample < SAMPLES; sample++) {
        int lost = 0;
        for (int i = 0; i < SIZE; i++) {
            lost += bad;
            if (erand48(state) < (bad ? loss->r : loss->p))
                bad = !bad;
        }
        sum += lost;
        squares += (double)lost * lost;
    }
    double variance = squares / SAMPLES - sum / SAMPLES * sum / SAMPLES;
    double binomial = SIZE * it.loss_low * (1 - it.loss_low);
    ck_assert_msg(near(variance / binomial, it.loss_dependence, 0.12), "%g %g", variance / binomial,
                  it.loss_dependence);
}
END_TEST

static struct measured good(void)
{
    struct measured it = {.answers = 1000, .rtt_mean_s = 21.3 * MS, .rtt_sd_s = 0.7 * MS, .rtt_p50_s = 21.3 * MS};
    for (int i = OUT; i <= BACK; i++)
        it.loss[i] = (struct direction_loss){.sent = 1000};
    it.goodput = (struct goodput){.known = true,
                                  .bit_per_s = 956e6,
                                  .mss_bytes = 1448,
                                  .mtu_bytes = 1500,
                                  .sndbuf_bytes = 16 << 20,
                                  .rcvbuf_bytes = 16 << 20};
    return it;
}

static const struct check *find(const struct judgement *judgement, const char *what)
{
    for (size_t i = 0; i < judgement->count; i++)
        if (!strcmp(judgement->checks[i].what, what))
            return &judgement->checks[i];
    ck_abort_msg("no line '%s'", what);
    return NULL;
}

static struct judgement judge(const struct measured *measured, const struct impairment *impairment, double relative)
{
    struct judgement judgement = {0};
    struct expected expected[2] = {expect(impairment, 106), expect(impairment, 106)};
    judge_path(measured, expected, 10 * MS, relative, &judgement);
    return judgement;
}

static void want(const struct measured *measured, const struct impairment *impairment, const char *what, bool ok)
{
    struct judgement judgement = judge(measured, impairment, 1);
    const struct check *check = find(&judgement, what);
    ck_assert_msg(check->judged && check->good == ok, "%s: %g is %s", what, check->measured,
                  check->good ? "good" : "out");
    ck_assert(judgement_good(&judgement) == ok);
}

START_TEST(both_sides_of_every_tolerance)
{
    struct impairment link = link_of(10.65 * MS, 495 * US);
    link.rate_byte_per_s = 125000000;
    static const struct {
        const char *what;
        size_t offset;
        double within, without;
    } rows[] = {
        {"RTT mean", offsetof(struct measured, rtt_mean_s), 21.61 * MS, 21.62 * MS}, /* 1 % + 0.1 ms of 21.3 ms */
        {"RTT mean", offsetof(struct measured, rtt_mean_s), 20.99 * MS, 20.98 * MS},
        {"RTT sd", offsetof(struct measured, rtt_sd_s), 0.775 * MS, 0.785 * MS}, /* 5 x 0.7 / sqrt(2000) */
        {"RTT sd", offsetof(struct measured, rtt_sd_s), 0.625 * MS, 0.615 * MS},
        {"TCP goodput out", offsetof(struct measured, goodput.bit_per_s), 910e6, 907e6}, /* 5 % of 956.4 Mb/s */
        {"TCP goodput out", offsetof(struct measured, goodput.bit_per_s), 1004e6, 1005e6},
    };
    struct measured it = good();
    want(&it, &link, "RTT mean", true);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        it = good();
        memcpy((char *)&it + rows[i].offset, &rows[i].within, sizeof(double));
        want(&it, &link, rows[i].what, true);
        memcpy((char *)&it + rows[i].offset, &rows[i].without, sizeof(double));
        want(&it, &link, rows[i].what, false);
    }
    it = good();
    it.loss[BACK].reordered = 1;
    want(&it, &link, "reordered back", false);
    it = good();
    it.loss[OUT].lost = it.loss[OUT].runs = 1;
    want(&it, &link, "loss out", false);
    it = good();
    it.loss[OUT].duplicated = 1;
    want(&it, &link, "duplicated out", false);
    it = good();
    it.rtt_mean_s = 22 * MS;
    struct judgement wide = judge(&it, &link, 3);
    ck_assert(find(&wide, "RTT mean")->good);
}
END_TEST

START_TEST(loss_is_judged_by_its_interval)
{
    struct impairment link = link_of(10.65 * MS, 495 * US);
    struct measured it = good();
    link.loss = (struct loss){.kind = LOSS_INDEPENDENT, .ratio = 0.001};
    want(&it, &link, "loss out", true);        /* none of 1000 */
    it.loss[OUT].lost = it.loss[OUT].runs = 4; /* at 0.1 %, as many or more are seen in 1.9 % of cases */
    want(&it, &link, "loss out", true);
    it.loss[OUT].lost = it.loss[OUT].runs = 5; /* 0.37 %: beyond the 0.5 % on this side */
    want(&it, &link, "loss out", false);
    link.corrupt = 0.01; /* checksums catch it: lost as well */
    want(&it, &link, "loss out", true);
    struct judgement judgement = judge(&it, &link, 1);
    ck_assert(!find(&judgement, "TCP goodput out")->judged);
}
END_TEST

START_TEST(what_cannot_be_judged_is_not)
{
    struct impairment link = link_of(10.65 * MS, 5 * MS);
    struct measured it = good();
    struct judgement judgement = judge(&it, &link, 1); /* 10 ms apart */
    ck_assert(!find(&judgement, "RTT mean")->judged && find(&judgement, "RTT mean")->remark);
    ck_assert(!find(&judgement, "TCP goodput out")->judged && isnan(find(&judgement, "TCP goodput out")->requested));
    link = link_of(10.65 * MS, 0);
    link.rate_byte_per_s = UINT64_C(1250000000); /* 26.6 MB of BDP in 16 MiB of buffers */
    judgement = judge(&it, &link, 1);
    ck_assert(!find(&judgement, "TCP goodput out")->judged && find(&judgement, "TCP goodput out")->remark);
    link.loss = chains[0];
    judgement = judge(&it, &link, 1);
    ck_assert(!find(&judgement, "lost in a row out")->judged);
}
END_TEST

START_TEST(bursts_are_judged)
{
    struct impairment link = link_of(21.3 / 2 * MS, 495 * US);
    struct measured it = good();
    link.loss = chains[0];
    for (int i = OUT; i <= BACK; i++)
        it.loss[i] = (struct direction_loss){.sent = 500000, .lost = 9804, .runs = 2451};
    want(&it, &link, "lost in a row out", true);
    it.loss[OUT].runs = 2170; /* 4.52: 13 % longer */
    want(&it, &link, "lost in a row out", false);
}
END_TEST

START_TEST(bystanders)
{
    struct measured it = {.answers = 200, .rtt_p50_s = 0.1 * MS};
    struct judgement judgement = {0};
    it.loss[OUT].sent = it.loss[BACK].sent = 200;
    judge_bystander(&it, 0.2 * MS, &judgement);
    ck_assert(judgement_good(&judgement) && judgement.count == 3);
    it.rtt_p50_s = 0.21 * MS;
    judge_bystander(&it, 0.2 * MS, &judgement);
    ck_assert(!judgement_good(&judgement));
    judgement.count = 0;
    it.rtt_p50_s = 0;
    it.loss[BACK].lost = 1;
    judge_bystander(&it, 0.2 * MS, &judgement);
    ck_assert(!judgement_good(&judgement));
}
END_TEST

START_TEST(told_to_people_and_programs)
{
    struct impairment link = link_of(10.65 * MS, 495 * US);
    struct measured it = good();
    it.rtt_mean_s = 23 * MS;
    link.rate_byte_per_s = 125000000;
    struct judgement judgement = judge(&it, &link, 1);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    judgement_print(out, &judgement, false);
    fclose(out);
    ck_assert(strstr(text, "RTT mean") && strstr(text, "OUT\n") && strstr(text, "ok\n") && !strchr(text, '\033'));
    ck_assert(strstr(text, "956.41 Mb/s") && strstr(text, "tolerance") && !strstr(text, " \n"));
    free(text);
    json_t *list = judgement_json(&judgement), *figures = measured_json(&it);
    ck_assert_uint_eq(json_array_size(list), judgement.count);
    json_t *first = json_array_get(list, 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "what")), "RTT mean");
    ck_assert(json_is_false(json_object_get(first, "ok")) && json_is_true(json_object_get(first, "judged")));
    ck_assert(json_real_value(json_object_get(first, "measured")) == 23 * MS);
    ck_assert(json_real_value(json_object_get(json_object_get(figures, "rtt"), "mean_s")) == 23 * MS);
    ck_assert(json_is_null(json_object_get(json_object_get(figures, "one_way"), "out")));
    json_decref(list);
    json_decref(figures);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("judge");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, delay_and_jitter_are_those_asked_for);
    tcase_add_test(cases, a_rate_takes_its_time);
    tcase_add_test(cases, clamped_at_zero);
    tcase_add_test(cases, reordered_packets_are_not_delayed);
    tcase_add_loop_test(cases, bursts_as_the_kernels_chain_draws_them, 0, sizeof chains / sizeof *chains);
    tcase_add_test(cases, dependent_losses_say_less);
    tcase_add_test(cases, both_sides_of_every_tolerance);
    tcase_add_test(cases, loss_is_judged_by_its_interval);
    tcase_add_test(cases, what_cannot_be_judged_is_not);
    tcase_add_test(cases, bursts_are_judged);
    tcase_add_test(cases, bystanders);
    tcase_add_test(cases, told_to_people_and_programs);
    return run_cases("emu-judge", cases);
}
