/* The one thread of a process that is inside MPI while a step runs: it starts the messages of all streams and moves
 * them, whatever the streams do meanwhile, as the proxy thread of a GPU's communication library does.
 *
 * Not MPI_THREAD_MULTIPLE: threads that wait inside Open MPI 4.1 spin for each other (ompi_sync_wait_mt), and while a
 * thread spins a virtual clock stands still for ever.
 */
#ifndef LONGHAUL_MPI_COURIER_H
#define LONGHAUL_MPI_COURIER_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* One message: pieces that are sent or received in order. */
struct parcel {
    bool sends, done;
    char *memory;
    size_t bytes, piece_bytes; /* of all pieces; of each but the last */
    int peer;
    MPI_Comm channel;
    size_t count, next; /* pieces; the first that is not done */
    MPI_Request *pieces;
    struct parcel *after;
};

struct courier;

/* Starts the thread; until courier_stop no other calls MPI. NULL when out of memory or threads. */
struct courier *courier_start(void);
/* When all parcels are done. NULL is fine. */
void courier_stop(struct courier *courier);

/* Hands a parcel over; it stays the caller's and must live until it is done. */
void courier_give(struct courier *courier, struct parcel *parcel);
/* Blocks until it is done. */
void courier_wait(struct courier *courier, struct parcel *parcel);

#endif
