/* One simulation run: the state that the SimGrid transport, the bulk ring and the run share. Internal to sim/engine.
 *
 * How the time semantics of transport.h come out of SimGrid: links have no latency, so that SimGrid shares them equally
 * (CM02 shares by round-trip time otherwise). A message is on the wire while its SimGrid comm runs and arrives a route
 * latency after that. So somebody must see the very moment a comm ends: the receiving stream where it is blocked in
 * just that receive, else the connection's listener, a daemon actor on the receiver's host. Messages behind one that is
 * still on the wire are put there by the connection's pump, a daemon actor on the sender's host. Both are made when
 * first needed.
 */
#ifndef LONGHAUL_SIM_H
#define LONGHAUL_SIM_H

#include <simgrid/actor.h>
#include <simgrid/mailbox.h>
#include <simgrid/semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/engine/layout.h"
#include "sim/engine/platform.h"
#include "sim/engine/tcp.h"
#include "sim/report/timeline.h"
#include "sim/training/transport.h"

/* The address sanitizer follows SimGrid's actors only where they are threads, and threads do not survive a fork: such a
 * build repeats a what-if from the start instead of splitting a run in the middle. */
#if defined(__SANITIZE_ADDRESS__)
#define ACTORS_ARE_THREADS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ACTORS_ARE_THREADS 1
#endif
#endif
#ifndef ACTORS_ARE_THREADS
#define ACTORS_ARE_THREADS 0
#endif

struct connection;
struct sim;

struct stream {
    struct stream_head head;
    struct sim *sim;
    int index;        /* simulated rank */
    int track;        /* in the timeline */
    const char *name; /* not owned */
    stream_function *function;
    void *argument;
    sg_actor_t actor;
    sg_sem_t wake;         /* what the stream blocks on when it is not in a SimGrid comm */
    double not_before_s;   /* the stream's own time where it is ahead of the clock: what it received last arrives only
                              then */
    bool blocked;          /* asleep or in `wake` */
    double asleep_until_s; /* INFINITY while in `wake` */
    struct message *receiving; /* blocked in the SimGrid receive of this message */
    bool done;
    struct stream *joiner;
    struct connection **sources; /* connections this stream receives from; owned */
    size_t source_count, source_room;
    struct stream *next;
};

struct request {
    struct message *message;
    bool sends;
};

struct message {
    struct connection *connection;
    struct request side[2]; /* [0] receives, [1] sends */
    uint64_t number;
    double bytes;
    double posted_s, sent_s, start_s, left_s; /* NAN until it happened; start: put on the wire with its receive ready */
    struct stream *receiver;                  /* that posted the receive; NULL before */
    struct stream *sender_waits, *receiver_waits;
    const char *what;
    int waited; /* sides that are through */
    struct message *next;
};

/* Messages from one rank to another on one channel, in order. */
struct connection {
    struct sim *sim;
    int from, to; /* simulated ranks */
    int channel;
    size_t from_site, to_site;
    double latency_s;
    double pace_byte_per_s; /* a message stays on the wire for bytes / this at least; INFINITY inside a site */
    sg_mailbox_t mailbox;
    struct message *tail, *unsent, *unposted; /* first that is not sent / has no receive posted */
    struct message *unput;                    /* first that is sent but not on the wire yet */
    struct message *wire;                     /* the one on the wire */
    uint64_t numbered, assigned;              /* messages made; messages whose end somebody sees */
    int listen;                               /* messages that the listener has yet to see */
    bool listener_idle;
    sg_sem_t listener, pump; /* NULL until the actor exists */
    struct tcp *tcp;         /* shared with the pair's other channels; NULL: messages leave at once and whole */
    sg_sem_t turn;           /* of the pair; with tcp */
    bool bordered;           /* runs between border hosts: only its pump and listener touch it */
    struct connection *next; /* of the same sender */
};

/* The TCP connections from one simulated rank to another. Messages of all channels go through them one after the other.
 */
struct pair_tcp {
    int from, to;
    struct tcp tcp;
    sg_sem_t turn;
    struct pair_tcp *next;
};

/* Bytes and occupancy of one WAN link in one direction. */
struct wan_load {
    double bytes;
    struct wan_span {
        double start_s, end_s, bytes;
    } * spans; /* owned */
    size_t count, room;
};

struct sim {
    struct layout *layout;
    struct ideal ideal;
    double wan_bytes_scale; /* simulated bytes -> real bytes: wan_flows */
    double bulk_above;      /* messages of a collective above which a ring is simulated in bulk; INFINITY: never */
    double eager_bytes;
    long handshakes;
    sg_host_t *hosts;                /* [count] */
    sg_host_t *borders;              /* [sites]; NULL where flows between sites use the ranks' NICs */
    struct connection **connections; /* [count]: list per sender */
    struct stream *streams;          /* all, for freeing */
    int running;
    struct message *spare;             /* freed messages */
    double *queues;                    /* [2 * link + direction]: until when the queue before it is busy, with TCP */
    struct pair_tcp *pairs;            /* of TCP between sites; list, owned */
    const struct rehearsal *rehearsal; /* what the step before left of them; NULL: they are fresh */
    struct bulk *bulks;
    struct wan_load *wan; /* [2 * link + direction] */
    double sent_bytes, received_bytes;
    uint64_t messages, arrived;
    bool used_bulk;
    struct timeline *timeline;            /* NULL: not recorded */
    void (*first_wan_byte)(struct sim *); /* called once, before the first message enters the WAN; may be NULL */
};

/* SimGrid kills daemons without unwinding them, so all memory hangs on the run; running out of it ends the process of
 * the run, which its parent reports. Returns memory. */
void *sim_need(void *memory);
/* Gives an actor a stack of its own size: SimGrid touches all of a stack, and a run has thousands. Not where the
 * address sanitizer needs larger frames. */
void sim_set_stack(sg_actor_t actor, unsigned kib);

/* Makes the actor of a rank's main stream. */
struct stream *sim_stream(struct sim *sim, int index, stream_function *function, void *argument, const char *name);
/* Releases everything that the run holds; sim itself belongs to the caller. */
void sim_release(struct sim *sim);

/* The connection from one rank to another, as simulated; made when first asked for. */
struct connection *sim_connection(struct sim *sim, int from_rank, int to_rank, int channel);
/* Changes the idealisation in the middle of a run: link rates and latencies from now on. */
void sim_idealise(struct sim *sim, const struct ideal *ideal);
double sim_latency(const struct sim *sim, size_t from_site, size_t to_site);

/* Lets the clock catch up with the stream's own time: before anything that others can see. */
void stream_catch_up(struct stream *stream);
/* Blocking primitives of a stream that keep every comm watched. */
void stream_sleep_until(struct stream *stream, double time_s);
void stream_acquire(struct stream *stream);

/* transport_ops.ring of this backend; see bulk.c. */
bool bulk_ring(struct stream *stream, const struct group *group, enum ring_kind kind, struct span span, int channel,
               int slices);
void bulk_release(struct sim *sim);

#endif
