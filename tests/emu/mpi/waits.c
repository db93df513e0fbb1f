/* An MPI program as a user writes it, with nothing about the lab in it. Every mode prints one line of figures from rank
 * 0. Usage: waits MODE [N]
 *   hosts      where the ranks are, in their order
 *   ping N     N messages of 4 byte there and back between the first and the last rank while the others wait in a
 *              barrier: RTT by clock_gettime, by MPI_Wtime and by Fortran's name of it, in ms
 *   pairs N    the same between rank i and i + size / 2, all at once
 *   test N     the same, where the first rank polls with MPI_Test and sleeps 1 ms between two polls
 *   spin N     N waits of 10.65 ms for a thread that sleeps: how long one takes by pthread_spin_lock, by sched_yield,
 * by usleep(0), in ms exit N     rank 1 exits with N abort      rank 1 aborts while the others wait for it */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_NS = 10650000, WARM_UP = 3, NAME_MAX_BYTES = MPI_MAX_PROCESSOR_NAME };

static int rank, size;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void tell_hosts(long n)
{
    char own[NAME_MAX_BYTES] = "", *all = calloc((size_t)size, NAME_MAX_BYTES);
    int length;
    (void)n;
    MPI_Get_processor_name(own, &length);
    MPI_Gather(own, NAME_MAX_BYTES, MPI_CHAR, all, NAME_MAX_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < size && rank == 0; i++)
        printf("%s%c", &all[i * NAME_MAX_BYTES], i + 1 < size ? ' ' : '\n');
    free(all);
}

static void receive_waiting(int peer, int *word)
{
    MPI_Recv(word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_testing(int peer, int *word)
{
    MPI_Request request;
    int done = 0;
    const struct timespec computing = {0, 1000000};
    MPI_Irecv(word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
        nanosleep(&computing, NULL);
}

static void bounce(int peer, long n, void (*receive)(int peer, int *word))
{
    int word = 0;
    for (long i = 0; i < n; i++) {
        if (rank < peer)
            MPI_Send(&word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
        receive(peer, &word);
        if (rank > peer)
            MPI_Send(&word, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
    }
}

static void time_bounces(int peer, long n, void (*receive)(int peer, int *word))
{
    double (*fortran)(void);
    *(void **)(void *)&fortran = dlsym(RTLD_DEFAULT, "mpi_wtime_");
    bounce(peer, WARM_UP, receive);
    double begin = now_s(), mpi_begin = MPI_Wtime(), fortran_begin = fortran ? fortran() : 0;
    bounce(peer, n, receive);
    double clock = now_s() - begin, mpi = MPI_Wtime() - mpi_begin, other = fortran ? fortran() - fortran_begin : 0;
    if (rank == 0)
        printf("%.6f %.6f %.6f\n", 1e3 * clock / (double)n, 1e3 * mpi / (double)n, 1e3 * other / (double)n);
}

static void ping(long n)
{
    if (rank == 0 || rank == size - 1)
        time_bounces(size - 1 - rank, n, receive_waiting);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void pairs(long n)
{
    int half = size / 2;
    time_bounces(rank < half ? rank + half : rank - half, n, receive_waiting);
}

static void test(long n)
{
    if (rank == 0 || rank == size - 1)
        time_bounces(size - 1 - rank, n, rank == 0 ? receive_testing : receive_waiting);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- waits for another thread */

static pthread_spinlock_t lock;
static atomic_bool come;

static void *hold(void *begun)
{
    const struct timespec duration = {0, WAIT_NS};
    pthread_spin_lock(&lock);
    pthread_barrier_wait(begun);
    nanosleep(&duration, NULL);
    come = true;
    pthread_spin_unlock(&lock);
    return NULL;
}

static void by_spin_lock(void)
{
    pthread_spin_lock(&lock);
    pthread_spin_unlock(&lock);
}

static void by_yield(void)
{
    while (!come)
        sched_yield();
}

static void by_sleeps_of_no_time(void)
{
    while (!come)
        usleep(0);
}

static double time_wait(void (*wait)(void))
{
    pthread_t thread;
    pthread_barrier_t begun;
    come = false;
    pthread_barrier_init(&begun, NULL, 2);
    pthread_create(&thread, NULL, hold, &begun);
    pthread_barrier_wait(&begun);
    double begin = now_s();
    wait();
    double took_s = now_s() - begin;
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&begun);
    return took_s;
}

static void spin(long n)
{
    static void (*const ways[])(void) = {by_spin_lock, by_yield, by_sleeps_of_no_time};
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    for (size_t way = 0; way < sizeof ways / sizeof *ways && rank == 0; way++) {
        double sum_s = 0;
        for (long i = 0; i < n; i++)
            sum_s += time_wait(ways[way]);
        printf("%.6f%c", 1e3 * sum_s / (double)n, way + 1 < sizeof ways / sizeof *ways ? ' ' : '\n');
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- ends */

static void leave(long n)
{
    MPI_Finalize();
    exit(rank == 1 ? (int)n : 0);
}

static void fall(long n)
{
    (void)n;
    if (rank == 1)
        abort();
    MPI_Barrier(MPI_COMM_WORLD);
}

static const struct mode {
    const char *name;
    void (*run)(long n);
} modes[] = {{"hosts", tell_hosts}, {"ping", ping},  {"pairs", pairs}, {"test", test},
             {"spin", spin},        {"exit", leave}, {"abort", fall}};

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(argv[1], modes[i].name))
            modes[i].run(argc > 2 ? strtol(argv[2], NULL, 10) : 0);
    MPI_Finalize();
    return 0;
}
