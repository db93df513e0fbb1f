/* The comparison for people: predicted beside measured, where they differ, the error over what was varied. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/compare.h"
#include "sim/report/table.h"
#include "sim/report/text.h"

enum { WIDTH_DEFAULT = 100, INDENT = 2, COLUMNS_MAX = 16, VARIES_SHOWN = 4 };

/* Where the lines go. */
struct page {
    FILE *out;
    bool colour;
    int width;
};

static const char *signed_time(double time_s, char *buffer, size_t size)
{
    char text[CELL_MAX];
    if (!isfinite(time_s))
        return "-";
    snprintf(buffer, size, "%s%s", time_s <= -1e-9 ? "-" : "", text_time(fabs(time_s), 4, text, sizeof text));
    return buffer;
}

static const char *difference(double time_s, char *buffer, size_t size)
{
    char text[CELL_MAX];
    if (!isfinite(time_s))
        return "-";
    const char *sign = time_s <= -1e-9 ? "-" : time_s >= 1e-9 ? "+" : "";
    snprintf(buffer, size, "%s%s", sign, text_time(fabs(time_s), 3, text, sizeof text));
    return buffer;
}

static const char *percent(double ratio, char *buffer, size_t size)
{
    if (!isfinite(ratio))
        return "-";
    snprintf(buffer, size, "%+.1f %%", fabs(ratio) < 5e-4 ? 0 : 100 * ratio); /* not "-0.0 %" */
    return buffer;
}

static double step_of(const struct strategy_result *strategy)
{
    return strategy != NULL ? strategy->step.step_s : NAN;
}

static const char *row_name(const struct compare_point *point, const struct compare_row *row)
{
    const struct strategy_result *some = row->predicted != NULL ? row->predicted : row->measured;
    return some != NULL ? point->lab.strategies[some->strategy].name : "?";
}

/* The value in KEY=VALUE number `index` of a point. */
static const char *value_of(const struct compare_point *point, size_t index)
{
    const char *equals = strchr(point->sets[index], '=');
    return equals != NULL ? equals + 1 : "";
}

/* ---- a table with a column for the strategy and one for each key that varies, then others */

struct columns {
    size_t count;
    bool right[COLUMNS_MAX];
    const char *cells[COLUMNS_MAX];
};

static void column(struct columns *columns, const char *cell, bool right)
{
    columns->right[columns->count] = right;
    columns->cells[columns->count++] = cell;
}

/* Keys that vary have columns where there is more than one point. */
static size_t varies_shown(const struct compare *compare)
{
    size_t count = compare->point_count > 1 ? compare->vary_count : 0;
    return count < VARIES_SHOWN ? count : VARIES_SHOWN;
}

static void head_columns(struct columns *columns, const struct compare *compare)
{
    *columns = (struct columns){0};
    column(columns, "strategy", false);
    for (size_t i = 0; i < varies_shown(compare); i++)
        column(columns, compare->varies[i].key, true);
}

static void row_columns(struct columns *columns, const struct compare *compare, const struct compare_point *point,
                        const struct compare_row *row)
{
    *columns = (struct columns){0};
    column(columns, row_name(point, row), false);
    for (size_t i = 0; i < varies_shown(compare); i++)
        column(columns, value_of(point, i), true);
}

/* Closer together, then names on lines of their own, where it is too wide. */
static void print_grid(struct grid *grid, const struct page *page)
{
    struct grid_style style = {.colour = page->colour, .gap = 2};
    if (grid_width(grid, &style) > page->width)
        style.gap = 1;
    style.name_alone = grid_width(grid, &style) > page->width;
    fputc('\n', page->out);
    grid_print(grid, page->out, &style);
    grid_free(grid);
}

/* ---- steps */

