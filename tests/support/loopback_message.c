#include "loopback_state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const region_names[LOOPBACK_REGIONS] = {
    [REGION_GRADIENT] = "gradient",
    [REGION_PARAMETER] = "parameter",
    [REGION_ACTIVATION] = "activation",
};

/* The bytes of a span; NULL where the region is only counted or the span is empty. */
static char *span_at(const struct loopback *loopback, int rank, const struct span *span)
{
    char *region = loopback->regions[span->region];

    if (!region || span->bytes == 0)
        return NULL;
    return region + (size_t)rank * loopback->stride_bytes[span->region] + span->offset;
}

void loopback_request_free(struct loopback *loopback, struct request *request)
{
    if (request->previous)
        request->previous->next = request->next;
    else
        loopback->requests = request->next;
    if (request->next)
        request->next->previous = request->previous;
    free(request->payload);
    free(request);
}

/* "receive 16 bytes from rank 1 on channel 0" */
const char *loopback_request_text(const struct request *request, char *text, size_t size)
{
    snprintf(text, size, "%s %llu bytes %s rank %d on channel %d", request->send ? "send" : "receive",
             (unsigned long long)request->span.bytes, request->send ? "to" : "from", request->peer, request->channel);
    return text;
}

static bool span_check(struct stream *stream, const char *what, struct span span, bool accumulates)
{
    struct loopback *loopback = stream->loopback;
    int rank = stream->head.rank;
    unsigned long long offset = span.offset, bytes = span.bytes;

    if ((unsigned)span.region >= LOOPBACK_REGIONS) {
        loopback_fail(loopback, EINVAL, "rank %d: %s of region %d, which does not exist", rank, what, (int)span.region);
        return false;
    }
    size_t size = loopback->region_bytes[span.region];
    if (size != LOOPBACK_COUNTED && (span.offset > size || span.bytes > size - span.offset)) {
        loopback_fail(loopback, EINVAL, "rank %d: %s of bytes %llu + %llu of the %s region, which has %zu", rank, what,
                      offset, bytes, region_names[span.region], size);
        return false;
    }
    if (accumulates && (span.offset % sizeof(float) || span.bytes % sizeof(float))) {
        loopback_fail(loopback, EINVAL, "rank %d: bytes %llu + %llu to accumulate are not whole floats", rank, offset,
                      bytes);
        return false;
    }
    return true;
}

static bool request_check(struct stream *stream, const struct request *request)
{
    struct loopback *loopback = stream->loopback;
    const char *what = request->send ? "isend" : "irecv";
    int rank = stream->head.rank;

    if (request->peer < 0 || request->peer >= loopback->ranks || request->peer == rank) {
        loopback_fail(loopback, EINVAL, "rank %d: %s %s rank %d of %d", rank, what, request->send ? "to" : "from",
                      request->peer, loopback->ranks);
        return false;
    }
    if (request->channel < 0) {
        loopback_fail(loopback, EINVAL, "rank %d: %s on channel %d, which is negative", rank, what, request->channel);
        return false;
    }
    return span_check(stream, what, request->span, !request->send && request->receive == RECEIVE_ACCUMULATE);
}

/* A copy of the request among the live ones; a send's with its payload. NULL without memory. */
static struct request *request_new(struct loopback *loopback, const struct request *wanted)
{
    struct request *request = malloc(sizeof *request);
    const char *bytes = span_at(loopback, wanted->stream->head.rank, &wanted->span);

    if (!request)
        return NULL;
    *request = *wanted;
    if (request->send && bytes) {
        request->payload = malloc(request->span.bytes);
        if (!request->payload) {
            free(request);
            return NULL;
        }
        memcpy(request->payload, bytes, request->span.bytes);
    }
    request->next = loopback->requests;
    if (request->next)
        request->next->previous = request;
    loopback->requests = request;
    return request;
}

static struct connection *connection_find(struct loopback *loopback, const struct request *request)
{
    int own = request->stream->head.rank;
    int from = request->send ? own : request->peer, to = request->send ? request->peer : own;
    struct connection **at = &loopback->connections[to];

    while (*at && ((*at)->from != from || (*at)->channel != request->channel))
        at = &(*at)->next;
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (*at) {
            (*at)->from = from;
            (*at)->channel = request->channel;
        }
    }
    return *at;
}

static void request_done(struct request *request, double time_s)
{
    request->done = true;
    request->time_s = time_s;
    if (request->stream->waits_for == request)
        loopback_stream_ready(request->stream);
}

