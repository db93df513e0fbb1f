#include "sim/training/ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { ELEMENT_BYTES = 4 };

int ring_steps(enum ring_kind kind, int count)
{
    return kind == RING_ALL_REDUCE ? 2 * (count - 1) : count - 1;
}

double ring_bytes_per_hop(enum ring_kind kind, int count, double bytes)
{
    return ring_steps(kind, count) * bytes / count;
}

/* Where the i-th of n parts begins: the first parts get the elements that do not divide. */
static uint64_t cut(uint64_t bytes, uint64_t n, uint64_t i)
{
    if (i == n)
        return bytes;
    uint64_t elements = bytes / ELEMENT_BYTES, rest = elements % n;
    return (elements / n * i + (i < rest ? i : rest)) * ELEMENT_BYTES;
}

struct span ring_segment(struct span span, int n, int i)
{
    uint64_t from = cut(span.bytes, (uint64_t)n, (uint64_t)i), to = cut(span.bytes, (uint64_t)n, (uint64_t)i + 1);
    return (struct span){span.region, span.offset + from, to - from};
}

static int wrap(int i, int n)
{
    return ((i % n) + n) % n;
}

struct span ring_owned(const struct group *group, struct span span)
{
    return ring_segment(span, group->count, wrap(group->position + 1, group->count));
}

/* One rank's walk round the ring. All receives are posted at once, so a long link never waits for one. The receive of
 * step t overwrites the segment that was sent in step t-(N-1); its message is that very segment after a lap round the
 * ring, so it cannot set out before that send has left, and that send is waited for before the receive is. */
struct walk {
    struct stream *stream;
    const struct group *group;
    enum ring_kind kind;
    struct span span;
    int channel, slices, steps;
    struct request **sends, **receives; /* [step * slices + slice] */
};

static int segment_sent(const struct walk *walk, int step)
{
    return walk->group->position + (walk->kind == RING_ALL_GATHER ? 1 : 0) - step;
}

static struct span slice_of(const struct walk *walk, int segment, int slice)
{
    int n = walk->group->count;
    return ring_segment(ring_segment(walk->span, n, wrap(segment, n)), walk->slices, slice);
}

static void wait_send(struct walk *walk, int i)
{
    transport_wait(walk->stream, walk->sends[i]);
    walk->sends[i] = NULL;
}

static void post_receives(struct walk *walk, int step)
{
    int n = walk->group->count;
    int from = walk->group->ranks[wrap(walk->group->position - 1, n)];
    bool reduces = walk->kind != RING_ALL_GATHER && step < n - 1;
    for (int j = 0; j < walk->slices; j++)
        walk->receives[step * walk->slices + j] =
            transport_irecv(walk->stream, from, walk->channel, slice_of(walk, segment_sent(walk, step) - 1, j),
                            reduces ? RECEIVE_ACCUMULATE : RECEIVE_REPLACE);
}

static void send_slice(struct walk *walk, int step, int slice)
{
    const struct group *group = walk->group;
    int to = group->ranks[wrap(group->position + 1, group->count)];
    walk->sends[step * walk->slices + slice] =
        transport_isend(walk->stream, to, walk->channel, slice_of(walk, segment_sent(walk, step), slice));
}

static void wait_receive(struct walk *walk, int step, int slice)
{
    int lap = walk->group->count - 1;
    if (step >= lap)
        wait_send(walk, (step - lap) * walk->slices + slice);
    transport_wait(walk->stream, walk->receives[step * walk->slices + slice]);
}

static void walk_round(struct walk *walk)
{
    for (int step = 0; step < walk->steps; step++)
        post_receives(walk, step);
    for (int j = 0; j < walk->slices; j++)
        send_slice(walk, 0, j);
    for (int step = 0; step < walk->steps; step++) {
        for (int j = 0; j < walk->slices; j++) {
            wait_receive(walk, step, j);
            if (step + 1 < walk->steps)
                send_slice(walk, step + 1, j);
        }
    }
    for (int i = 0; i < walk->steps * walk->slices; i++)
        wait_send(walk, i);
}

int ring_run(struct stream *stream, const struct group *group, enum ring_kind kind, struct span span, int channel,
             int slices)
{
    const struct transport_ops *ops = stream_head(stream)->ops;
    if (group->count < 2 || (ops->ring && ops->ring(stream, group, kind, span, channel, slices)))
        return 0;
    int steps = ring_steps(kind, group->count);
    size_t messages = (size_t)steps * (size_t)slices;
    struct request **requests = calloc(2 * messages, sizeof(struct request *));
    if (!requests)
        return -ENOMEM;
    struct walk walk = {stream, group, kind, span, channel, slices, steps, requests, requests + messages};
    walk_round(&walk);
    free(requests);
    return 0;
}
