#include "emu/shape/impairment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/units.h"
#include "emu/shape/distribution.h"

#define NS_PER_S 1e9
#define BITS_PER_BYTE 8
#define FRAME_BYTES 1514.0 /* of a full Ethernet frame as a qdisc counts it: MTU 1500 + header */

void impairment_init(struct impairment *impairment)
{
    *impairment = (struct impairment){.rate_byte_per_s = IMPAIRMENT_RATE_NONE};
    impairment_limit(impairment);
}

void impairment_free(struct impairment *impairment)
{
    free(impairment->table_file);
    *impairment = (struct impairment){0};
}

/* Mean and burst to Gilbert's p and r, every packet of the bad state lost. */
static struct loss loss_of(double ratio, double burst)
{
    if (ratio <= 0)
        return (struct loss){0};
    if (burst <= 1)
        return (struct loss){.kind = LOSS_INDEPENDENT, .ratio = ratio};
    return (struct loss){
        .kind = LOSS_GILBERT_ELLIOTT, .ratio = ratio, .r = 1 / burst, .p = ratio / (1 - ratio) / burst, .lost_bad = 1};
}

static int set_rate(double bit_per_s, struct impairment *impairment, struct err *err)
{
    double byte_per_s = bit_per_s / BITS_PER_BYTE;
    impairment->rate_byte_per_s = IMPAIRMENT_RATE_NONE;
    if (isinf(bit_per_s))
        return 0;
    if (byte_per_s < 1 || byte_per_s > (double)IMPAIRMENT_RATE_MAX) {
        char text[32];
        return err_set(err, EINVAL, "a rate of %s for one device; 8 b/s to 8 Tb/s are possible",
                       units_format(bit_per_s, DIM_RATE, 4, text, sizeof text));
    }
    impairment->rate_byte_per_s = (uint64_t)llrint(byte_per_s);
    return 0;
}

int impairment_of_link(const struct wan_link *link, uint64_t seed, double share, struct impairment *impairment,
                       struct err *err)
{
    impairment_init(impairment);
    if (link->rtt_s / 2 * NS_PER_S > (double)IMPAIRMENT_DELAY_MAX_NS)
        return err_set(err, EINVAL, "an RTT of %g s; at most 2000000 s are possible", link->rtt_s);
    if (link->jitter_s / M_SQRT2 * NS_PER_S > IMPAIRMENT_JITTER_MAX_NS)
        return err_set(err, EINVAL, "an RTT jitter of %g s; the kernel takes at most 3.03 s (2.147 s one way)",
                       link->jitter_s);
    impairment->delay_ns = (uint64_t)llrint(link->rtt_s / 2 * NS_PER_S);
    impairment->jitter_ns = (uint64_t)llrint(link->jitter_s / M_SQRT2 * NS_PER_S);
    impairment->jitter_shape = link->jitter_shape;
    impairment->loss = loss_of(link->loss_ratio, link->loss_burst);
    impairment->seed = seed;
    impairment->seed_given = true;
    int rc = set_rate(link->waves * link->wave_bit_per_s * share, impairment, err);
    impairment_limit(impairment);
    return rc ? rc : impairment_check(impairment, err);
}

/* Mean packets lost in a row; 1 for independent losses. */
static double burst_of(const struct loss *loss)
{
    return loss->kind == LOSS_GILBERT_ELLIOTT ? 1 / loss->r : 1;
}

int impairment_append(struct impairment *into, const struct impairment *next, const char **note, struct err *err)
{
    double burst = fmax(burst_of(&into->loss), burst_of(&next->loss));
    double loss = 1 - (1 - into->loss.ratio) * (1 - next->loss.ratio);
    double jitter = hypot(into->jitter_ns, next->jitter_ns);
    *note = NULL;
    if (into->jitter_ns && next->jitter_ns && into->jitter_shape != next->jitter_shape)
        *note = "jitter of two shapes in a row is drawn from the shape of the larger";
    if (burst > 1 && into->loss.ratio > 0 && next->loss.ratio > 0)
        *note = "losses of two links in a row have the longer burst of the two";
    if (jitter > IMPAIRMENT_JITTER_MAX_NS)
        return err_set(err, EINVAL,
                       "links in a row add up to a jitter of %g s one way; the kernel takes at most 2.147 s",
                       jitter / NS_PER_S);
    if (next->jitter_ns > into->jitter_ns)
        into->jitter_shape = next->jitter_shape;
    into->delay_ns += next->delay_ns;
    into->jitter_ns = (uint64_t)llrint(jitter);
    into->loss = loss_of(loss, burst);
    if (next->rate_byte_per_s < into->rate_byte_per_s)
        into->rate_byte_per_s = next->rate_byte_per_s;
    impairment_limit(into);
    return impairment_check(into, err);
}

