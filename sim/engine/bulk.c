/* A ring collective in few flows, where its messages would be too many.
 *
 * Ring of N ranks, m = S/N bytes a segment, k slices of s = m/(k B) each, one-way latency a, T = a + s, U = k * steps
 * slices per hop. With D_j(u) the time rank j starts sending slice u and FIFO wires, every rank obeys D_j(u) =
 * max(D_{j-1}(u-k) + T, D_j(u-1) + s),   D_j(u) = open_j + u s for u < k, where a wire opens once both its ends have
 * begun: open_j = max(start_j, start_{j+1}). The solution is a maximum over paths of hops and waits on one wire: D_j(u)
 * = u s + max_i (open_{j-i} + i (T - k s)),   i = 0 .. floor(u/k). tests/support/ring_oracle.c computes the same
 * recursion slice by slice.
 *
 * A ring inside one site sends one flow per neighbour, so that NICs are shared with everything else; what the flow lost
 * to others (beyond U s) lengthens every slice. A ring over several sites is cut into runs of ranks of one site:
 * messages cross the WAN one by one, the hops between a run's entry and its exit follow the formula (their NICs are
 * taken as free). Range: unequal NICs and other traffic on the NICs of a run are not seen. Folded, one rank stands for
 * a whole run.
 */
#include <math.h>
#include <simgrid/engine.h>
#include <stdlib.h>

#include "sim/engine/sim.h"
#include "sim/training/ring.h"

/* Consecutive positions of the ring in one site; entry receives from the WAN, exit sends to it. */
struct run {
    int entry, length;
    int joined;
    long seen; /* slices that the entry has received */
    double
        *arrived; /* [U] with FIFO spacing on the entry's wire: max over v <= u of (arrival of v + (u - v) s); owned */
    struct stream *exit_waits;
    struct stream **waits; /* [length] members that wait for the end; owned */
};

struct bulk {
    struct sim *sim;
    struct group group; /* ranks as in the strategy's group (which outlives the collective) */
    enum ring_kind kind;
    int channel, slices;
    struct span span;
    long sends;            /* U */
    double slice_s, hop_s; /* s, T */
    double *start_s;       /* [N]; NAN until the position has joined */
    bool *joined;          /* [N] */
    int joined_count, left_count;
    struct stream **waits; /* [N] */
    double worst_excess_s;
    int flows_done;
    struct run *runs;       /* NULL for a ring inside one site */
    int run_count, *run_of; /* [N] */
    struct bulk *next;
};

static size_t site_at(const struct sim *sim, const struct group *group, int position)
{
    return placement_site(&sim->layout->placement, group->ranks[position]);
}

static bool enters(const struct sim *sim, const struct group *group, int position)
{
    int before = (position + group->count - 1) % group->count;
    return site_at(sim, group, position) != site_at(sim, group, before);
}

static int wan_hops(const struct sim *sim, const struct group *group)
{
    int hops = 0;
    for (int i = 0; i < group->count; i++)
        hops += enters(sim, group, i);
    return hops;
}

static void cut_into_runs(struct bulk *bulk)
{
    const struct group *group = &bulk->group;
    int n = group->count;
    bulk->run_count = wan_hops(bulk->sim, group);
    if (bulk->run_count == 0)
        return;
    bulk->runs = sim_need(calloc((size_t)bulk->run_count, sizeof *bulk->runs));
    bulk->run_of = sim_need(calloc((size_t)n, sizeof *bulk->run_of));
    int first = 0, run = -1;
    while (!enters(bulk->sim, group, first))
        first++;
    for (int i = 0; i < n; i++) {
        int position = (first + i) % n;
        if (enters(bulk->sim, group, position))
            bulk->runs[++run].entry = position;
        bulk->run_of[position] = run;
        bulk->runs[run].length++;
    }
    for (run = 0; run < bulk->run_count; run++) {
        bulk->runs[run].arrived = sim_need(calloc((size_t)bulk->sends, sizeof(double)));
        bulk->runs[run].waits = sim_need(calloc((size_t)bulk->runs[run].length, sizeof(struct stream *)));
    }
}

