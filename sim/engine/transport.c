#include "sim/engine/sim.h"

#include <errno.h>
#include <math.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/link.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/record.h"

/* ---- memory: SimGrid kills daemons without unwinding them, so everything hangs on the run; running out of it ends the
 * process of the run, which its parent reports. */
static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* SimGrid touches all of a stack, and a run has thousands. The address sanitizer's frames need its own, larger default.
 */
enum { STREAM_STACK_KIB = 32, WIRE_STACK_KIB = 16 };

static void set_stack(sg_actor_t actor, unsigned kib)
{
    if (!ACTORS_ARE_THREADS)
        sg_actor_set_stacksize(actor, kib);
}

/* ---- connections */

double sim_latency(const struct sim *sim, size_t from_site, size_t to_site)
{
    const struct layout *layout = sim->layout;
    double latency_s = sim->ideal.fabric ? 0 : layout->hop_latency_s;
    if (from_site == to_site)
        return latency_s;
    double wan_s = sim->ideal.wan_latency ? 0 : layout->wan_rtt_s[from_site * layout->placement.sites + to_site] / 2;
    return latency_s + wan_s + sim->ideal.extra_wan_delay_s;
}

/* Looked up when first used: the look-up is a SimGrid call, during which another actor may ask for the same connection.
 */
static sg_mailbox_t mailbox(struct connection *connection)
{
    char name[64];
    if (!connection->mailbox) {
        snprintf(name, sizeof name, "%d-%d-%d%s", connection->from, connection->to, connection->channel,
                 connection->from_site == connection->to_site ? "" : "-wan");
        connection->mailbox = sg_mailbox_by_name(name);
    }
    return connection->mailbox;
}

static void set_figures(struct connection *connection)
{
    const struct sim *sim = connection->sim;
    size_t from = connection->from_site, to = connection->to_site;
    connection->latency_s = sim_latency(sim, from, to);
    connection->pace_byte_per_s = from == to ? INFINITY : platform_pair_cap(sim->layout, &sim->ideal, from, to);
}

struct connection *sim_connection(struct sim *sim, int from_rank, int to_rank, int channel)
{
    const struct layout *layout = sim->layout;
    int from = layout_index(layout, from_rank), to = layout_index(layout, to_rank);
    size_t from_site = placement_site(&layout->placement, from_rank);
    size_t to_site = placement_site(&layout->placement, to_rank);
    if (layout->mirrored && from_site != to_site) {
        from_site = 0;
        to_site = 1;
    }
    struct connection *connection = sim->connections[from];
    while (connection && (connection->to != to || connection->channel != channel ||
                          (connection->from_site == connection->to_site) != (from_site == to_site)))
        connection = connection->next;
    if (connection)
        return connection;
    connection = need(calloc(1, sizeof *connection));
    *connection = (struct connection){
        .sim = sim, .from = from, .to = to, .channel = channel, .from_site = from_site, .to_site = to_site};
    connection->bordered = sim->borders && from_site != to_site;
    set_figures(connection);
    connection->next = sim->connections[from];
    sim->connections[from] = connection;
    return connection;
}

void sim_idealise(struct sim *sim, const struct ideal *ideal)
{
    const struct scenario *scenario = sim->layout->scenario;
    char name[LAYOUT_HOST_MAX * 2], way[LAYOUT_HOST_MAX * 2 + 8];
    sim->ideal = *ideal;
    for (size_t l = 0; l < scenario->wan_count; l++) {
        for (int up = 0; up < 2; up++) {
            snprintf(way, sizeof way, "%s_%s", platform_wan_name(scenario, (long)l, name), up ? "UP" : "DOWN");
            sg_link_set_bandwidth(sg_link_by_name(way), platform_wan_rate(sim->layout, ideal, (long)l));
        }
    }
    for (int i = 0; i < sim->layout->count; i++)
        for (struct connection *c = sim->connections[i]; c; c = c->next)
            set_figures(c);
}

/* ---- messages */

static struct message *append(struct connection *connection)
{
    struct message *message = connection->sim->spare;
    if (message)
        connection->sim->spare = message->next;
    else
        message = need(malloc(sizeof *message));
    *message = (struct message){.connection = connection, .number = connection->numbered++};
    message->posted_s = message->sent_s = message->start_s = message->left_s = NAN;
    message->side[0] = (struct request){message, false};
    message->side[1] = (struct request){message, true};
    if (connection->tail)
        connection->tail->next = message;
    connection->tail = message;
    if (!connection->unsent)
        connection->unsent = message;
    if (!connection->unposted)
        connection->unposted = message;
    return message;
}

