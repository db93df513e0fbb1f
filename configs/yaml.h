/* YAML text as a small tree of our own, every node with the place it came from. libfyaml does the parsing, event by
 * event, so that limits hold before anything is built. Anchors, aliases, tags and a second document are refused: a
 * scenario needs none. */
#ifndef LONGHAUL_YAML_H
#define LONGHAUL_YAML_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "configs/err.h"

enum { YAML_BYTES_MAX = 1 << 20, YAML_NODES_MAX = 20000, YAML_DEPTH_MAX = 12, YAML_KEYS_MAX = 256 };

/* Where text came from. The string is borrowed and outlives the tree. */
struct origin {
    const char *text; /* a file's name, or the KEY=VALUE of a --set */
    bool set;         /* the latter */
};

struct mark {
    struct origin origin;
    long line, column; /* from 1 */
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    struct mark mark;
    char *text;  /* scalar */
    bool quoted; /* scalar */
    char *key;   /* member of a map: its key */
    struct mark key_mark;
    struct node *first, *last; /* list, map */
    size_t count;
    struct node *next; /* sibling */
};

/* Parses one document. origin names it in messages; column_offset is added to columns of line 1 (where text starts
 * inside a
 * --set). *root is NULL for a document without content. Returns 0, -EINVAL with "file:line:column: ...", or -ENOMEM. */
int yaml_parse(struct origin origin, long column_offset, const char *text, size_t length, struct node **root,
               struct err *err);
void node_free(struct node *node);

struct node *node_new(enum node_kind kind, struct mark mark); /* NULL when out of memory */
void node_append(struct node *parent, struct node *child);
/* Puts child where old is (same key); frees old. child NULL: only removes. */
void node_replace(struct node *parent, struct node *old, struct node *child);
/* Puts a new map where the scalar `old` is (same key); with a key, old's text becomes the map's member of that name,
 * without one it is dropped. Frees old. NULL when out of memory, and then nothing has changed. */
struct node *node_wrap(struct node *parent, struct node *old, const char *key, struct mark mark);
struct node *node_get(const struct node *map, const char *key); /* NULL where map is NULL, no map, or has no such key */
struct node *node_at(const struct node *list, size_t index);    /* NULL past the end */
/* A scalar without text and without quotes, as after "key:". */
bool node_is_empty(const struct node *node);

/* Follows keys separated by dots (digits index a list) as far as they exist: the best place to point at. */
const struct node *node_nearest(const struct node *root, const char *path);

/* Writes "file:line:column: " and the message; returns -EINVAL. node_fail points at the value, node_fail_key at the
 * key. */
int mark_fail(const struct mark *mark, struct err *err, const char *format, ...) __attribute__((format(printf, 3, 4)));
int node_fail(const struct node *node, struct err *err, const char *format, ...) __attribute__((format(printf, 3, 4)));
int node_fail_key(const struct node *node, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* JSON as block-style YAML text. Caller frees *text. Returns 0 or -ENOMEM. */
int yaml_emit(const json_t *json, char **text, struct err *err);

#endif