static struct bulk *bulk_new(struct sim *sim, const struct group *group, enum ring_kind kind, struct span span,
                             int channel, int slices)
{
    struct bulk *bulk = sim_need(calloc(1, sizeof *bulk));
    size_t n = (size_t)group->count;
    double segment = (double)span.bytes / group->count;
    double rate = sim->ideal.fabric ? INFINITY : sim->layout->nic_byte_per_s;
    *bulk =
        (struct bulk){.sim = sim, .group = *group, .kind = kind, .channel = channel, .slices = slices, .span = span};
    bulk->sends = (long)ring_steps(kind, group->count) * slices;
    bulk->slice_s = segment / slices / rate;
    bulk->hop_s = bulk->slice_s + (sim->ideal.fabric ? 0 : sim->layout->hop_latency_s);
    bulk->start_s = sim_need(calloc(n, sizeof(double)));
    bulk->joined = sim_need(calloc(n, sizeof(bool)));
    bulk->waits = sim_need(calloc(n, sizeof(struct stream *)));
    for (size_t i = 0; i < n; i++)
        bulk->start_s[i] = NAN;
    cut_into_runs(bulk);
    bulk->next = sim->bulks;
    sim->bulks = bulk;
    sim->used_bulk = true;
    return bulk;
}

static void bulk_free(struct bulk *bulk)
{
    for (int r = 0; bulk->runs && r < bulk->run_count; r++) {
        free(bulk->runs[r].arrived);
        free(bulk->runs[r].waits);
    }
    free(bulk->runs);
    free(bulk->run_of);
    free(bulk->start_s);
    free(bulk->joined);
    free(bulk->waits);
    free(bulk);
}

void bulk_release(struct sim *sim)
{
    while (sim->bulks) {
        struct bulk *next = sim->bulks->next;
        bulk_free(sim->bulks);
        sim->bulks = next;
    }
}

/* A channel of a ring has one collective after the other, the same for all its ranks, so place and count tell which it
 * is: the oldest that the position has not joined (the list is newest first). */
static struct bulk *find(struct sim *sim, const struct group *group, enum ring_kind kind, struct span span, int channel,
                         int slices)
{
    struct bulk *oldest = NULL;
    for (struct bulk *bulk = sim->bulks; bulk; bulk = bulk->next)
        if (bulk->group.ranks[0] == group->ranks[0] && bulk->group.count == group->count && bulk->channel == channel &&
            !bulk->joined[group->position])
            oldest = bulk;
    return oldest ? oldest : bulk_new(sim, group, kind, span, channel, slices);
}

static void leave(struct bulk *bulk, int members)
{
    struct bulk **at = &bulk->sim->bulks;
    if (++bulk->left_count < members)
        return;
    while (*at != bulk)
        at = &(*at)->next;
    *at = bulk->next;
    bulk_free(bulk);
}

/* Positions that are simulated: all of them, or one per site where folded. */
static int members_of(const struct bulk *bulk)
{
    const struct layout *layout = bulk->sim->layout;
    if (!layout->folded)
        return bulk->group.count;
    int members = 0;
    for (int i = 0; i < bulk->group.count; i++)
        members += layout_rank(layout, layout_index(layout, bulk->group.ranks[i])) == bulk->group.ranks[i];
    return members;
}

static void join(struct bulk *bulk, int position, double now_s)
{
    bulk->joined[position] = true;
    bulk->joined_count++;
    bulk->start_s[position] = now_s;
}

static void wake_all(struct stream **waits, int count)
{
    for (int i = 0; i < count; i++) {
        if (waits[i])
            sg_sem_release(waits[i]->wake);
        waits[i] = NULL;
    }
}

