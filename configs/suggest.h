/* "did you mean": the known name nearest to what was typed. */
#ifndef LONGHAUL_SUGGEST_H
#define LONGHAUL_SUGGEST_H

#include <stddef.h>

/* items: an array of count elements of `stride` bytes, each starting with a `const char *` name.
 * Returns the nearest name by edit distance (a wrong case counts half), or NULL when nothing is near. */
const char *suggest_nearest(const char *text, const void *items, size_t count, size_t stride);

/* Writes " (did you mean 'NAME'?)" into buffer, or "" when nothing is near. Returns buffer. */
char *suggest_phrase(const char *text, const void *items, size_t count, size_t stride, char *buffer, size_t size);

/* Writes the names, separated by ", ", into buffer; ends in "..." where they do not fit. Returns buffer. */
char *suggest_list(const void *items, size_t count, size_t stride, char *buffer, size_t size);

#endif
