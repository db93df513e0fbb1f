/* The scenario's references beside what was predicted or measured. */
#include <math.h>
#include <string.h>

#include "sim/report/explain.h"
#include "sim/report/reference.h"
#include "sim/report/table.h"
#include "sim/report/text.h"

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
    const char *found = result_measured(result) ? "measured" : "predicted";
    const char *const heads[] = {"reference", found, "reported", "error", "source"};
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
void table_references(const struct result *result, FILE *out, bool colour, int width)
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
