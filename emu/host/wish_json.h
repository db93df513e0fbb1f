/* A wish as JSON, exact both ways: for the record, and for --json. Times are ns, one way; rates byte/s. */
#ifndef LONGHAUL_WISH_JSON_H
#define LONGHAUL_WISH_JSON_H

#include <jansson.h>

#include "emu/shape/plan.h"

json_t *impairment_to_json(const struct impairment *impairment); /* NULL out of memory */
json_t *wish_to_json(const struct wish *wish);                   /* NULL out of memory */
/* -EBADMSG where it is none; wish is then zeroed. Caller frees with wish_free. */
int wish_from_json(const json_t *json, struct wish *wish, struct err *err);

#endif
