#include "sim/report/text.h"

#include <stdlib.h>
#include <string.h>

enum { GRID_COLUMNS_MAX = 16 };

struct grid_line {
    enum paint paint;
    char **cells; /* columns * lines */
};

struct grid {
    size_t columns, lines;
    bool right[GRID_COLUMNS_MAX];
    size_t count, capacity;
    struct grid_line *rows;
    bool failed;
};

struct grid *grid_new(size_t columns, size_t lines, const bool *right)
{
    struct grid *grid = columns <= GRID_COLUMNS_MAX ? calloc(1, sizeof *grid) : NULL;
    if (grid == NULL)
        return NULL;
    grid->columns = columns;
    grid->lines = lines;
    memcpy(grid->right, right, columns * sizeof *right);
    return grid;
}

static void free_cells(char **cells, size_t count)
{
    for (size_t i = 0; cells != NULL && i < count; i++)
        free(cells[i]);
    free(cells);
}

void grid_free(struct grid *grid)
{
    if (grid == NULL)
        return;
    for (size_t i = 0; i < grid->count; i++)
        free_cells(grid->rows[i].cells, grid->columns * grid->lines);
    free(grid->rows);
    free(grid);
}

static bool grow(struct grid *grid)
{
    if (grid->count < grid->capacity)
        return true;
    size_t capacity = grid->capacity == 0 ? 16 : 2 * grid->capacity;
    struct grid_line *rows = reallocarray(grid->rows, capacity, sizeof *rows);
    if (rows == NULL)
        return false;
    grid->rows = rows;
    grid->capacity = capacity;
    return true;
}

static char **copy_cells(const char *const *cells, size_t count)
{
    char **copy = calloc(count, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(cells[i]);
        if (copy[i] == NULL) {
            free_cells(copy, count);
            return NULL;
        }
    }
    return copy;
}

void grid_row(struct grid *grid, enum paint paint, const char *const *cells)
{
    if (grid == NULL)
        return;
    char **copy = grow(grid) ? copy_cells(cells, grid->columns * grid->lines) : NULL;
    if (copy == NULL) {
        grid->failed = true;
        return;
    }
    grid->rows[grid->count++] = (struct grid_line){.paint = paint, .cells = copy};
}

static const char *cell(const struct grid *grid, size_t row, size_t line, size_t column)
{
    return grid->rows[row].cells[line * grid->columns + column];
}

static int column_width(const struct grid *grid, const struct grid_style *style, size_t column)
{
    int width = 0;
    for (size_t row = 0; row < grid->count; row++) {
        for (size_t line = column == 0 && style->name_alone ? 1 : 0; line < grid->lines; line++) {
            int columns = text_columns(cell(grid, row, line, column));
            width = columns > width ? columns : width;
        }
    }
    return width;
}

static int table_width(const struct grid *grid, const struct grid_style *style)
{
    int width = style->indent + style->gap * (int)(grid->columns - 1);
    for (size_t column = 0; column < grid->columns; column++)
        width += column_width(grid, style, column);
    return width;
}

int grid_width(const struct grid *grid, const struct grid_style *style)
{
    if (grid == NULL)
        return 0;
    int width = table_width(grid, style);
    for (size_t row = 0; style->name_alone && row < grid->count; row++) {
        int name = style->indent + text_columns(cell(grid, row, 0, 0));
        width = name > width ? name : width;
    }
    return width;
}

/* Padding is held back until something follows it, so that no line ends in spaces. */
static void print_line(const struct grid *grid, FILE *out, const struct grid_style *style, const int *widths,
                       size_t row, size_t line)
{
    int pending = style->indent;
    for (size_t column = 0; column < grid->columns; column++) {
        const char *text = column == 0 && line == 0 && style->name_alone ? "" : cell(grid, row, line, column);
        int padding = widths[column] - text_columns(text);
        int before = grid->right[column] ? padding : 0;
        if (*text != '\0') {
            fprintf(out, "%*s%s", pending + before, "", text);
            pending = padding - before + style->gap;
        } else {
            pending += padding + style->gap;
        }
    }
    fputc('\n', out);
}

static void print_rule(FILE *out, int indent, int width)
{
    fprintf(out, "%*s", indent, "");
    for (int i = indent; i < width; i++)
        fputc('-', out);
    fputc('\n', out);
}

static void print_row(const struct grid *grid, FILE *out, const struct grid_style *style, const int *widths, size_t row)
{
    static const char *const codes[] = {
        [PAINT_PLAIN] = "",          [PAINT_HEAD] = "\033[1m", [PAINT_DIM] = "\033[2m",
        [PAINT_GOOD] = "\033[1;32m", [PAINT_BAD] = "\033[31m",
    };
    bool painted = style->colour && grid->rows[row].paint != PAINT_PLAIN;
    if (painted)
        fputs(codes[grid->rows[row].paint], out);
    if (style->name_alone)
        fprintf(out, "%*s%s\n", style->indent, "", cell(grid, row, 0, 0));
    for (size_t line = 0; line < grid->lines; line++)
        print_line(grid, out, style, widths, row, line);
    if (painted)
        fputs("\033[0m", out);
}

void grid_print(const struct grid *grid, FILE *out, const struct grid_style *style)
{
    if (grid == NULL || grid->failed) {
        fputs("(out of memory: rows are missing here)\n", out);
        if (grid == NULL)
            return;
    }
    int widths[GRID_COLUMNS_MAX];
    for (size_t column = 0; column < grid->columns; column++)
        widths[column] = column_width(grid, style, column);
    for (size_t row = 0; row < grid->count; row++) {
        print_row(grid, out, style, widths, row);
        if (grid->rows[row].paint == PAINT_HEAD)
            print_rule(out, style->indent, table_width(grid, style));
    }
}
