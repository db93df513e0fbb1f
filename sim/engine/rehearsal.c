#include "sim/engine/rehearsal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sim/training/step.h"

void rehearsal_write(const struct sim *sim, double step_s, FILE *out)
{
    for (const struct pair_tcp *pair = sim->pairs; pair; pair = pair->next) {
        struct pair_tcp copy = *pair;
        copy.next = NULL;
        copy.tcp.sent_s -= step_s;
        copy.tcp.epoch_s -= step_s;
        (void)fwrite(&copy, sizeof copy, 1, out);
    }
}

static int by_ranks(const void *a, const void *b)
{
    const struct pair_tcp *x = a, *y = b;
    int from = (x->from > y->from) - (x->from < y->from);
    return from ? from : (x->to > y->to) - (x->to < y->to);
}

int rehearsal_read(struct rehearsal *rehearsal, const struct scenario *scenario, FILE *in)
{
    size_t room = 0;
    struct pair_tcp pair;
    *rehearsal = (struct rehearsal){0};
    while (fread(&pair, sizeof pair, 1, in) == 1) {
        if (rehearsal->count == room) {
            room = 2 * room + 64;
            struct pair_tcp *more = realloc(rehearsal->pairs, room * sizeof *more);
            if (!more)
                return -ENOMEM;
            rehearsal->pairs = more;
        }
        tcp_next_step(&pair.tcp, step_gap_s(scenario));
        rehearsal->pairs[rehearsal->count++] = pair;
    }
    if (rehearsal->count > 0)
        qsort(rehearsal->pairs, rehearsal->count, sizeof *rehearsal->pairs, by_ranks);
    return ferror(in) ? -EIO : 0;
}

void rehearsal_free(struct rehearsal *rehearsal)
{
    free(rehearsal->pairs);
    *rehearsal = (struct rehearsal){0};
}

bool rehearsal_find(const struct rehearsal *rehearsal, int from, int to, struct tcp *tcp)
{
    const struct pair_tcp wanted = {.from = from, .to = to};
    const struct pair_tcp *pair = NULL;
    if (rehearsal && rehearsal->count > 0)
        pair = bsearch(&wanted, rehearsal->pairs, rehearsal->count, sizeof wanted, by_ranks);
    if (pair)
        *tcp = pair->tcp;
    return pair != NULL;
}
