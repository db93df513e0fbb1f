#include "emu/mpi/idle.h"

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

enum { LEAST_NS = 100000, MOST_NS = 100000000, SETS_MAX = 1024 };

/* One thread's wait. */
static __thread struct {
    int bell;      /* 0: none */
    long pause_ns; /* of the last wait that found nothing; 0: it found something */
    bool found;    /* the last look found something */
} own;

/* Every wait that finds nothing is followed by one of twice its length: no clock is read for it. */
static struct timespec next_pause(void)
{
    own.pause_ns = own.pause_ns == 0 ? LEAST_NS : own.pause_ns < MOST_NS / 2 ? 2 * own.pause_ns : MOST_NS;
    return (struct timespec){0, own.pause_ns};
}

static int plain_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout)
{
    struct timespec copy = timeout ? *timeout : (struct timespec){0};
    return (int)syscall(SYS_ppoll, fds, count, timeout ? &copy : NULL, NULL, 0);
}

static bool bell_rang(const struct pollfd *bell)
{
    uint64_t rings;
    return bell->fd > 0 && bell->revents && read(bell->fd, &rings, sizeof rings) > 0;
}

/* A look after one that found something is a look only: MPI handles events until a look finds none, and only then asks
 * which of its requests are done. Waiting there would keep it from them for as long as messages come in. */
static int look(struct pollfd *fds, nfds_t count)
{
    static const struct timespec at_once = {0, 0};
    int ready = plain_poll(fds, count, &at_once);
    own.found = ready > 0;
    return ready;
}

/* Waits on the descriptors and the bell. Returns how many descriptors have something, 0 after the bell or the pause. */
static int pause_on(struct pollfd *fds, nfds_t count)
{
    struct pollfd all[SETS_MAX];
    if (own.found)
        return look(fds, count);
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