void impairment_limit(struct impairment *impairment)
{
    if (impairment->limit_given)
        return;
    bool endless = impairment->rate_byte_per_s == IMPAIRMENT_RATE_NONE;
    double rate = endless ? 800e9 / BITS_PER_BYTE : (double)impairment->rate_byte_per_s;
    double queued_s = (impairment->delay_ns + 4.0 * impairment->jitter_ns) / NS_PER_S + 1e-3;
    impairment->limit_packets = (uint32_t)fmin(INT32_MAX, 2 * queued_s * rate / FRAME_BYTES + 1000);
}

static int check_ratio(double ratio, const char *what, struct err *err)
{
    if (ratio >= 0 && ratio <= 1)
        return 0;
    return err_set(err, EINVAL, "%s of %g; 0 %% to 100 %% are possible", what, ratio);
}

/* As the kernel keeps a probability: what is the same there is the same. */
static uint32_t kept(double ratio)
{
    return (uint32_t)llrint(ratio * UINT32_MAX);
}

static int check_loss(const struct loss *loss, struct err *err)
{
    int rc = check_ratio(loss->ratio, "a loss", err);
    if (!rc && loss->kind == LOSS_INDEPENDENT && !kept(loss->ratio))
        return err_set(err, EINVAL,
                       "a loss of %g %%, less than the kernel's 1 in 2^32; 0 or 0.00000003 %% are possible",
                       100 * loss->ratio);
    if (rc || loss->kind != LOSS_GILBERT_ELLIOTT)
        return rc;
    if (!(loss->p > 0 && loss->p <= 1))
        return err_set(err, EINVAL,
                       "a loss of %g %% in bursts of %g packets would begin a burst with probability %g after each "
                       "packet that arrives; it must be at most 1: less loss or longer bursts",
                       100 * loss->ratio, 1 / loss->r, loss->p);
    if (!kept(loss->p))
        return err_set(err, EINVAL,
                       "a loss of %g %% in bursts of %g packets would begin a burst with probability %g, less than the "
                       "kernel's 1 in 2^32; more loss or shorter bursts are possible",
                       100 * loss->ratio, 1 / loss->r, loss->p);
    if (!(loss->r > 0 && loss->r <= 1))
        return err_set(err, EINVAL, "a loss burst of %g packets; at least 1 is possible", 1 / loss->r);
    rc = check_ratio(loss->lost_bad, "a loss inside bursts", err);
    return rc ? rc : check_ratio(loss->lost_good, "a loss outside bursts", err);
}

int impairment_check(const struct impairment *impairment, struct err *err)
{
    const struct {
        double value;
        const char *what;
    } ratios[] = {{impairment->correlation, "a correlation"},
                  {impairment->reorder, "reordering"},
                  {impairment->duplicate, "duplication"},
                  {impairment->corrupt, "corruption"}};
    int rc = check_loss(&impairment->loss, err);
    for (size_t i = 0; !rc && i < sizeof ratios / sizeof *ratios; i++)
        rc = check_ratio(ratios[i].value, ratios[i].what, err);
    if (rc)
        return rc;
    if (impairment->delay_ns > IMPAIRMENT_DELAY_MAX_NS)
        return err_set(err, EINVAL, "a delay of %g s one way; at most 1000000 s are possible",
                       impairment->delay_ns / NS_PER_S);
    if (impairment->jitter_ns > IMPAIRMENT_JITTER_MAX_NS)
        return err_set(err, EINVAL, "a jitter of %g s one way; the kernel takes at most 2.147483647 s",
                       impairment->jitter_ns / NS_PER_S);
    if (impairment->jitter_ns && !impairment->delay_ns)
        return err_set(err, EINVAL, "jitter without a delay: it would only be cut off at 0; give a delay, like 10 ms");
    if (impairment->correlation > 0 && !impairment->jitter_ns)
        return err_set(err, EINVAL, "a correlation without jitter; give a jitter, like 1 ms");
    if (impairment->reorder > 0 && !impairment->delay_ns)
        return err_set(err, EINVAL,
                       "reordering without a delay: there is nothing to overtake; give a delay, like 10 ms");
    if (impairment->rate_byte_per_s != IMPAIRMENT_RATE_NONE &&
        (impairment->rate_byte_per_s < 1 || impairment->rate_byte_per_s > IMPAIRMENT_RATE_MAX))
        return err_set(err, EINVAL, "a rate of %g b/s; 8 b/s to 8 Tb/s are possible",
                       (double)impairment->rate_byte_per_s * BITS_PER_BYTE);
    if (impairment->limit_packets < 1 || impairment->limit_packets > INT32_MAX)
        return err_set(err, EINVAL, "a queue limit of %u packets; 1 to 2147483647 are possible",
                       impairment->limit_packets);
    return 0;
}

