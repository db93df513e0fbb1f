/* What the verbs print alike. */
#ifndef LONGHAUL_VERBS_OUTPUT_H
#define LONGHAUL_VERBS_OUTPUT_H

#include <jansson.h>

#include "emu/shape/plan.h"
#include "emu/verbs/wish.h"

/* Writes the JSON (taken over; NULL: out of memory) to FILE or "-". */
int output_json(json_t *json, const char *path, struct err *err);
/* The same to what options_open gave, which it closes; path names it in messages. */
int output_json_to(FILE *out, json_t *json, const char *path, struct err *err);
/* "longhaul-emu VERB: message" on stderr where rc is not 0; the exit code. */
int output_end(const char *verb, int rc, const struct err *err);
/* One loud line on stderr for each device whose machine has RDMA devices: their traffic never meets a qdisc. */
void output_rdma_warning(const char *verb, const struct wish *wish);
/* The RDMA devices as a JSON list. NULL out of memory. */
json_t *output_rdma_json(const char *device);
/* "west -> east: 10.2.0.0/16, fd00:2::/32 and 998 more"; the prefix alone where it is the name. */
void output_path(FILE *out, const struct path *path);
/* "1 h 30 min", "45 s", "1.5 ms". Returns buffer. */
char *output_duration(double seconds, char *buffer, size_t size);
/* "note: ..." for each; and as a JSON list, NULL out of memory. */
void output_notes(FILE *out, const struct wishes *wishes);
json_t *output_notes_json(const struct wishes *wishes);
/* "eth0 (egress): 2 paths" */
void output_heading(FILE *out, const struct wish *wish);

#endif
