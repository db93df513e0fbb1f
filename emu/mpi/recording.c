#include "emu/mpi/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/timeline.h"

enum { NAME_BYTES = 24, TRACKS_MAX = 4096, SEND_TRACKS = 100000 };

enum kind { KIND_COMPUTE, KIND_WAIT, KIND_SEND };

struct event {
    double start_s, end_s, bytes; /* s of the step */
    int kind, peer, track;
};

struct track {
    char name[NAME_BYTES];
    int place; /* among the tracks of its name */
    bool taken;
};

struct recording {
    struct event *events;
    size_t count, room;
    struct track tracks[TRACKS_MAX];
    int track_count;
};

/* The first replica of each site, as in the simulator's timeline. */
static bool is_shown(const struct process *process)
{
    const struct placement *placement = &process->placement;
    return placement_replica(placement, process->rank) == placement->site_first[process->site];
}

void recording_begin(struct process *process)
{
    recording_free(process);
    if (is_shown(process))
        process->recorded = calloc(1, sizeof *process->recorded);
}

void recording_free(struct process *process)
{
    if (process->recorded)
        free(process->recorded->events);
    free(process->recorded);
    process->recorded = NULL;
}

/* An event that finds no memory is left out. */
static void add(struct process *process, struct event event)
{
    struct recording *recording = process->recorded;
    pthread_mutex_lock(&process->lock);
    if (recording->count == recording->room) {
        size_t room = 2 * recording->room + 256;
        struct event *events = realloc(recording->events, room * sizeof *events);
        if (events) {
            recording->events = events;
            recording->room = room;
        }
    }
    if (recording->count < recording->room)
        recording->events[recording->count++] = event;
    pthread_mutex_unlock(&process->lock);
}

void recording_message(struct process *process, int track, bool sent, int peer, double start_s, double bytes)
{
    double end_s = process_clock();
    if (process->recorded && end_s > start_s)
        add(process, (struct event){start_s - process->start_s, end_s - process->start_s, bytes,
                                    sent ? KIND_SEND : KIND_WAIT, peer, track});
}

void recording_compute(struct process *process, int track, double start_s)
{
    if (process->recorded)
        add(process,
            (struct event){start_s - process->start_s, process_clock() - process->start_s, 0, KIND_COMPUTE, 0, track});
}

int recording_track(struct process *process, const char *name)
{
    struct recording *recording = process->recorded;
    int place = 0, at = 0;
    if (!recording)
        return 0;
    pthread_mutex_lock(&process->lock);
    for (; at < recording->track_count; at++) {
        bool same = !strcmp(recording->tracks[at].name, name);
        if (same && !recording->tracks[at].taken)
            break;
        place += same;
    }
    if (at == recording->track_count && at < TRACKS_MAX - 1) {
        recording->track_count++;
        snprintf(recording->tracks[at].name, NAME_BYTES, "%s", name);
        recording->tracks[at].place = place;
    }
    recording->tracks[at].taken = true;
    pthread_mutex_unlock(&process->lock);
    return at;
}

void recording_leave(struct process *process, int track)
{
    if (!process->recorded)
        return;
    pthread_mutex_lock(&process->lock);
    process->recorded->tracks[track].taken = false;
    pthread_mutex_unlock(&process->lock);
}

/* ---- at rank 0 */

static void name_tracks(struct timeline *timeline, int rank, const struct track *tracks, int count)
{
    char process[32], thread[64];
    snprintf(process, sizeof process, "rank %d", rank);
    for (int i = 0; i < count; i++) {
        snprintf(thread, sizeof thread, tracks[i].place ? "%s %d" : "%s", tracks[i].name, tracks[i].place + 1);
        timeline_name(timeline, rank, process, i, thread);
    }
}

/* Sends are on a track for each rank they go to: they outlast what the stream does meanwhile. */
static void add_events(struct timeline *timeline, int rank, const struct event *events, size_t count, int ranks)
{
    bool *named = calloc((size_t)ranks, sizeof *named);
    char process[32], name[64];
    snprintf(process, sizeof process, "rank %d", rank);
    for (size_t i = 0; named && i < count; i++) {
        const struct event *event = &events[i];
        static const char *const categories[] = {
            [KIND_COMPUTE] = "compute", [KIND_WAIT] = "wait", [KIND_SEND] = "send"};
        int track = event->kind == KIND_SEND ? SEND_TRACKS + event->peer : event->track;
        snprintf(name, sizeof name, "sends to rank %d", event->peer);
        if (event->kind == KIND_SEND && !named[event->peer])
            timeline_name(timeline, rank, process, track, name);
        named[event->peer] |= event->kind == KIND_SEND;
        snprintf(name, sizeof name, event->kind == KIND_SEND ? "to rank %d" : "from rank %d", event->peer);
        timeline_span(timeline, rank, track, categories[event->kind], event->kind == KIND_COMPUTE ? "compute" : name,
                      event->start_s, event->end_s, event->bytes);
    }
    free(named);
}

/* One recording from its rank, or this process's own. */
static void collect(struct process *process, int rank, struct timeline *timeline)
{
    unsigned long long sizes[2]; /* events, tracks */
    struct recording *own = process->recorded;
    if (rank == process->rank) {
        name_tracks(timeline, rank, own->tracks, own->track_count);
        add_events(timeline, rank, own->events, own->count, process->count);
        return;
    }
    MPI_Recv(sizes, 2, MPI_UNSIGNED_LONG_LONG, rank, 0, process->ranks, MPI_STATUS_IGNORE);
    struct event *events = calloc(sizes[0] + 1, sizeof *events);
    struct track *tracks = calloc(sizes[1] + 1, sizeof *tracks);
    if (!events || !tracks)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    MPI_Recv(events, (int)(sizes[0] * sizeof *events), MPI_BYTE, rank, 0, process->ranks, MPI_STATUS_IGNORE);
    MPI_Recv(tracks, (int)(sizes[1] * sizeof *tracks), MPI_BYTE, rank, 0, process->ranks, MPI_STATUS_IGNORE);
    name_tracks(timeline, rank, tracks, (int)sizes[1]);
    add_events(timeline, rank, events, sizes[0], process->count);
    free(events);
    free(tracks);
}

static void give(const struct process *process)
{
    const struct recording *own = process->recorded;
    unsigned long long sizes[2] = {own->count, (unsigned long long)own->track_count};
    MPI_Send(sizes, 2, MPI_UNSIGNED_LONG_LONG, 0, 0, process->ranks);
    MPI_Send(own->events, (int)(own->count * sizeof *own->events), MPI_BYTE, 0, 0, process->ranks);
    MPI_Send(own->tracks, (int)((size_t)own->track_count * sizeof *own->tracks), MPI_BYTE, 0, 0, process->ranks);
}

int recording_write(struct process *process, FILE *out, struct err *err)
{
    int shown = process->recorded != NULL, rc = 0;
    int *all = calloc((size_t)process->count, sizeof *all);
    struct timeline *timeline = process->rank == 0 ? timeline_new() : NULL;
    if (!all || (process->rank == 0 && !timeline))
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    MPI_Allgather(&shown, 1, MPI_INT, all, 1, MPI_INT, process->ranks);
    for (int rank = 0; rank < process->count && process->rank == 0; rank++)
        if (all[rank])
            collect(process, rank, timeline);
    if (process->rank != 0 && shown)
        give(process);
    if (process->rank == 0)
        rc = timeline_write(timeline, out, err);
    timeline_free(timeline);
    free(all);
    recording_free(process);
    return rc;
}
