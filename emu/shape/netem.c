#include "emu/shape/netem.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/pkt_sched.h>
#include <math.h>
#include <netlink/attr.h>
#include <string.h>

/* Headers before Linux 6.4 lack it; older kernels ignore the attribute. */
enum { NETEM_PRNG_SEED = 14, NETEM_ATTRIBUTES_MAX = 14 };

/* A probability as the kernel keeps it: 2^32 - 1 is 1. */
static uint32_t probability(double ratio)
{
    return (uint32_t)llrint(ratio * UINT32_MAX);
}

static double ratio(uint32_t probability)
{
    return (double)probability / UINT32_MAX;
}

static int put_loss(struct nl_msg *message, const struct loss *loss)
{
    const struct tc_netem_gemodel model = {.p = probability(loss->p),
                                           .r = probability(loss->r),
                                           .h = probability(1 - loss->lost_bad),
                                           .k1 = probability(loss->lost_good)};
    if (loss->kind != LOSS_GILBERT_ELLIOTT)
        return 0; /* without the attribute the kernel goes back to independent losses */
    struct nlattr *nest = nla_nest_start(message, TCA_NETEM_LOSS);
    if (!nest || nla_put(message, NETEM_LOSS_GE, sizeof model, &model))
        return -ENOMEM;
    return nla_nest_end(message, nest);
}

static int put_rate(struct nl_msg *message, uint64_t byte_per_s)
{
    const struct tc_netem_rate rate = {.rate = byte_per_s >= UINT32_MAX ? UINT32_MAX : (uint32_t)byte_per_s};
    int rc = byte_per_s >= UINT32_MAX ? nla_put_u64(message, TCA_NETEM_RATE64, byte_per_s) : 0;
    return rc ? rc : nla_put(message, TCA_NETEM_RATE, sizeof rate, &rate);
}

static int put_attributes(struct nl_msg *message, const struct impairment *impairment,
                          const struct distribution *distribution)
{
    const struct tc_netem_corr correlation = {.delay_corr = probability(impairment->correlation)};
    const struct tc_netem_reorder reorder = {.probability = probability(impairment->reorder)};
    const struct tc_netem_corrupt corrupt = {.probability = probability(impairment->corrupt)};
    const struct tc_netem_slot slot = {0};
    int rc = nla_put_u64(message, TCA_NETEM_LATENCY64, impairment->delay_ns);
    rc = rc ? rc : nla_put_u64(message, TCA_NETEM_JITTER64, impairment->jitter_ns);
    rc = rc ? rc : nla_put(message, TCA_NETEM_CORR, sizeof correlation, &correlation);
    rc = rc ? rc : nla_put(message, TCA_NETEM_REORDER, sizeof reorder, &reorder);
    rc = rc ? rc : nla_put(message, TCA_NETEM_CORRUPT, sizeof corrupt, &corrupt);
    rc = rc ? rc : put_rate(message, impairment->rate_byte_per_s);
    rc = rc ? rc : put_loss(message, &impairment->loss);
    rc = rc ? rc : nla_put_u32(message, TCA_NETEM_ECN, 0);
    rc = rc ? rc : nla_put(message, TCA_NETEM_SLOT, sizeof slot, &slot);
    if (!rc && distribution)
        rc = nla_put(message, TCA_NETEM_DELAY_DIST, (int)(distribution->count * sizeof *distribution->table),
                     distribution->table);
    if (!rc && impairment->seed_given)
        rc = nla_put_u64(message, NETEM_PRNG_SEED, impairment->seed);
    return rc;
}

int netem_put(struct nl_msg *message, const struct impairment *impairment, const struct distribution *distribution,
              struct err *err)
{
    /* Independent loss lives in the header; gap 1 lets every packet be one that overtakes. */
    const struct tc_netem_qopt header = {
        .limit = impairment->limit_packets,
        .loss = impairment->loss.kind == LOSS_INDEPENDENT ? probability(impairment->loss.ratio) : 0,
        .gap = impairment->reorder > 0,
        .duplicate = probability(impairment->duplicate),
    };
    int rc = nla_put_string(message, TCA_KIND, "netem");
    struct nlattr *options = rc ? NULL : nla_nest_start(message, TCA_OPTIONS);
    /* The header comes before the nested attributes. */
    rc = options ? nlmsg_append(message, (void *)&header, sizeof header, NLMSG_ALIGNTO) : -ENOMEM;
    rc = rc ? rc : put_attributes(message, impairment, distribution);
    rc = rc ? rc : nla_nest_end(message, options);
    return rc ? err_set(err, ENOMEM, "out of memory") : 0;
}

