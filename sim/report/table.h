/* What the parts of the table share. */
#ifndef LONGHAUL_TABLE_H
#define LONGHAUL_TABLE_H

#include "configs/units.h"
#include "sim/report/result.h"

enum { CELL_MAX = 48 };

/* Text of a cell, "-" where the figure is not finite. Each returns buffer or a constant. */
const char *table_time(double time_s, int digits, char *buffer, size_t size);
const char *table_quantity(double value, enum dimension dimension, char *buffer, size_t size);
/* Mean and peak load of a link in %, "57/100 %". */
const char *table_load(const struct wan_result *wan, int decimals, char *buffer, size_t size);

/* What crosses each WAN link, by strategy; nothing where there is no WAN. */
void table_links(const struct result *result, FILE *out, bool colour);
/* The scenario's references beside the result; nothing where there are none. */
void table_references(const struct result *result, FILE *out, bool colour, int width);

#endif
