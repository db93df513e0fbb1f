/* From the parsed tree to struct scenario: sections, lists, presets, defaults that follow from other keys; then what
 * must agree between keys. Both write "file:line:column: ..." and leave the scenario to be freed by the caller. */
#ifndef LONGHAUL_READ_H
#define LONGHAUL_READ_H

#include "configs/scenario.h"
#include "configs/yaml.h"

/* The index of the site that a scalar names. */
int read_site_name(const struct scenario *scenario, const struct node *name, size_t *index, struct err *err);

/* The sections emu: and lab:, after datacenters and wan. And their rules. */
int emulation_read(const struct node *root, struct scenario *scenario, struct err *err);
int emulation_check(const struct node *root, const struct scenario *scenario, struct err *err);

/* scenario is zeroed. root may gain the members of presets. */
int scenario_read(struct node *root, struct scenario *scenario, struct err *err);

/* The rules that join several keys. */
int scenario_check(const struct node *root, const struct scenario *scenario, struct err *err);

#endif
