/* Flags alone to wishes: one path to all that --to names. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/shape/distribution.h"
#include "emu/verbs/wish_parts.h"

#define NS_PER_S 1e9

static int refuse_scenario_flags(const struct wish_arguments *arguments, struct err *err)
{
    static const enum wish_flag flags[] = {WISH_SITE, WISH_VIA, WISH_SHARE};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (arguments->texts[flags[i]])
            return wish_flag_fail(flags[i], err, "only with a SCENARIO%s",
                                  flags[i] == WISH_SHARE ? "; without one give the --rate itself"
                                                         : "; without one give --to PREFIX");
    if (arguments->sets.count)
        return err_set(err, EINVAL, "--set: only with a SCENARIO, whose key it changes");
    return 0;
}

static bool does_nothing(const struct impairment *impairment)
{
    return !impairment->delay_ns && impairment->loss.kind == LOSS_NONE && !(impairment->duplicate > 0) &&
           !(impairment->corrupt > 0) && impairment->rate_byte_per_s == IMPAIRMENT_RATE_NONE;
}

static int read_prefixes(const struct wish_arguments *arguments, struct path *path, struct err *err)
{
    struct err why = {""};
    path->prefixes = calloc(arguments->to_count, sizeof *path->prefixes);
    if (!path->prefixes)
        return err_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < arguments->to_count; i++) {
        struct prefix *prefix = &path->prefixes[i];
        if (prefix_parse(arguments->to[i], prefix, &why))
            return err_set(err, EINVAL, "--to: %s", why.text);
        for (size_t k = 0; k < i; k++)
            if (prefix_contains(prefix, &path->prefixes[k]) && prefix_contains(&path->prefixes[k], prefix))
                return err_set(err, EINVAL, "--to: '%.*s' is given twice; give it once", PREFIX_TEXT_MAX,
                               arguments->to[i]);
        path->prefix_count++;
    }
    return 0;
}

static int name_path(struct path *path, struct err *err)
{
    char text[PREFIX_TEXT_MAX];
    prefix_format(&path->prefixes[0], text, sizeof text);
    int length = path->prefix_count == 1 ? asprintf(&path->name, "%s", text)
                                         : asprintf(&path->name, "%s and %zu more", text, path->prefix_count - 1);
    if (length >= 0)
        return 0;
    path->name = NULL;
    return err_set(err, ENOMEM, "out of memory");
}

/* Mean and deviation of what is drawn, in units of the jitter: 0 and 1 unless a table says otherwise. */
static int find_moments(const struct impairment *impairment, double *mean, double *sd, struct err *err)
{
    struct distribution table;
    *mean = 0;
    *sd = 1;
    if (!impairment->table_file)
        return 0;
    int rc = distribution_read(impairment->table_file, &table, err);
    if (rc)
        return rc;
    distribution_moments(&table, mean, sd);
    distribution_free(&table);
    return 0;
}

static int note_times(const struct impairment *impairment, struct wishes *wishes, struct err *err)
{
    char delay[32], jitter[32];
    double mean, sd, jitter_s = (double)impairment->jitter_ns / NS_PER_S;
    int rc = find_moments(impairment, &mean, &sd, err);
    if (rc)
        return rc;
    units_format(2 * fmax(0, (double)impairment->delay_ns / NS_PER_S + mean * jitter_s), DIM_TIME, 6, delay,
                 sizeof delay);
    units_format(M_SQRT2 * sd * jitter_s, DIM_TIME, 4, jitter, sizeof jitter);
    if (!impairment->delay_ns)
        return wishes_note(wishes, err, "one way only: the way back is shaped at the other end");
    if (!impairment->jitter_ns)
        return wishes_note(wishes, err, "one way only: with the same at the other end the RTT is longer by %s", delay);
    return wishes_note(wishes, err,
                       "one way only: with the same at the other end the RTT is longer by %s, its jitter %s sd", delay,
                       jitter);
}

static int note_table(const struct impairment *impairment, struct wishes *wishes, struct err *err)
{
    double mean, sd;
    const char *file = impairment->table_file, *dot = strrchr(file, '.');
    int rc = find_moments(impairment, &mean, &sd, err);
    rc = rc ? rc
            : wishes_note(wishes, err, "%s: of --jitter, its mean is %.3g and its deviation %.3g (0 and 1: as asked)",
                          file, mean, sd);
    if (!rc && (!dot || strcmp(dot, ".dist") != 0))
        rc = wishes_note(wishes, err, "by hand, tc would look for %s.dist", file);
    return rc;
}

static int note_jitter(const struct impairment *impairment, struct wishes *wishes, struct err *err)
{
    int rc = 0;
    if (impairment->correlation > 0)
        rc = wishes_note(wishes, err, WISH_NOTE_CORRELATION);
    return rc || !impairment->table_file ? rc : note_table(impairment, wishes, err);
}

static int note_loss(const struct wish_arguments *arguments, const struct impairment *impairment, struct wishes *wishes,
                     struct err *err)
{
    bool ingress = arguments->texts[WISH_AT] && !strcmp(arguments->texts[WISH_AT], "ingress");
    if (impairment->loss.kind == LOSS_NONE || ingress || arguments->texts[WISH_GSO_OFF])
        return 0;
    return wishes_note(wishes, err, "%s", WISH_NOTE_GSO);
}

static int refuse_nothing(const struct wish_arguments *arguments, const struct impairment *impairment, struct err *err)
{
    bool nothing = does_nothing(impairment);
    if (nothing && !arguments->to_count)
        return err_set(err, EINVAL,
                       "nothing is asked for; give a SCENARIO, or flags like --to 10.2.0.0/16 --delay 10.65ms");
    if (nothing)
        return err_set(err, EINVAL,
                       "nothing to do: no delay, loss, duplication, corruption or rate; add e.g. --delay 10.65ms");
    if (!arguments->to_count)
        return err_set(err, EINVAL, "--to is missing; name the addresses at the other end, like --to 10.2.0.0/16");
    if (arguments->to_count > WISH_TO_MAX)
        return err_set(err, EINVAL, "--to: %zu are given; at most %d are possible, and shorter prefixes hold more",
                       arguments->to_count, WISH_TO_MAX);
    return 0;
}

int wishes_of_flags(const struct wish_arguments *arguments, const struct wish_lookups *lookups, struct wishes *wishes,
                    struct err *err)
{
    struct path path = {0};
    int rc = refuse_scenario_flags(arguments, err);
    rc = rc ? rc : wish_options_impairment(arguments, &path.impairment, err);
    rc = rc ? rc : refuse_nothing(arguments, &path.impairment, err);
    rc = rc ? rc : read_prefixes(arguments, &path, err);
    rc = rc ? rc : name_path(&path, err);
    rc = rc ? rc : wishes_add_path(arguments, lookups, &path, false, wishes, err);
    rc = rc ? rc : note_times(&path.impairment, wishes, err);
    rc = rc ? rc : note_jitter(&path.impairment, wishes, err);
    rc = rc ? rc : note_loss(arguments, &path.impairment, wishes, err);
    wish_path_free(&path);
    return rc;
}
