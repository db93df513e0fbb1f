/* `longhaul collective`: what is asked, what is found, and how both are written. Internal to the program. */
#ifndef LONGHAUL_ENGINE_COLLECTIVE_H
#define LONGHAUL_ENGINE_COLLECTIVE_H

#include <jansson.h>
#include <stdio.h>

#include "sim/engine/bench.h"

enum { COLLECTIVE_SIZES_MAX = 256, COLLECTIVE_ALGORITHMS_MAX = 4 };

struct collective_op {
    const char *name; /* as on the command line */
    enum bench_op op;
};

struct collective_algorithm {
    const char *name;
    enum allreduce allreduce;
    enum ring_order order;
};

struct collective_question {
    const struct scenario *scenario; /* not owned */
    const struct collective_op *op;
    size_t size_count, algorithm_count;
    uint64_t sizes[COLLECTIVE_SIZES_MAX]; /* bytes, >= 1 */
    const struct collective_algorithm *algorithms[COLLECTIVE_ALGORITHMS_MAX];
    double skew_s; /* >= 0 */
};

struct collective_row {
    uint64_t bytes;
    const struct collective_algorithm *algorithm;
    int ranks;
    double time_s; /* until the last rank is done */
    double floor_s;
    double algbw_byte_per_s, busbw_byte_per_s; /* bytes / time, and times the bus factor (bench.h) */
    uint64_t messages;
    bool bulk;
    struct engine_wan *wan; /* [2 * link + direction]; owned */
};

/* Simulates every size with every algorithm, sizes outermost, into *rows (collective_free it; count = sizes x
 * algorithms). step(context) after every one. Returns 0; -EINVAL: the scenario cannot do that; or another negative
 * errno with one line when a run failed or its result breaks an invariant: below its floor, a rank not done, bytes
 * lost, WAN bytes off. */
int collective_run(const struct collective_question *question, void (*step)(void *context), void *context,
                   struct collective_row **rows, struct err *err);
void collective_free(struct collective_row *rows, size_t count);

/* A table like nccl-tests'. */
void collective_print(const struct collective_question *question, const struct collective_row *rows, FILE *out,
                      bool colour, int width);

/* Schema longhaul.collective/1, with what is not simulated as `notes`; the same question gives the same bytes. 0,
 * -ENOMEM or -EIO. */
int collective_dump_json(const struct collective_question *question, const struct collective_row *rows, FILE *out,
                         struct err *err);

/* "1 KiB" where the size is a whole number of binary units, else decimal. Returns buffer. */
char *collective_size(uint64_t bytes, char *buffer, size_t size);

#endif