static void step_row(struct grid *grid, const struct compare *compare, const struct compare_point *point,
                     const struct compare_row *row)
{
    char predicted[CELL_MAX], measured[CELL_MAX], range[2 * CELL_MAX] = "-", error[CELL_MAX], full[CELL_MAX];
    char least[CELL_MAX], most[CELL_MAX], change[CELL_MAX], where[2 * CELL_MAX] = "-";
    struct columns columns;
    if (row->measured != NULL && isfinite(row->measured->measured.least_s))
        snprintf(range, sizeof range, "%s to %s", table_time(row->measured->measured.least_s, 4, least, sizeof least),
                 table_time(row->measured->measured.most_s, 4, most, sizeof most));
    if (row->arises < PART_COUNT)
        snprintf(
            where, sizeof where, "%s %s", part_name(row->arises),
            difference(row->predicted_part_s[row->arises] - row->measured_part_s[row->arises], change, sizeof change));
    row_columns(&columns, compare, point, row);
    column(&columns, table_time(step_of(row->predicted), 4, predicted, sizeof predicted), true);
    column(&columns, table_time(step_of(row->measured), 4, measured, sizeof measured), true);
    column(&columns, range, true);
    column(&columns, percent(row->error, error, sizeof error), true);
    column(&columns, where, false);
    column(&columns, table_time(step_of(row->full), 4, full, sizeof full), true);
    grid_row(grid, PAINT_PLAIN, columns.cells);
}

static void print_steps(const struct compare *compare, const struct page *page)
{
    struct columns head;
    head_columns(&head, compare);
    column(&head, "predicted", true);
    column(&head, "measured", true);
    column(&head, "range", true);
    column(&head, "error", true);
    column(&head, "arises in", false);
    column(&head, "full scale", true);
    struct grid *grid = grid_new(head.count, 1, head.right);
    grid_row(grid, PAINT_HEAD, head.cells);
    for (size_t i = 0; i < compare->point_count; i++)
        for (size_t j = 0; j < compare->points[i].row_count; j++)
            step_row(grid, compare, &compare->points[i], &compare->points[i].rows[j]);
    print_grid(grid, page);
}

/* ---- the parts of a step */

/* One point: a row for each part. */
static void part_rows(struct grid *grid, const struct compare_point *point, const struct compare_row *row)
{
    for (int part = 0; part < PART_COUNT; part++) {
        double predicted_s = row->predicted_part_s[part], measured_s = row->measured_part_s[part];
        char predicted[CELL_MAX], measured[CELL_MAX], change[CELL_MAX];
        const char *const cells[] = {part == 0 ? row_name(point, row) : "", part_name((enum part_of_step)part),
                                     signed_time(predicted_s, predicted, sizeof predicted),
                                     signed_time(measured_s, measured, sizeof measured),
                                     difference(predicted_s - measured_s, change, sizeof change)};
        grid_row(grid, PAINT_PLAIN, cells);
    }
}

static void print_split(const struct compare *compare, const struct page *page)
{
    static const bool right[] = {false, false, true, true, true};
    static const char *const heads[] = {"strategy", "of which", "predicted", "measured", "difference"};
    struct grid *grid = grid_new(5, 1, right);
    grid_row(grid, PAINT_HEAD, heads);
    for (size_t i = 0; i < compare->points[0].row_count; i++)
        part_rows(grid, &compare->points[0], &compare->points[0].rows[i]);
    print_grid(grid, page);
}

static void differences_row(struct grid *grid, const struct compare *compare, const struct compare_point *point,
                            const struct compare_row *row)
{
    char step[CELL_MAX], parts[PART_COUNT][CELL_MAX];
    struct columns columns;
    row_columns(&columns, compare, point, row);
    column(&columns, difference(step_of(row->predicted) - step_of(row->measured), step, sizeof step), true);
    for (int part = 0; part < PART_COUNT; part++)
        column(&columns, difference(row->predicted_part_s[part] - row->measured_part_s[part], parts[part], CELL_MAX),
               true);
    grid_row(grid, PAINT_PLAIN, columns.cells);
}

