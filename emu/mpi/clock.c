/* Preloaded into the programs of a lab in virtual time, whose clock moves only while every process sleeps.
 *
 * A rank of an MPI program waits by polling: it would stop the clock for ever. So a poll with timeout 0 that would find
 * nothing blocks on what it polls, for a share of the time that this wait has lasted: whatever is waited for ends it
 * at the very moment it happens, and a long wait costs few wake-ups. What waits for another thread without polling
 * anything (sched_yield, a sleep of no time, a spin lock) sleeps a smaller share instead, and sees the end of its wait
 * at most that late. Other processes than ranks are left alone: a poll that finds nothing need not be a wait, and where
 * it is none the time it takes is an error.
 *
 * The clocks of MPI read the processor's counter, which no virtual clock moves: here they are CLOCK_MONOTONIC, in every
 * process. (Reading that one costs 256 ns of virtual time; UML's arch/um/kernel/time.c says why.) */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread's wait: calls in a row that found nothing. */
struct wait {
    int64_t began_ns, due_ns; /* began 0: none yet; due: when the last call will have returned */
};
/* A pause is the time waited by `part`. The least keeps the clock going. */
struct kind {
    int64_t part, least_ns, most_ns;
};
/* What is polled ends the pause; the share and the most are how late anything else is seen, such as another thread. */
static const struct kind polls = {.part = 4, .least_ns = 1000, .most_ns = 10000000};
/* Nothing tells where one wait ends and the next begins in the same instant, so that short waits after long ones are as
 * late as the most allows: 1 % of 10 ms. */
static const struct kind yields = {.part = 256, .least_ns = 1000, .most_ns = 100000};

enum {
    YIELDS_FREE = 64, /* in a row, with no poll in between: from then on this is taken for all that the thread does */
    LATE_NS = 50000, /* a call this much after the last: something else was done. Clock reads of others take time too */
    NS_PER_S = 1000000000
};

static __thread struct wait polling, yielding;
static __thread unsigned yield_count;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec;
}

static struct timespec next_pause(struct wait *wait, const struct kind *kind)
{
    int64_t now = now_ns();
    if (!wait->began_ns || now > wait->due_ns + LATE_NS)
        wait->began_ns = now;
    int64_t pause = (now - wait->began_ns) / kind->part;
    pause = pause < kind->least_ns ? kind->least_ns : pause > kind->most_ns ? kind->most_ns : pause;
    wait->due_ns = now + pause;
    return (struct timespec){0, pause};
}

/* Is this process one of mpirun's ranks? PMIx (Open MPI, PRRTE) and PMI (MPICH, Slurm) say so in the environment. */
static bool is_rank(void)
{
    static int known; /* the same in every thread */
    if (!known)
        known = getenv("PMIX_RANK") || getenv("PMI_RANK") || getenv("OMPI_COMM_WORLD_RANK") ? 1 : -1;
    return known > 0;
}

/* The C library's own function. */
#define LIBRARY(function)                                                                                              \
    static __typeof__(&(function)) own;                                                                                \
    if (!own)                                                                                                          \
    find((void **)(void *)&own, #function)

static void find(void **function, const char *name)
{
    *function = dlsym(RTLD_NEXT, name);
    if (!*function)
        abort();
}

/* ---- polls */

static const struct timespec at_once = {0, 0};

static bool is_zero(const struct timespec *timeout)
{
    return timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
}

/* The last poll of this thread found something. The next one does not pause: MPI handles events until a poll finds
 * none, and only then looks which of its requests are done. */
static __thread bool found_some;

/* Runs `call` (with `timeout` in it) for a pause where it asks for none; a signal ends the pause, not the call. */
#define POLL(timeout, call)                                                                                            \
    do {                                                                                                               \
        if (!is_zero(timeout) || !is_rank())                                                                           \
            return call;                                                                                               \
        if (found_some) {                                                                                              \
            int more = call;                                                                                           \
            found_some = more > 0;                                                                                     \
            return more;                                                                                               \
        }                                                                                                              \
        int before = errno;                                                                                            \
        struct timespec pause = next_pause(&polling, &polls);                                                          \
        yield_count = 0;                                                                                               \
        (timeout) = &pause;                                                                                            \
        int found = call;                                                                                              \
        if (found < 0 && errno == EINTR) {                                                                             \
            errno = before;                                                                                            \
            (timeout) = &at_once;                                                                                      \
            found = call;                                                                                              \
        }                                                                                                              \
        found_some = found > 0;                                                                                        \
        if (found)                                                                                                     \
            polling.began_ns = 0;                                                                                      \
        return found;                                                                                                  \
    } while (0)

int ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    LIBRARY(ppoll);
    POLL(timeout, own(polled, count, timeout, mask));
}

int poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    LIBRARY(poll);
    return timeout_ms || !is_rank() ? own(polled, count, timeout_ms) : ppoll(polled, count, &at_once, NULL);
}

int epoll_pwait2(int set, struct epoll_event *events, int room, const struct timespec *timeout, const sigset_t *mask)
{
    LIBRARY(epoll_pwait2);
    POLL(timeout, own(set, events, room, timeout, mask));
}

int epoll_pwait(int set, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
    LIBRARY(epoll_pwait);
    return timeout_ms || !is_rank() ? own(set, events, room, timeout_ms, mask)
                                    : epoll_pwait2(set, events, room, &at_once, mask);
}

int epoll_wait(int set, struct epoll_event *events, int room, int timeout_ms)
{
    LIBRARY(epoll_wait);
    return timeout_ms || !is_rank() ? own(set, events, room, timeout_ms)
                                    : epoll_pwait2(set, events, room, &at_once, NULL);
}

int pselect(int count, fd_set *readable, fd_set *writable, fd_set *special, const struct timespec *timeout,
            const sigset_t *mask)
{
    LIBRARY(pselect);
    POLL(timeout, own(count, readable, writable, special, timeout, mask));
}

int select(int count, fd_set *readable, fd_set *writable, fd_set *special, struct timeval *timeout)
{
    LIBRARY(select);
    bool none = timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0;
    return !none || !is_rank() ? own(count, readable, writable, special, timeout)
                               : pselect(count, readable, writable, special, &at_once, NULL);
}

/* ---- waits for another thread */

/* The yield itself would be a system call of 10 us for nothing: MPI yields between its polls. */
static void yield(void)
{
    LIBRARY(clock_nanosleep);
    if (++yield_count < YIELDS_FREE)
        return;
    struct timespec pause = next_pause(&yielding, &yields);
    (void)own(CLOCK_MONOTONIC, 0, &pause, NULL); /* returns its error: errno stays */
}

int sched_yield(void)
{
    if (!is_rank())
        return (int)syscall(SYS_sched_yield);
    yield();
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *duration, struct timespec *left)
{
    LIBRARY(clock_nanosleep);
    if (flags || !is_zero(duration) || !is_rank())
        return own(clock, flags, duration, left);
    yield();
    return 0;
}

int nanosleep(const struct timespec *duration, struct timespec *left)
{
    LIBRARY(nanosleep);
    if (!is_zero(duration) || !is_rank())
        return own(duration, left);
    yield();
    return 0;
}

int usleep(useconds_t duration_us)
{
    LIBRARY(usleep);
    if (duration_us || !is_rank())
        return own(duration_us);
    yield();
    return 0;
}

/* A thread that spins for one that sleeps would never see it wake. */
int pthread_spin_lock(pthread_spinlock_t *lock)
{
    int rc;
    while ((rc = pthread_spin_trylock(lock)) == EBUSY)
        sched_yield();
    return rc;
}

/* ---- the clocks of MPI, and the names that Fortran compilers give them */

#define CLOCK(name, value)                                                                                             \
    double name(void);                                                                                                 \
    double name(void)                                                                                                  \
    {                                                                                                                  \
        return value;                                                                                                  \
    }
#define CLOCKS(clock, CLOCK_CAPITALS, c_name, value)                                                                   \
    CLOCK(MPI_##c_name, value)                                                                                         \
    CLOCK(PMPI_##c_name, value)                                                                                        \
    CLOCK(mpi_##clock, value)                                                                                          \
    CLOCK(mpi_##clock##_, value)                                                                                       \
    CLOCK(mpi_##clock##__, value)                                                                                      \
    CLOCK(MPI_##CLOCK_CAPITALS, value)                                                                                 \
    CLOCK(pmpi_##clock, value)                                                                                         \
    CLOCK(pmpi_##clock##_, value)                                                                                      \
    CLOCK(pmpi_##clock##__, value)                                                                                     \
    CLOCK(PMPI_##CLOCK_CAPITALS, value)
CLOCKS(wtime, WTIME, Wtime, (double)now_ns() / NS_PER_S)
CLOCKS(wtick, WTICK, Wtick, 1.0 / NS_PER_S)
