#include "sim/engine/record.h"

#include <errno.h>
#include <math.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICES = 1000, SEND_TRACKS = 100000 };

static void add_span(struct wan_load *load, double start_s, double end_s, double bytes)
{
    if (load->count == load->room) {
        load->room = 2 * load->room + 64;
        load->spans = realloc(load->spans, load->room * sizeof *load->spans);
        if (!load->spans)
            abort();
    }
    load->bytes += bytes;
    load->spans[load->count++] = (struct wan_span){start_s, end_s, bytes};
}

static bool recorded(const struct sim *sim, int index)
{
    int rank = layout_rank(sim->layout, index);
    const struct placement *placement = &sim->layout->placement;
    size_t site = placement_site(placement, rank);
    return sim->timeline && placement_replica(placement, rank) == placement->site_first[site];
}

/* One track for each connection of a sender: a wire carries one message at a time. */
static int send_track(const struct connection *connection)
{
    int place = 0;
    for (const struct connection *older = connection->next; older; older = older->next)
        place++;
    return place;
}

void record_message(struct sim *sim, const struct message *message)
{
    const struct connection *connection = message->connection;
    const struct scenario *scenario = sim->layout->scenario;
    double start_s = isnan(message->start_s) ? message->left_s : message->start_s;
    for (size_t at = connection->from_site; at != connection->to_site;) {
        long link = sim->layout->routes.next_link[at * scenario->site_count + connection->to_site];
        bool up = scenario->wan[link].between[0] == at;
        add_span(&sim->wan[2 * link + !up], start_s, message->left_s, message->bytes * sim->wan_bytes_scale);
        at = route_other_end(scenario, link, at);
    }
    if (!recorded(sim, connection->from) || message->left_s <= start_s)
        return;
    char name[96], rank[160], host[LAYOUT_HOST_MAX];
    int from = layout_rank(sim->layout, connection->from), track = SEND_TRACKS + send_track(connection);
    if (message->number == 0) {
        snprintf(rank, sizeof rank, "rank %d (%s)", from, layout_host(sim->layout, from, host));
        snprintf(name, sizeof name, "sends to rank %d, channel %d", layout_rank(sim->layout, connection->to),
                 connection->channel);
        timeline_name(sim->timeline, connection->from, rank, track, name);
    }
    snprintf(name, sizeof name, "to rank %d", layout_rank(sim->layout, connection->to));
    timeline_span(sim->timeline, connection->from, track, "send", name, start_s, message->left_s, message->bytes);
}

/* Streams of one rank that run at once have a track each; those that follow one another under one name share it. Tracks
 * are a number from the name plus a place among the streams of that name. */
enum { PLACES = 64, NAMES = 997 };

static int base_track(const char *name)
{
    int sum = 0;
    for (const char *c = name; *c; c++)
        sum = (sum * 31 + *c) % NAMES;
    return sum * PLACES;
}

static bool same_kind(const struct stream *a, const struct stream *b)
{
    return a != b && a->index == b->index && !strcmp(a->name, b->name);
}

static bool taken(const struct stream *stream, int track, bool now)
{
    for (const struct stream *other = stream->sim->streams; other; other = other->next)
        if (same_kind(other, stream) && other->track == track && !(now && other->done))
            return true;
    return false;
}

void record_stream(struct stream *stream)
{
    const struct sim *sim = stream->sim;
    char rank[160], host[LAYOUT_HOST_MAX], name[96];
    if (!recorded(sim, stream->index))
        return;
    int place = 0;
    while (place < PLACES - 1 && taken(stream, base_track(stream->name) + place, true))
        place++;
    stream->track = base_track(stream->name) + place;
    if (taken(stream, stream->track, false))
        return;
    snprintf(rank, sizeof rank, "rank %d (%s)", stream->head.rank, layout_host(sim->layout, stream->head.rank, host));
    snprintf(name, sizeof name, place ? "%s %d" : "%s", stream->name, place + 1);
    timeline_name(sim->timeline, stream->index, rank, stream->track, name);
}

void record_wait(const struct stream *stream, const struct message *message, double start_s)
{
    double now_s = transport_now(stream);
    if (!recorded(stream->sim, stream->index) || now_s <= start_s)
        return;
    char name[96];
    snprintf(name, sizeof name, "from rank %d", layout_rank(stream->sim->layout, message->connection->from));
    timeline_span(stream->sim->timeline, stream->index, stream->track, "wait", name, start_s, now_s, message->bytes);
}

void record_compute(const struct stream *stream, double start_s)
{
    double now_s = simgrid_get_clock();
    if (recorded(stream->sim, stream->index) && now_s > start_s)
        timeline_span(stream->sim->timeline, stream->index, stream->track, "compute", "compute", start_s, now_s, 0);
}

/* Bytes per slice of [0, step_s]; a message spreads its bytes evenly over its time on the wire. */
static void fill_slices(const struct wan_load *load, double step_s, double *bytes)
{
    memset(bytes, 0, SLICES * sizeof *bytes);
    double width_s = step_s / SLICES;
    for (size_t i = 0; i < load->count; i++) {
        const struct wan_span *span = &load->spans[i];
        long first = lround(floor(span->start_s / width_s)), last = lround(floor(span->end_s / width_s));
        double length_s = span->end_s - span->start_s;
        for (long s = first; s <= last && s < SLICES; s++) {
            double from_s = fmax(span->start_s, (double)s * width_s);
            double to_s = fmin(span->end_s, (double)(s + 1) * width_s);
            bytes[s] += length_s > 0 ? span->bytes * fmax(0, to_s - from_s) / length_s : span->bytes;
        }
    }
}

const struct wan_load *record_load(const struct sim *sim, size_t i)
{
    return &sim->wan[sim->layout->mirrored && sim->wan[i].count == 0 ? i ^ 1 : i];
}

void record_utilisation(const struct wan_load *load, double rate_byte_per_s, double step_s, double *mean, double *peak)
{
    double bytes[SLICES], most = 0;
    *mean = *peak = 0;
    if (step_s <= 0 || isinf(rate_byte_per_s))
        return;
    fill_slices(load, step_s, bytes);
    for (int s = 0; s < SLICES; s++)
        most = fmax(most, bytes[s]);
    *mean = load->bytes / rate_byte_per_s / step_s;
    *peak = fmax(*mean, fmin(1, most * SLICES / step_s / rate_byte_per_s));
}

int record_wan_tracks(struct sim *sim, double step_s)
{
    const struct scenario *scenario = sim->layout->scenario;
    double *bytes = calloc(SLICES, sizeof *bytes);
    if (!bytes)
        return -ENOMEM;
    for (size_t i = 0; i < 2 * scenario->wan_count; i++) {
        const struct wan_link *wan = &scenario->wan[i / 2];
        char name[200];
        snprintf(name, sizeof name, "%s to %s, bit/s", scenario->sites[wan->between[i % 2]].name,
                 scenario->sites[wan->between[!(i % 2)]].name);
        int process = 1000000 + (int)(i / 2);
        timeline_name(sim->timeline, process, "WAN", 0, name);
        fill_slices(record_load(sim, i), step_s, bytes);
        double rate = platform_wan_rate(sim->layout, &sim->ideal, (long)(i / 2)) * sim->wan_bytes_scale;
        for (int s = 0; s < SLICES; s++)
            timeline_counter(sim->timeline, process, name, s * step_s / SLICES,
                             8 * fmin(rate, bytes[s] * SLICES / step_s));
    }
    free(bytes);
    return 0;
}