/* Several points: a row for each, with the differences only. */
static void print_differences(const struct compare *compare, const struct page *page)
{
    struct columns head;
    head_columns(&head, compare);
    column(&head, "difference", true);
    for (int part = 0; part < PART_COUNT; part++)
        column(&head, part_name((enum part_of_step)part), true);
    struct grid *grid = grid_new(head.count, 1, head.right);
    grid_row(grid, PAINT_HEAD, head.cells);
    for (size_t i = 0; i < compare->point_count; i++)
        for (size_t j = 0; j < compare->points[i].row_count; j++)
            differences_row(grid, compare, &compare->points[i], &compare->points[i].rows[j]);
    print_grid(grid, page);
}

/* ---- the error as a curve */

/* "5ms", or "5ms, 2" where two keys vary. */
static void point_label(const struct compare_point *point, char *label, size_t size)
{
    size_t used = 0;
    label[0] = '\0';
    for (size_t i = 0; i < point->set_count && used < size; i++)
        used += (size_t)snprintf(label + used, size - used, "%s%s", i > 0 ? ", " : "", value_of(point, i));
}

static const char *curve_title(const struct compare *compare, char *title, size_t size)
{
    size_t used = (size_t)snprintf(title, size, "error over ");
    for (size_t i = 0; i < compare->vary_count && used < size; i++)
        used += (size_t)snprintf(title + used, size - used, "%s%s", i > 0 ? ", " : "", compare->varies[i].key);
    return title;
}

/* The error of the strategy that is row `index` of the first point, at another. */
static double error_at(const struct compare *compare, size_t point, size_t index)
{
    const char *name = row_name(&compare->points[0], &compare->points[0].rows[index]);
    for (size_t i = 0; i < compare->points[point].row_count; i++)
        if (strcmp(row_name(&compare->points[point], &compare->points[point].rows[i]), name) == 0)
            return compare->points[point].rows[i].error;
    return NAN;
}

/* Points from .. from + count - 1 as columns. */
static struct grid *curve_grid(const struct compare *compare, size_t from, size_t count)
{
    char title[256], cells[COLUMNS_MAX][CELL_MAX];
    struct columns columns = {0};
    column(&columns, curve_title(compare, title, sizeof title), false);
    for (size_t i = 0; i < count; i++) {
        point_label(&compare->points[from + i], cells[i], CELL_MAX);
        column(&columns, cells[i], true);
    }
    struct grid *grid = grid_new(columns.count, 1, columns.right);
    grid_row(grid, PAINT_HEAD, columns.cells);
    for (size_t row = 0; row < compare->points[0].row_count; row++) {
        columns.cells[0] = row_name(&compare->points[0], &compare->points[0].rows[row]);
        for (size_t i = 0; i < count; i++)
            columns.cells[i + 1] = percent(error_at(compare, from + i, row), cells[i], CELL_MAX);
        grid_row(grid, PAINT_PLAIN, columns.cells);
    }
    return grid;
}

/* As many points side by side as fit, the others below. */
static void print_curve(const struct compare *compare, const struct page *page)
{
    for (size_t from = 0, count; from < compare->point_count; from += count) {
        count = compare->point_count - from < COLUMNS_MAX - 1 ? compare->point_count - from : COLUMNS_MAX - 1;
        struct grid *grid = curve_grid(compare, from, count);
        while (count > 1 && grid_width(grid, &(struct grid_style){.gap = 2}) > page->width) {
            grid_free(grid);
            grid = curve_grid(compare, from, --count);
        }
        print_grid(grid, page);
    }
}

/* ---- words */

static bool same_scale(const struct compare *compare)
{
    const struct compare_point *first = &compare->points[0];
    for (size_t i = 1; i < compare->point_count; i++) {
        const struct compare_point *point = &compare->points[i];
        if (point->scaled != first->scaled || point->lab.sites[0].nodes != first->lab.sites[0].nodes ||
            point->lab.scale * first->full.scale != first->lab.scale * point->full.scale)
            return false;
    }
    return true;
}