static void side_done(struct message *message)
{
    struct connection *connection = message->connection;
    if (++message->waited < 2)
        return;
    if (connection->tail == message)
        connection->tail = NULL;
    message->next = connection->sim->spare;
    connection->sim->spare = message;
}

static bool posted(const struct message *message)
{
    return message->receiver != NULL;
}

static bool left(const struct message *message)
{
    return !isnan(message->left_s);
}

static bool eager(const struct message *message)
{
    return message->bytes <= message->connection->sim->eager_bytes;
}

static bool shakes_hands(const struct message *message)
{
    return message->connection->sim->handshakes > 0 && !eager(message);
}

/* ---- listener and pump */

/* With an ideal fabric a message inside a site takes no time: there is nothing to simulate. */
static bool takes_no_time(const struct connection *connection)
{
    return connection->sim->ideal.fabric && connection->from_site == connection->to_site;
}

static void kick(sg_sem_t *wake, struct connection *connection, xbt_main_func_t code, bool at_sender)
{
    if (!*wake) {
        const struct sim *sim = connection->sim;
        *wake = sg_sem_init(0);
        sg_actor_t actor = sg_actor_init(
            "wire", connection->bordered ? sim->borders[at_sender ? connection->from_site : connection->to_site]
                                         : sim->hosts[at_sender ? connection->from : connection->to]);
        sg_actor_set_data(actor, connection);
        set_stack(actor, WIRE_STACK_KIB);
        sg_actor_start_(actor, code, 0, NULL);
    }
    sg_sem_release(*wake);
}

/* What the connections of a pair can carry, however empty the link is. */
static double paced_until(const struct message *message)
{
    return message->start_s + message->bytes / message->connection->pace_byte_per_s;
}

static void saw_end(struct message *message);
static void pump(int argc, char **argv);

static void listener(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct connection *connection = sg_actor_self_get_data();
    sg_actor_daemonize(sg_actor_self());
    for (;;) {
        while (connection->listen > 0) {
            struct message *message = sg_mailbox_get(mailbox(connection));
            if (paced_until(message) > simgrid_get_clock())
                sg_actor_sleep_until(paced_until(message));
            saw_end(message);
            connection->listen--;
        }
        connection->listener_idle = true;
        sg_sem_acquire(connection->listener);
    }
}

static void listen_for(struct connection *connection, const struct message *message)
{
    if (takes_no_time(connection))
        return;
    for (; connection->assigned <= message->number; connection->assigned++)
        connection->listen++;
    if (connection->listen == 0 || (connection->listener && !connection->listener_idle))
        return;
    connection->listener_idle = false;
    kick(&connection->listener, connection, listener, false);
}

/* The last byte has left: the wire is free, and whoever waits for that goes on. */
static void saw_end(struct message *message)
{
    struct connection *connection = message->connection;
    message->left_s = simgrid_get_clock();
    connection->wire = NULL;
    record_message(connection->sim, message);
    if (message->sender_waits)
        sg_sem_release(message->sender_waits->wake);
    if (message->receiver_waits)
        sg_sem_release(message->receiver_waits->wake);
    if (connection->unput)
        kick(&connection->pump, connection, pump, true);
}

/* Whether the receiver cannot see the end of a message itself: it is blocked, and not in this message. */
static bool looks_away(const struct stream *receiver, const struct message *message)
{
    if (receiver->receiving)
        return receiver->receiving != message;
    return receiver->blocked && receiver->asleep_until_s > simgrid_get_clock();
}

static void start_clock(struct message *message)
{
    if (isnan(message->start_s))
        message->start_s = simgrid_get_clock();
}

static void put_on_wire(struct message *message)
{
    struct connection *connection = message->connection;
    struct sim *sim = connection->sim;
    if (takes_no_time(connection)) {
        start_clock(message);
        saw_end(message);
        return;
    }
    if (connection->from_site != connection->to_site && sim->first_wan_byte) {
        void (*hook)(struct sim *) = sim->first_wan_byte;
        sim->first_wan_byte = NULL;
        hook(sim);
    }
    connection->wire = message;
    if (posted(message) || eager(message))
        start_clock(message);
    sg_comm_t comm = sg_mailbox_put_init(mailbox(connection), message, lround(message->bytes));
    sg_comm_detach(comm, NULL);
    if (connection->wire == message &&
        (posted(message) ? connection->bordered || looks_away(message->receiver, message) : eager(message)))
        listen_for(connection, message);
}

