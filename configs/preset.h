/* Shipped models, GPUs and scenarios: the files of configs/{models,gpus,scenarios}, embedded at build time, so that a
 * program needs no data files on a node. */
#ifndef LONGHAUL_PRESET_H
#define LONGHAUL_PRESET_H

#include <stddef.h>

#include "configs/err.h"
#include "configs/yaml.h"

enum preset_kind { PRESET_SCENARIO, PRESET_MODEL, PRESET_GPU, PRESET_KIND_COUNT };

struct preset {
    const char *name; /* the file's name without .yaml */
    const char *path; /* in the repository: "configs/gpus/h100-sxm.yaml" */
    const char *text; /* the whole file, ended by a zero byte */
    size_t length;
};

/* "scenario", "model", "GPU". */
const char *preset_kind_name(enum preset_kind kind);

/* The presets of a kind, sorted by name. */
const struct preset *preset_list(enum preset_kind kind, size_t *count);

/* NULL where there is none of that name. */
const struct preset *preset_find(enum preset_kind kind, const char *name);

/* Writes the first comment line of the file, without "# ". Returns buffer. */
char *preset_title(const struct preset *preset, char *buffer, size_t size);

/* Writes "no GPU preset 'h10' (did you mean ...?); presets: ..." into buffer. Returns buffer. */
char *preset_unknown(enum preset_kind kind, const char *name, char *buffer, size_t size);

/* Turns the member `key` of a map, `NAME` or `{preset: NAME, overrides}` or a plain mapping, into a full mapping in
 * place. Does nothing where there is no such member. Returns 0, -EINVAL, -ENOMEM. */
int preset_expand(struct node *map, const char *key, enum preset_kind kind, struct err *err);

/* Written by embed.c. */
struct preset_array {
    const struct preset *presets;
    size_t count;
};
extern const struct preset_array preset_arrays[PRESET_KIND_COUNT];

#endif
