#include "emu/verify/judge.h"

#include <math.h>

#include "emu/verify/statistics.h"

#define MEAN_RATIO 0.01
#define MEAN_S 100e-6
#define SD_RATIO 0.10
#define SD_S 50e-6
#define GOODPUT_RATIO 0.05
#define BURST_RATIO 0.10
#define SIGMAS 5.0
#define CONFIDENCE 0.99
#define ETHERNET_BYTES 14 /* header, which netem counts */
#define BITS_PER_BYTE 8.0
enum { RUNS_MIN = 20 }; /* fewer losses in a row say nothing of their length */

static const char *const too_close = "probes too close to be apart: not judged";

/* A path and a bystander have fewer lines than there is room for. */
static struct check *add(struct judgement *judgement, const char *what, enum check_unit unit, double measured)
{
    struct check *check = &judgement->checks[judgement->count];
    judgement->count += judgement->count < JUDGE_CHECKS_MAX - 1;
    *check = (struct check){.what = what, .unit = unit, .requested = NAN, .measured = measured, .good = true};
    return check;
}

/* measured must be within low to high. */
static void demand(struct check *check, double requested, double low, double high)
{
    check->requested = requested;
    check->low = fmax(0, low);
    check->high = high;
    check->judged = true;
    check->good = check->measured >= check->low && check->measured <= high;
}

static void demand_near(struct check *check, double requested, double tolerance)
{
    demand(check, requested, requested - tolerance, requested + tolerance);
}

static void leave(struct check *check, double requested, const char *remark)
{
    check->requested = requested;
    check->remark = remark;
}

/* requested must be inside the sample's interval. The trials may depend on each other: worth fewer then. */
static void demand_ratio(struct check *check, double requested, double requested_high, uint64_t hits, uint64_t trials,
                         double dependence)
{
    check->requested = requested;
    check->of_sample = true;
    check->judged = true;
    binomial_interval((double)hits / dependence, (double)trials / dependence, CONFIDENCE, &check->low, &check->high);
    check->good = requested <= check->high && requested_high >= check->low;
}

static double ratio_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* Mean, variance and fourth central moment of the sum of both directions, which are independent. */
static void sum_of(const struct expected expected[2], double *mean_s, double *variance, double *fourth)
{
    const struct expected *out = &expected[OUT], *back = &expected[BACK];
    *mean_s = out->delay_mean_s + back->delay_mean_s;
    *variance = out->delay_variance + back->delay_variance;
    *fourth = out->delay_fourth + back->delay_fourth + 6 * out->delay_variance * back->delay_variance;
}

static void judge_mean(struct check *check, double mean_s, double variance, double samples, bool apart, double relative)
{
    double sampling_s = SIGMAS * sqrt(variance / samples);
    if (apart)
        demand_near(check, mean_s, fmax(relative * MEAN_RATIO * mean_s + MEAN_S, sampling_s));
    else
        leave(check, mean_s, too_close);
}

/* Variance of a sample's variance is (fourth - variance^2) / n; of its root that / (4 variance). */
static void judge_sd(struct check *check, double variance, double fourth, double samples, bool apart, double relative)
{
    double sd_s = sqrt(variance);
    double sampling_s = sd_s > 0 ? SIGMAS * sqrt(fmax(0, fourth - variance * variance) / samples) / (2 * sd_s) : 0;
    if (apart)
        demand_near(check, sd_s, fmax(fmax(relative * SD_RATIO * sd_s, SD_S), sampling_s));
    else
        leave(check, sd_s, too_close);
}

static void judge_delays(const struct measured *measured, const struct expected expected[2], double interval_s,
                         double relative, struct judgement *judgement)
{
    static const char *const means[] = {[OUT] = "one-way mean out", [BACK] = "one-way mean back"};
    static const char *const sds[] = {[OUT] = "one-way sd out", [BACK] = "one-way sd back"};
    double mean_s, variance, fourth, samples = (double)measured->answers;
    bool apart = interval_s >= expected[OUT].spacing_s && interval_s >= expected[BACK].spacing_s;
    sum_of(expected, &mean_s, &variance, &fourth);
    judge_mean(add(judgement, "RTT mean", CHECK_TIME, measured->rtt_mean_s), mean_s, variance, samples, apart,
               relative);
    judge_sd(add(judgement, "RTT sd", CHECK_TIME, measured->rtt_sd_s), variance, fourth, samples, apart, relative);
    add(judgement, "RTT min", CHECK_TIME, measured->rtt_min_s);
    add(judgement, "RTT p50", CHECK_TIME, measured->rtt_p50_s);
    add(judgement, "RTT p90", CHECK_TIME, measured->rtt_p90_s);
    add(judgement, "RTT p99", CHECK_TIME, measured->rtt_p99_s);
    add(judgement, "RTT max", CHECK_TIME, measured->rtt_max_s);
    for (int i = OUT; measured->one_way_known && i <= BACK; i++) {
        const struct expected *one = &expected[i];
        judge_mean(add(judgement, means[i], CHECK_TIME, measured->one_way_mean_s[i]), one->delay_mean_s,
                   one->delay_variance, samples, apart, relative);
        judge_sd(add(judgement, sds[i], CHECK_TIME, measured->one_way_sd_s[i]), one->delay_variance, one->delay_fourth,
                 samples, apart, relative);
    }
}

