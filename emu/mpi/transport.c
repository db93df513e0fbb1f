/* sim/training/transport.h on MPI: a stream is a thread, a message is one MPI message, or where nobody is asked first
 * as many as are sent eagerly. A receive lands in memory of its own and enters its span when it is waited for: the span
 * may still be leaving. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/mpi/courier.h"
#include "emu/mpi/process.h"
#include "emu/mpi/recording.h"

/* What Open MPI (btl_tcp_eager_limit, 64 KiB) and MPICH send without asking, less their headers. */
enum { PIECE_BYTES = 63 << 10 };

/* Receives of a connection that MPI knows of at once where nobody waits for them before sending: memory for what lands
 * is needed for these only. */
enum { RECEIVES_OPEN = 4 };

struct stream {
    struct stream_head head;
    struct process *process;
    int track; /* of the timeline */
    stream_function *function;
    void *argument;
    pthread_t thread;
    bool first;
};

struct request {
    struct parcel parcel;
    enum receive receive;
    struct span span;
    double start_s;
    struct inbox *inbox; /* of a receive */
    struct request *after;
};

/* What comes from one rank on one channel. */
struct inbox {
    int from, channel, open;
    struct request *first, *last; /* asked for, but MPI does not know yet */
    struct inbox *next;
};

/* Running out of memory in the middle of a step has no other way out: the other ranks wait. */
static void *need(void *memory)
{
    if (!memory) {
        fputs("longhaul-rank: out of memory\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    }
    return memory;
}

static struct request *request_new(const struct process *process, struct span span, int peer, int channel)
{
    bool asks = (double)span.bytes > process->eager_bytes;
    struct request *request = need(calloc(1, sizeof *request));
    struct parcel *parcel = &request->parcel;
    request->span = span;
    request->start_s = process_clock();
    *parcel = (struct parcel){.bytes = span.bytes, .peer = peer, .channel = process->channels[channel]};
    parcel->piece_bytes = asks ? span.bytes : PIECE_BYTES;
    parcel->count = span.bytes > parcel->piece_bytes ? (span.bytes + PIECE_BYTES - 1) / PIECE_BYTES : 1;
    parcel->pieces = need(calloc(parcel->count, sizeof *parcel->pieces));
    return request;
}

static struct request *mpi_isend(struct stream *stream, int to, int channel, struct span span)
{
    struct process *process = stream->process;
    struct request *request = request_new(process, span, to, channel);
    request->parcel.sends = true;
    request->parcel.memory = (char *)process_memory(process, span);
    courier_give(process->courier, &request->parcel);
    atomic_fetch_add(&process->messages, 1);
    atomic_fetch_add(&process->sent_to_site[placement_site(&process->placement, to)], span.bytes);
    return request;
}

static struct inbox *inbox_of(struct process *process, int from, int channel)
{
    struct inbox *inbox = process->inboxes;
    while (inbox && (inbox->from != from || inbox->channel != channel))
        inbox = inbox->next;
    if (inbox)
        return inbox;
    inbox = need(calloc(1, sizeof *inbox));
    *inbox = (struct inbox){.from = from, .channel = channel, .next = process->inboxes};
    process->inboxes = inbox;
    return inbox;
}

/* Makes receives known to MPI, in order, as far as they may be. The lock is held. */
static void open_receives(struct process *process, struct inbox *inbox)
{
    while (inbox->first && (inbox->open < RECEIVES_OPEN || isfinite(process->eager_bytes))) {
        struct request *request = inbox->first;
        inbox->first = request->after;
        inbox->open++;
        request->parcel.memory = need(malloc(request->span.bytes ? request->span.bytes : 1));
        courier_give(process->courier, &request->parcel);
    }
}

static struct request *mpi_irecv(struct stream *stream, int from, int channel, struct span span, enum receive receive)
{
    struct process *process = stream->process;
    struct request *request = request_new(process, span, from, channel);
    request->receive = receive;
    pthread_mutex_lock(&process->lock);
    struct inbox *inbox = request->inbox = inbox_of(process, from, channel);
    if (inbox->first)
        inbox->last->after = request;
    else
        inbox->first = request;
    inbox->last = request;
    open_receives(process, inbox);
    pthread_mutex_unlock(&process->lock);
    return request;
}

static void enter_span(const struct process *process, const struct request *request)
{
    float *memory = process_memory(process, request->span), *landed = (float *)(void *)request->parcel.memory;
    size_t whole = request->receive == RECEIVE_ACCUMULATE ? request->span.bytes / sizeof(float) : 0;
    for (size_t i = 0; i < whole; i++)
        memory[i] += landed[i];
    memcpy((char *)memory + whole * sizeof(float), (char *)landed + whole * sizeof(float),
           request->span.bytes - whole * sizeof(float));
}

static void end_receive(struct process *process, struct request *request)
{
    enter_span(process, request);
    free(request->parcel.memory);
    pthread_mutex_lock(&process->lock);
    request->inbox->open--;
    open_receives(process, request->inbox);
    pthread_mutex_unlock(&process->lock);
}

static void mpi_wait(struct stream *stream, struct request *request)
{
    double start_s = process_clock();
    courier_wait(stream->process->courier, &request->parcel);
    if (!request->parcel.sends)
        end_receive(stream->process, request);
    recording_message(stream->process, stream->track, request->parcel.sends, request->parcel.peer,
                      request->parcel.sends ? request->start_s : start_s, (double)request->span.bytes);
    free(request->parcel.pieces);
    free(request);
}

static void mpi_compute(struct stream *stream, double seconds)
{
    struct process *process = stream->process;
    double start_s = process_clock();
    while (process->spin && process_clock() < start_s + seconds)
        ;
    process_sleep_until(start_s + seconds);
    if (stream->first)
        process->compute_s += process_clock() - start_s;
    recording_compute(process, stream->track, start_s);
}

static double mpi_now(const struct stream *stream)
{
    return process_clock() - stream->process->start_s;
}

static void *thread_main(void *argument)
{
    struct stream *stream = argument;
    stream->function(stream, stream->argument);
    recording_leave(stream->process, stream->track);
    return NULL;
}

static struct stream *mpi_spawn(struct stream *parent, stream_function *function, void *argument, const char *name)
{
    struct stream *stream = need(malloc(sizeof *stream));
    *stream = *parent;
    stream->first = false;
    stream->track = recording_track(parent->process, name);
    stream->function = function;
    stream->argument = argument;
    int rc = pthread_create(&stream->thread, NULL, thread_main, stream);
    if (rc) {
        fprintf(stderr, "longhaul-rank: no thread for a stream: %s\n", strerror(rc));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    }
    return stream;
}

static void mpi_join(struct stream *stream, struct stream *child)
{
    (void)stream;
    pthread_join(child->thread, NULL);
    free(child);
}

const struct transport_ops mpi_transport = {.isend = mpi_isend,
                                            .irecv = mpi_irecv,
                                            .wait = mpi_wait,
                                            .compute = mpi_compute,
                                            .now = mpi_now,
                                            .spawn = mpi_spawn,
                                            .join = mpi_join};

void transport_run(struct process *process, stream_function *main, void *argument)
{
    struct stream stream = {.head = {&mpi_transport, process->rank, process->count},
                            .process = process,
                            .track = recording_track(process, "main"),
                            .first = true};
    process->courier = need(courier_start());
    main(&stream, argument);
    courier_stop(process->courier);
    while (process->inboxes) {
        struct inbox *next = process->inboxes->next;
        free(process->inboxes);
        process->inboxes = next;
    }
}

struct process *transport_process(const struct stream *stream)
{
    return stream->process;
}
