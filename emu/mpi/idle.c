#include "emu/mpi/idle.h"

#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_NS = 100000, MOST_NS = 100000000, SETS_MAX = 1024, READS_AS_ONE = 32 };
enum { AT_ONCE_NS = 1000, HASTY_MOST = 10000 };

/* One thread's wait. */
static __thread struct {
    int bell;       /* 0: none */
    long pause_ns;  /* of the last wait that found nothing; 0: it found something */
    bool found;     /* the last look found something */
    int hasty;      /* looks in a row that had not to wait */
    unsigned reads; /* of the clock */
    struct timespec read;
} own;

/* Every wait that finds nothing is followed by one of twice its length: no clock is read for it. */
static struct timespec next_pause(void)
{
    own.pause_ns = own.pause_ns == 0 ? LEAST_NS : own.pause_ns < MOST_NS / 2 ? 2 * own.pause_ns : MOST_NS;
    return (struct timespec){0, own.pause_ns};
}

/* A connection whose other end has died is ready for ever, and MPI looks at it for ever: in virtual time nobody else
 * would get on. A look that found something at once for the 10,000th time in a row costs 10 us. */
static void bound_haste(const struct timespec *timeout, const struct timespec *left)
{
    const struct timespec rest = {0, 10000};
    bool waited = timeout->tv_sec != left->tv_sec || timeout->tv_nsec - left->tv_nsec > AT_ONCE_NS;
    own.hasty = waited ? 0 : own.hasty + 1;
    if (own.hasty > HASTY_MOST)
        (void)syscall(SYS_nanosleep, &rest, NULL);
}

static int plain_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout)
{
    struct timespec left = timeout ? *timeout : (struct timespec){0};
    int ready = (int)syscall(SYS_ppoll, fds, count, timeout ? &left : NULL, NULL, 0);
    if (timeout)
        bound_haste(timeout, &left);
    return ready;
}

static bool bell_rang(const struct pollfd *bell)
{
    uint64_t rings;
    return bell->fd > 0 && bell->revents && read(bell->fd, &rings, sizeof rings) > 0;
}

/* After a look that found something the next one finds nothing, unlooked: MPI handles events until a look finds none,
 * and only then asks which of its requests are done. Waiting there would keep it from them for as long as messages come
 * in; what is there already is found by the look after that. */
static int no_look(struct pollfd *fds, nfds_t count)
{
    for (nfds_t i = 0; i < count; i++)
        fds[i].revents = 0;
    own.found = false;
    return 0;
}

/* Waits on the descriptors and the bell. Returns how many descriptors have something, 0 after the bell or the pause. */
static int pause_on(struct pollfd *fds, nfds_t count)
{
    struct pollfd all[SETS_MAX];
    if (own.found)
        return no_look(fds, count);
    const struct timespec pause = next_pause();
    if (count >= SETS_MAX)
        return plain_poll(fds, count, &pause);
    memcpy(all, fds, count * sizeof *fds);
    all[count] = (struct pollfd){.fd = own.bell > 0 ? own.bell : -1, .events = POLLIN};
    int ready = plain_poll(all, count + 1, &pause);
    if (ready <= 0)
        return 0;
    ready -= all[count].revents != 0;
    if (bell_rang(&all[count]) || ready > 0)
        own.pause_ns = 0;
    memcpy(fds, all, count * sizeof *fds);
    own.found = ready > 0;
    return ready;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    return timeout_ms == 0 ? pause_on(fds, count) : plain_poll(fds, count, timeout_ms < 0 ? NULL : &timeout);
}

int epoll_wait(int set, struct epoll_event *events, int most, int timeout_ms)
{
    struct pollfd fd = {.fd = set, .events = POLLIN};
    if (timeout_ms == 0 && pause_on(&fd, 1) == 0)
        return 0;
    return (int)syscall(SYS_epoll_pwait, set, events, most, timeout_ms, NULL, 8);
}

/* MPI's event loop reads the clock at every look, for timers of seconds. In a lab that is a system call, and time
 * passes only while all wait: most of these get the time of an earlier one. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static __typeof__(&clock_gettime) library;
    if (!library)
        library = (__typeof__(library))(uintptr_t)dlsym(RTLD_NEXT, "clock_gettime");
    if (own.bell == 0 || clock != CLOCK_MONOTONIC)
        return library(clock, now);
    if (own.reads++ % READS_AS_ONE == 0 && library(clock, &own.read))
        return -1;
    *now = own.read;
    return 0;
}

/* MPI yields between two looks; the next look waits. */
int sched_yield(void)
{
    return 0;
}

void idle_begin(int bell)
{
    own.bell = bell;
    own.pause_ns = 0;
    own.found = false;
}

void idle_end(void)
{
    own.bell = 0;
}

void idle_wait(void)
{
    struct pollfd bell = {.fd = own.bell, .events = POLLIN};
    if (plain_poll(&bell, 1, NULL) > 0)
        (void)bell_rang(&bell);
}
