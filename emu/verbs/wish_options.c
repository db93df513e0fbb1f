/* Flags to an impairment: every value with its unit, every contradiction in one line that names the flag. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/keys.h"
#include "configs/suggest.h"
#include "configs/units.h"
#include "emu/shape/distribution.h"
#include "emu/verbs/wish_parts.h"

#define NS_PER_S 1e9
#define BITS_PER_BYTE 8
#define LOSS_BURST_MAX 1e6 /* as in a scenario */

int wish_flag_fail(enum wish_flag flag, struct err *err, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return err_set(err, EINVAL, "%s: %s", wish_flag_names[flag], text);
}

int wish_take_quantity(const struct wish_arguments *arguments, enum wish_flag flag, enum dimension dimension,
                       double *value, struct err *err)
{
    const char *text = arguments->texts[flag];
    struct err why = {""};
    if (!text || !units_parse(text, dimension, value, &why))
        return 0;
    return wish_flag_fail(flag, err, "%s", why.text);
}

int wish_take_count(const struct wish_arguments *arguments, enum wish_flag flag, uint64_t least, uint64_t most,
                    uint64_t *value, struct err *err)
{
    const char *text = arguments->texts[flag];
    if (!text)
        return 0;
    if (!*text || text[strspn(text, "0123456789")])
        return wish_flag_fail(flag, err, "'%.40s' is not a whole number; write it in digits alone, like 1000", text);
    errno = 0;
    unsigned long long number = strtoull(text, NULL, 10);
    if (errno || number < least || number > most)
        return wish_flag_fail(flag, err, "%.40s is out of range; it can be %ju to %ju", text, (uintmax_t)least,
                              (uintmax_t)most);
    *value = number;
    return 0;
}

int wish_take_choice(const struct wish_arguments *arguments, enum wish_flag flag, const char *const *names, int *value,
                     struct err *err)
{
    const char *text = arguments->texts[flag];
    char phrase[64], list[128];
    size_t count = 0;
    if (!text)
        return 0;
    for (; names[count]; count++)
        if (!strcmp(names[count], text)) {
            *value = (int)count;
            return 0;
        }
    suggest_phrase(text, names, count, sizeof *names, phrase, sizeof phrase);
    suggest_list(names, count, sizeof *names, list, sizeof list);
    return wish_flag_fail(flag, err, "'%.40s' is not possible%s; it can be %s", text, phrase, list);
}

/* Whole nanoseconds; what the kernel would round to nothing is refused. */
static int take_ns(const struct wish_arguments *arguments, enum wish_flag flag, uint64_t most_ns, const char *most,
                   uint64_t *ns, struct err *err)
{
    double seconds = 0;
    int rc = wish_take_quantity(arguments, flag, DIM_TIME, &seconds, err);
    if (rc)
        return rc;
    if (seconds * NS_PER_S > (double)most_ns)
        return wish_flag_fail(flag, err, "'%.40s' is too long; at most %s one way", arguments->texts[flag], most);
    *ns = (uint64_t)llrint(seconds * NS_PER_S);
    if (seconds > 0 && !*ns)
        return wish_flag_fail(flag, err, "'%.40s' is less than the kernel's 1 ns; write 0 or 1 ns",
                              arguments->texts[flag]);
    return 0;
}

static int take_ratio(const struct wish_arguments *arguments, enum wish_flag flag, double *ratio, struct err *err)
{
    int rc = wish_take_quantity(arguments, flag, DIM_RATIO, ratio, err);
    if (rc)
        return rc;
    if (*ratio > 1)
        return wish_flag_fail(flag, err, "'%.40s' is above 100 %%; it can be 0 %% to 100 %%", arguments->texts[flag]);
    if (*ratio > 0 && llrint(*ratio * UINT32_MAX) == 0)
        return wish_flag_fail(flag, err, "'%.40s' is less than the kernel's 1 in 2^32; write 0 or 0.00000003 %%",
                              arguments->texts[flag]);
    return 0;
}

