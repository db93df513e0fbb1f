#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/yaml.h"

struct node *node_new(enum node_kind kind, struct mark mark)
{
    struct node *node = calloc(1, sizeof *node);
    if (node) {
        node->kind = kind;
        node->mark = mark;
        node->key_mark = mark;
    }
    return node;
}

void node_free(struct node *node)
{
    if (!node)
        return;
    for (struct node *child = node->first, *next; child; child = next) {
        next = child->next;
        node_free(child); /* YAML_DEPTH_MAX bounds the recursion */
    }
    free(node->text);
    free(node->key);
    free(node);
}

void node_append(struct node *parent, struct node *child)
{
    child->next = NULL;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
}

void node_replace(struct node *parent, struct node *old, struct node *child)
{
    struct node *before = NULL;
    for (struct node *at = parent->first; at != old; at = at->next)
        before = at;
    struct node *after = old->next;
    if (child) {
        child->key = old->key;
        child->key_mark = old->key_mark;
        old->key = NULL;
        child->next = after;
    } else {
        parent->count--;
    }
    struct node *link = child ? child : after;
    if (before)
        before->next = link;
    else
        parent->first = link;
    if (parent->last == old)
        parent->last = child ? child : before;
    node_free(old);
}

struct node *node_wrap(struct node *parent, struct node *old, const char *key, struct mark mark)
{
    struct node *map = node_new(NODE_MAP, mark), *member = key ? node_new(NODE_SCALAR, old->mark) : NULL;
    char *member_key = key ? strdup(key) : NULL;
    if (!map || (key && (!member || !member_key))) {
        free(member_key);
        node_free(member);
        node_free(map);
        return NULL;
    }
    if (key) {
        member->key = member_key;
        member->text = old->text;
        member->quoted = old->quoted;
        old->text = NULL;
        node_append(map, member);
    }
    node_replace(parent, old, map);
    return map;
}

struct node *node_get(const struct node *map, const char *key)
{
    if (!map || map->kind != NODE_MAP)
        return NULL;
    for (struct node *child = map->first; child; child = child->next)
        if (!strcmp(child->key, key))
            return child;
    return NULL;
}

struct node *node_at(const struct node *list, size_t index)
{
    struct node *child = list->first;
    while (child && index--)
        child = child->next;
    return child;
}

bool node_is_empty(const struct node *node)
{
    return node->kind == NODE_SCALAR && !node->quoted && !*node->text;
}

const struct node *node_nearest(const struct node *root, const char *path)
{
    const struct node *node = root;
    while (*path) {
        char key[64];
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        const struct node *child =
            node->kind == NODE_LIST ? node_at(node, strtoul(key, NULL, 10)) : node_get(node, key);
        if (!child)
            break;
        node = child;
        path += length + (path[length] == '.');
    }
    return node;
}

__attribute__((format(printf, 3, 0))) static int mark_vfail(const struct mark *mark, struct err *err,
                                                            const char *format, va_list arguments)
{
    char text[ERR_TEXT_MAX];
    vsnprintf(text, sizeof text, format, arguments);
    return err_set(err, EINVAL, "%s%.200s:%ld:%ld: %.700s", mark->origin.set ? "--set " : "", mark->origin.text,
                   mark->line, mark->column, text);
}

int mark_fail(const struct mark *mark, struct err *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int rc = mark_vfail(mark, err, format, arguments);
    va_end(arguments);
    return rc;
}

int node_fail(const struct node *node, struct err *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int rc = mark_vfail(&node->mark, err, format, arguments);
    va_end(arguments);
    return rc;
}

int node_fail_key(const struct node *node, struct err *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int rc = mark_vfail(&node->key_mark, err, format, arguments);
    va_end(arguments);
    return rc;
}
