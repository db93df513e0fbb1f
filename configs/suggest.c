#include "configs/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 48, COST_EDIT = 2, COST_CASE = 1 };

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

static unsigned replace_cost(char a, char b)
{
    if (a == b)
        return 0;
    return tolower((unsigned char)a) == tolower((unsigned char)b) ? COST_CASE : COST_EDIT;
}

/* Levenshtein's distance, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[LONGEST + 1];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++)
        row[j] = (unsigned)j * COST_EDIT;
    for (size_t i = 0; a[i]; i++) {
        unsigned diagonal = row[0];
        row[0] += COST_EDIT;
        for (size_t j = 1; j <= width; j++) {
            unsigned above = row[j];
            row[j] = smallest(above + COST_EDIT, row[j - 1] + COST_EDIT, diagonal + replace_cost(a[i], b[j - 1]));
            diagonal = above;
        }
    }
    return row[width];
}

static const char *name_at(const void *items, size_t index, size_t stride)
{
    const char *name;
    memcpy(&name, (const char *)items + index * stride, sizeof name);
    return name;
}

const char *suggest_nearest(const char *text, const void *items, size_t count, size_t stride)
{
    size_t length = strlen(text);
    if (length > LONGEST)
        return NULL;
    const char *nearest = NULL;
    unsigned least = 3 + (unsigned)length * 2 / 3;
    for (size_t i = 0; i < count; i++) {
        const char *name = name_at(items, i, stride);
        if (!name || strlen(name) > LONGEST)
            continue;
        unsigned cost = distance(text, name);
        if (cost < least) {
            least = cost;
            nearest = name;
        }
    }
    return nearest;
}

char *suggest_phrase(const char *text, const void *items, size_t count, size_t stride, char *buffer, size_t size)
{
    const char *nearest = suggest_nearest(text, items, count, stride);
    if (nearest)
        snprintf(buffer, size, " (did you mean '%s'?)", nearest);
    else if (size)
        buffer[0] = '\0';
    return buffer;
}

char *suggest_list(const void *items, size_t count, size_t stride, char *buffer, size_t size)
{
    size_t used = 0;
    if (size)
        buffer[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *name = name_at(items, i, stride);
        const char *separator = i ? ", " : "";
        if (used + strlen(separator) + strlen(name) + sizeof ", ..." > size) {
            snprintf(buffer + used, size - used, "%s...", separator);
            break;
        }
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", separator, name);
    }
    return buffer;
}