/* A number without unit, 1 or more. */
static int take_burst(const struct wish_arguments *arguments, double *burst, struct err *err)
{
    const char *text = arguments->texts[WISH_LOSS_BURST];
    char *end;
    if (!text)
        return 0;
    double number = strtod(text, &end);
    if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.eE+-")] || *end)
        return wish_flag_fail(WISH_LOSS_BURST, err,
                              "'%.40s' is not a plain number; packets in a row are written like 3 or 2.5", text);
    if (!(number >= 1 && number <= LOSS_BURST_MAX))
        return wish_flag_fail(WISH_LOSS_BURST, err, "%.40s is out of range; it can be 1 to %.0f packets in a row", text,
                              LOSS_BURST_MAX);
    *burst = number;
    return 0;
}

/* Share of bad = p / (p + r) = loss / lost_bad and r = 1 / burst give p. */
static int gilbert_elliott(double ratio, double burst, double lost_bad, struct loss *loss, struct err *err)
{
    double bad = ratio / lost_bad, p = bad / (1 - bad) / burst;
    if (bad >= 1)
        return wish_flag_fail(WISH_LOSS, err,
                              "%g %% would be lost, but inside bursts it is only %g %%; less --loss%s would fit",
                              100 * ratio, 100 * lost_bad, lost_bad < 1 ? " or more --loss-in-burst" : "");
    if (p > 1)
        return wish_flag_fail(WISH_LOSS_BURST, err,
                              "a loss of %g %% leaves no room between bursts of %g packets; --loss-burst %.4g or more "
                              "would fit",
                              100 * ratio, burst, bad / (1 - bad));
    if (llrint(p * UINT32_MAX) == 0)
        return wish_flag_fail(WISH_LOSS_BURST, err,
                              "bursts would begin with probability %.2g, less than the kernel's 1 in 2^32; shorter "
                              "bursts or more --loss would fit",
                              p);
    *loss = (struct loss){
        .kind = LOSS_GILBERT_ELLIOTT, .ratio = ratio, .p = p, .r = 1 / burst, .lost_bad = lost_bad, .lost_good = 0};
    return 0;
}

static int take_loss(const struct wish_arguments *arguments, struct loss *loss, struct err *err)
{
    double ratio = 0, burst = 1, lost_bad = 1;
    int rc = take_ratio(arguments, WISH_LOSS, &ratio, err);
    rc = rc ? rc : take_burst(arguments, &burst, err);
    rc = rc ? rc : take_ratio(arguments, WISH_LOSS_IN_BURST, &lost_bad, err);
    if (rc)
        return rc;
    *loss = (struct loss){0};
    if (arguments->texts[WISH_LOSS_BURST] && !(ratio > 0))
        return wish_flag_fail(WISH_LOSS_BURST, err, "bursts without loss; add e.g. --loss 0.1%%");
    if (arguments->texts[WISH_LOSS_IN_BURST] && !arguments->texts[WISH_LOSS_BURST])
        return wish_flag_fail(WISH_LOSS_IN_BURST, err, "only with --loss-burst; add e.g. --loss-burst 10");
    if (!(lost_bad > 0))
        return wish_flag_fail(WISH_LOSS_IN_BURST, err, "must be above 0 %%, up to 100 %%");
    if (burst > 1 || lost_bad < 1)
        return gilbert_elliott(ratio, burst, lost_bad, loss, err);
    if (ratio > 0)
        *loss = (struct loss){.kind = LOSS_INDEPENDENT, .ratio = ratio};
    return 0;
}

static int take_rate(const struct wish_arguments *arguments, uint64_t *byte_per_s, struct err *err)
{
    double bit_per_s = INFINITY;
    int rc = wish_take_quantity(arguments, WISH_RATE, DIM_RATE, &bit_per_s, err);
    *byte_per_s = IMPAIRMENT_RATE_NONE;
    if (rc || isinf(bit_per_s))
        return rc;
    double rate = bit_per_s / BITS_PER_BYTE;
    if (rate < 1 || rate > (double)IMPAIRMENT_RATE_MAX)
        return wish_flag_fail(WISH_RATE, err, "'%.40s' is out of range; it can be 8 b/s to 8 Tb/s",
                              arguments->texts[WISH_RATE]);
    *byte_per_s = (uint64_t)llrint(rate);
    return 0;
}

/* Read once here, so that a wrong file is said before anything is changed; kept as a full path, because a later clear
 * or status runs elsewhere. */
