/* Messages of a connection on their way; see sim.h for how. Internal to sim/engine. */
#ifndef LONGHAUL_WIRE_H
#define LONGHAUL_WIRE_H

#include "sim/engine/sim.h"

/* The connection's next message that neither side has asked for yet. */
struct message *wire_append(struct connection *connection);
/* Its mailbox. */
sg_mailbox_t wire_mailbox(struct connection *connection);
/* One side has waited for its part; after the second the message is freed. */
void wire_side_done(struct message *message);
void wire_free_connections(struct connection *first);

/* Whether its last byte has left. */
bool wire_left(const struct message *message);
/* Whether the pump puts it on the wire and waits for its receiver first: after handshakes, or in TCP's rounds. */
bool wire_needs_receiver(const struct message *message);
/* Whether no SimGrid comm is made for its messages: TCP's, and those that take no time at all (ideal fabric). */
bool wire_has_no_comm(const struct connection *connection);
/* The earliest time the pair's connections let it leave, s. */
double wire_paced_until(const struct message *message);

/* Puts a message on the free wire, on behalf of the actor that calls. */
void wire_put(struct message *message);
/* Has the pump put connection->unput on the wire as soon as it may. */
void wire_kick_pump(struct connection *connection);
/* Has the listener see the ends of all messages up to this one. */
void wire_listen_for(struct connection *connection, const struct message *message);
/* The message leaves now: wakes who waits for it and frees the wire. */
void wire_saw_end(struct message *message);
/* The message is on the wire and its receive is posted: its time there begins, unless it has begun. */
void wire_start_clock(struct message *message);

#endif
