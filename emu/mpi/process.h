/* One MPI process: a rank of the run, its buffers, its clock. Internal to emu/mpi.
 *
 * A span lies in real memory, an element is a float whatever the scenario's number format: bytes are what crosses.
 * Every channel is a communicator of its own, so that messages of one never wait for those of another to be matched.
 */
#ifndef LONGHAUL_MPI_PROCESS_H
#define LONGHAUL_MPI_PROCESS_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "configs/err.h"
#include "configs/scenario.h"
#include "sim/training/step.h"
#include "sim/training/transport.h"

enum { REGIONS = REGION_ACTIVATION + 1 };

struct courier;   /* courier.h */
struct inbox;     /* transport.c */
struct recording; /* recording.h */

struct process {
    const struct scenario *scenario;
    struct placement placement;
    MPI_Comm ranks; /* rank r of it is rank r of the step */
    MPI_Comm *channels;
    int channel_count;
    int rank, count;
    size_t site;
    double rtt_s;    /* the longest measured to rank 0 */
    double offset_s; /* of this clock from rank 0's */
    double start_s;  /* of the step, by this clock */
    char *regions[REGIONS];
    uint64_t region_bytes[REGIONS];
    struct courier *courier; /* while a step runs */
    double eager_bytes;      /* a message of more asks first; INFINITY: none does */
    bool spin;               /* compute by spinning */
    bool check;              /* values are made up and checked in this step */
    atomic_ullong messages, sent_bytes, checked_bytes;
    atomic_ullong *sent_to_site; /* [sites]; bytes */
    double compute_s;            /* of the main stream */
    pthread_mutex_t lock;        /* of what follows */
    struct inbox *inboxes;
    struct err wrong;           /* the first value that was not what it should be */
    struct recording *recorded; /* NULL: nothing is */
};

/* Joins the ranks: MPI must be initialised with MPI_THREAD_SERIALIZED. The n-th process of MPI_COMM_WORLD is the n-th
 * node of the scenario's sites. -EINVAL where there are not as many as ranks; collective, the same on all. */
int process_open(struct process *process, const struct scenario *scenario, struct err *err);
/* Frees; collective. */
void process_close(struct process *process);

/* Makes room for a strategy's spans and channels; collective. */
int process_prepare(struct process *process, const struct step_plan *plan, struct err *err);

/* s; this process's own clock, and what rank 0's shows at that time. */
double process_clock(void);
double process_common(const struct process *process);
/* Until a time of this process's clock. */
void process_sleep_until(double time_s);

/* Where a span lies. */
float *process_memory(const struct process *process, struct span span);

extern const struct transport_ops mpi_transport;
/* Runs main as the first stream of this rank. */
void transport_run(struct process *process, stream_function *main, void *argument);

extern const struct step_values process_values; /* values.c */
struct process *transport_process(const struct stream *stream);

#endif
