#include "sim/report/part.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {
    [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string", [JSON_INTEGER] = "a number",
    [JSON_REAL] = "a number",    [JSON_TRUE] = "true",      [JSON_FALSE] = "false",     [JSON_NULL] = "null",
};

void part_fail(const struct part *part, const char *key, const char *format, ...)
{
    char message[256];
    if (*part->rc < 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    bool top = part->path[0] == '\0' || key[0] == '\0';
    *part->rc = err_set(part->err, EINVAL, "%s%s%s: %s", part->path, top ? "" : ".", key, message);
}

struct part part_document(const json_t *json, int *rc, struct err *err)
{
    struct part part = {.json = json, .rc = rc, .err = err};
    if (!json_is_object(json)) {
        *rc = err_set(err, EINVAL, "not a JSON object");
        part.json = NULL;
    }
    return part;
}

static bool wrong(const struct part *part, const char *key, const char *wanted, const json_t *value)
{
    part_fail(part, key, "must be %s, is %s", wanted, type_names[json_typeof(value)]);
    return false;
}

/* The member, or NULL with the error noted. */
static const json_t *member(const struct part *part, const char *key)
{
    if (part->json == NULL || *part->rc < 0)
        return NULL;
    const json_t *value = json_object_get(part->json, key);
    if (value == NULL)
        part_fail(part, key, "missing");
    return value;
}

double part_number(const struct part *part, const char *key)
{
    const json_t *value = member(part, key);
    if (value != NULL && !json_is_number(value) && !json_is_null(value))
        wrong(part, key, "a number or null", value);
    return value != NULL && json_is_number(value) ? json_number_value(value) : NAN;
}

bool part_truth(const struct part *part, const char *key)
{
    const json_t *value = member(part, key);
    if (value != NULL && !json_is_boolean(value))
        return wrong(part, key, "true or false", value);
    return value != NULL && json_is_true(value);
}

json_int_t part_integer(const struct part *part, const char *key, json_int_t least, json_int_t most)
{
    const json_t *value = member(part, key);
    if (value == NULL)
        return least;
    json_int_t integer = json_integer_value(value);
    if (!json_is_integer(value))
        wrong(part, key, "a whole number", value);
    else if (integer < least || integer > most)
        part_fail(part, key, "must be from %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT, least, most);
    else
        return integer;
    return least;
}

uint64_t part_unsigned(const struct part *part, const char *key)
{
    const json_t *value = member(part, key);
    if (value == NULL || !json_is_string(value))
        return (uint64_t)part_integer(part, key, 0, INT64_MAX);
    const char *text = json_string_value(value);
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        part_fail(part, key, "must be a whole number, 0 or more");
    return number;
}

const char *part_text_or_null(const struct part *part, const char *key)
{
    const json_t *value = member(part, key);
    if (value != NULL && !json_is_string(value) && !json_is_null(value))
        wrong(part, key, "a string or null", value);
    return json_string_value(value);
}

const char *part_text(const struct part *part, const char *key)
{
    const json_t *value = member(part, key);
    if (value != NULL && !json_is_string(value))
        wrong(part, key, "a string", value);
    return value != NULL && json_is_string(value) ? json_string_value(value) : "";
}

/* The part of that path and type, or one without json. */
static struct part below(const struct part *part, const char *key, const json_t *value, json_type type)
{
    struct part child = {.rc = part->rc, .err = part->err};
    bool dot = part->path[0] != '\0' && key[0] != '[';
    if (snprintf(child.path, sizeof child.path, "%s%s%s", part->path, dot ? "." : "", key) < 0)
        child.path[0] = '\0';
    if (value != NULL && json_typeof(value) != type)
        wrong(&child, "", type_names[type], value);
    else
        child.json = value;
    return child;
}

struct part part_object(const struct part *part, const char *key)
{
    return below(part, key, member(part, key), JSON_OBJECT);
}

struct part part_array(const struct part *part, const char *key)
{
    return below(part, key, member(part, key), JSON_ARRAY);
}

bool part_has(const struct part *part, const char *key)
{
    const json_t *value = part->json != NULL ? json_object_get(part->json, key) : NULL;
    return value != NULL && !json_is_null(value);
}

size_t part_count(const struct part *array)
{
    return array->json != NULL ? json_array_size(array->json) : 0;
}

struct part part_item(const struct part *array, size_t index)
{
    char key[32];
    snprintf(key, sizeof key, "[%zu]", index);
    return below(array, key, json_array_get(array->json, index), JSON_OBJECT);
}

const char *part_item_text(const struct part *array, size_t index)
{
    char key[32];
    snprintf(key, sizeof key, "[%zu]", index);
    struct part item = below(array, key, json_array_get(array->json, index), JSON_STRING);
    return item.json != NULL ? json_string_value(item.json) : "";
}

size_t part_choice(const struct part *part, const char *key, const char *const *names, size_t count)
{
    char list[192] = "";
    const char *text = part_text(part, key);
    for (size_t i = 0, used = 0; i < count && *part->rc == 0; i++) {
        if (strcmp(text, names[i]) == 0)
            return i;
        int length = snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
        used = length < 0 || used + (size_t)length >= sizeof list ? used : used + (size_t)length;
    }
    part_fail(part, key, "'%s' is none of %s", text, list);
    return 0;
}