static int take_table(const struct wish_arguments *arguments, struct impairment *impairment, struct err *err)
{
    struct distribution distribution;
    const char *file = arguments->texts[WISH_JITTER_TABLE];
    if (!file)
        return 0;
    int rc = distribution_read(file, &distribution, err);
    if (rc) {
        err_prefix(err, "%s", wish_flag_names[WISH_JITTER_TABLE]);
        return rc;
    }
    distribution_free(&distribution);
    impairment->table_file = realpath(file, NULL);
    return impairment->table_file ? 0 : err_set(err, errno, "--jitter-table: %s: %s", file, strerror(errno));
}

int wish_options_limit(const struct wish_arguments *arguments, struct impairment *impairment, struct err *err)
{
    uint64_t limit = impairment->limit_packets;
    int rc = wish_take_count(arguments, WISH_LIMIT, 1, INT32_MAX, &limit, err);
    impairment->limit_packets = (uint32_t)limit;
    impairment->limit_given = arguments->texts[WISH_LIMIT] != NULL;
    impairment_limit(impairment);
    return rc;
}

static int take_values(const struct wish_arguments *arguments, struct impairment *impairment, struct err *err)
{
    int shape = JITTER_NORMAL;
    int rc = take_ns(arguments, WISH_DELAY, IMPAIRMENT_DELAY_MAX_NS, "1000000 s", &impairment->delay_ns, err);
    rc = rc ? rc
            : take_ns(arguments, WISH_JITTER, IMPAIRMENT_JITTER_MAX_NS, "2.147483647 s (a signed 32-bit count of ns)",
                      &impairment->jitter_ns, err);
    rc = rc ? rc : wish_take_choice(arguments, WISH_JITTER_SHAPE, jitter_shape_names, &shape, err);
    rc = rc ? rc : take_ratio(arguments, WISH_CORRELATION, &impairment->correlation, err);
    rc = rc ? rc : take_loss(arguments, &impairment->loss, err);
    rc = rc ? rc : take_ratio(arguments, WISH_REORDER, &impairment->reorder, err);
    rc = rc ? rc : take_ratio(arguments, WISH_DUPLICATE, &impairment->duplicate, err);
    rc = rc ? rc : take_ratio(arguments, WISH_CORRUPT, &impairment->corrupt, err);
    rc = rc ? rc : take_rate(arguments, &impairment->rate_byte_per_s, err);
    rc = rc ? rc : wish_take_count(arguments, WISH_SEED, 0, UINT64_MAX, &impairment->seed, err);
    rc = rc ? rc : take_table(arguments, impairment, err);
    impairment->jitter_shape = (enum jitter_shape)shape;
    impairment->seed_given = arguments->texts[WISH_SEED] != NULL;
    return rc ? rc : wish_options_limit(arguments, impairment, err);
}

/* What must agree between flags. */
static int check_rules(const struct wish_arguments *arguments, const struct impairment *impairment, struct err *err)
{
    bool jitter = impairment->jitter_ns, delay = impairment->delay_ns;
    bool shape = arguments->texts[WISH_JITTER_SHAPE], table = arguments->texts[WISH_JITTER_TABLE];
    const struct {
        bool broken;
        enum wish_flag flag;
        const char *says;
    } rules[] = {
        {jitter && !delay, WISH_JITTER, "without a delay it would only be cut off at 0; add e.g. --delay 10ms"},
        {jitter && !table && impairment->jitter_ns > impairment->delay_ns, WISH_JITTER,
         "is more than the --delay one way, and no packet arrives before it left; less jitter or more delay would fit"},
        {impairment->correlation > 0 && !jitter, WISH_CORRELATION, "of a jitter that is not asked for; add --jitter"},
        {shape && !jitter, WISH_JITTER_SHAPE, "of a jitter that is not asked for; add --jitter"},
        {table && !jitter, WISH_JITTER_TABLE, "of a jitter that is not asked for; add --jitter"},
        {shape && table, WISH_JITTER_TABLE, "is a shape, and --jitter-shape another; give one of them"},
        {impairment->reorder > 0 && !delay, WISH_REORDER,
         "without a delay there is nothing to overtake; add e.g. --delay 10ms"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].broken)
            return wish_flag_fail(rules[i].flag, err, "%s", rules[i].says);
    return impairment_check(impairment, err);
}

int wish_options_impairment(const struct wish_arguments *arguments, struct impairment *impairment, struct err *err)
{
    impairment_init(impairment);
    int rc = take_values(arguments, impairment, err);
    rc = rc ? rc : check_rules(arguments, impairment, err);
    if (rc)
        impairment_free(impairment);
    return rc;
}