/* When the wire behind a position opens; a folded position's start is that of the one that stands for it. */
static double wire_opens(const struct bulk *bulk, int position)
{
    int n = bulk->group.count;
    if (bulk->sim->layout->folded)
        return bulk->start_s[bulk->group.position];
    return fmax(bulk->start_s[position % n], bulk->start_s[(position + 1) % n]);
}

/* D_j(U-1) in a ring inside one site; a slice takes slice_s. */
static double last_send(const struct bulk *bulk, int position, double slice_s)
{
    int n = bulk->group.count;
    long laps = (bulk->sends - 1) / bulk->slices;
    double step_s = bulk->hop_s - bulk->slice_s - (bulk->slices - 1) * slice_s, best_s = -INFINITY;
    for (long i = 0; i <= laps; i++)
        best_s = fmax(best_s, wire_opens(bulk, position + n - (int)(i % n)) + (double)i * step_s);
    return best_s + (double)(bulk->sends - 1) * slice_s;
}

/* What the slowest flow lost to other traffic makes every slice of every rank that much longer. */
static double ring_end(const struct bulk *bulk, int position)
{
    int before = (position + bulk->group.count - 1) % bulk->group.count;
    double lost_s = bulk->worst_excess_s / (double)bulk->sends, slice_s = bulk->slice_s + lost_s;
    return fmax(last_send(bulk, before, slice_s) + bulk->hop_s + lost_s, last_send(bulk, position, slice_s) + slice_s);
}

/* One flow to the next rank; the time it lost to other traffic once its wire was open. */
static double send_flow(struct stream *stream, const struct bulk *bulk, const struct group *group)
{
    int n = group->count, position = group->position;
    struct span all = bulk->span;
    all.bytes = (uint64_t)llround(ring_bytes_per_hop(bulk->kind, n, (double)bulk->span.bytes));
    struct request *in =
        transport_irecv(stream, group->ranks[(position + n - 1) % n], bulk->channel, all, RECEIVE_REPLACE);
    struct request *out = transport_isend(stream, group->ranks[(position + 1) % n], bulk->channel, all);
    transport_wait(stream, out);
    double excess_s = transport_now(stream) - wire_opens(bulk, position) - (double)bulk->sends * bulk->slice_s;
    transport_wait(stream, in);
    return excess_s;
}

static void ring_in_site(struct stream *stream, struct bulk *bulk, const struct group *group)
{
    int members = members_of(bulk), position = group->position;
    double excess_s = send_flow(stream, bulk, group);
    bulk->worst_excess_s = fmax(bulk->worst_excess_s, excess_s);
    if (++bulk->flows_done == members) {
        wake_all(bulk->waits, group->count);
    } else {
        bulk->waits[position] = stream;
        stream_acquire(stream);
    }
    stream_sleep_until(stream, ring_end(bulk, position));
    leave(bulk, members);
}

/* ---- rings over several sites */

static int position_in(const struct bulk *bulk, const struct run *run, int distance)
{
    return (run->entry + distance) % bulk->group.count;
}

static double start_of(const struct bulk *bulk, const struct run *run, int distance)
{
    bool folded = bulk->sim->layout->folded;
    return bulk->start_s[position_in(bulk, run, folded ? 0 : distance)];
}

/* When the wire of a rank that is not the exit opens; NAN while one of its ends has not begun. */
static double run_opens(const struct bulk *bulk, const struct run *run, int distance)
{
    double start_s = start_of(bulk, run, distance), next_s = start_of(bulk, run, distance + 1);
    return isnan(start_s) || isnan(next_s) ? NAN : fmax(start_s, next_s);
}

/* The paths of D_j(u) that begin inside the run; NAN when one of those ranks has not begun. */
static double from_starts(const struct bulk *bulk, const struct run *run, int distance, long u)
{
    double step_s = bulk->hop_s - bulk->slices * bulk->slice_s, best_s = -INFINITY;
    for (long i = 0; i <= distance && i <= u / bulk->slices; i++) {
        double open_s = run_opens(bulk, run, distance - (int)i);
        if (isnan(open_s))
            return NAN;
        best_s = fmax(best_s, open_s + (double)i * step_s);
    }
    return best_s + (double)u * bulk->slice_s;
}

