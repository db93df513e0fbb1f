/* Reading JSON that somebody else may have written: member by member, the first thing wrong remembered with its path
 * ("strategies[1].step_s: must be a number or null, is a string"). After that every reader gives a default and is
 * silent.
 */
#ifndef LONGHAUL_PART_H
#define LONGHAUL_PART_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "configs/err.h"

/* An object or array of the document; borrowed. json NULL where something was wrong. */
struct part {
    const json_t *json;
    int *rc; /* 0 or -EINVAL, of the whole reading */
    struct err *err;
    char path[96]; /* "" for the document itself */
};

/* The document; *rc must be 0. */
struct part part_document(const json_t *json, int *rc, struct err *err);

double part_number(const struct part *part, const char *key); /* NAN where it is null */
bool part_truth(const struct part *part, const char *key);
json_int_t part_integer(const struct part *part, const char *key, json_int_t least, json_int_t most);
uint64_t part_unsigned(const struct part *part, const char *key);        /* or decimal text, above 2^63 - 1 */
const char *part_text(const struct part *part, const char *key);         /* borrowed; "" where it is wrong */
const char *part_text_or_null(const struct part *part, const char *key); /* NULL where it is null */
struct part part_object(const struct part *part, const char *key);
struct part part_array(const struct part *part, const char *key);
bool part_has(const struct part *part, const char *key); /* there, and not null; absent is no error */

size_t part_count(const struct part *array);
struct part part_item(const struct part *array, size_t index);      /* an object */
const char *part_item_text(const struct part *array, size_t index); /* borrowed; "" where it is wrong */

/* The text's place among names, or an error that lists what it may be. Returns 0 where it is wrong. */
size_t part_choice(const struct part *part, const char *key, const char *const *names, size_t count);

/* Something else is wrong with a member: "path.key: message". */
void part_fail(const struct part *part, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
