/* The operations of transport.h on SimGrid actors. See sim.h. */
#include <math.h>
#include <simgrid/engine.h>
#include <stdlib.h>

#include "sim/engine/record.h"
#include "sim/engine/wire.h"

enum { STREAM_STACK_KIB = 32 };

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
            wire_listen_for(stream->sources[i], wire);
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
    struct message *message = connection->unsent ? connection->unsent : wire_append(connection);
    connection->unsent = message->next;
    message->bytes = (double)span.bytes;
    message->sent_s = simgrid_get_clock();
    message->what = stream->name;
    sim->sent_bytes += message->bytes;
    sim->messages++;
    bool pumped = wire_needs_receiver(message) || connection->bordered || connection->tcp;
    if (!connection->wire && !connection->unput && !pumped) {
        wire_put(message);
        return &message->side[1];
    }
    if (!connection->unput)
        connection->unput = message;
    if (!connection->wire && connection->unput == message)
        wire_kick_pump(connection);
    return &message->side[1];
}

static void remember_source(struct stream *stream, struct connection *connection)
{
    for (size_t i = 0; i < stream->source_count; i++)
        if (stream->sources[i] == connection)
            return;
    if (stream->source_count == stream->source_room) {
        stream->source_room = 2 * stream->source_room + 4;
        stream->sources = sim_need(realloc(stream->sources, stream->source_room * sizeof(struct connection *)));
    }
    stream->sources[stream->source_count++] = connection;
}

static struct request *sim_irecv(struct stream *stream, int from, int channel, struct span span, enum receive receive)
{
    (void)span, (void)receive;
    struct sim *sim = stream->sim;
    stream_catch_up(stream);
    struct connection *connection = sim_connection(sim, from, stream->head.rank, channel);
    struct message *message = connection->unposted ? connection->unposted : wire_append(connection);
    connection->unposted = message->next;
    message->receiver = stream;
    message->posted_s = simgrid_get_clock();
    remember_source(stream, connection);
    if (connection->wire == message)
        wire_start_clock(message);
    if (connection->listener || (connection->wire == message && connection->bordered))
        wire_listen_for(connection, message);
    if (connection->unput == message && !connection->wire && wire_needs_receiver(message))
        wire_kick_pump(connection);
    return &message->side[0];
}

/* Blocked in the SimGrid receive itself: the end is seen when it happens. */
static void receive_directly(struct stream *stream, struct message *message)
{
    struct connection *connection = message->connection;
    connection->assigned++;
    block(stream, INFINITY, message);
    struct message *seen = sg_mailbox_get(wire_mailbox(connection));
    stream->receiving = NULL;
    stream->blocked = false;
    stream_sleep_until(stream, wire_paced_until(seen));
    wire_saw_end(seen);
}

static void wait_receive(struct stream *stream, struct message *message)
{
    struct connection *connection = message->connection;
    double start_s = simgrid_get_clock();
    bool own_eyes = !connection->bordered && !wire_has_no_comm(connection);
    if (!wire_left(message) && own_eyes && connection->assigned == message->number && connection->listen == 0) {
        receive_directly(stream, message);
    } else if (!wire_left(message)) {
        message->receiver_waits = stream;
        wire_listen_for(connection, message);
        stream_acquire(stream);
    }
    stream->not_before_s = fmax(stream->not_before_s, message->left_s + connection->latency_s);
    stream->sim->received_bytes += message->bytes;
    stream->sim->arrived++;
    record_wait(stream, message, start_s);
}

static void wait_send(struct stream *stream, struct message *message)
{
    if (wire_left(message))
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
    wire_side_done(request->message);
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
    struct stream *stream = sim_need(calloc(1, sizeof *stream));
    const struct placement *placement = &sim->layout->placement;
    stream->head =
        (struct stream_head){&sim_ops, layout_rank(sim->layout, index), (int)(placement->stages * placement->replicas)};
    stream->sim = sim;
    stream->index = index;
    stream->name = name;
    stream->function = function;
    stream->argument = argument;
    stream->wake = sg_sem_init(0);
    stream->next = sim->streams;
    sim->streams = stream;
    sim->running++;
    record_stream(stream);
    stream->actor = sg_actor_init(name, sim->hosts[index]);
    sim_set_stack(stream->actor, STREAM_STACK_KIB);
    sg_actor_set_data(stream->actor, stream);
    sg_actor_start_(stream->actor, run_stream, 0, NULL);
    return stream;
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
        wire_free_connections(sim->connections[i]);
    while (sim->spare) {
        struct message *next = sim->spare->next;
        free(sim->spare);
        sim->spare = next;
    }
    for (size_t i = 0; sim->wan && i < 2 * sim->layout->scenario->wan_count; i++)
        free(sim->wan[i].spans);
    while (sim->pairs) {
        struct pair_tcp *next = sim->pairs->next;
        sg_sem_destroy(sim->pairs->turn);
        free(sim->pairs);
        sim->pairs = next;
    }
    free(sim->wan);
    free(sim->queues);
    free(sim->connections);
    free(sim->hosts);
    free(sim->borders);
}