/* Gives the receive its own copy of the payload, because either side may be waited for first. */
static void pair(struct loopback *loopback, struct request *send, struct request *receive)
{
    int from = send->stream->head.rank, to = receive->stream->head.rank;
    struct counter *counter = &loopback->counters[(size_t)from * (size_t)loopback->ranks + (size_t)to];
    double time_s = fmax(send->time_s, receive->time_s);

    if (send->span.bytes != receive->span.bytes) {
        loopback_fail(loopback, EINVAL, "rank %d sends %llu bytes to rank %d on channel %d, which receives %llu", from,
                      (unsigned long long)send->span.bytes, to, send->channel, (unsigned long long)receive->span.bytes);
        return;
    }
    if (send->payload && span_at(loopback, to, &receive->span)) {
        receive->payload = malloc(send->span.bytes);
        if (!receive->payload) {
            loopback_fail(loopback, ENOMEM, "no memory for a message of %llu bytes",
                          (unsigned long long)send->span.bytes);
            return;
        }
        memcpy(receive->payload, send->payload, send->span.bytes);
    }
    counter->bytes += send->span.bytes;
    counter->messages++;
    request_done(send, time_s);
    request_done(receive, time_s);
}

/* Matches the request with the oldest one of the other kind, or queues it. */
static void request_post(struct loopback *loopback, struct connection *connection, struct request *request)
{
    struct request *other = connection->first;

    if (!other) {
        connection->first = connection->last = request;
    } else if (other->send == request->send) {
        connection->last->next_unmatched = request;
        connection->last = request;
    } else {
        connection->first = other->next_unmatched;
        pair(loopback, request->send ? request : other, request->send ? other : request);
    }
}

static struct request *request_start(struct stream *stream, const struct request *wanted)
{
    struct loopback *loopback = stream->loopback;
    struct connection *connection;
    struct request *request;

    if (loopback->code || !request_check(stream, wanted))
        return NULL;
    connection = connection_find(loopback, wanted);
    request = connection ? request_new(loopback, wanted) : NULL;
    if (!request) {
        loopback_fail(loopback, ENOMEM, "no memory for a request of rank %d", stream->head.rank);
        return NULL;
    }
    request_post(loopback, connection, request);
    return request;
}

struct request *loopback_isend(struct stream *stream, int to, int channel, struct span span)
{
    struct request wanted = {
        .send = true, .stream = stream, .peer = to, .channel = channel, .span = span, .time_s = stream->clock_s};

    return request_start(stream, &wanted);
}

struct request *loopback_irecv(struct stream *stream, int from, int channel, struct span span, enum receive receive)
{
    struct request wanted = {.stream = stream,
                             .peer = from,
                             .channel = channel,
                             .span = span,
                             .receive = receive,
                             .time_s = stream->clock_s};

    return request_start(stream, &wanted);
}

/* The end of a receive: its payload goes into the span. */
static void receive_deliver(const struct request *request, char *to)
{
    const float *from = request->payload;
    float *sum = (float *)(void *)to;

    if (request->receive == RECEIVE_REPLACE)
        memcpy(to, request->payload, request->span.bytes);
    else
        for (size_t i = 0; i < request->span.bytes / sizeof(float); i++)
            sum[i] += from[i];
}

void loopback_wait(struct stream *stream, struct request *request)
{
    struct loopback *loopback = stream->loopback;
    int rank = stream->head.rank;
    char *bytes, text[128];

    if (loopback->code)
        return;
    if (request->stream != stream) {
        loopback_fail(loopback, EINVAL, "rank %d waits for a request that another stream made (%s)", rank,
                      loopback_request_text(request, text, sizeof text));
        return;
    }
    if (!request->done) {
        stream->waits_for = request;
        loopback_stream_block(stream);
        if (loopback->code)
            return;
    }
    stream->clock_s = fmax(stream->clock_s, request->time_s);
    bytes = span_at(loopback, rank, &request->span);
    if (bytes && request->payload && !request->send)
        receive_deliver(request, bytes);
    else if (bytes && request->send && memcmp(bytes, request->payload, request->span.bytes) != 0)
        loopback_fail(loopback, EINVAL,
                      "rank %d: bytes %llu + %llu of the %s region changed before the wait for their %s", rank,
                      (unsigned long long)request->span.offset, (unsigned long long)request->span.bytes,
                      region_names[request->span.region], loopback_request_text(request, text, sizeof text));
    loopback_request_free(loopback, request);
}
