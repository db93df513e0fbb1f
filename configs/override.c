#include "configs/override.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SET_MAX = 4096, STEPS_MAX = 8 };

struct override {
    struct origin origin;
    const char *value; /* text after '=' */
    const char *start; /* of the whole set */
};

static struct mark mark_at(const struct override *override, const char *at)
{
    return (struct mark){override->origin, 1, at - override->start + 1};
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ENOMEM, "out of memory");
}

/* Sets, replaces or removes the member `key` of a map. */
static int assign(const struct override *override, struct node *map, const char *path, const char *key, struct err *err)
{
    struct node *old = node_get(map, key), *value = NULL;
    int rc = yaml_parse(override->origin, override->value - override->start, override->value, strlen(override->value),
                        &value, err);
    if (rc)
        return rc;
    if (old) {
        node_replace(map, old, value);
        if (value)
            value->key_mark = mark_at(override, path);
        return 0;
    }
    if (!value)
        return 0;
    value->key = strdup(key);
    if (!value->key) {
        node_free(value);
        return out_of_memory(err);
    }
    value->key_mark = mark_at(override, path);
    node_append(map, value);
    return 0;
}

/* The member to descend into. A missing one becomes an empty map; a single value becomes one too: a preset's name is
 * kept as `preset`, anything else (overlap: none) is replaced. */
static int enter(const struct override *override, struct node *map, const char *path, const char *key,
                 struct node **member, struct err *err)
{
    struct node *old = node_get(map, key);
    if (old && old->kind != NODE_SCALAR) {
        *member = old;
        return 0;
    }
    if (old) {
        bool preset = !strcmp(key, "model") || !strcmp(key, "gpu");
        *member = node_wrap(map, old, preset ? "preset" : NULL, mark_at(override, path));
        return *member ? 0 : out_of_memory(err);
    }
    struct node *fresh = node_new(NODE_MAP, mark_at(override, path));
    char *fresh_key = strdup(key);
    if (!fresh || !fresh_key) {
        free(fresh_key);
        node_free(fresh);
        return out_of_memory(err);
    }
    fresh->key = fresh_key;
    node_append(map, fresh);
    *member = fresh;
    return 0;
}

static int descend(const struct override *override, struct node *node, const char *path, int steps, struct err *err);

static int descend_map(const struct override *override, struct node *map, const char *path, int steps, struct err *err)
{
    size_t length = strcspn(path, ".=");
    char key[64];
    struct mark here = mark_at(override, path);
    if (!length || length >= sizeof key)
        return mark_fail(&here, err, "no key here; write --set KEY=VALUE, like wan.rtt=5ms");
    memcpy(key, path, length);
    key[length] = '\0';
    if (path[length] == '=')
        return assign(override, map, path, key, err);
    struct node *member;
    int rc = enter(override, map, path, key, &member, err);
    return rc ? rc : descend(override, member, path + length + 1, steps + 1, err);
}

/* The element that one step names (those of emu.sites by `site`), or NULL where the step is a key of every element. */
static struct node *named_element(const struct node *list, const char *step, size_t length)
{
    for (struct node *element = list->first; element; element = element->next) {
        const struct node *name = node_get(element, "name");
        name = name ? name : node_get(element, "site");
        if (name && name->kind == NODE_SCALAR && strlen(name->text) == length && !strncmp(name->text, step, length))
            return element;
    }
    return NULL;
}

static int descend_list(const struct override *override, struct node *list, const char *path, int steps,
                        struct err *err)
{
    size_t length = strcspn(path, ".=");
    struct mark here = mark_at(override, path);
    bool number = length && strspn(path, "0123456789") == length;
    struct node *element = number ? node_at(list, strtoul(path, NULL, 10)) : named_element(list, path, length);
    if (number && !element)
        return mark_fail(&here, err, "no element %.*s; the list has %zu, counted from 0",
                         (int)(length < 20 ? length : 20), path, list->count);
    if (element && path[length] == '=')
        return mark_fail(&here, err, "a whole element; name one of its keys, like strategies.har.allreduce=ring");
    if (element)
        return descend(override, element, path + length + 1, steps + 1, err);
    if (!list->count)
        return mark_fail(&here, err, "the list is empty; nothing to change");
    int rc = 0;
    for (element = list->first; !rc && element; element = element->next)
        rc = descend(override, element, path, steps + 1, err);
    return rc;
}

static int descend(const struct override *override, struct node *node, const char *path, int steps, struct err *err)
{
    struct mark here = mark_at(override, path);
    if (steps > STEPS_MAX)
        return mark_fail(&here, err, "more than %d keys deep", STEPS_MAX);
    if (node->kind == NODE_SCALAR)
        return mark_fail(&here, err, "'%.40s' is a single value and has no keys", node->text);
    return node->kind == NODE_LIST ? descend_list(override, node, path, steps, err)
                                   : descend_map(override, node, path, steps, err);
}

int override_apply(struct node *root, const char *set, struct err *err)
{
    struct override override = {.origin = {set, true}, .start = set};
    const char *equals = strchr(set, '=');
    struct mark start = mark_at(&override, set);
    if (strlen(set) > SET_MAX)
        return mark_fail(&start, err, "longer than %d characters", SET_MAX);
    if (!equals || equals == set)
        return mark_fail(&start, err, "not KEY=VALUE; write it like wan.rtt=5ms");
    override.value = equals + 1;
    return descend(&override, root, set, 0, err);
}