static void parse_header(const struct tc_netem_qopt *header, struct impairment *impairment)
{
    impairment->limit_packets = header->limit;
    impairment->limit_given = true;
    impairment->loss = (struct loss){0};
    if (header->loss)
        impairment->loss = (struct loss){.kind = LOSS_INDEPENDENT, .ratio = ratio(header->loss)};
    impairment->duplicate = ratio(header->duplicate);
    /* Ticks of 64 ns, for kernels that give no 64-bit figures. */
    impairment->delay_ns = (uint64_t)header->latency << 6;
    impairment->jitter_ns = (uint64_t)header->jitter << 6;
}

static void parse_loss(const struct nlattr *nest, struct impairment *impairment)
{
    struct nlattr *models[NETEM_LOSS_MAX + 1];
    if (nla_parse_nested(models, NETEM_LOSS_MAX, (struct nlattr *)nest, NULL) || !models[NETEM_LOSS_GE] ||
        nla_len(models[NETEM_LOSS_GE]) < (int)sizeof(struct tc_netem_gemodel))
        return;
    struct tc_netem_gemodel model;
    memcpy(&model, nla_data(models[NETEM_LOSS_GE]), sizeof model);
    struct loss *loss = &impairment->loss;
    *loss = (struct loss){.kind = LOSS_GILBERT_ELLIOTT,
                          .p = ratio(model.p),
                          .r = ratio(model.r),
                          .lost_bad = 1 - ratio(model.h),
                          .lost_good = ratio(model.k1)};
    double bad = loss->p + loss->r > 0 ? loss->p / (loss->p + loss->r) : 0;
    loss->ratio = bad * loss->lost_bad + (1 - bad) * loss->lost_good;
}

/* Copies an attribute's leading bytes; false where it is absent or shorter. */
static bool take(struct nlattr *const *attributes, int type, void *into, size_t size)
{
    if (!attributes[type] || nla_len(attributes[type]) < (int)size)
        return false;
    memcpy(into, nla_data(attributes[type]), size);
    return true;
}

static void parse_attributes(struct nlattr *const *attributes, struct impairment *impairment)
{
    struct tc_netem_corr correlation;
    struct tc_netem_reorder reorder;
    struct tc_netem_corrupt corrupt;
    struct tc_netem_rate rate;
    uint64_t wide;
    if (take(attributes, TCA_NETEM_LATENCY64, &wide, sizeof wide))
        impairment->delay_ns = wide;
    if (take(attributes, TCA_NETEM_JITTER64, &wide, sizeof wide))
        impairment->jitter_ns = wide;
    if (take(attributes, TCA_NETEM_CORR, &correlation, sizeof correlation))
        impairment->correlation = ratio(correlation.delay_corr);
    if (take(attributes, TCA_NETEM_REORDER, &reorder, sizeof reorder))
        impairment->reorder = ratio(reorder.probability);
    if (take(attributes, TCA_NETEM_CORRUPT, &corrupt, sizeof corrupt))
        impairment->corrupt = ratio(corrupt.probability);
    if (take(attributes, TCA_NETEM_RATE, &rate, sizeof rate))
        impairment->rate_byte_per_s = rate.rate;
    if (take(attributes, TCA_NETEM_RATE64, &wide, sizeof wide))
        impairment->rate_byte_per_s = wide;
    impairment->seed_given = take(attributes, NETEM_PRNG_SEED, &wide, sizeof wide);
    impairment->seed = impairment->seed_given ? wide : 0;
    if (attributes[TCA_NETEM_LOSS])
        parse_loss(attributes[TCA_NETEM_LOSS], impairment);
}

