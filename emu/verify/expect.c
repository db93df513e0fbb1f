#include "emu/verify/expect.h"

#include <errno.h>
#include <math.h>

#include "emu/shape/distribution.h"

#define NS_PER_S 1e9
#define BITS_PER_BYTE 8.0
/* Probes this many deviations of the jitter apart overtake each other, if they could, once in 500 (normal). */
#define SPACING_SD 4.0

/* Sums over the equally likely delays of one direction. */
struct delays {
    double weight, mean, second, third, fourth; /* raw moments x weight */
};

static void delays_add(struct delays *delays, double weight, double delay_s)
{
    double power = weight;
    delays->weight += power;
    delays->mean += power *= delay_s;
    delays->second += power *= delay_s;
    delays->third += power *= delay_s;
    delays->fourth += power * delay_s;
}

/* Central moments; delays were added relative to a point near their mean, so that nothing cancels. */
static void delays_take(const struct delays *delays, double point_s, struct expected *expected)
{
    double mean = delays->mean, second = delays->second;
    expected->delay_mean_s = point_s + mean;
    expected->delay_variance = fmax(0, second - mean * mean);
    expected->delay_fourth =
        fmax(0, delays->fourth - 4 * mean * delays->third + 6 * mean * mean * second - 3 * mean * mean * mean * mean);
}

static int jitter_table(const struct impairment *impairment, struct distribution *table, struct err *err)
{
    *table = (struct distribution){0};
    if (!impairment->jitter_ns)
        return 0;
    return impairment->table_file ? distribution_read(impairment->table_file, table, err)
                                  : distribution_of_shape(impairment->jitter_shape, table, err);
}

/* Every entry of the jitter table is as likely as the others; delays below 0 are clamped there (sch_netem.c). The
 * kernel's correlation mixes the draws but takes their low bits as index, so that it leaves the moments alone. */
static int expect_delay(const struct impairment *impairment, double size_bytes, struct expected *expected,
                        struct err *err)
{
    struct distribution table;
    int rc = jitter_table(impairment, &table, err);
    if (rc)
        return rc;
    double delay_s = (double)impairment->delay_ns / NS_PER_S, jitter_s = (double)impairment->jitter_ns / NS_PER_S;
    double delayed = 1 - impairment->reorder;
    struct delays delays = {0};
    for (size_t i = 0; i < table.count; i++) {
        double drawn_s = delay_s + jitter_s * table.table[i] / DISTRIBUTION_SCALE;
        delays_add(&delays, delayed / (double)table.count, fmax(0, drawn_s) - delay_s);
    }
    if (!table.count)
        delays_add(&delays, delayed, 0);
    delays_add(&delays, impairment->reorder, -delay_s);
    delays_take(&delays, delay_s + size_bytes / (double)impairment->rate_byte_per_s, expected);
    expected->spacing_s = SPACING_SD * jitter_s;
    distribution_free(&table);
    return 0;
}

/* Two states: lost with probability lost_bad in the share `bad` of the time, else lost_good. What a packet's fate says
 * of the next one falls by 1 - p - r with every packet between. */
static void expect_gilbert_elliott(const struct loss *loss, struct expected *expected)
{
    double bad = loss->p / (loss->p + loss->r), memory = 1 - loss->p - loss->r;
    double ratio = bad * loss->lost_bad + (1 - bad) * loss->lost_good;
    double apart = loss->lost_bad - loss->lost_good;
    double shared = apart * apart * bad * (1 - bad);         /* covariance of fates in the same state */
    double begins = ratio - ratio * ratio - shared * memory; /* lost, and the next is not */
    expected->loss_low = ratio;
    if (ratio > 0 && ratio < 1 && memory < 1)
        expected->loss_dependence = fmax(1, 1 + 2 * shared * memory / (1 - memory) / (ratio * (1 - ratio)));
    expected->burst = begins > 0 ? ratio / begins : 0;
    expected->bursts = expected->burst > 0;
}

static void expect_loss(const struct impairment *impairment, struct expected *expected)
{
    const struct loss *loss = &impairment->loss;
    expected->loss_dependence = 1;
    if (loss->kind == LOSS_GILBERT_ELLIOTT)
        expect_gilbert_elliott(loss, expected);
    else if (loss->kind == LOSS_INDEPENDENT) {
        expected->loss_low = loss->ratio;
        expected->burst = loss->ratio < 1 ? 1 / (1 - loss->ratio) : 0;
    }
    /* Geometric, or near it. */
    expected->burst_sd = expected->burst > 1 ? sqrt(expected->burst * (expected->burst - 1)) : 0;
    expected->loss_high = expected->loss_low + (1 - expected->loss_low) * impairment->corrupt;
}

int expect_direction(const struct impairment *impairment, double size_bytes, struct expected *expected, struct err *err)
{
    *expected = (struct expected){.reorder = impairment->reorder, .duplicate = impairment->duplicate};
    expected->rate_bit_per_s = impairment->rate_byte_per_s == IMPAIRMENT_RATE_NONE
                                   ? INFINITY
                                   : BITS_PER_BYTE * (double)impairment->rate_byte_per_s;
    expect_loss(impairment, expected);
    expected->hurts_tcp = expected->loss_high > 0 || impairment->reorder > 0;
    return expect_delay(impairment, size_bytes, expected, err);
}
