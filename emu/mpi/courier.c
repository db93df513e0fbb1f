#include "emu/mpi/courier.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emu/mpi/idle.h"

struct courier {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t arrived; /* some parcel is done */
    struct parcel *given, **given_end;
    bool stopping;
    int bell; /* eventfd: something was given */
    /* Only the thread: */
    struct parcel *moving, **moving_end;
    size_t moving_count, room;
    MPI_Request *heads; /* the first piece of each parcel that is not done */
    struct parcel **owners;
    int *ended;
};

static void start_pieces(struct parcel *parcel)
{
    for (size_t i = 0; i < parcel->count; i++) {
        size_t from = i * parcel->piece_bytes, left = parcel->bytes - from;
        int length = (int)(left < parcel->piece_bytes ? left : parcel->piece_bytes);
        if (parcel->sends)
            MPI_Isend(parcel->memory + from, length, MPI_BYTE, parcel->peer, 0, parcel->channel, &parcel->pieces[i]);
        else
            MPI_Irecv(parcel->memory + from, length, MPI_BYTE, parcel->peer, 0, parcel->channel, &parcel->pieces[i]);
    }
}

static void make_room(struct courier *courier)
{
    if (courier->moving_count < courier->room)
        return;
    courier->room = 2 * courier->room + 64;
    courier->heads = realloc(courier->heads, courier->room * sizeof(MPI_Request));
    courier->owners = realloc(courier->owners, courier->room * sizeof *courier->owners);
    courier->ended = realloc(courier->ended, courier->room * sizeof *courier->ended);
    if (!courier->heads || !courier->owners || !courier->ended)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void take_given(struct courier *courier)
{
    pthread_mutex_lock(&courier->lock);
    struct parcel *parcel = courier->given;
    courier->given = NULL;
    courier->given_end = &courier->given;
    pthread_mutex_unlock(&courier->lock);
    while (parcel) {
        struct parcel *after = parcel->after;
        start_pieces(parcel);
        parcel->after = NULL;
        *courier->moving_end = parcel;
        courier->moving_end = &parcel->after;
        courier->moving_count++;
        make_room(courier);
        parcel = after;
    }
}

static void tell_done(struct courier *courier, struct parcel *parcel)
{
    pthread_mutex_lock(&courier->lock);
    parcel->done = true;
    pthread_cond_broadcast(&courier->arrived);
    pthread_mutex_unlock(&courier->lock);
}

/* Takes done parcels out of the list. The last look at a parcel is before it is told: its owner may free it. */
static void drop_done(struct courier *courier)
{
    struct parcel **at = &courier->moving;
    while (*at) {
        struct parcel *parcel = *at;
        if (parcel->next < parcel->count) {
            at = &parcel->after;
            continue;
        }
        *at = parcel->after;
        courier->moving_count--;
        tell_done(courier, parcel);
    }
    courier->moving_end = at;
}

/* Moves messages; true when something ended. */
static bool move(struct courier *courier)
{
    int count = 0, ended = 0;
    for (struct parcel *parcel = courier->moving; parcel; parcel = parcel->after) {
        courier->owners[count] = parcel;
        courier->heads[count++] = parcel->pieces[parcel->next];
    }
    if (count == 0) {
        idle_wait();
        return false;
    }
    MPI_Testsome(count, courier->heads, &ended, courier->ended, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ended; i++)
        courier->owners[courier->ended[i]]->next++;
    if (ended > 0)
        drop_done(courier);
    return ended > 0;
}

static bool has_work(struct courier *courier)
{
    pthread_mutex_lock(&courier->lock);
    bool work = courier->given || courier->moving || !courier->stopping;
    pthread_mutex_unlock(&courier->lock);
    return work;
}

static void *courier_main(void *argument)
{
    struct courier *courier = argument;
    idle_begin(courier->bell);
    while (has_work(courier)) {
        take_given(courier);
        while (move(courier))
            ;
    }
    idle_end();
    return NULL;
}

static void ring_bell(const struct courier *courier)
{
    const uint64_t one = 1;
    (void)!write(courier->bell, &one, sizeof one);
}

struct courier *courier_start(void)
{
    struct courier *courier = calloc(1, sizeof *courier);
    if (!courier)
        return NULL;
    pthread_mutex_init(&courier->lock, NULL);
    pthread_cond_init(&courier->arrived, NULL);
    courier->given_end = &courier->given;
    courier->moving_end = &courier->moving;
    courier->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    make_room(courier);
    if (courier->bell >= 0 && pthread_create(&courier->thread, NULL, courier_main, courier) == 0)
        return courier;
    free(courier);
    return NULL;
}

void courier_stop(struct courier *courier)
{
    if (!courier)
        return;
    pthread_mutex_lock(&courier->lock);
    courier->stopping = true;
    pthread_mutex_unlock(&courier->lock);
    ring_bell(courier);
    pthread_join(courier->thread, NULL);
    close(courier->bell);
    pthread_cond_destroy(&courier->arrived);
    pthread_mutex_destroy(&courier->lock);
    free(courier->heads);
    free(courier->owners);
    free(courier->ended);
    free(courier);
}

void courier_give(struct courier *courier, struct parcel *parcel)
{
    parcel->after = NULL;
    pthread_mutex_lock(&courier->lock);
    *courier->given_end = parcel;
    courier->given_end = &parcel->after;
    pthread_mutex_unlock(&courier->lock);
    ring_bell(courier);
}

void courier_wait(struct courier *courier, struct parcel *parcel)
{
    pthread_mutex_lock(&courier->lock);
    while (!parcel->done)
        pthread_cond_wait(&courier->arrived, &courier->lock);
    pthread_mutex_unlock(&courier->lock);
}