/* When rank `distance` of the run starts sending slice u, its own wire being a fabric hop. The entry must have seen
 * slice u - (distance + 1) k; all starts of the run must be known. */
static double send_start(const struct bulk *bulk, const struct run *run, int distance, long u)
{
    long origin = u - (long)(distance + 1) * bulk->slices;
    double starts_s = from_starts(bulk, run, distance, u);
    return origin < 0 ? starts_s : fmax(starts_s, run->arrived[origin] + distance * bulk->hop_s);
}

/* When the exit has slice u to send; NAN while that is not known. */
static double exit_ready(const struct bulk *bulk, const struct run *run, long u)
{
    int distance = run->length - 1;
    if (u < bulk->slices)
        return start_of(bulk, run, distance);
    if (u - (long)(distance + 1) * bulk->slices >= run->seen)
        return NAN;
    if (distance == 0)
        return run->arrived[u - bulk->slices];
    return send_start(bulk, run, distance - 1, u - bulk->slices) + bulk->hop_s;
}

static struct span slice_span(const struct bulk *bulk, long u)
{
    int n = bulk->group.count;
    struct span segment = ring_segment(bulk->span, n, (int)((u / bulk->slices) % n));
    return ring_segment(segment, bulk->slices, (int)(u % bulk->slices));
}

static void exit_sends(struct stream *stream, struct bulk *bulk, struct run *run)
{
    int next = bulk->group.ranks[(run->entry + run->length) % bulk->group.count];
    struct request **sends = sim_need(calloc((size_t)bulk->sends, sizeof(struct request *)));
    for (long u = 0; u < bulk->sends; u++) {
        double ready_s;
        while (isnan(ready_s = exit_ready(bulk, run, u))) {
            run->exit_waits = stream;
            stream_acquire(stream);
        }
        stream_sleep_until(stream, ready_s);
        sends[u] = transport_isend(stream, next, bulk->channel, slice_span(bulk, u));
    }
    for (long u = 0; u < bulk->sends; u++)
        transport_wait(stream, sends[u]);
    free(sends);
}

static void wake(struct stream **waits)
{
    struct stream *stream = *waits;
    *waits = NULL;
    if (stream)
        sg_sem_release(stream->wake);
}

static void note_arrival(struct bulk *bulk, struct run *run, double now_s)
{
    long u = run->seen;
    run->arrived[u] = u ? fmax(run->arrived[u - 1] + bulk->slice_s, now_s) : now_s;
    run->seen++;
    wake(&run->exit_waits);
    long back = bulk->sends - 1 - u;
    if (back % bulk->slices == 0 && back / bulk->slices < run->length)
        wake(&run->waits[back / bulk->slices]);
}

static void entry_receives(struct stream *stream, struct bulk *bulk, struct run *run)
{
    int n = bulk->group.count;
    int before = bulk->group.ranks[(run->entry + n - 1) % n];
    struct request **receives = sim_need(calloc((size_t)bulk->sends, sizeof(struct request *)));
    for (long u = 0; u < bulk->sends; u++)
        receives[u] = transport_irecv(stream, before, bulk->channel, slice_span(bulk, u), RECEIVE_REPLACE);
    for (long u = 0; u < bulk->sends; u++) {
        transport_wait(stream, receives[u]);
        note_arrival(bulk, run, transport_now(stream));
    }
    free(receives);
}

struct entry_job {
    struct bulk *bulk;
    struct run *run;
};

static void entry_stream(struct stream *stream, void *argument)
{
    struct entry_job *job = argument;
    entry_receives(stream, job->bulk, job->run);
}

