/* The table: one row per strategy under the one-site run it is measured against. */
#include "sim/report/result.h"

#include <math.h>
#include <string.h>

#include "configs/units.h"
#include "sim/report/explain.h"
#include "sim/report/reference.h"
#include "sim/report/text.h"

enum { CELL_MAX = 48, FIELDS_MAX = 16, WIDTH_DEFAULT = 100 };

struct row {
    const char *name;
    const struct step_result *step;
    const struct strategy_result *strategy; /* NULL in a one-site row */
};

typedef const char *field_format(const struct row *row, char *buffer, size_t size);

static const char *name_cell(const struct row *row, char *buffer, size_t size)
{
    (void)buffer;
    (void)size;
    return row->name;
}

static const char *step_cell(const struct row *row, char *buffer, size_t size)
{
    return text_time(row->step->step_s, 4, buffer, size);
}

static const char *tokens_cell(const struct row *row, char *buffer, size_t size)
{
    return text_count(row->step->tokens_per_s, buffer, size);
}

static const char *mfu_cell(const struct row *row, char *buffer, size_t size)
{
    snprintf(buffer, size, "%.1f/%.1f %%", 100 * row->step->mfu[FLOPS_GQA], 100 * row->step->mfu[FLOPS_MHA]);
    return buffer;
}

static const char *simulated_cell(const struct row *row, char *buffer, size_t size)
{
    char count[16];
    snprintf(buffer, size, "%s %s", fidelity_name(row->step->fidelity),
             text_count((double)row->step->messages, count, sizeof count));
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
    return row->strategy == NULL ? "" : text_time(row->strategy->floor_s, 4, buffer, size);
}

static const char *efficiency_cell(const struct row *row, char *buffer, size_t size)
{
    if (row->strategy == NULL)
        return "";
    snprintf(buffer, size, "%.1f %%", 100 * row->strategy->efficiency);
    return buffer;
}

static const char *exposed_cell(const struct row *row, char *buffer, size_t size)
{
    return row->strategy == NULL ? "" : text_time(row->strategy->exposed_comm_s, 3, buffer, size);
}

static const char *slack_cell(const struct row *row, char *buffer, size_t size)
{
    if (row->strategy == NULL)
        return "";
    if (!isfinite(row->strategy->slack_s))
        return "-";
    return text_time(row->strategy->slack_s, 3, buffer, size);
}

static const char *bound_cell(const struct row *row, char *buffer, size_t size)
{
    (void)buffer;
    (void)size;
    return row->strategy == NULL ? "" : bound_name(row->strategy->bound_by);
}

static const struct wan_result *busiest(const struct row *row)
{
    if (row->strategy == NULL || row->strategy->wan_count == 0)
        return NULL;
    const struct wan_result *busiest = row->strategy->wan;
    for (size_t i = 1; i < row->strategy->wan_count; i++) {
        if (row->strategy->wan[i].utilisation > busiest->utilisation)
            busiest = &row->strategy->wan[i];
    }
    return busiest;
}

static const char *wan_bytes_cell(const struct row *row, char *buffer, size_t size)
{
    const struct wan_result *wan = busiest(row);
    return wan == NULL ? "" : units_format(wan->bytes, DIM_BYTES, 3, buffer, size);
}

static const char *wan_load_cell(const struct row *row, char *buffer, size_t size)
{
    const struct wan_result *wan = busiest(row);
    if (wan == NULL)
        return "";
    snprintf(buffer, size, "%.0f/%.0f %%", 100 * wan->utilisation, 100 * wan->peak_utilisation);
    return buffer;
}

