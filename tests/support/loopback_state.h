/* Inside the loopback: what loopback.c (streams, a run) and loopback_message.c (requests, matching) share. */
#ifndef LONGHAUL_LOOPBACK_STATE_H
#define LONGHAUL_LOOPBACK_STATE_H

#include "loopback.h"

#include <stdbool.h>

struct stream {
    struct stream_head head;
    struct loopback *loopback;
    struct coroutine *coroutine;
    stream_function *function;
    void *argument;
    const char *name; /* NULL: the first stream of its rank */
    double clock_s;
    bool finished, joined;
    struct request *waits_for; /* not NULL: blocked until it is done */
    struct stream *joins;      /* not NULL: blocked until it has finished */
    struct stream *joiner;     /* blocked until this one has finished */
    struct stream *next;       /* all streams: first ones by rank, then as spawned */
    struct stream *next_ready;
};

struct request {
    bool send, done;
    struct stream *stream;
    int peer, channel;
    struct span span;
    enum receive receive;
    void *payload; /* send: the bytes of its isend; receive: the same, once done. NULL where only counted */
    double time_s; /* posted at; once done: done at */
    struct request *next_unmatched;
    struct request *previous, *next; /* all requests not yet waited for */
};

/* What waits to be matched between a sender and the rank that owns it: only sends or only receives, oldest first. */
struct connection {
    int from, channel;
    struct request *first, *last;
    struct connection *next;
};

struct counter {
    uint64_t bytes, messages;
};

struct loopback {
    int ranks;
    size_t region_bytes[LOOPBACK_REGIONS];
    size_t stride_bytes[LOOPBACK_REGIONS]; /* from one rank's region to the next, keeps floats aligned */
    char *regions[LOOPBACK_REGIONS];       /* all ranks, one after the other */
    struct counter *counters;              /* [from * ranks + to] */
    struct connection **connections;       /* [to] */
    struct stream *streams, **streams_end;
    struct stream *ready, **ready_end;
    struct request *requests;
    double end_s;
    int code; /* of the first error; 0: none */
    char message[ERR_TEXT_MAX];
};

/* Puts a stream that is blocked, or new, at the end of those that can run. */
void loopback_stream_ready(struct stream *stream);

/* Blocks the stream until it is made ready. */
void loopback_stream_block(struct stream *stream);

/* Keeps the first error and lets every stream that waits for a message go on to its end. */
void loopback_fail(struct loopback *loopback, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* transport_ops.isend, .irecv and .wait. */
struct request *loopback_isend(struct stream *stream, int to, int channel, struct span span);
struct request *loopback_irecv(struct stream *stream, int from, int channel, struct span span, enum receive receive);
void loopback_wait(struct stream *stream, struct request *request);

/* Writes "receive 16 bytes from rank 1 on channel 0" into text and returns it. */
const char *loopback_request_text(const struct request *request, char *text, size_t size);

void loopback_request_free(struct loopback *loopback, struct request *request);

#endif