/* How many packets are lost in a row. */
static void judge_burst(const char *what, const struct direction_loss *loss, const struct expected *expected,
                        double relative, struct judgement *judgement)
{
    struct check *check = add(judgement, what, CHECK_PACKETS, ratio_of(loss->lost, loss->runs));
    if (loss->runs < RUNS_MIN)
        leave(check, expected->burst, "too few losses to judge: more --probes");
    else
        demand_near(
            check, expected->burst,
            fmax(relative * BURST_RATIO * expected->burst, SIGMAS * expected->burst_sd / sqrt((double)loss->runs)));
}

static void judge_loss(const struct measured *measured, const struct expected expected[2], double relative,
                       struct judgement *judgement)
{
    static const char *const losses[] = {[OUT] = "loss out", [BACK] = "loss back"};
    static const char *const bursts[] = {[OUT] = "lost in a row out", [BACK] = "lost in a row back"};
    for (int i = OUT; i <= BACK; i++) {
        const struct direction_loss *loss = &measured->loss[i];
        struct check *check = add(judgement, losses[i], CHECK_RATIO, ratio_of(loss->lost, loss->sent));
        demand_ratio(check, expected[i].loss_low, expected[i].loss_high, loss->lost, loss->sent,
                     expected[i].loss_dependence);
        if (expected[i].loss_high > expected[i].loss_low)
            check->remark = "and what is corrupted";
        if (expected[i].bursts)
            judge_burst(bursts[i], loss, &expected[i], relative, judgement);
    }
}

static void judge_order(const struct measured *measured, const struct expected expected[2], struct judgement *judgement)
{
    static const char *const reordered[] = {[OUT] = "reordered out", [BACK] = "reordered back"};
    static const char *const duplicated[] = {[OUT] = "duplicated out", [BACK] = "duplicated back"};
    for (int i = OUT; i <= BACK; i++) {
        const struct direction_loss *loss = &measured->loss[i];
        struct check *check = add(judgement, reordered[i], CHECK_RATIO, ratio_of(loss->reordered, loss->sent));
        if (expected[i].reorder > 0)
            leave(check, expected[i].reorder, "sent at once; those overtaken count as reordered: not judged");
        else
            demand(check, 0, 0, 0);
        check = add(judgement, duplicated[i], CHECK_RATIO, ratio_of(loss->duplicated, loss->sent));
        demand_ratio(check, expected[i].duplicate, expected[i].duplicate, loss->duplicated, loss->sent, 1);
    }
}

/* Half of a buffer is for data, the other half for what the kernel keeps beside it. */
static bool window_too_small(const struct goodput *goodput, double rate_bit_per_s, double rtt_s)
{
    double least = fmin(goodput->sndbuf_bytes, goodput->rcvbuf_bytes) / 2;
    return least * BITS_PER_BYTE < rate_bit_per_s * rtt_s;
}

static void judge_goodput(const struct measured *measured, const struct expected expected[2], double relative,
                          struct judgement *judgement)
{
    static const char *const names[] = {[OUT] = "TCP goodput out", [BACK] = "TCP goodput back"};
    const struct goodput *goodput = &measured->goodput;
    const struct expected *way = &expected[goodput->direction];
    if (!goodput->known)
        return;
    struct check *check = add(judgement, names[goodput->direction], CHECK_RATE, goodput->bit_per_s);
    if (!isfinite(way->rate_bit_per_s) || !goodput->mtu_bytes)
        return;
    double wanted = way->rate_bit_per_s * goodput->mss_bytes / (goodput->mtu_bytes + ETHERNET_BYTES);
    if (expected[OUT].hurts_tcp || expected[BACK].hurts_tcp)
        leave(check, wanted, "at most; loss or reordering slows TCP down: not judged");
    else if (window_too_small(goodput, way->rate_bit_per_s, measured->rtt_mean_s))
        leave(check, wanted, "socket buffers below the bandwidth-delay product: not judged");
    else
        demand_near(check, wanted, relative * GOODPUT_RATIO * wanted);
}

void judge_path(const struct measured *measured, const struct expected expected[2], double interval_s, double relative,
                struct judgement *judgement)
{
    judge_delays(measured, expected, interval_s, relative, judgement);
    judge_loss(measured, expected, relative, judgement);
    judge_order(measured, expected, judgement);
    judge_goodput(measured, expected, relative, judgement);
}

void judge_bystander(const struct measured *measured, double rtt_s, struct judgement *judgement)
{
    static const char *const losses[] = {[OUT] = "bystander loss out", [BACK] = "bystander loss back"};
    struct check *check = add(judgement, "bystander RTT p50", CHECK_TIME, measured->rtt_p50_s);
    demand(check, NAN, 0, rtt_s);
    for (int i = OUT; i <= BACK; i++) {
        const struct direction_loss *loss = &measured->loss[i];
        demand(add(judgement, losses[i], CHECK_RATIO, ratio_of(loss->lost, loss->sent)), 0, 0, 0);
    }
}

bool judgement_good(const struct judgement *judgement)
{
    bool good = true;
    for (size_t i = 0; i < judgement->count; i++)
        good = good && judgement->checks[i].good;
    return good;
}
