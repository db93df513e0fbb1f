/* Connections: who sees the end of a message on the wire, and who puts the next one there. See sim.h. */
#include "sim/engine/wire.h"

#include <errno.h>
#include <math.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/link.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/record.h"
#include "sim/engine/rehearsal.h"

void *sim_need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

enum { WIRE_STACK_KIB = 16 };

void sim_set_stack(sg_actor_t actor, unsigned kib)
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
    double wan_s = sim->ideal.wan_latency ? 0 : layout->routes.rtt_s[from_site * layout->placement.sites + to_site] / 2;
    return latency_s + wan_s + sim->ideal.extra_wan_delay_s;
}

/* Looked up when first used: the look-up is a SimGrid call, during which another actor may ask for the same connection.
 */
sg_mailbox_t wire_mailbox(struct connection *connection)
{
    char name[64];
    if (!connection->mailbox) {
        snprintf(name, sizeof name, "%d-%d-%d%s", connection->from, connection->to, connection->channel,
                 connection->from_site == connection->to_site ? "" : "-wan");
        connection->mailbox = sg_mailbox_by_name(name);
    }
    return connection->mailbox;
}

/* Losses of the links on the way, each a burst. */
static double path_loss(const struct layout *layout, size_t from, size_t to)
{
    const struct scenario *scenario = layout->scenario;
    double kept = 1;
    while (from != to) {
        long link = layout->routes.next_link[from * scenario->site_count + to];
        kept *= 1 - scenario->wan[link].loss_ratio / scenario->wan[link].loss_burst;
        from = route_other_end(scenario, link, from);
    }
    return 1 - kept;
}

static struct tcp_path path_of(const struct sim *sim, const struct connection *connection)
{
    const struct scenario *scenario = sim->layout->scenario;
    return (struct tcp_path){.mtu_bytes = scenario->transport.mtu_bytes,
                             .connections = (double)scenario->transport.connections,
                             .rtt_s = 2 * sim_latency(sim, connection->from_site, connection->to_site),
                             .loss_ratio = path_loss(sim->layout, connection->from_site, connection->to_site),
                             .seed = scenario->seed + ((uint64_t)connection->from << 32) + (uint64_t)connection->to};
}

static struct pair_tcp *pair_between(struct sim *sim, const struct connection *connection)
{
    struct pair_tcp *pair = sim->pairs;
    while (pair && (pair->from != connection->from || pair->to != connection->to))
        pair = pair->next;
    if (pair)
        return pair;
    pair = sim_need(malloc(sizeof *pair));
    *pair = (struct pair_tcp){.from = connection->from, .to = connection->to, .next = sim->pairs};
    if (!rehearsal_find(sim->rehearsal, pair->from, pair->to, &pair->tcp)) {
        const struct tcp_path path = path_of(sim, connection);
        tcp_init(&pair->tcp, &path);
    }
    sim->pairs = pair;
    pair->turn = sg_sem_init(1);
    return pair;
}

static void use_pair(struct connection *connection, struct pair_tcp *pair)
{
    connection->tcp = &pair->tcp;
    connection->turn = pair->turn;
}

