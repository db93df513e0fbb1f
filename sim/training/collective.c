#include "sim/training/collective.h"

#include <errno.h>
#include <stdlib.h>

struct part {
    const struct group *group;
    enum ring_kind kind;
    struct span span;
    int channel, slices;
    int rc;
    struct stream *stream;
};

static void run_part(struct stream *stream, void *argument)
{
    struct part *part = argument;
    part->rc = ring_run(stream, part->group, part->kind, part->span, part->channel, part->slices);
}

/* Channel c carries the c-th part of the span in a ring of its own. */
static int ring_over_channels(struct stream *stream, const struct group *group, enum ring_kind kind, struct span span,
                              const struct lane *lane)
{
    struct part *parts = calloc((size_t)lane->channels, sizeof *parts);
    int rc = 0;
    if (!parts)
        return -ENOMEM;
    for (int c = 0; c < lane->channels; c++) {
        parts[c] = (struct part){group, kind, ring_segment(span, lane->channels, c), lane->channel + c, lane->slices, 0, NULL};
        if (c > 0)
            parts[c].stream = transport_spawn(stream, run_part, &parts[c], "channel");
    }
    run_part(stream, &parts[0]);
    for (int c = 1; c < lane->channels; c++)
        transport_join(stream, parts[c].stream);
    for (int c = 0; c < lane->channels; c++)
        rc = parts[c].rc < 0 ? parts[c].rc : rc;
    free(parts);
    return rc;
}

int collective_ring(struct stream *stream, const struct group *group, enum ring_kind kind, struct span span,
                    const struct lane *lane)
{
    if (lane->channels > 1 && group->count > 1)
        return ring_over_channels(stream, group, kind, span, lane);
    return ring_run(stream, group, kind, span, lane->channel, lane->slices);
}

/* The part of the span that this rank holds after the reduce-scatter, one piece per channel. */
static struct span shard(const struct group *group, struct span span, const struct lane *lane, int channel)
{
    return ring_owned(group, ring_segment(span, lane->channels, channel));
}

int collective_hierarchical_reduce(struct stream *stream, const struct groups *groups, struct span span,
                                   const struct lane *lane)
{
    int rc = collective_ring(stream, &groups->site, RING_REDUCE_SCATTER, span, lane);
    struct lane single = {lane->channel, 1, lane->slices};
    for (int c = 0; c < lane->channels && rc == 0; c++)
        rc = collective_ring(stream, &groups->cross, RING_ALL_REDUCE,
                             groups->site.count > 1 ? shard(&groups->site, span, lane, c)
                                                    : ring_segment(span, lane->channels, c),
                             &single);
    return rc;
}

int collective_hierarchical(struct stream *stream, const struct groups *groups, struct span span, const struct lane *lane)
{
    int rc = collective_hierarchical_reduce(stream, groups, span, lane);
    return rc < 0 ? rc : collective_ring(stream, &groups->site, RING_ALL_GATHER, span, lane);
}
