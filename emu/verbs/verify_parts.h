/* Between verify.c, verify_argp.c and verify_wish.c only. */
#ifndef LONGHAUL_VERIFY_PARTS_H
#define LONGHAUL_VERIFY_PARTS_H

#include <argp.h>

#include "emu/verbs/wish.h"
#include "emu/verify/verify.h"

struct verify_arguments {
    struct wish_arguments wish;
    const char *peer, *address; /* of the other end; address NULL: that of peer */
    const char *rsh, *program;
    uint16_t port; /* with key: of a responder that runs already; 0: start one */
    const char *key;
    bool one_sided;
    uint64_t probes, payload_bytes;
    double interval_s; /* 0: chosen */
    double goodput_s;
    double relative; /* factor of the tolerances */
    const char *bystander, *bystander_address;
    double bystander_rtt_s;
    const char *json;
};

/* The command line, with defaults. Ends the program on wrong usage. */
void verify_arguments_parse(int argc, char **argv, struct verify_arguments *arguments);

/* What the path to the other end shall do. */
struct verify_wish {
    const char *source;             /* "scenario", "flags" or "applied" */
    char *path;                     /* owned: "west -> east" */
    struct impairment direction[2]; /* owned; one that is not asked for does nothing */
    bool asked[2];
};
/* From scenario or flags, else from what is applied on the device towards address. -ENOENT: from none of them. */
int verify_wish_find(const struct verify_arguments *arguments, const char *address, struct verify_wish *wish,
                     struct err *err);
void verify_wish_free(struct verify_wish *wish);

#endif
