#include "configs/table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/suggest.h"

static bool in_range(const struct key *key, double value)
{
    if (isinf(value))
        return key->endless;
    return (key->below ? value < key->high : value <= key->high) && (key->above ? value > key->low : value >= key->low);
}

static int out_of_range(const struct key *key, const char *text, struct err *err)
{
    char range[128];
    return err_set(err, EINVAL, "%.40s is out of range; it can be %s", text, key_range(key, range, sizeof range));
}

static int read_quantity(const struct key *key, const char *text, void *field, struct err *err)
{
    double value;
    int rc = units_parse(text, key->dimension, &value, err);
    if (rc)
        return rc;
    if (!in_range(key, value))
        return out_of_range(key, text, err);
    memcpy(field, &value, sizeof value);
    return 0;
}

static int read_number(const struct key *key, const char *text, void *field, struct err *err)
{
    char *end;
    bool plain = isdigit((unsigned char)text[0]) && !strpbrk(text, "xXpP");
    double value = plain ? strtod(text, &end) : 0;
    if (!plain || *end)
        return err_set(err, EINVAL, "'%.40s' is not a plain number; it can be %s", text,
                       key_range(key, (char[128]){0}, 128));
    if (!in_range(key, value))
        return out_of_range(key, text, err);
    memcpy(field, &value, sizeof value);
    return 0;
}

/* Digits, and nothing else up to `end_text`. */
static int read_digits(const struct key *key, const char *text, const char **end, long *value, struct err *err)
{
    char range[128];
    size_t digits = strspn(text, "0123456789");
    *end = text + digits;
    if (!digits)
        return err_set(err, EINVAL, "'%.40s' is not a whole number; it can be %s", text,
                       key_range(key, range, sizeof range));
    errno = 0;
    *value = strtol(text, NULL, 10);
    if (errno || !in_range(key, (double)*value))
        return out_of_range(key, text, err);
    return 0;
}

static int read_count(const struct key *key, const char *text, void *field, struct err *err)
{
    const char *end;
    long value;
    int rc = read_digits(key, text, &end, &value, err);
    if (rc)
        return rc;
    if (*end)
        return err_set(err, EINVAL, "'%.40s' is not a whole number without unit; write %ld", text, value);
    memcpy(field, &value, sizeof value);
    return 0;
}

static int read_layers(const struct key *key, const char *text, void *field, struct err *err)
{
    const char *end;
    long value;
    int rc = read_digits(key, text, &end, &value, err);
    if (rc)
        return rc;
    end += strspn(end, " ");
    if (strcmp(end, "layer") && strcmp(end, "layers"))
        return err_set(err, EINVAL, "'%.40s' has no unit 'layers'; write '%ld layer%s'", text, value,
                       value == 1 ? "" : "s");
    memcpy(field, &value, sizeof value);
    return 0;
}

static int read_choice(const struct key *key, const char *text, void *field, struct err *err)
{
    size_t count = 0;
    for (; key->choices[count]; count++)
        if (!strcmp(key->choices[count], text)) {
            unsigned value = (unsigned)count;
            memcpy(field, &value, sizeof value);
            return 0;
        }
    char phrase[64], list[160];
    return err_set(err, EINVAL, "'%.40s' is unknown%s; it can be %s", text,
                   suggest_phrase(text, key->choices, count, sizeof key->choices[0], phrase, sizeof phrase),
                   suggest_list(key->choices, count, sizeof key->choices[0], list, sizeof list));
}

static int read_bool(const struct key *key, const char *text, void *field, struct err *err)
{
    (void)key;
    bool value = !strcmp(text, "true");
    if (!value && strcmp(text, "false"))
        return err_set(err, EINVAL, "'%.40s' is neither true nor false; write true or false", text);
    memcpy(field, &value, sizeof value);
    return 0;
}

