/* The table: one row per strategy under the one-site run it is measured against. */
#include "sim/report/table.h"

#include <math.h>
#include <string.h>

#include "configs/units.h"
#include "sim/report/explain.h"
#include "sim/report/text.h"

enum { FIELDS_MAX = 16, WIDTH_DEFAULT = 100 };

struct row {
    const char *name;
    const struct step_result *step;
    const struct strategy_result *strategy; /* NULL in a one-site row */
};

const char *table_time(double time_s, int digits, char *buffer, size_t size)
{
    return isfinite(time_s) ? text_time(time_s, digits, buffer, size) : "-";
}

const char *table_quantity(double value, enum dimension dimension, char *buffer, size_t size)
{
    return isfinite(value) ? units_format(value, dimension, 3, buffer, size) : "-";
}

const char *table_load(const struct wan_result *wan, int decimals, char *buffer, size_t size)
{
    char mean[16] = "-", peak[16] = "-";
    if (!isfinite(wan->utilisation) && !isfinite(wan->peak_utilisation))
        return "-";
    if (isfinite(wan->utilisation))
        snprintf(mean, sizeof mean, "%.*f", decimals, 100 * wan->utilisation);
    if (isfinite(wan->peak_utilisation))
        snprintf(peak, sizeof peak, "%.*f", decimals, 100 * wan->peak_utilisation);
    snprintf(buffer, size, "%s/%s %%", mean, peak);
    return buffer;
}

typedef const char *field_format(const struct row *row, char *buffer, size_t size);

static const char *name_cell(const struct row *row, char *buffer, size_t size)
{
    (void)buffer;
    (void)size;
    return row->name;
}

static const char *step_cell(const struct row *row, char *buffer, size_t size)
{
    return table_time(row->step->step_s, 4, buffer, size);
}

static const char *tokens_cell(const struct row *row, char *buffer, size_t size)
{
    return isfinite(row->step->tokens_per_s) ? text_count(row->step->tokens_per_s, buffer, size) : "-";
}

static const char *mfu_cell(const struct row *row, char *buffer, size_t size)
{
    if (!isfinite(row->step->mfu[FLOPS_GQA]) || !isfinite(row->step->mfu[FLOPS_MHA]))
        return "-";
    snprintf(buffer, size, "%.1f/%.1f %%", 100 * row->step->mfu[FLOPS_GQA], 100 * row->step->mfu[FLOPS_MHA]);
    return buffer;
}

/* How it was found, and from how many messages or, measured, steps. */
static const char *simulated_cell(const struct row *row, char *buffer, size_t size)
{
    char count[16];
    bool measured = row->strategy != NULL && row->step->fidelity == FIDELITY_MEASURED;
    double runs = measured ? row->strategy->measured.steps : (double)row->step->messages;
    snprintf(buffer, size, "%s %s", fidelity_name(row->step->fidelity), text_count(runs, count, sizeof count));
    return buffer;
}

/* The same under a name. */
static const char *detail_cell(const struct row *row, char *buffer, size_t size)
{
    char text[CELL_MAX];
    snprintf(buffer, size, "    %s", simulated_cell(row, text, sizeof text));
    return buffer;
}

/* The cells below exist for strategies only; a one-site row leaves them empty. */

static const char *floor_cell(const struct row *row, char *buffer, size_t size)
{
    return row->strategy == NULL ? "" : table_time(row->strategy->floor_s, 4, buffer, size);
}

static const char *efficiency_cell(const struct row *row, char *buffer, size_t size)
{
    if (row->strategy == NULL)
        return "";
    if (!isfinite(row->strategy->efficiency))
        return "-";
    snprintf(buffer, size, "%.1f %%", 100 * row->strategy->efficiency);
    return buffer;
}

static const char *exposed_cell(const struct row *row, char *buffer, size_t size)
{
    return row->strategy == NULL ? "" : table_time(row->strategy->exposed_comm_s, 3, buffer, size);
}

static const char *slack_cell(const struct row *row, char *buffer, size_t size)
{
    return row->strategy == NULL ? "" : table_time(row->strategy->slack_s, 3, buffer, size);
}

