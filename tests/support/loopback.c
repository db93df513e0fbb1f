#include "loopback_state.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "coroutine.h"

enum { RANKS_MAX = 1 << 20 };

static const struct transport_ops loopback_ops;

void loopback_stream_ready(struct stream *stream)
{
    struct loopback *loopback = stream->loopback;

    if (stream->joins)
        stream->joins->joiner = NULL;
    stream->waits_for = NULL;
    stream->joins = NULL;
    stream->next_ready = NULL;
    *loopback->ready_end = stream;
    loopback->ready_end = &stream->next_ready;
}

void loopback_fail(struct loopback *loopback, int code, const char *format, ...)
{
    va_list arguments;

    if (loopback->code)
        return;
    loopback->code = code;
    va_start(arguments, format);
    vsnprintf(loopback->message, sizeof loopback->message, format, arguments);
    va_end(arguments);
    for (struct stream *stream = loopback->streams; stream; stream = stream->next)
        if (stream->waits_for)
            loopback_stream_ready(stream);
}

void loopback_stream_block(struct stream *stream)
{
    coroutine_yield(stream->coroutine);
}

static void stream_entry(void *argument)
{
    struct stream *stream = argument;

    stream->function(stream, stream->argument);
    stream->finished = true;
    stream->loopback->end_s = fmax(stream->loopback->end_s, stream->clock_s);
    if (stream->joiner)
        loopback_stream_ready(stream->joiner);
}

static struct stream *stream_new(struct loopback *loopback, int rank, stream_function *function, void *argument)
{
    struct stream *stream = calloc(1, sizeof *stream);

    if (!stream)
        return NULL;
    stream->coroutine = coroutine_new(stream_entry, stream);
    if (!stream->coroutine) {
        free(stream);
        return NULL;
    }
    stream->head = (struct stream_head){&loopback_ops, rank, loopback->ranks};
    stream->loopback = loopback;
    stream->function = function;
    stream->argument = argument;
    *loopback->streams_end = stream;
    loopback->streams_end = &stream->next;
    loopback_stream_ready(stream);
    return stream;
}

static void op_compute(struct stream *stream, double seconds)
{
    if (isfinite(seconds) && seconds >= 0)
        stream->clock_s += seconds;
    else
        loopback_fail(stream->loopback, EINVAL, "rank %d: compute for %g s", stream->head.rank, seconds);
}

static double op_now(const struct stream *stream)
{
    return stream->clock_s;
}

/* Also after an error: the child may own what its argument points to. */
static struct stream *op_spawn(struct stream *stream, stream_function *function, void *argument, const char *name)
{
    struct stream *child = stream_new(stream->loopback, stream->head.rank, function, argument);

    if (!child) {
        loopback_fail(stream->loopback, ENOMEM, "no memory for another stream of rank %d", stream->head.rank);
        return NULL;
    }
    child->name = name ? name : "";
    child->clock_s = stream->clock_s;
    return child;
}

/* Blocks after an error too: the child may use what its parent would release next. */
static void op_join(struct stream *stream, struct stream *child)
{
    if (!child)
        return;
    if (child == stream || !child->name || child->joined || child->head.rank != stream->head.rank) {
        loopback_fail(stream->loopback, EINVAL, "rank %d: joins %s", stream->head.rank,
                      child == stream ? "a stream to itself"
                      : !child->name  ? "the first stream of a rank"
                      : child->joined ? "a stream that has been joined already"
                                      : "a stream of another rank");
        return;
    }
    child->joined = true;
    if (!child->finished) {
        stream->joins = child;
        child->joiner = stream;
        loopback_stream_block(stream);
    }
    stream->clock_s = fmax(stream->clock_s, child->clock_s);
}

static const struct transport_ops loopback_ops = {
    .isend = loopback_isend,
    .irecv = loopback_irecv,
    .wait = loopback_wait,
    .compute = op_compute,
    .now = op_now,
    .spawn = op_spawn,
    .join = op_join,
};

/* Runs until no stream is ready. */
static void run_ready(struct loopback *loopback)
{
    while (loopback->ready) {
        struct stream *stream = loopback->ready;

        loopback->ready = stream->next_ready;
        if (!loopback->ready)
            loopback->ready_end = &loopback->ready;
        coroutine_resume(stream->coroutine);
    }
}

/* The stream to name: of the lowest rank that waits for a message or, where none does, for another stream. */
static const struct stream *first_blocked(const struct loopback *loopback)
{
    const struct stream *first = NULL;

    for (const struct stream *stream = loopback->streams; stream; stream = stream->next) {
        bool better = !first || (stream->waits_for && !first->waits_for) ||
                      (!stream->waits_for == !first->waits_for && stream->head.rank < first->head.rank);

        if ((stream->waits_for || stream->joins) && better)
            first = stream;
    }
    return first;
}

static void fail_deadlock(struct loopback *loopback, const struct stream *stream)
{
    int rank = stream->head.rank;
    const char *name = stream->name ? stream->name : "main";
    char text[128];

    if (stream->waits_for)
        loopback_fail(loopback, EDEADLK, "deadlock: every stream is blocked; rank %d (stream %s) waits to %s", rank,
                      name, loopback_request_text(stream->waits_for, text, sizeof text));
    else
        loopback_fail(loopback, EDEADLK, "deadlock: every stream is blocked; rank %d (stream %s) joins stream %s", rank,
                      name, stream->joins->name);
}