static int replace_text(const char *text, void *field, struct err *err)
{
    char *copy = strdup(text), *old;
    if (!copy)
        return err_set(err, ENOMEM, "out of memory");
    memcpy(&old, field, sizeof old);
    free(old);
    memcpy(field, &copy, sizeof copy);
    return 0;
}

static int read_text(const struct key *key, const char *text, void *field, struct err *err)
{
    size_t length = strlen(text);
    if (length > key->high)
        return err_set(err, EINVAL, "%zu characters; at most %.0f fit", length, key->high);
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            return err_set(err, EINVAL, "a line break or control character; write one line of text");
    return replace_text(text - length, field, err);
}

static int read_name(const struct key *key, const char *text, void *field, struct err *err)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '-' || text[length] == '_')
        length++;
    if (text[length] || !isalpha((unsigned char)text[0]) || length > key->high)
        return err_set(err, EINVAL,
                       "'%.40s' is no name; use a letter, then letters, digits, '-' and '_', up to %.0f in all", text,
                       key->high);
    return replace_text(text, field, err);
}

static json_t *write_quantity(const struct key *key, const void *field)
{
    char text[64];
    double value;
    memcpy(&value, field, sizeof value);
    return json_string(units_format(value, key->dimension, 0, text, sizeof text));
}

static json_t *write_number(const struct key *key, const void *field)
{
    (void)key;
    double value;
    memcpy(&value, field, sizeof value);
    return value <= 0x1p53 && floor(value) >= value ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *write_count(const struct key *key, const void *field)
{
    (void)key;
    long value;
    memcpy(&value, field, sizeof value);
    return json_integer(value);
}

static json_t *write_layers(const struct key *key, const void *field)
{
    (void)key;
    long value;
    memcpy(&value, field, sizeof value);
    return json_sprintf("%ld layer%s", value, value == 1 ? "" : "s");
}

static json_t *write_choice(const struct key *key, const void *field)
{
    unsigned value;
    memcpy(&value, field, sizeof value);
    return json_string(key->choices[value]);
}

static json_t *write_bool(const struct key *key, const void *field)
{
    (void)key;
    bool value;
    memcpy(&value, field, sizeof value);
    return json_boolean(value);
}

static json_t *write_text(const struct key *key, const void *field)
{
    (void)key;
    const char *value;
    memcpy(&value, field, sizeof value);
    return json_string(value ? value : "");
}

static const struct {
    int (*read)(const struct key *key, const char *text, void *field, struct err *err);
    json_t *(*write)(const struct key *key, const void *field);
} kinds[KEY_KINDS] = {
    [KEY_QUANTITY] = {read_quantity, write_quantity},
    [KEY_COUNT] = {read_count, write_count},
    [KEY_LAYERS] = {read_layers, write_layers},
    [KEY_NUMBER] = {read_number, write_number},
    [KEY_CHOICE] = {read_choice, write_choice},
    [KEY_BOOL] = {read_bool, write_bool},
    [KEY_TEXT] = {read_text, write_text},
    [KEY_NAME] = {read_name, write_text},
};

static bool has_text(const struct key *key)
{
    return key->kind == KEY_TEXT || key->kind == KEY_NAME;
}

const struct key *table_key(const struct table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (!strcmp(table->keys[i].name, name))
            return &table->keys[i];
    return NULL;
}

int table_check_keys(const struct table *table, const struct node *map, struct err *err)
{
    char phrase[64], list[320];
    suggest_list(table->keys, table->count, sizeof table->keys[0], list, sizeof list);
    if (map->kind != NODE_MAP)
        return node_fail(map, err, "%s is a mapping of keys, not a %s; keys: %s", table->what,
                         map->kind == NODE_LIST ? "list" : "single value", list);
    for (const struct node *child = map->first; child; child = child->next)
        if (!table_key(table, child->key))
            return node_fail_key(
                child, err, "unknown key '%.40s'%s; keys of %s: %s", child->key,
                suggest_phrase(child->key, table->keys, table->count, sizeof table->keys[0], phrase, sizeof phrase),
                table->what, list);
    return 0;
}

static int read_node(const struct key *key, const struct node *node, void *field, struct err *err)
{
    char range[128];
    struct err why = {""};
    if (node->kind != NODE_SCALAR || node_is_empty(node))
        return node_fail(node, err, "%s: %s; it can be %s", key->name,
                         node->kind == NODE_SCALAR ? "no value" : "a list or mapping instead of one value",
                         key_range(key, range, sizeof range));
    int rc = kinds[key->kind].read(key, node->text, field, &why);
    return rc == -EINVAL ? node_fail(node, err, "%s: %s", key->name, why.text) : rc;
}

static int read_key(const struct table *table, const struct key *key, const struct node *map, const struct node *place,
                    void *into, struct err *err)
{
    char range[128];
    void *field = (char *)into + key->offset;
    const struct node *node = node_get(map, key->name);
    if (node)
        return read_node(key, node, field, err);
    if (key->required)
        return node_fail(place, err, "%s needs '%s'; it can be %s", table->what, key->name,
                         key_range(key, range, sizeof range));
    return key->initial ? kinds[key->kind].read(key, key->initial, field, err) : 0;
}

int table_read(const struct table *table, const struct node *map, const struct node *place, void *into, struct err *err)
{
    int rc = map ? table_check_keys(table, map, err) : 0;
    for (size_t i = 0; !rc && i < table->count; i++)
        if (table->keys[i].kind != KEY_SECTION)
            rc = read_key(table, &table->keys[i], map, map ? map : place, into, err);
    return rc;
}

json_t *key_write(const struct key *key, const void *field)
{
    return kinds[key->kind].write(key, field);
}

int table_write(const struct table *table, const void *from, json_t *into)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct key *key = &table->keys[i];
        if (key->kind == KEY_SECTION)
            continue;
        json_t *value = key_write(key, (const char *)from + key->offset);
        if (has_text(key) && value && !json_string_length(value)) {
            json_decref(value);
            continue;
        }
        if (json_object_set_new(into, key->name, value))
            return -ENOMEM;
    }
    return 0;
}