static const char *bound_cell(const struct row *row, char *buffer, size_t size)
{
    (void)buffer;
    (void)size;
    if (row->strategy == NULL)
        return "";
    return row->strategy->bound_by < BOUND_COUNT ? bound_name(row->strategy->bound_by) : "-";
}

/* By load, or by bytes where the load is not known. */
static bool busier(const struct wan_result *a, const struct wan_result *b)
{
    if (isfinite(a->utilisation) && isfinite(b->utilisation))
        return a->utilisation > b->utilisation;
    return a->bytes > b->bytes;
}

static const struct wan_result *busiest(const struct row *row)
{
    if (row->strategy == NULL || row->strategy->wan_count == 0)
        return NULL;
    const struct wan_result *busiest = row->strategy->wan;
    for (size_t i = 1; i < row->strategy->wan_count; i++) {
        if (busier(&row->strategy->wan[i], busiest))
            busiest = &row->strategy->wan[i];
    }
    return busiest;
}

static const char *wan_bytes_cell(const struct row *row, char *buffer, size_t size)
{
    const struct wan_result *wan = busiest(row);
    return wan == NULL ? "" : table_quantity(wan->bytes, DIM_BYTES, buffer, size);
}

static const char *wan_load_cell(const struct row *row, char *buffer, size_t size)
{
    const struct wan_result *wan = busiest(row);
    return wan == NULL ? "" : table_load(wan, 0, buffer, size);
}

static const char *memory_cell(const struct row *row, char *buffer, size_t size)
{
    return row->strategy == NULL ? "" : table_quantity(row->strategy->memory.total, DIM_BYTES, buffer, size);
}

static const char *fits_cell(const struct row *row, char *buffer, size_t size)
{
    (void)buffer;
    (void)size;
    if (row->strategy == NULL)
        return "";
    return row->strategy->memory.out_of_memory ? "TOO MUCH" : "fits";
}

enum field {
    NAME,
    STEP,
    FLOOR,
    BOUND,
    EFFICIENCY,
    EXPOSED,
    SLACK,
    TOKENS,
    MFU,
    WAN_BYTES,
    WAN_LOAD,
    MEMORY,
    FITS,
    SIMULATED,
    DETAIL
};

static const struct {
    const char *head;
    bool right;
    field_format *format;
} fields[] = {
    [NAME] = {"strategy", false, name_cell},
    [STEP] = {"step", true, step_cell},
    [FLOOR] = {"floor", true, floor_cell},
    [BOUND] = {"bound by", false, bound_cell},
    [EFFICIENCY] = {"efficiency", true, efficiency_cell},
    [EXPOSED] = {"exposed", true, exposed_cell},
    [SLACK] = {"slack", true, slack_cell},
    [TOKENS] = {"tokens/s", true, tokens_cell},
    [MFU] = {"MFU gqa/mha", true, mfu_cell},
    [WAN_BYTES] = {"WAN bytes", true, wan_bytes_cell},
    [WAN_LOAD] = {"mean/peak", true, wan_load_cell},
    [MEMORY] = {"GPU memory", true, memory_cell},
    [FITS] = {"", false, fits_cell},
    [SIMULATED] = {"messages", false, simulated_cell},
    [DETAIL] = {"    messages", false, detail_cell},
};

/* A layout is the fields of the first line of a row, then, if there are two, those of the second. */
struct layout {
    size_t columns, lines;
    enum field fields[FIELDS_MAX];
};

static const struct layout wide = {
    .columns = 14,
    .lines = 1,
    .fields = {NAME, STEP, FLOOR, BOUND, EFFICIENCY, EXPOSED, SLACK, TOKENS, MFU, WAN_BYTES, WAN_LOAD, MEMORY, FITS,
               SIMULATED},
};

static const struct layout narrow = {
    .columns = 7,
    .lines = 2,
    .fields = {NAME, STEP, EFFICIENCY, EXPOSED, TOKENS, WAN_BYTES, MEMORY, /* second line */
               DETAIL, FLOOR, BOUND, SLACK, MFU, WAN_LOAD, FITS},
};