/* Round trips before the bytes: the sender asks, the receiver (once posted) answers, and so on handshakes times. */
static double handshake_end(const struct message *message)
{
    double latency_s = message->connection->latency_s;
    double asked_s = message->sent_s + (double)(2 * message->connection->sim->handshakes - 1) * latency_s;
    return fmax(asked_s, message->posted_s) + latency_s;
}

static void pump(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct connection *connection = sg_actor_self_get_data();
    sg_actor_daemonize(sg_actor_self());
    for (;;) {
        sg_sem_acquire(connection->pump);
        struct message *message = connection->unput;
        if (!message || connection->wire || (shakes_hands(message) && !posted(message)))
            continue;
        if (shakes_hands(message) && handshake_end(message) > simgrid_get_clock())
            sg_actor_sleep_until(handshake_end(message));
        connection->unput = message->next && !isnan(message->next->sent_s) ? message->next : NULL;
        put_on_wire(message);
    }
}

/* ---- blocking */

/* Before a stream blocks: every comm to it that runs already needs somebody else to see its end. What it will be
 * blocked in is set first, because a SimGrid call lets other actors run. */
static void block(struct stream *stream, double until_s, struct message *receiving)
{
    stream->blocked = true;
    stream->asleep_until_s = until_s;
    stream->receiving = receiving;
    for (size_t i = 0; i < stream->source_count; i++) {
        struct message *wire = stream->sources[i]->wire;
        if (wire && wire != receiving && wire->receiver == stream)
            listen_for(stream->sources[i], wire);
    }
}

void stream_sleep_until(struct stream *stream, double time_s)
{
    if (time_s <= simgrid_get_clock())
        return;
    block(stream, time_s, NULL);
    sg_actor_sleep_until(time_s);
    stream->blocked = false;
}

void stream_catch_up(struct stream *stream)
{
    stream_sleep_until(stream, stream->not_before_s);
}

void stream_acquire(struct stream *stream)
{
    block(stream, INFINITY, NULL);
    sg_sem_acquire(stream->wake);
    stream->blocked = false;
}

/* ---- the operations of transport.h */

static struct request *sim_isend(struct stream *stream, int to, int channel, struct span span)
{
    struct sim *sim = stream->sim;
    stream_catch_up(stream);
    struct connection *connection = sim_connection(sim, stream->head.rank, to, channel);
    struct message *message = connection->unsent ? connection->unsent : append(connection);
    connection->unsent = message->next;
    message->bytes = (double)span.bytes;
    message->sent_s = simgrid_get_clock();
    message->what = stream->name;
    sim->sent_bytes += message->bytes;
    sim->messages++;
    if (!connection->wire && !connection->unput && !shakes_hands(message) && !connection->bordered) {
        put_on_wire(message);
        return &message->side[1];
    }
    if (!connection->unput)
        connection->unput = message;
    if (!connection->wire && connection->unput == message)
        kick(&connection->pump, connection, pump, true);
    return &message->side[1];
}

static void remember_source(struct stream *stream, struct connection *connection)
{
    for (size_t i = 0; i < stream->source_count; i++)
        if (stream->sources[i] == connection)
            return;
    if (stream->source_count == stream->source_room) {
        stream->source_room = 2 * stream->source_room + 4;
        stream->sources = need(realloc(stream->sources, stream->source_room * sizeof(struct connection *)));
    }
    stream->sources[stream->source_count++] = connection;
}

static struct request *sim_irecv(struct stream *stream, int from, int channel, struct span span, enum receive receive)
{
    (void)span, (void)receive;
    struct sim *sim = stream->sim;
    stream_catch_up(stream);
    struct connection *connection = sim_connection(sim, from, stream->head.rank, channel);
    struct message *message = connection->unposted ? connection->unposted : append(connection);
    connection->unposted = message->next;
    message->receiver = stream;
    message->posted_s = simgrid_get_clock();
    remember_source(stream, connection);
    if (connection->wire == message)
        start_clock(message);
    if (connection->listener || (connection->wire == message && connection->bordered))
        listen_for(connection, message);
    if (connection->unput == message && !connection->wire && shakes_hands(message))
        kick(&connection->pump, connection, pump, true);
    return &message->side[0];
}

/* Blocked in the SimGrid receive itself: the end is seen when it happens. */
static void receive_directly(struct stream *stream, struct message *message)
{
    struct connection *connection = message->connection;
    connection->assigned++;
    block(stream, INFINITY, message);
    struct message *seen = sg_mailbox_get(mailbox(connection));
    stream->receiving = NULL;
    stream->blocked = false;
    stream_sleep_until(stream, paced_until(seen));
    saw_end(seen);
}