/* Runs all streams to their end. */
static void run_all(struct loopback *loopback)
{
    const struct stream *blocked;

    for (run_ready(loopback); (blocked = first_blocked(loopback)); run_ready(loopback)) {
        fail_deadlock(loopback, blocked);
        if (loopback->ready)
            continue;
        for (struct stream *stream = loopback->streams; stream; stream = stream->next)
            if (stream->joins)
                loopback_stream_ready(stream);
    }
}

/* What a run that went well must not leave behind. */
static void check_leftovers(struct loopback *loopback)
{
    const struct request *oldest = loopback->requests;
    char text[128];

    while (oldest && oldest->next)
        oldest = oldest->next;
    if (oldest)
        loopback_fail(loopback, EINVAL, "left over: rank %d asked to %s and %s", oldest->stream->head.rank,
                      loopback_request_text(oldest, text, sizeof text),
                      oldest->done ? "never waited for it" : "nothing ever matched it");
    for (const struct stream *stream = loopback->streams; stream; stream = stream->next)
        if (stream->name && !stream->joined)
            loopback_fail(loopback, EINVAL, "left over: rank %d never joined its stream %s", stream->head.rank,
                          stream->name);
}

/* Forgets the streams and messages of a run. */
static void reset(struct loopback *loopback)
{
    while (loopback->requests)
        loopback_request_free(loopback, loopback->requests);
    for (int rank = 0; loopback->connections && rank < loopback->ranks; rank++) {
        for (struct connection *connection = loopback->connections[rank], *next; connection; connection = next) {
            next = connection->next;
            free(connection);
        }
        loopback->connections[rank] = NULL;
    }
    for (struct stream *stream = loopback->streams, *next; stream; stream = next) {
        next = stream->next;
        coroutine_free(stream->coroutine);
        free(stream);
    }
    loopback->streams = loopback->ready = NULL;
    loopback->streams_end = &loopback->streams;
    loopback->ready_end = &loopback->ready;
}

int loopback_run(struct loopback *loopback, stream_function *main, void *argument, struct err *err)
{
    int code;

    loopback->code = 0;
    loopback->end_s = 0;
    for (int rank = 0; rank < loopback->ranks && !loopback->code; rank++)
        if (!stream_new(loopback, rank, main, argument))
            loopback_fail(loopback, ENOMEM, "no memory for the stream of rank %d of %d", rank, loopback->ranks);
    if (!loopback->code) {
        run_all(loopback);
        check_leftovers(loopback);
    }
    reset(loopback);
    code = loopback->code;
    return code ? err_set(err, code, "%s", loopback->message) : 0;
}

/* One region of every rank. */
static bool region_new(struct loopback *loopback, enum region region, size_t bytes)
{
    const size_t align = sizeof(float) * 4;

    loopback->region_bytes[region] = bytes;
    if (bytes == 0 || bytes == LOOPBACK_COUNTED)
        return true;
    if (bytes > SIZE_MAX - align)
        return false;
    loopback->stride_bytes[region] = (bytes + align - 1) / align * align;
    loopback->regions[region] = calloc((size_t)loopback->ranks, loopback->stride_bytes[region]);
    return loopback->regions[region] != NULL;
}

struct loopback *loopback_new(int ranks, const size_t region_bytes[LOOPBACK_REGIONS])
{
    struct loopback *loopback = NULL;
    bool fine;

    if (ranks < 1 || ranks > RANKS_MAX)
        return NULL;
    loopback = calloc(1, sizeof *loopback);
    if (!loopback)
        return NULL;
    loopback->ranks = ranks;
    loopback->counters = calloc((size_t)ranks * (size_t)ranks, sizeof *loopback->counters);
    loopback->connections = calloc((size_t)ranks, sizeof(struct connection *));
    reset(loopback);
    fine = loopback->counters && loopback->connections;
    for (int region = 0; region < LOOPBACK_REGIONS && fine; region++)
        fine = region_new(loopback, (enum region)region, region_bytes[region]);
    if (!fine) {
        loopback_free(loopback);
        return NULL;
    }
    return loopback;
}

void loopback_free(struct loopback *loopback)
{
    if (!loopback)
        return;
    reset(loopback);
    for (int region = 0; region < LOOPBACK_REGIONS; region++)
        free(loopback->regions[region]);
    free(loopback->connections);
    free(loopback->counters);
    free(loopback);
}

float *loopback_region(const struct loopback *loopback, int rank, enum region region)
{
    if (rank < 0 || rank >= loopback->ranks || (unsigned)region >= LOOPBACK_REGIONS || !loopback->regions[region])
        return NULL;
    return (float *)(void *)(loopback->regions[region] + (size_t)rank * loopback->stride_bytes[region]);
}

double loopback_time(const struct loopback *loopback)
{
    return loopback->end_s;
}

static struct counter counter_of(const struct loopback *loopback, int from, int to)
{
    if (from < 0 || from >= loopback->ranks || to < 0 || to >= loopback->ranks)
        return (struct counter){0};
    return loopback->counters[(size_t)from * (size_t)loopback->ranks + (size_t)to];
}

uint64_t loopback_bytes(const struct loopback *loopback, int from, int to)
{
    return counter_of(loopback, from, to).bytes;
}

uint64_t loopback_messages(const struct loopback *loopback, int from, int to)
{
    return counter_of(loopback, from, to).messages;
}

uint64_t loopback_site_bytes(const struct loopback *loopback, const int *site_of, int from_site, int to_site)
{
    uint64_t bytes = 0;

    for (int from = 0; from < loopback->ranks; from++)
        for (int to = 0; to < loopback->ranks; to++)
            if (site_of[from] == from_site && site_of[to] == to_site)
                bytes += loopback_bytes(loopback, from, to);
    return bytes;
}
