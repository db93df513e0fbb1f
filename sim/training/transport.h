/* The transport that strategies are written against: one stream of one rank, seen from inside.
 *
 * The same strategy source runs on SimGrid actors (sim/engine), on MPI ranks (emu) and on the loopback of
 * tests/support. A rank is one tensor-parallel group. A span names bytes of one of the rank's buffers; the simulator
 * only counts them.
 *
 * Time semantics, the same on every backend:
 *  - a send completes when its last byte has left the sender, not when it arrives;
 *  - messages of one connection (from, to, channel) leave in order, one after the other, and arrive a route latency
 * later;
 *  - a message above the eager threshold leaves once its receive is posted (plus the transport's handshake round
 * trips);
 *  - flows share a NIC or a link equally whatever their latency.
 */
#ifndef LONGHAUL_TRANSPORT_H
#define LONGHAUL_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

enum region { REGION_GRADIENT, REGION_PARAMETER, REGION_ACTIVATION };
enum receive { RECEIVE_REPLACE, RECEIVE_ACCUMULATE };

struct span {
    enum region region;
    uint64_t offset; /* bytes from the start of the region */
    uint64_t bytes;  /* may exceed memory in the simulator */
};

struct stream;  /* one stream of one rank; owned by the backend, valid while its function runs */
struct request; /* one isend or irecv; owned by the backend, ended by transport_wait */

typedef void stream_function(struct stream *stream, void *argument);

struct group; /* group.h */
enum ring_kind { RING_REDUCE_SCATTER, RING_ALL_GATHER, RING_ALL_REDUCE };

struct transport_ops {
    struct request *(*isend)(struct stream *, int to, int channel, struct span);
    struct request *(*irecv)(struct stream *, int from, int channel, struct span, enum receive);
    void (*wait)(struct stream *, struct request *);
    void (*compute)(struct stream *, double seconds);
    double (*now)(const struct stream *);
    struct stream *(*spawn)(struct stream *, stream_function *, void *argument, const char *name);
    void (*join)(struct stream *, struct stream *child);
    /* A whole ring collective as one operation, where the backend knows a cheaper way than messages; it returns false
     * to have ring.c send the messages. NULL: always messages. */
    bool (*ring)(struct stream *, const struct group *, enum ring_kind, struct span, int channel, int slices);
};

/* Every backend's struct stream starts with this. */
struct stream_head {
    const struct transport_ops *ops;
    int rank; /* 0 .. ranks-1 */
    int ranks;
};

static inline const struct stream_head *stream_head(const struct stream *stream)
{
    return (const struct stream_head *)stream;
}
static inline int transport_rank(const struct stream *stream)
{
    return stream_head(stream)->rank;
}
static inline int transport_ranks(const struct stream *stream)
{
    return stream_head(stream)->ranks;
}
/* Starts sending a span to rank `to` on a channel (>= 0). Ends with transport_wait: the last byte has left. */
static inline struct request *transport_isend(struct stream *stream, int to, int channel, struct span span)
{
    return stream_head(stream)->ops->isend(stream, to, channel, span);
}
/* Starts receiving the next message of (from, channel) into a span of the same length. Ends with transport_wait: it
 * arrived. */
static inline struct request *transport_irecv(struct stream *stream, int from, int channel, struct span span,
                                              enum receive receive)
{
    return stream_head(stream)->ops->irecv(stream, from, channel, span, receive);
}
/* Blocks until the request is done and frees it. NULL is fine. Only the stream that made a request may wait for it. */
static inline void transport_wait(struct stream *stream, struct request *request)
{
    if (request)
        stream_head(stream)->ops->wait(stream, request);
}
/* Occupies this stream for a time in s (>= 0). Messages of the rank go on meanwhile. */
static inline void transport_compute(struct stream *stream, double seconds)
{
    stream_head(stream)->ops->compute(stream, seconds);
}
/* s since the run began. */
static inline double transport_now(const struct stream *stream)
{
    return stream_head(stream)->ops->now(stream);
}
/* Starts a second stream of the same rank; name is a static string for timelines. Every stream must be joined exactly
 * once, by any stream of the rank. */
static inline struct stream *transport_spawn(struct stream *stream, stream_function *function, void *argument,
                                             const char *name)
{
    return stream_head(stream)->ops->spawn(stream, function, argument, name);
}
static inline void transport_join(struct stream *stream, struct stream *child)
{
    stream_head(stream)->ops->join(stream, child);
}

#endif
