/* The judgement as a table and as JSON. */
#include <math.h>
#include <string.h>

#include "configs/units.h"
#include "emu/verify/judge.h"

enum { CELL_BYTES = 96, DIGITS = 5, COLUMNS = 3, WHAT_WIDTH = 19 };

static const struct {
    enum dimension dimension; /* DIM_COUNT: packets */
    const char *json;
} units[CHECK_UNIT_COUNT] = {[CHECK_TIME] = {DIM_TIME, "s"},
                             [CHECK_RATIO] = {DIM_RATIO, "1"},
                             [CHECK_RATE] = {DIM_RATE, "bit/s"},
                             [CHECK_PACKETS] = {DIM_COUNT, "packets"}};

static char *figure(const struct check *check, double value, int digits, char *text, size_t size)
{
    if (isnan(value))
        snprintf(text, size, "-");
    else if (units[check->unit].dimension == DIM_COUNT)
        snprintf(text, size, "%.3g packets", value);
    else
        units_format(value, units[check->unit].dimension, digits, text, size);
    return text;
}

static void tolerance(const struct check *check, char cell[CELL_BYTES])
{
    char low[32], high[32];
    const char *remark = check->remark;
    *cell = '\0';
    if (check->judged && check->of_sample)
        snprintf(cell, CELL_BYTES, "99 %%: %s to %s%s%s", figure(check, check->low, 3, low, sizeof low),
                 figure(check, check->high, 3, high, sizeof high), remark ? ", " : "", remark ? remark : "");
    else if (check->judged && isnan(check->requested))
        snprintf(cell, CELL_BYTES, "at most %s", figure(check, check->high, DIGITS, high, sizeof high));
    else if (check->judged && check->high <= check->low)
        snprintf(cell, CELL_BYTES, "none");
    else if (check->judged)
        snprintf(cell, CELL_BYTES, "+- %s", figure(check, check->high - check->requested, 3, high, sizeof high));
    else if (remark)
        snprintf(cell, CELL_BYTES, "%s", remark);
}

static const char *verdict(const struct check *check)
{
    return !check->judged ? "" : check->good ? "ok" : "OUT";
}

/* requested, measured, tolerance */
static void fill(const struct check *check, char cells[COLUMNS][CELL_BYTES])
{
    figure(check, check->requested, DIGITS, cells[0], CELL_BYTES);
    figure(check, check->measured, DIGITS, cells[1], CELL_BYTES);
    tolerance(check, cells[2]);
}

static int width_of(const char *text, int width)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void print_row(FILE *out, const struct check *check, const int widths[COLUMNS], bool colour)
{
    char cells[COLUMNS][CELL_BYTES];
    const char *word = verdict(check);
    const char *paint = !colour || !*word ? "" : check->good ? "\033[32m" : "\033[1;31m";
    fill(check, cells);
    fprintf(out, "%-*s  %*s  %*s", WHAT_WIDTH, check->what, widths[0], cells[0], widths[1], cells[1]);
    if (*word)
        fprintf(out, "  %-*s  %s%s%s\n", widths[2], cells[2], paint, word, *paint ? "\033[0m" : "");
    else
        fprintf(out, "%s%s\n", *cells[2] ? "  " : "", cells[2]);
}

void judgement_print(FILE *out, const struct judgement *judgement, bool colour)
{
    static const char *const heads[COLUMNS] = {"requested", "measured", "tolerance"};
    int widths[COLUMNS];
    for (int column = 0; column < COLUMNS; column++)
        widths[column] = width_of(heads[column], 0);
    for (size_t i = 0; i < judgement->count; i++) {
        char cells[COLUMNS][CELL_BYTES];
        fill(&judgement->checks[i], cells);
        for (int column = 0; column < COLUMNS; column++)
            if (column < 2 || judgement->checks[i].judged)
                widths[column] = width_of(cells[column], widths[column]);
    }
    fprintf(out, "%-*s  %*s  %*s  %s\n", WHAT_WIDTH, "", widths[0], heads[0], widths[1], heads[1], heads[2]);
    for (size_t i = 0; i < judgement->count; i++)
        print_row(out, &judgement->checks[i], widths, colour);
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *judgement_json(const struct judgement *judgement)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < judgement->count; i++) {
        const struct check *check = &judgement->checks[i];
        json_t *line = json_pack("{s:s, s:s, s:o, s:f, s:b, s:b, s:s?}", "what", check->what, "unit",
                                 units[check->unit].json, "requested", number_or_null(check->requested), "measured",
                                 check->measured, "judged", check->judged, "ok", check->good, "remark", check->remark);
        if (line && check->judged)
            json_object_update_new(line, json_pack("{s:s, s:f, s:f}", "range_of",
                                                   check->of_sample ? "sample, 99 %" : "tolerance", "low", check->low,
                                                   "high", check->high));
        json_array_append_new(list, line);
    }
    return list;
}

static json_t *loss_json(const struct direction_loss *loss)
{
    return json_pack("{s:I, s:I, s:f, s:f, s:I, s:I, s:I}", "sent", (json_int_t)loss->sent, "lost",
                     (json_int_t)loss->lost, "ratio_low_99", loss->low, "ratio_high_99", loss->high, "runs",
                     (json_int_t)loss->runs, "reordered", (json_int_t)loss->reordered, "duplicated",
                     (json_int_t)loss->duplicated);
}

static json_t *goodput_json(const struct goodput *goodput)
{
    if (!goodput->known)
        return json_null();
    return json_pack("{s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "direction",
                     goodput->direction == OUT ? "out" : "back", "bit_per_s", goodput->bit_per_s, "time_s",
                     goodput->time_s, "bytes", (json_int_t)goodput->bytes, "mss_bytes", (json_int_t)goodput->mss_bytes,
                     "mtu_bytes", (json_int_t)goodput->mtu_bytes, "sndbuf_bytes", (json_int_t)goodput->sndbuf_bytes,
                     "rcvbuf_bytes", (json_int_t)goodput->rcvbuf_bytes, "retransmits", (json_int_t)goodput->retransmits,
                     "congestion_control", goodput->congestion);
}

static json_t *one_way_json(const struct measured *measured, int direction)
{
    if (!measured->one_way_known)
        return json_null();
    return json_pack("{s:f, s:f}", "mean_s", measured->one_way_mean_s[direction], "sd_s",
                     measured->one_way_sd_s[direction]);
}

json_t *measured_json(const struct measured *measured)
{
    return json_pack("{s:I, s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f}, s:{s:o, s:o}, s:{s:o, s:o}, s:o}", "answers",
                     (json_int_t)measured->answers, "rtt", "mean_s", measured->rtt_mean_s, "sd_s", measured->rtt_sd_s,
                     "min_s", measured->rtt_min_s, "p50_s", measured->rtt_p50_s, "p90_s", measured->rtt_p90_s, "p99_s",
                     measured->rtt_p99_s, "max_s", measured->rtt_max_s, "one_way", "out", one_way_json(measured, OUT),
                     "back", one_way_json(measured, BACK), "loss", "out", loss_json(&measured->loss[OUT]), "back",
                     loss_json(&measured->loss[BACK]), "goodput", goodput_json(&measured->goodput));
}