static const char *memory_cell(const struct row *row, char *buffer, size_t size)
{
    return row->strategy == NULL ? "" : units_format(row->strategy->memory.total, DIM_BYTES, 3, buffer, size);
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

/* One-site runs that differ by less than can be read off the table are one row. */
static bool same_baseline(const struct strategy_result *a, const struct strategy_result *b)
{
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

/* Two directions of a link are one line where they carry the same. */
static bool mirrors(const struct wan_result *a, const struct wan_result *b)
{
    return a->from == b->to && a->to == b->from && fabs(a->bytes - b->bytes) <= 1e-3 * a->bytes &&
           fabs(a->utilisation - b->utilisation) < 5e-4 && fabs(a->peak_utilisation - b->peak_utilisation) < 5e-3;
}

static void link_row(const struct result *result, struct grid *grid, const struct strategy_result *strategy,
                     const struct wan_result *wan, bool both)
{
    char route[256], bytes[CELL_MAX], load[CELL_MAX], rate[CELL_MAX];
    const struct scenario *scenario = result->scenario;
    snprintf(route, sizeof route, "%s %s %s", scenario->sites[wan->from].name, both ? "<->" : "->",
             scenario->sites[wan->to].name);
    snprintf(load, sizeof load, "%.1f/%.1f %%", 100 * wan->utilisation, 100 * wan->peak_utilisation);
    const char *const cells[] = {scenario->strategies[strategy->strategy].name, route,
                                 units_format(wan->bytes, DIM_BYTES, 3, bytes, sizeof bytes), load,
                                 units_format(wan->rate_per_gpu_bit_per_s, DIM_RATE, 3, rate, sizeof rate)};
    grid_row(grid, PAINT_PLAIN, cells);
}

static void link_rows(const struct result *result, struct grid *grid, const struct strategy_result *strategy)
{
    const struct wan_result *wan = strategy->wan;
    for (size_t i = 0; i < strategy->wan_count; i++) {
        bool printed = false;
        for (size_t j = 0; j < i && !printed; j++)
            printed = mirrors(&wan[j], &wan[i]);
        bool both = false;
        for (size_t j = i + 1; j < strategy->wan_count && !both; j++)
            both = mirrors(&wan[i], &wan[j]);
        if (!printed)
            link_row(result, grid, strategy, &wan[i], both);
    }
}

static void print_links(const struct result *result, FILE *out, bool colour)
{
    static const bool right[] = {false, false, true, true, true};
    static const char *const heads[] = {"WAN use of", "link", "bytes a step", "mean/peak", "rate per GPU"};
    if (result->scenario->wan_count == 0)
        return;
    struct grid *grid = grid_new(5, 1, right);
    grid_row(grid, PAINT_HEAD, heads);
    for (size_t i = 0; i < result->strategy_count; i++)
        link_rows(result, grid, &result->strategies[i]);
    fputc('\n', out);
    grid_print(grid, out, &(struct grid_style){.colour = colour, .gap = 2});
    grid_free(grid);
}

static const char *metric_cell(double value, const char *metric, char *buffer, size_t size)
{
    if (!isfinite(value))
        return "unknown";
    if (strcmp(metric, "step") == 0)
        return text_time(value, 4, buffer, size);
    if (strcmp(metric, "tokens_per_s") == 0)
        return text_count(value, buffer, size);
    snprintf(buffer, size, "%.1f %%", 100 * value);
    return buffer;
}

static void reference_row(const struct result *result, struct grid *grid, const struct comparison *comparison)
{
    const struct reference *reference = comparison->reference;
    char name[256], predicted[CELL_MAX], value[CELL_MAX], error[CELL_MAX];
    bool has_convention = comparison->convention != FLOPS_UNSTATED;
    snprintf(name, sizeof name, "%s %s%s%s", result->scenario->strategies[reference->strategy].name,
             strcmp(reference->metric, "tokens_per_s") == 0 ? "tokens/s" : reference->metric,
             has_convention ? ", read as " : "", has_convention ? convention_name(comparison->convention) : "");
    double percent = fabs(comparison->error) < 5e-4 ? 0 : 100 * comparison->error; /* not "-0.0 %" */
    snprintf(error, sizeof error, "%+.1f %%", percent);
    const char *const cells[] = {name, metric_cell(comparison->predicted, reference->metric, predicted, CELL_MAX),
                                 metric_cell(reference->value, reference->metric, value, CELL_MAX),
                                 isfinite(comparison->error) ? error : "-", reference->source};
    grid_row(grid, PAINT_PLAIN, cells);
}

static struct grid *references_grid(const struct result *result, size_t columns)
{
    static const bool right[] = {false, true, true, true, false};
    static const char *const heads[] = {"reference", "predicted", "reported", "error", "source"};
    struct grid *grid = grid_new(columns, 1, right);
    grid_row(grid, PAINT_HEAD, heads);
    for (size_t i = 0; i < result->scenario->reference_count; i++) {
        const struct reference *reference = &result->scenario->references[i];
        for (size_t reading = 0; reading < reference_readings(reference); reading++) {
            struct comparison comparison = reference_compare(result, reference, reading);
            reference_row(result, grid, &comparison);
        }
    }
    return grid;
}

/* Sources follow below the rows where they would make them too long. */
static void print_references(const struct result *result, FILE *out, bool colour, int width)
{
    if (result->scenario->reference_count == 0)
        return;
    const struct grid_style style = {.colour = colour, .gap = 2};
    struct grid *grid = references_grid(result, 5);
    bool fits = grid_width(grid, &style) <= width;
    if (!fits) {
        grid_free(grid);
        grid = references_grid(result, 4);
    }
    fputc('\n', out);
    grid_print(grid, out, &style);
    grid_free(grid);
    if (!fits)
        explain_sources(result, out, width);
}

void result_print(const struct result *result, FILE *out, bool colour, int width)
{
    width = width > 0 ? width : WIDTH_DEFAULT;
    explain_question(result, out, width);
    fputc('\n', out);
    print_strategies(result, out, colour, width);
    print_links(result, out, colour);
    print_references(result, out, colour, width);
    fputc('\n', out);
    explain_words(out, width);
    explain_calibration(result, out, width);
    explain_other_reading(result, out, width);
    explain_notes(result, out, width);
    explain_memory(result, out, width);
    fputc('\n', out);
    explain_best(result, out, width);
}