static void wait_receive(struct stream *stream, struct message *message)
{
    struct connection *connection = message->connection;
    double start_s = simgrid_get_clock();
    bool own_eyes = !connection->bordered && !takes_no_time(connection);
    if (!left(message) && own_eyes && connection->assigned == message->number && connection->listen == 0) {
        receive_directly(stream, message);
    } else if (!left(message)) {
        message->receiver_waits = stream;
        listen_for(connection, message);
        stream_acquire(stream);
    }
    stream->not_before_s = fmax(stream->not_before_s, message->left_s + connection->latency_s);
    stream->sim->received_bytes += message->bytes;
    stream->sim->arrived++;
    record_wait(stream, message, start_s);
}

static void wait_send(struct stream *stream, struct message *message)
{
    if (left(message))
        return;
    message->sender_waits = stream;
    stream_acquire(stream);
}

static void sim_wait(struct stream *stream, struct request *request)
{
    if (request->sends)
        wait_send(stream, request->message);
    else
        wait_receive(stream, request->message);
    side_done(request->message);
}

static double sim_now(const struct stream *stream)
{
    return fmax(simgrid_get_clock(), stream->not_before_s);
}

/* One sleep for the latency of what was received and for the computation. */
static void sim_compute(struct stream *stream, double seconds)
{
    double start_s = sim_now(stream);
    if (stream->sim->ideal.compute)
        return;
    stream_sleep_until(stream, start_s + seconds);
    record_compute(stream, start_s);
}

static void run_stream(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct stream *stream = sg_actor_self_get_data();
    stream->function(stream, stream->argument);
    stream_catch_up(stream);
    stream->done = true;
    stream->sim->running--;
    if (stream->joiner)
        sg_sem_release(stream->joiner->wake);
}

static struct stream *sim_spawn(struct stream *parent, stream_function *function, void *argument, const char *name)
{
    stream_catch_up(parent);
    return sim_stream(parent->sim, parent->index, function, argument, name);
}

static void free_stream(struct stream *stream)
{
    sg_sem_destroy(stream->wake);
    free(stream->sources);
    free(stream);
}

/* A joined stream's struct stays until the run ends: messages may still name it as their receiver. */
static void sim_join(struct stream *stream, struct stream *child)
{
    if (child->done)
        return;
    child->joiner = stream;
    stream_acquire(stream);
}

static const struct transport_ops sim_ops = {.isend = sim_isend,
                                             .irecv = sim_irecv,
                                             .wait = sim_wait,
                                             .compute = sim_compute,
                                             .now = sim_now,
                                             .spawn = sim_spawn,
                                             .join = sim_join,
                                             .ring = bulk_ring};

struct stream *sim_stream(struct sim *sim, int index, stream_function *function, void *argument, const char *name)
{
    struct stream *stream = need(calloc(1, sizeof *stream));
    const struct placement *placement = &sim->layout->placement;
    stream->head =
        (struct stream_head){&sim_ops, layout_rank(sim->layout, index), (int)(placement->stages * placement->replicas)};
    stream->sim = sim;
    stream->index = index;
    stream->number = sim->stream_count++;
    stream->name = name;
    stream->function = function;
    stream->argument = argument;
    stream->wake = sg_sem_init(0);
    stream->next = sim->streams;
    sim->streams = stream;
    sim->running++;
    record_stream(stream);
    stream->actor = sg_actor_init(name, sim->hosts[index]);
    set_stack(stream->actor, STREAM_STACK_KIB);
    sg_actor_set_data(stream->actor, stream);
    sg_actor_start_(stream->actor, run_stream, 0, NULL);
    return stream;
}

static void free_connections(struct connection *connection)
{
    while (connection) {
        struct connection *next = connection->next;
        if (connection->listener)
            sg_sem_destroy(connection->listener);
        if (connection->pump)
            sg_sem_destroy(connection->pump);
        free(connection);
        connection = next;
    }
}

void sim_release(struct sim *sim)
{
    bulk_release(sim);
    while (sim->streams) {
        struct stream *next = sim->streams->next;
        free_stream(sim->streams);
        sim->streams = next;
    }
    for (int i = 0; sim->connections && i < sim->layout->count; i++)
        free_connections(sim->connections[i]);
    while (sim->spare) {
        struct message *next = sim->spare->next;
        free(sim->spare);
        sim->spare = next;
    }
    for (size_t i = 0; sim->wan && i < 2 * sim->layout->scenario->wan_count; i++)
        free(sim->wan[i].spans);
    free(sim->wan);
    free(sim->connections);
    free(sim->hosts);
    free(sim->borders);
}
