/* What crosses each WAN link, by strategy. */
#include <math.h>

#include "sim/report/table.h"
#include "sim/report/text.h"

static bool alike(double a, double b, double tolerance)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) < tolerance;
}

/* Two directions of a link are one line where they carry the same. */
static bool mirrors(const struct wan_result *a, const struct wan_result *b)
{
    return a->from == b->to && a->to == b->from && fabs(a->bytes - b->bytes) <= 1e-3 * a->bytes &&
           alike(a->utilisation, b->utilisation, 5e-4) && alike(a->peak_utilisation, b->peak_utilisation, 5e-3);
}

static void link_row(const struct result *result, struct grid *grid, const struct strategy_result *strategy,
                     const struct wan_result *wan, bool both)
{
    char route[256], bytes[CELL_MAX], load[CELL_MAX], rate[CELL_MAX];
    const struct scenario *scenario = result->scenario;
    snprintf(route, sizeof route, "%s %s %s", scenario->sites[wan->from].name, both ? "<->" : "->",
             scenario->sites[wan->to].name);
    const char *const cells[] = {scenario->strategies[strategy->strategy].name, route,
                                 table_quantity(wan->bytes, DIM_BYTES, bytes, sizeof bytes),
                                 table_load(wan, 1, load, sizeof load),
                                 table_quantity(wan->rate_per_gpu_bit_per_s, DIM_RATE, rate, sizeof rate)};
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

void table_links(const struct result *result, FILE *out, bool colour)
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