static struct grid *layout_grid(const struct layout *layout)
{
    bool right[FIELDS_MAX];
    const char *heads[FIELDS_MAX];
    for (size_t i = 0; i < layout->columns * layout->lines; i++)
        heads[i] = fields[layout->fields[i]].head;
    for (size_t column = 0; column < layout->columns; column++)
        right[column] = fields[layout->fields[column]].right;
    struct grid *grid = grid_new(layout->columns, layout->lines, right);
    grid_row(grid, PAINT_HEAD, heads);
    return grid;
}

static void layout_row(const struct layout *layout, struct grid *grid, enum paint paint, const struct row *row)
{
    char buffers[FIELDS_MAX][CELL_MAX];
    const char *cells[FIELDS_MAX];
    for (size_t i = 0; i < layout->columns * layout->lines; i++)
        cells[i] = fields[layout->fields[i]].format(row, buffers[i], CELL_MAX);
    grid_row(grid, paint, cells);
}

static bool has_baseline(const struct strategy_result *strategy)
{
    return isfinite(strategy->baseline.step_s);
}

/* One-site runs that differ by less than can be read off the table are one row. */
static bool same_baseline(const struct strategy_result *a, const struct strategy_result *b)
{
    if (!has_baseline(a) || !has_baseline(b))
        return has_baseline(a) == has_baseline(b);
    return fabs(a->baseline.step_s - b->baseline.step_s) <= 1e-4 * a->baseline.step_s;
}

static bool first_of_group(const struct result *result, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (same_baseline(&result->strategies[i], &result->strategies[index]))
            return false;
    }
    return true;
}

static void strategy_row(const struct result *result, const struct layout *layout, struct grid *grid, size_t index)
{
    const struct strategy_result *strategy = &result->strategies[index];
    char name[256];
    snprintf(name, sizeof name, "  %s", result->scenario->strategies[strategy->strategy].name);
    enum paint paint = strategy == result_best(result) ? PAINT_GOOD : PAINT_PLAIN;
    struct row row = {.name = name, .step = &strategy->step, .strategy = strategy};
    layout_row(layout, grid, strategy->memory.out_of_memory ? PAINT_BAD : paint, &row);
}

static struct grid *strategies_grid(const struct result *result, const struct layout *layout)
{
    struct grid *grid = layout_grid(layout);
    for (size_t group = 0; group < result->strategy_count; group++) {
        const struct strategy_result *leader = &result->strategies[group];
        if (!first_of_group(result, group))
            continue;
        struct row row = {.name = "one site", .step = &leader->baseline};
        if (has_baseline(leader))
            layout_row(layout, grid, PAINT_DIM, &row);
        for (size_t i = group; i < result->strategy_count; i++) {
            if (same_baseline(leader, &result->strategies[i]))
                strategy_row(result, layout, grid, i);
        }
    }
    return grid;
}

/* The first of: everything on one line, two lines a row, the same closer together, and with names on their own line. */
static void print_strategies(const struct result *result, FILE *out, bool colour, int width)
{
    const struct {
        const struct layout *layout;
        struct grid_style style;
    } choices[] = {
        {&wide, {.colour = colour, .gap = 2}},
        {&narrow, {.colour = colour, .gap = 2}},
        {&narrow, {.colour = colour, .gap = 1}},
        {&narrow, {.colour = colour, .gap = 1, .name_alone = true}},
    };
    const size_t last = sizeof choices / sizeof *choices - 1;
    for (size_t i = 0; i <= last; i++) {
        struct grid *grid = strategies_grid(result, choices[i].layout);
        bool fits = grid_width(grid, &choices[i].style) <= width;
        if (fits || i == last)
            grid_print(grid, out, &choices[i].style);
        grid_free(grid);
        if (fits)
            return;
    }
}

void result_print(const struct result *result, FILE *out, bool colour, int width)
{
    width = width > 0 ? width : WIDTH_DEFAULT;
    explain_question(result, out, width);
    fputc('\n', out);
    print_strategies(result, out, colour, width);
    table_links(result, out, colour);
    table_references(result, out, colour, width);
    fputc('\n', out);
    explain_words(result, out, width);
    explain_calibration(result, out, width);
    explain_measurements(result, out, width);
    explain_other_reading(result, out, width);
    explain_notes(result, out, width);
    explain_memory(result, out, width);
    fputc('\n', out);
    explain_best(result, out, width);
}