static void print_scale(const struct compare *compare, const struct page *page)
{
    const struct compare_point *point = &compare->points[0];
    char text[512], divided[96] = "";
    if (point->scaled)
        snprintf(divided, sizeof divided, ", bytes and rates divided by %ld", point->lab.scale / point->full.scale);
    int length =
        snprintf(text, sizeof text, "%s: predicted by the simulator and measured on real ranks in the lab, both at ",
                 point->full.name);
    size_t used = length > 0 && length < (int)sizeof text ? (size_t)length : 0;
    if (same_scale(compare))
        snprintf(text + used, sizeof text - used, "%s scale, %ld host%s a site%s.",
                 point->scaled ? "the lab's" : "the scenario's own", point->lab.sites[0].nodes,
                 point->lab.sites[0].nodes == 1 ? "" : "s", divided);
    else
        snprintf(text + used, sizeof text - used, "the lab's scale, which is not the same for all points.");
    text_wrap(page->out, text, page->width, INDENT);
}

static void print_words(const struct page *page)
{
    text_wrap(page->out,
              "Words: predicted, measured = a step at this scale, measured is the median, range the shortest and the "
              "longest of its steps; error = predicted / measured - 1; difference = predicted - measured; arises in = "
              "the part with the largest difference, if that is 0.1 % of the step; full scale = predicted for the "
              "scenario as it is.",
              page->width, INDENT);
    text_wrap(page->out,
              "compute = of the busiest rank; slow start = what connections lose until their windows are open; "
              "bandwidth = what the busiest WAN link needs for its bytes; wait = the step less those three, negative "
              "where communication hides behind computation; - = not known.",
              page->width, INDENT);
}

/* Is it among the notes of an earlier point? */
static bool said_before(const struct compare *compare, size_t point, size_t side, const char *note)
{
    for (size_t i = 0; i < point; i++) {
        const struct result *results[] = {&compare->points[i].predicted, &compare->points[i].measured};
        for (size_t j = 0; j < results[side]->note_count; j++)
            if (strcmp(results[side]->notes[j], note) == 0)
                return true;
    }
    return false;
}

static void print_note(const char *side, const char *note, const struct page *page)
{
    char *text = NULL;
    if (asprintf(&text, "- %s: %s", side, note) < 0)
        return;
    text_wrap(page->out, text, page->width, INDENT);
    free(text);
}

static void print_notes(const struct compare *compare, const struct page *page)
{
    static const char *const sides[] = {"predicted", "measured"};
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < compare->point_count; i++) {
            const struct result *results[] = {&compare->points[i].predicted, &compare->points[i].measured};
            for (size_t j = 0; j < results[side]->note_count; j++)
                if (!said_before(compare, i, side, results[side]->notes[j]))
                    print_note(sides[side], results[side]->notes[j], page);
        }
}

static void print_summary(const struct compare *compare, const struct compare_summary *summary, const struct page *page)
{
    char text[512], worst[CELL_MAX], label[CELL_MAX];
    const struct compare_point *point = &compare->points[summary->worst_point];
    if (summary->count == 0) {
        text_wrap(page->out, "Nothing was both predicted and measured.", page->width, INDENT);
        return;
    }
    point_label(point, label, sizeof label);
    bool several = compare->point_count > 1;
    snprintf(text, sizeof text, "Error: median %.1f %%, worst %s (%s%s%s); %zu compared.", 100 * summary->median_error,
             percent(summary->worst_error, worst, sizeof worst), row_name(point, summary->worst_row),
             several ? " at " : "", several ? label : "", summary->count);
    text_wrap(page->out, text, page->width, INDENT);
}

void compare_print(const struct compare *compare, const struct compare_summary *summary, FILE *out, bool colour,
                   int width)
{
    const struct page page = {.out = out, .colour = colour, .width = width > 0 ? width : WIDTH_DEFAULT};
    print_scale(compare, &page);
    print_steps(compare, &page);
    if (compare->point_count == 1) {
        print_split(compare, &page);
    } else {
        print_differences(compare, &page);
        print_curve(compare, &page);
    }
    fputc('\n', out);
    print_words(&page);
    print_notes(compare, &page);
    fputc('\n', out);
    print_summary(compare, summary, &page);
}
