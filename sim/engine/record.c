#include "sim/engine/record.h"

#include <errno.h>
#include <math.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICES = 1000 };

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

void record_message(struct sim *sim, const struct message *message)
{
    const struct connection *connection = message->connection;
    const struct scenario *scenario = sim->layout->scenario;
    double start_s = isnan(message->start_s) ? message->left_s : message->start_s;
    for (size_t at = connection->from_site; at != connection->to_site;) {
        long link = sim->layout->next_link[at * scenario->site_count + connection->to_site];
        bool up = scenario->wan[link].between[0] == at;
        add_span(&sim->wan[2 * link + !up], start_s, message->left_s, message->bytes * sim->wan_bytes_scale);
        at = layout_other_end(scenario, link, at);
    }
    if (!recorded(sim, connection->from) || message->left_s <= start_s)
        return;
    char name[96];
    snprintf(name, sizeof name, "to rank %d", layout_rank(sim->layout, connection->to));
    timeline_span(sim->timeline, connection->from, 1000 + connection->channel, "send", name, start_s, message->left_s,
                  message->bytes);
}

/* Streams of one name share a track: they follow one another. */
static int track(const struct stream *stream)
{
    int sum = 0;
    for (const char *c = stream->name; *c; c++)
        sum = (sum * 31 + *c) % 997;
    return sum + 1;
}

void record_stream(const struct stream *stream)
{
    const struct sim *sim = stream->sim;
    char rank[160], host[LAYOUT_HOST_MAX];
    if (!recorded(sim, stream->index))
        return;
    snprintf(rank, sizeof rank, "rank %d (%s)", stream->head.rank, layout_host(sim->layout, stream->head.rank, host));
    timeline_name(sim->timeline, stream->index, rank, track(stream), stream->name);
}

void record_wait(const struct stream *stream, const struct message *message, double start_s)
{
    double now_s = transport_now(stream);
    if (!recorded(stream->sim, stream->index) || now_s <= start_s)
        return;
    char name[96];
    snprintf(name, sizeof name, "from rank %d", layout_rank(stream->sim->layout, message->connection->from));
    timeline_span(stream->sim->timeline, stream->index, track(stream), "wait", name, start_s, now_s, message->bytes);
}

void record_compute(const struct stream *stream, double start_s)
{
    double now_s = simgrid_get_clock();
    if (recorded(stream->sim, stream->index) && now_s > start_s)
        timeline_span(stream->sim->timeline, stream->index, track(stream), "compute", "compute", start_s, now_s, 0);
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
        for (int s = 0; s < SLICES; s++)
            timeline_counter(sim->timeline, process, name, s * step_s / SLICES, bytes[s] * 8 * SLICES / step_s);
    }
    free(bytes);
    return 0;
}