int netem_parse(const struct nlattr *options, struct impairment *impairment, struct err *err)
{
    struct nlattr *attributes[NETEM_ATTRIBUTES_MAX + 1];
    struct tc_netem_qopt header;
    int header_bytes = NLMSG_ALIGN(sizeof header);
    if (!options || nla_len(options) < header_bytes)
        return err_set(err, EINVAL, "netem settings of an unknown layout");
    memcpy(&header, nla_data(options), sizeof header);
    struct nlattr *first = (struct nlattr *)((char *)nla_data(options) + header_bytes);
    if (nla_parse(attributes, NETEM_ATTRIBUTES_MAX, first, nla_len(options) - header_bytes, NULL))
        return err_set(err, EINVAL, "netem settings of an unknown layout");
    parse_header(&header, impairment);
    parse_attributes(attributes, impairment);
    return 0;
}

static const char *const tc_shapes[] = {[JITTER_NORMAL] = "normal",
                                        [JITTER_PARETO] = "pareto",
                                        [JITTER_PARETONORMAL] = "paretonormal",
                                        [JITTER_UNIFORM] = NULL};

#define NS_PER_US 1e3
#define TABLE_ENDING ".dist"

/* As one word of a shell's and of tc's batch files. */
static void print_word(FILE *out, const char *text, size_t length)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@%+=,";
    if (length && strspn(text, plain) >= length) {
        fprintf(out, "%.*s", (int)length, text);
        return;
    }
    fputc('\'', out);
    for (size_t i = 0; i < length; i++)
        fputs(text[i] == '\'' ? "'\\''" : (char[]){text[i], '\0'}, out);
    fputc('\'', out);
}

/* Where the name begins in a path. */
static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_table(FILE *out, const char *file)
{
    const char *name = name_in(file);
    size_t length = strlen(name), ending = strlen(TABLE_ENDING);
    bool ends = length > ending && !strcmp(name + length - ending, TABLE_ENDING);
    fputs(" distribution ", out);
    print_word(out, name, ends ? length - ending : length);
}

void netem_print_tc_environment(FILE *out, const struct impairment *impairment)
{
    const char *file = impairment->jitter_ns ? impairment->table_file : NULL, *name = file ? name_in(file) : NULL;
    if (!file)
        return;
    fputs("TC_LIB_DIR=", out);
    print_word(out, name == file ? "." : file, name == file ? 1 : name - file == 1 ? 1 : (size_t)(name - file) - 1);
    fputc(' ', out);
}

/* tc's own tables have the same shapes, drawn at other points; without a table jitter is uniform over +- its value. tc
 * up to 6.1 rounds times to whole microseconds and does not know ns. */
static void print_delay(FILE *out, const struct impairment *impairment)
{
    const char *file = impairment->table_file, *shape = file ? file : tc_shapes[impairment->jitter_shape];
    double jitter_ns = shape ? impairment->jitter_ns : sqrt(3) * impairment->jitter_ns;
    fprintf(out, " delay %.3fus", impairment->delay_ns / NS_PER_US);
    if (!impairment->jitter_ns)
        return;
    fprintf(out, " %.3fus", jitter_ns / NS_PER_US);
    if (impairment->correlation > 0)
        fprintf(out, " %.15g%%", 100 * impairment->correlation);
    if (file)
        print_table(out, file);
    else if (shape)
        fprintf(out, " distribution %s", shape);
}

void netem_print_tc(FILE *out, const struct impairment *impairment)
{
    const struct loss *loss = &impairment->loss;
    fprintf(out, "netem limit %u", impairment->limit_packets);
    print_delay(out, impairment);
    if (loss->kind == LOSS_INDEPENDENT)
        fprintf(out, " loss %.15g%%", 100 * loss->ratio);
    else if (loss->kind == LOSS_GILBERT_ELLIOTT)
        fprintf(out, " loss gemodel %.15g%% %.15g%% %.15g%% %.15g%%", 100 * loss->p, 100 * loss->r,
                100 * loss->lost_bad, 100 * loss->lost_good);
    if (impairment->duplicate > 0)
        fprintf(out, " duplicate %.15g%%", 100 * impairment->duplicate);
    if (impairment->reorder > 0)
        fprintf(out, " reorder %.15g%%", 100 * impairment->reorder);
    if (impairment->corrupt > 0)
        fprintf(out, " corrupt %.15g%%", 100 * impairment->corrupt);
    fprintf(out, " rate %" PRIu64 "bps", impairment->rate_byte_per_s); /* tc's bps is bytes per second */
}