double impairment_clamped(const struct impairment *impairment)
{
    struct distribution distribution;
    struct err err;
    if (!impairment->jitter_ns)
        return 0;
    int rc = impairment->table_file ? distribution_read(impairment->table_file, &distribution, &err)
                                    : distribution_of_shape(impairment->jitter_shape, &distribution, &err);
    if (rc)
        return 0;
    size_t below = 0;
    for (size_t i = 0; i < distribution.count; i++)
        below += impairment->delay_ns + (double)distribution.table[i] / DISTRIBUTION_SCALE * impairment->jitter_ns < 0;
    double share = (double)below / distribution.count;
    distribution_free(&distribution);
    return share;
}

static const char *const shape_names[] = {[JITTER_NORMAL] = "normal",
                                          [JITTER_PARETO] = "pareto",
                                          [JITTER_PARETONORMAL] = "paretonormal",
                                          [JITTER_UNIFORM] = "uniform"};

static void print_loss(FILE *out, const struct loss *loss)
{
    char mean[32];
    units_format(loss->ratio, DIM_RATIO, 4, mean, sizeof mean);
    if (loss->kind == LOSS_NONE)
        return;
    fprintf(out, ", loss %s", mean);
    if (loss->kind != LOSS_GILBERT_ELLIOTT)
        return;
    fprintf(out, " in bursts of %g packets", 1 / loss->r);
    if (loss->lost_bad < 1)
        fprintf(out, " (of which %g %% are lost)", 100 * loss->lost_bad);
    if (loss->lost_good > 0)
        fprintf(out, ", %g %% between bursts", 100 * loss->lost_good);
}

static void print_ratio(FILE *out, const char *what, double ratio)
{
    char text[32];
    if (ratio > 0)
        fprintf(out, ", %s %s", what, units_format(ratio, DIM_RATIO, 4, text, sizeof text));
}

char *impairment_text(const struct impairment *impairment)
{
    char *buffer = NULL, text[32];
    size_t size;
    FILE *out = open_memstream(&buffer, &size);
    if (!out)
        return NULL;
    fprintf(out, "%s one way", units_format(impairment->delay_ns / NS_PER_S, DIM_TIME, 10, text, sizeof text));
    if (impairment->jitter_ns) {
        const char *table = impairment->table_file;
        fprintf(out, ", jitter %s one way (%s %s)",
                units_format(impairment->jitter_ns / NS_PER_S, DIM_TIME, 10, text, sizeof text),
                table ? "times the table" : "sd,", table ? table : shape_names[impairment->jitter_shape]);
        print_ratio(out, "correlation", impairment->correlation);
    }
    print_loss(out, &impairment->loss);
    print_ratio(out, "reordered", impairment->reorder);
    print_ratio(out, "duplicated", impairment->duplicate);
    print_ratio(out, "corrupted", impairment->corrupt);
    if (impairment->rate_byte_per_s == IMPAIRMENT_RATE_NONE)
        fprintf(out, ", no rate limit");
    else
        fprintf(out, ", %s",
                units_format((double)impairment->rate_byte_per_s * BITS_PER_BYTE, DIM_RATE, 10, text, sizeof text));
    if (fclose(out)) {
        free(buffer);
        return NULL;
    }
    return buffer;
}

static bool loss_equal(const struct loss *a, const struct loss *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == LOSS_GILBERT_ELLIOTT)
        return kept(a->p) == kept(b->p) && kept(a->r) == kept(b->r) && kept(a->lost_bad) == kept(b->lost_bad) &&
               kept(a->lost_good) == kept(b->lost_good);
    return kept(a->ratio) == kept(b->ratio);
}

static bool table_equal(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

bool impairment_equal(const struct impairment *a, const struct impairment *b)
{
    return a->delay_ns == b->delay_ns && a->jitter_ns == b->jitter_ns && kept(a->correlation) == kept(b->correlation) &&
           (!a->jitter_ns || (a->jitter_shape == b->jitter_shape && table_equal(a->table_file, b->table_file))) &&
           loss_equal(&a->loss, &b->loss) && kept(a->reorder) == kept(b->reorder) &&
           kept(a->duplicate) == kept(b->duplicate) && kept(a->corrupt) == kept(b->corrupt) &&
           a->rate_byte_per_s == b->rate_byte_per_s && a->limit_packets == b->limit_packets &&
           a->seed_given == b->seed_given && (!a->seed_given || a->seed == b->seed);
}