/* The last arrival at, and the last send of, a rank whose own hop stays inside the site. */
static double member_end(const struct bulk *bulk, const struct run *run, int distance)
{
    double sent_s = send_start(bulk, run, distance, bulk->sends - 1) + bulk->slice_s;
    if (distance == 0)
        return sent_s;
    return fmax(sent_s, send_start(bulk, run, distance - 1, bulk->sends - 1) + bulk->hop_s);
}

static void await_run(struct stream *stream, struct bulk *bulk, struct run *run, int distance)
{
    bool folded = bulk->sim->layout->folded;
    if (!folded && run->joined < run->length) {
        bulk->waits[position_in(bulk, run, distance)] = stream;
        stream_acquire(stream);
    }
    if (bulk->sends - 1 - (long)distance * bulk->slices >= run->seen) {
        run->waits[distance] = stream;
        stream_acquire(stream);
    }
}

static void announce(struct bulk *bulk, struct run *run)
{
    wake(&run->exit_waits);
    if (++run->joined < run->length)
        return;
    for (int j = 0; j < run->length; j++)
        wake(&bulk->waits[position_in(bulk, run, j)]);
}

static void ring_over_sites(struct stream *stream, struct bulk *bulk, const struct group *group)
{
    struct run *run = &bulk->runs[bulk->run_of[group->position]];
    int n = group->count, members = members_of(bulk);
    int distance = (group->position + n - run->entry) % n;
    bool folded = bulk->sim->layout->folded;
    bool is_entry = distance == 0, is_exit = folded || distance == run->length - 1;
    struct entry_job job = {bulk, run};
    struct stream *helper = NULL;
    announce(bulk, run);
    if (is_entry && is_exit)
        helper = transport_spawn(stream, entry_stream, &job, stream->name);
    else if (is_entry)
        entry_receives(stream, bulk, run);
    if (is_exit)
        exit_sends(stream, bulk, run);
    if (helper)
        transport_join(stream, helper);
    int last = folded ? run->length - 1 : distance;
    await_run(stream, bulk, run, last);
    if (!is_exit)
        stream_sleep_until(stream, member_end(bulk, run, last));
    else if (last > 0)
        stream_sleep_until(stream, send_start(bulk, run, last - 1, bulk->sends - 1) + bulk->hop_s);
    leave(bulk, members);
}

/* Whether the formula covers the transport: it knows neither handshakes nor what several channels do to each other's
 * gaps, nor, between the entry and the exit of a run, an oversubscribed core. */
static bool covered(const struct sim *sim, int wan_hops)
{
    const struct scenario *scenario = sim->layout->scenario;
    bool core = wan_hops > 0 && scenario->fabric.oversubscription > 1 && !sim->ideal.fabric;
    return sim->handshakes == 0 && !core;
}

/* Whether to take a ring as one operation: folded, a run over sites has no ranks to pass messages on, and a ring inside
 * a site would only send to itself; else when messages are too many and there are hops to save. */
static bool wanted(const struct sim *sim, const struct group *group, enum ring_kind kind, int slices)
{
    int hops = wan_hops(sim, group);
    double messages = (double)sim->layout->placement.replicas * ring_steps(kind, group->count) * slices;
    bool one_channel = sim->layout->scenario->transport.channels == 1;
    bool folded = sim->layout->folded && (hops > 0 || (!isinf(sim->bulk_above) && one_channel));
    return hops < group->count && covered(sim, hops) && (folded || messages > sim->bulk_above);
}

bool bulk_ring(struct stream *stream, const struct group *group, enum ring_kind kind, struct span span, int channel,
               int slices)
{
    struct sim *sim = stream->sim;
    if (!wanted(sim, group, kind, slices))
        return false;
    stream_catch_up(stream);
    struct bulk *bulk = find(sim, group, kind, span, channel, slices);
    join(bulk, group->position, transport_now(stream));
    if (bulk->runs)
        ring_over_sites(stream, bulk, group);
    else
        ring_in_site(stream, bulk, group);
    return true;
}
