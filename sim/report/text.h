/* Text for people: widths in a terminal, wrapped paragraphs, aligned columns. */
#ifndef LONGHAUL_TEXT_H
#define LONGHAUL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Columns that UTF-8 text takes in a terminal, one per code point. */
int text_columns(const char *text);

/* A copy in which bytes that are not valid UTF-8 are replaced by U+FFFD. Caller frees; NULL when out of memory. */
char *text_clean(const char *text);

/* Prints text broken at spaces so that no line is longer than width where words allow; following lines start with
 * indent spaces. Ends with a newline. */
void text_wrap(FILE *out, const char *text, int width, int indent);

/* "3", "18.6k", "1.2M", "3.4G": a count to three digits. Returns buffer. */
char *text_count(double count, char *buffer, size_t size);

/* A time to `digits` digits, zeros at the end included, with its unit ("10.30 s"); what is below a nanosecond is
 * rounding and shown as "0 s". Returns buffer.
 */
char *text_time(double time_s, int digits, char *buffer, size_t size);

/* Rows of cells in aligned columns; a cell has one or two lines. Running out of memory is remembered and said when
 * printing. */
struct grid;

enum paint { PAINT_PLAIN, PAINT_HEAD, PAINT_DIM, PAINT_GOOD, PAINT_BAD };

/* right[c]: column c is aligned right. lines: 1 or 2 per row. NULL when out of memory. */
struct grid *grid_new(size_t columns, size_t lines, const bool *right);
void grid_free(struct grid *grid); /* NULL is fine */

/* Appends a row; cells[line * columns + column] is copied. A PAINT_HEAD row is followed by a rule. */
void grid_row(struct grid *grid, enum paint paint, const char *const *cells);

struct grid_style {
    bool colour;     /* ANSI colours */
    int gap;         /* spaces between columns */
    int indent;      /* spaces before the first column */
    bool name_alone; /* the first cell's first line gets a line of its own above the others */
};

/* Columns of the widest line. */
int grid_width(const struct grid *grid, const struct grid_style *style);
void grid_print(const struct grid *grid, FILE *out, const struct grid_style *style);

#endif
