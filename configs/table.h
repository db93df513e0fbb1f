/* Mappings of the scenario file as const tables: one row a key. Reading, defaults, ranges, "did you mean", the resolved
 * dump and the printed reference all come from the same rows. */
#ifndef LONGHAUL_TABLE_H
#define LONGHAUL_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "configs/err.h"
#include "configs/units.h"
#include "configs/yaml.h"

enum key_kind {
    KEY_QUANTITY, /* double, with a unit of `dimension` */
    KEY_COUNT,    /* long, plain digits */
    KEY_LAYERS,   /* long, "2 layers" */
    KEY_NUMBER,   /* double without a dimension */
    KEY_CHOICE,   /* enum, by name */
    KEY_BOOL,     /* bool, true or false */
    KEY_TEXT,     /* char *, free text; owned */
    KEY_NAME,     /* char *, a letter, then letters, digits, '-' and '_'; owned */
    KEY_SECTION,  /* a mapping, list or special value: the reader's code handles it, the table knows its name */
    KEY_KINDS
};

struct key {
    const char *name; /* first: suggest.h reads it */
    enum key_kind kind;
    size_t offset;              /* of the field in the struct that the table fills */
    enum dimension dimension;   /* KEY_QUANTITY */
    const char *const *choices; /* KEY_CHOICE: names by enum value, ended by NULL */
    double low, high;           /* range of numbers, both included */
    bool above;                 /* low itself is excluded */
    bool below;                 /* high itself is excluded */
    bool endless;               /* inf is in range */
    bool required;
    const char *initial; /* the default, as if typed; NULL and not required: what the reader computed before */
    const char *meaning; /* one line for people */
};

struct table {
    const char *what; /* "a data centre": completes "keys of ..." */
    const char *path; /* where it stands in the file, for the reference: "datacenters[]" */
    const struct key *keys;
    size_t count;
};

/* Fills the fields of `into` from a map (NULL: all defaults). Text fields must be NULL or owned text before; they are
 * replaced. Returns 0, -EINVAL with "file:line:column: ...", -ENOMEM. place: what to point at when a required key is
 * missing. */
int table_read(const struct table *table, const struct node *map, const struct node *place, void *into,
               struct err *err);

const struct key *table_key(const struct table *table, const char *name); /* NULL where there is none */
/* A field's value as it would be typed; NULL when out of memory. Not for KEY_SECTION. */
json_t *key_write(const struct key *key, const void *field);

/* Only checks that map is a mapping of known keys. */
int table_check_keys(const struct table *table, const struct node *map, struct err *err);

/* Adds every non-section key of the table to a JSON object, as it would be typed. Empty texts are left out. 0 or
 * -ENOMEM. */
int table_write(const struct table *table, const void *from, json_t *into);

/* Frees the text fields. */
void table_free_texts(const struct table *table, void *from);

/* "1 GB" ..., "1 to 64", "a | b": what is allowed. Returns buffer. */
char *key_range(const struct key *key, char *buffer, size_t size);

#endif