static void set_figures(struct connection *connection)
{
    const struct sim *sim = connection->sim;
    size_t from = connection->from_site, to = connection->to_site;
    connection->latency_s = sim_latency(sim, from, to);
    if (connection->tcp)
        connection->tcp->rtt_s = 2 * connection->latency_s;
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
    connection = sim_need(calloc(1, sizeof *connection));
    *connection = (struct connection){
        .sim = sim, .from = from, .to = to, .channel = channel, .from_site = from_site, .to_site = to_site};
    connection->bordered = sim->borders && from_site != to_site;
    if (from_site != to_site && layout->scenario->transport.protocol == PROTOCOL_TCP)
        use_pair(connection, pair_between(sim, connection));
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

struct message *wire_append(struct connection *connection)
{
    struct message *message = connection->sim->spare;
    if (message)
        connection->sim->spare = message->next;
    else
        message = sim_need(malloc(sizeof *message));
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

void wire_side_done(struct message *message)
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

bool wire_left(const struct message *message)
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

bool wire_needs_receiver(const struct message *message)
{
    return shakes_hands(message) || (message->connection->tcp && !eager(message));
}

/* ---- listener and pump */

/* With an ideal fabric a message inside a site takes no time: there is nothing to simulate. */
static bool takes_no_time(const struct connection *connection)
{
    return connection->sim->ideal.fabric && connection->from_site == connection->to_site;
}

bool wire_has_no_comm(const struct connection *connection)
{
    return connection->tcp || takes_no_time(connection);
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
        sim_set_stack(actor, WIRE_STACK_KIB);
        sg_actor_start_(actor, code, 0, NULL);
    }
    sg_sem_release(*wake);
}

/* What the connections of a pair can carry, however empty the link is. */
double wire_paced_until(const struct message *message)
{
    return message->start_s + message->bytes / message->connection->pace_byte_per_s;
}

static void pump(int argc, char **argv);

static void listener(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct connection *connection = sg_actor_self_get_data();
    sg_actor_daemonize(sg_actor_self());
    for (;;) {
        while (connection->listen > 0) {
            struct message *message = sg_mailbox_get(wire_mailbox(connection));
            if (wire_paced_until(message) > simgrid_get_clock())
                sg_actor_sleep_until(wire_paced_until(message));
            wire_saw_end(message);
            connection->listen--;
        }
        connection->listener_idle = true;
        sg_sem_acquire(connection->listener);
    }
}

void wire_listen_for(struct connection *connection, const struct message *message)
{
    if (wire_has_no_comm(connection))
        return;
    for (; connection->assigned <= message->number; connection->assigned++)
        connection->listen++;
    if (connection->listen == 0 || (connection->listener && !connection->listener_idle))
        return;
    connection->listener_idle = false;
    kick(&connection->listener, connection, listener, false);
}

void wire_kick_pump(struct connection *connection)
{
    kick(&connection->pump, connection, pump, true);
}

/* The last byte has left: the wire is free, and whoever waits for that goes on. */
void wire_saw_end(struct message *message)
{
    struct connection *connection = message->connection;
    message->left_s = simgrid_get_clock();
    connection->wire = NULL;
    record_message(connection->sim, message);
    /* A release lets others run, and once both sides are through the message is used again. */
    struct stream *sender = message->sender_waits, *receiver = message->receiver_waits;
    if (connection->turn)
        sg_sem_release(connection->turn);
    if (sender)
        sg_sem_release(sender->wake);
    if (receiver)
        sg_sem_release(receiver->wake);
    if (connection->unput)
        wire_kick_pump(connection);
}

/* Whether the receiver cannot see the end of a message itself: it is blocked, and not in this message. */
static bool looks_away(const struct stream *receiver, const struct message *message)
{
    if (receiver->receiving)
        return receiver->receiving != message;
    return receiver->blocked && receiver->asleep_until_s > simgrid_get_clock();
}

void wire_start_clock(struct message *message)
{
    if (isnan(message->start_s))
        message->start_s = simgrid_get_clock();
}

static void enter_wan(struct sim *sim, const struct connection *connection)
{
    void (*hook)(struct sim *) = sim->first_wan_byte;
    if (connection->from_site == connection->to_site || !hook)
        return;
    sim->first_wan_byte = NULL;
    hook(sim);
}

void wire_put(struct message *message)
{
    struct connection *connection = message->connection;
    if (takes_no_time(connection)) {
        wire_start_clock(message);
        wire_saw_end(message);
        return;
    }
    enter_wan(connection->sim, connection);
    connection->wire = message;
    if (posted(message) || eager(message))
        wire_start_clock(message);
    sg_comm_t comm = sg_mailbox_put_init(wire_mailbox(connection), message, lround(message->bytes));
    sg_comm_detach(comm, NULL);
    if (connection->wire == message &&
        (posted(message) ? connection->bordered || looks_away(message->receiver, message) : eager(message)))
        wire_listen_for(connection, message);
}

/* Round trips before the bytes: the sender asks, the receiver (once posted) answers, and so on handshakes times. */
static double handshake_end(const struct message *message)
{
    double latency_s = message->connection->latency_s;
    double asked_s = message->sent_s + (double)(2 * message->connection->sim->handshakes - 1) * latency_s;
    return fmax(asked_s, message->posted_s) + latency_s;
}

/* What a host hands to its NIC at once, and what then crosses a queue whole: 64 KiB, as segmentation offload makes it;
 * of a long message a sixteenth. */
static double piece_of(double bytes)
{
    return fmax(bytes / 16, 65536);
}

/* Enters the queues on its way now, which serve first what came first; returns when it has left the last. */
static double enter_queues(const struct connection *connection, double bytes)
{
    struct sim *sim = connection->sim;
    const struct scenario *scenario = sim->layout->scenario;
    double at_s = simgrid_get_clock();
    for (size_t at = connection->from_site; at != connection->to_site;) {
        long link = sim->layout->routes.next_link[at * scenario->site_count + connection->to_site];
        double *busy_until_s = &sim->queues[2 * link + (scenario->wan[link].between[0] != at)];
        at_s = fmax(at_s, *busy_until_s) + bytes / platform_wan_rate(sim->layout, &sim->ideal, link);
        *busy_until_s = at_s;
        at = route_other_end(scenario, link, at);
    }
    return at_s;
}

/* Sends bytes that the window allows, piece by piece as the NIC lets them go, and waits until they have left. */
static void send_bytes(const struct connection *connection, double bytes)
{
    const struct sim *sim = connection->sim;
    double nic = sim->ideal.fabric ? platform_unlimited() : sim->layout->nic_byte_per_s, most = piece_of(bytes);
    double start_s = simgrid_get_clock(), left_s = start_s;
    for (double sent = 0; sent < bytes;) {
        double piece = fmin(most, bytes - sent);
        left_s = enter_queues(connection, piece);
        sent += piece;
        sg_actor_sleep_until(start_s + sent / nic);
    }
    sg_actor_sleep_until(fmax(left_s, start_s + bytes / connection->pace_byte_per_s));
}

/* Sends a message over TCP: in rounds where the window holds it back, and what was lost again. */
static void send_by_tcp(const struct connection *connection, struct message *message)
{
    struct tcp *tcp = connection->tcp;
    double left = message->bytes, wait_until_s = 0, again_s = 0;
    enter_wan(connection->sim, connection);
    wire_start_clock(message);
    tcp_wake(tcp, simgrid_get_clock());
    while (left > 0) {
        double start_s = simgrid_get_clock();
        double room = connection->sim->ideal.slow_start ? left : tcp_room(tcp, start_s, &wait_until_s);
        if (room < fmin(left, 1)) {
            sg_actor_sleep_until(wait_until_s);
            continue;
        }
        double bytes = fmin(room, left);
        tcp_take(tcp, bytes);
        send_bytes(connection, bytes);
        tcp_sent(tcp, bytes, start_s, simgrid_get_clock());
        double lost = tcp_lost(tcp, bytes, start_s, simgrid_get_clock(), &again_s);
        left += lost - bytes;
        if (lost > 0 && left <= lost && again_s > simgrid_get_clock())
            sg_actor_sleep_until(again_s);
    }
}

static void pump(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct connection *connection = sg_actor_self_get_data();
    sg_actor_daemonize(sg_actor_self());
    for (;;) {
        sg_sem_acquire(connection->pump);
        struct message *message = connection->unput;
        if (!message || connection->wire || (wire_needs_receiver(message) && !posted(message)))
            continue;
        if (shakes_hands(message) && handshake_end(message) > simgrid_get_clock())
            sg_actor_sleep_until(handshake_end(message));
        if (connection->tcp) {
            sg_sem_acquire(connection->turn);
            connection->wire = message;
            send_by_tcp(connection, message);
        }
        connection->unput = message->next && !isnan(message->next->sent_s) ? message->next : NULL;
        if (connection->tcp)
            wire_saw_end(message);
        else
            wire_put(message);
    }
}

void wire_free_connections(struct connection *connection)
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
