#include "sim/training/collective.h"

#include <errno.h>
#include <stdlib.h>

/* What one channel does, in rings of its own. */
struct part {
    int (*run)(struct stream *stream, const struct part *part);
    const struct groups *groups; /* hierarchical */
    const struct group *group;   /* one ring */
    enum ring_kind kind;
    struct span span;
    int channel, slices;
    int rc;
    struct stream *stream;
};

static int ring_part(struct stream *stream, const struct part *part)
{
    return ring_run(stream, part->group, part->kind, part->span, part->channel, part->slices);
}

/* After the reduce-scatter in the site this rank holds one segment of the channel's bytes, and only that crosses. */
static int reduce_part(struct stream *stream, const struct part *part)
{
    const struct group *site = &part->groups->site;
    int rc = ring_run(stream, site, RING_REDUCE_SCATTER, part->span, part->channel, part->slices);
    if (rc < 0)
        return rc;
    return ring_run(stream, &part->groups->cross, RING_ALL_REDUCE, ring_owned(site, part->span), part->channel,
                    part->slices);
}

static int hierarchical_part(struct stream *stream, const struct part *part)
{
    int rc = reduce_part(stream, part);
    if (rc < 0)
        return rc;
    return ring_run(stream, &part->groups->site, RING_ALL_GATHER, part->span, part->channel, part->slices);
}

static void run_part(struct stream *stream, void *argument)
{
    struct part *part = argument;
    part->rc = part->run(stream, part);
}

/* Channel c carries the c-th part of the span, all of them at once. */
static int over_channels(struct stream *stream, const struct part *all, const struct lane *lane)
{
    struct part *parts = calloc((size_t)lane->channels, sizeof *parts);
    int rc = 0;
    if (!parts)
        return -ENOMEM;
    for (int c = 0; c < lane->channels; c++) {
        parts[c] = *all;
        parts[c].span = ring_segment(all->span, lane->channels, c);
        parts[c].channel = lane->channel + c;
        parts[c].slices = lane->slices;
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
    struct part part = {.run = ring_part, .group = group, .kind = kind, .span = span};
    return group->count > 1 ? over_channels(stream, &part, lane) : 0;
}

int collective_hierarchical_reduce(struct stream *stream, const struct groups *groups, struct span span,
                                   const struct lane *lane)
{
    struct part part = {.run = reduce_part, .groups = groups, .span = span};
    return over_channels(stream, &part, lane);
}

int collective_hierarchical(struct stream *stream, const struct groups *groups, struct span span,
                            const struct lane *lane)
{
    struct part part = {.run = hierarchical_part, .groups = groups, .span = span};
    return over_channels(stream, &part, lane);
}
