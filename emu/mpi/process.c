#include "emu/mpi/process.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PINGS = 10 };

/* ---- clocks */

double process_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double process_common(const struct process *process)
{
    return process_clock() + process->offset_s;
}

void process_sleep_until(double time_s)
{
    double whole;
    struct timespec until = {.tv_nsec = (long)(modf(time_s, &whole) * 1e9)};
    until.tv_sec = (time_t)whole;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Cristian's algorithm (Distributed Computing 3, 1989): of several round trips the shortest has the least room for
 * error; rank 0's clock showed `answer` in its middle. */
static void ask_clock(struct process *process)
{
    double best_s = INFINITY, answer;
    for (int i = 0; i < PINGS; i++) {
        double sent_s = process_clock();
        MPI_Sendrecv(&sent_s, 1, MPI_DOUBLE, 0, 0, &answer, 1, MPI_DOUBLE, 0, 0, process->ranks, MPI_STATUS_IGNORE);
        double back_s = process_clock();
        if (back_s - sent_s >= best_s)
            continue;
        best_s = back_s - sent_s;
        process->offset_s = answer - (sent_s + back_s) / 2;
    }
    process->rtt_s = best_s;
}

static void answer_clock(const struct process *process, int rank)
{
    double asked, now;
    for (int i = 0; i < PINGS; i++) {
        MPI_Recv(&asked, 1, MPI_DOUBLE, rank, 0, process->ranks, MPI_STATUS_IGNORE);
        now = process_clock();
        MPI_Send(&now, 1, MPI_DOUBLE, rank, 0, process->ranks);
    }
}

static void agree_on_clock(struct process *process)
{
    for (int rank = 1; rank < process->count; rank++) {
        if (process->rank == rank)
            ask_clock(process);
        else if (process->rank == 0)
            answer_clock(process, rank);
        MPI_Barrier(process->ranks);
    }
    MPI_Allreduce(MPI_IN_PLACE, &process->rtt_s, 1, MPI_DOUBLE, MPI_MAX, process->ranks);
}

/* ---- ranks */

/* As many as any strategy needs. */
static int make_channels(struct process *process, struct err *err)
{
    const struct scenario *scenario = process->scenario;
    int count = 0;
    for (size_t i = 0; i < scenario->strategy_count; i++) {
        int needed = step_channels(scenario, &scenario->strategies[i]);
        count = needed > count ? needed : count;
    }
    process->channels = calloc((size_t)count, sizeof *process->channels);
    if (!process->channels)
        return err_set(err, ENOMEM, "out of memory for %d channels", count);
    while (process->channel_count < count)
        MPI_Comm_dup(process->ranks, &process->channels[process->channel_count++]);
    return 0;
}

/* The n-th process is on the n-th node, site after site; in a site nodes are taken stage after stage. */
static int rank_of(const struct placement *placement, int number)
{
    size_t site = 0;
    long place = number;
    for (; place >= placement->stages * (placement->site_first[site + 1] - placement->site_first[site]); site++)
        place -= placement->stages * (placement->site_first[site + 1] - placement->site_first[site]);
    long replicas = placement->site_first[site + 1] - placement->site_first[site];
    return placement_rank(placement, place / replicas, placement->site_first[site] + place % replicas);
}

enum { HEAP_BYTES = 32 << 20 };

/* Page faults are dear in a lab (40 us each), so pages are asked for many at once. Where the kernel cannot, they come
 * one by one. */
static void populate(char *memory, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)memory + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)memory + bytes) / page * page;
    if (end > from)
        (void)madvise((void *)from, end - from, MADV_POPULATE_WRITE);
}

/* What messages land in is freed and taken again all the time: it stays in the process. */
static void keep_memory(void)
{
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    (void)mallopt(M_ARENA_MAX, 1);
    char *heap = malloc(HEAP_BYTES);
    if (heap)
        populate(heap, HEAP_BYTES);
    free(heap);
}

int process_open(struct process *process, const struct scenario *scenario, struct err *err)
{
    int number, count;
    *process = (struct process){.scenario = scenario, .eager_bytes = INFINITY, .ranks = MPI_COMM_NULL};
    pthread_mutex_init(&process->lock, NULL);
    keep_memory();
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    int rc = placement_init(&process->placement, scenario, err);
    if (rc)
        return rc;
    long ranks = process->placement.stages * process->placement.replicas;
    if (count != ranks)
        return err_set(err, EINVAL, "%d processes, but the scenario has %ld ranks; start that many, one a host", count,
                       ranks);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank_of(&process->placement, number), &process->ranks);
    MPI_Comm_rank(process->ranks, &process->rank);
    process->count = count;
    process->site = placement_site(&process->placement, process->rank);
    if (scenario->transport.handshakes > 0)
        process->eager_bytes = scenario->transport.eager_bytes;
    process->sent_to_site = calloc(scenario->site_count, sizeof *process->sent_to_site);
    if (!process->sent_to_site)
        return err_set(err, ENOMEM, "out of memory");
    agree_on_clock(process);
    return make_channels(process, err);
}

void process_close(struct process *process)
{
    for (int i = 0; i < process->channel_count; i++)
        MPI_Comm_free(&process->channels[i]);
    for (int region = 0; region < REGIONS; region++)
        free(process->regions[region]);
    if (process->ranks != MPI_COMM_NULL)
        MPI_Comm_free(&process->ranks);
    free(process->channels);
    free(process->sent_to_site);
    placement_free(&process->placement);
    pthread_mutex_destroy(&process->lock);
}

/* ---- rooms */

static int grow(struct process *process, enum region region, uint64_t bytes, struct err *err)
{
    if (bytes <= process->region_bytes[region])
        return 0;
    free(process->regions[region]);
    process->region_bytes[region] = 0;
    char *memory = process->regions[region] = malloc(bytes + sizeof(float));
    if (!memory)
        return err_set(err, ENOMEM, "rank %d has no memory for %llu bytes", process->rank, (unsigned long long)bytes);
    populate(memory, bytes);
    memset(memory, 0, bytes);
    process->region_bytes[region] = bytes;
    return 0;
}

int process_prepare(struct process *process, const struct step_plan *plan, struct err *err)
{
    bool gathers = plan->strategy->sharding != SHARD_NONE;
    int rc = grow(process, REGION_GRADIENT, plan->gradient_bytes, err);
    rc = rc ? rc : grow(process, REGION_PARAMETER, gathers ? plan->parameter_bytes : 0, err);
    rc = rc ? rc : grow(process, REGION_ACTIVATION, plan->activation_bytes, err);
    int worst = rc;
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MIN, process->ranks);
    if (worst)
        return rc ? rc : err_set(err, -worst, "another rank ran out of memory");
    return 0;
}

float *process_memory(const struct process *process, struct span span)
{
    return (float *)(void *)(process->regions[span.region] + span.offset);
}
