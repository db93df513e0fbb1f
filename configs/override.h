/* --set KEY=VALUE: changes the parsed tree before anything is read from it, so that defaults that follow from a key
 * follow. */
#ifndef LONGHAUL_OVERRIDE_H
#define LONGHAUL_OVERRIDE_H

#include "configs/err.h"
#include "configs/yaml.h"

/* KEY is a path of keys joined by dots; in a list, a number picks one element (from 0), a name the element with that
 * `name`, and anything else applies to every element. VALUE is YAML; nothing after '=' removes the key, so that its
 * default applies. set outlives the tree. Returns 0, -EINVAL with "--set KEY=VALUE:1:column: ...", -ENOMEM. */
int override_apply(struct node *root, const char *set, struct err *err);

#endif