void table_free_texts(const struct table *table, void *from)
{
    for (size_t i = 0; i < table->count; i++) {
        if (!has_text(&table->keys[i]))
            continue;
        char *text = NULL, *field = (char *)from + table->keys[i].offset;
        memcpy(&text, field, sizeof text);
        free(text);
        text = NULL;
        memcpy(field, &text, sizeof text);
    }
}

static void number_range(const struct key *key, char *buffer, size_t size)
{
    char low[48], high[48];
    bool quantity = key->kind == KEY_QUANTITY;
    const char *unit = key->kind == KEY_LAYERS ? " layers" : "";
    if (quantity) {
        units_format(key->low, key->dimension, 0, low, sizeof low);
        units_format(key->high, key->dimension, 0, high, sizeof high);
    } else {
        snprintf(low, sizeof low, "%.16g", key->low);
        snprintf(high, sizeof high, "%.16g%s", key->high, unit);
    }
    snprintf(buffer, size, "%s%s to %s%s%s", key->above ? "above " : "", low, key->below ? "below " : "", high,
             key->endless ? ", or inf" : "");
}

char *key_range(const struct key *key, char *buffer, size_t size)
{
    size_t count = 0;
    if (key->kind == KEY_CHOICE) {
        while (key->choices[count])
            count++;
        return suggest_list(key->choices, count, sizeof key->choices[0], buffer, size);
    }
    static const char *const worded[KEY_KINDS] = {[KEY_BOOL] = "true or false",
                                                  [KEY_TEXT] = "a line of text",
                                                  [KEY_NAME] = "a name",
                                                  [KEY_SECTION] = "as described"};
    if (worded[key->kind])
        snprintf(buffer, size, "%s", worded[key->kind]);
    else
        number_range(key, buffer, size);
    return buffer;
}
