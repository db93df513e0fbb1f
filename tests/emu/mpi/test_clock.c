/* The preloaded functions as their callers see them, compiled in instead of preloaded, in real time (whose sleeps are
 * too inexact to tell one wait from the next: the lab tests those). */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

double MPI_Wtime(void);
double PMPI_Wtick(void);
double mpi_wtime_(void);

enum { READ, WRITE, POLLS = 200, ERRNO_BEFORE = EXDEV };

static int ends[2], set;

static void begin(void)
{
    setenv("PMIX_RANK", "0", 1); /* each test is a process */
    ck_assert_int_eq(pipe(ends), 0);
    set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    ck_assert_int_eq(epoll_ctl(set, EPOLL_CTL_ADD, ends[READ], &event), 0);
}

static int by_poll(void)
{
    struct pollfd polled = {.fd = ends[READ], .events = POLLIN};
    int found = poll(&polled, 1, 0);
    ck_assert_int_eq(found > 0, (polled.revents & POLLIN) != 0);
    return found;
}

static int by_ppoll(void)
{
    struct pollfd polled = {.fd = ends[READ], .events = POLLIN};
    const struct timespec none = {0};
    return ppoll(&polled, 1, &none, NULL);
}

static int by_epoll(void)
{
    struct epoll_event event;
    return epoll_wait(set, &event, 1, 0);
}

static int by_epoll_pwait(void)
{
    struct epoll_event event;
    return epoll_pwait(set, &event, 1, 0, NULL);
}

static int by_select(void)
{
    fd_set readable;
    struct timeval none = {0};
    FD_ZERO(&readable);
    FD_SET(ends[READ], &readable);
    int found = select(ends[READ] + 1, &readable, NULL, NULL, &none);
    ck_assert_int_eq(found > 0, FD_ISSET(ends[READ], &readable));
    return found;
}

static int (*const ways[])(void) = {by_poll, by_ppoll, by_epoll, by_epoll_pwait, by_select};
enum { WAYS = sizeof ways / sizeof *ways };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void wake(int number)
{
    (void)number;
}

/* Found nothing is 0 with errno as it was, whatever signals come; and takes time: POLLS pauses of 1 us at least. */
START_TEST(test_finds_nothing)
{
    struct sigaction action = {.sa_handler = wake};
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
    begin();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    double begun = now_s();
    errno = ERRNO_BEFORE;
    for (int i = 0; i < POLLS; i++)
        ck_assert_int_eq(ways[_i](), 0);
    ck_assert_int_eq(errno, ERRNO_BEFORE);
    ck_assert_double_ge(now_s() - begun, POLLS * 1e-6);
    setitimer(ITIMER_REAL, &never, NULL);
}
END_TEST

START_TEST(test_finds_what_is_there)
{
    begin();
    ck_assert_int_eq(write(ends[WRITE], "x", 1), 1);
    for (int i = 0; i < POLLS; i++)
        ck_assert_int_eq(ways[_i](), 1);
}
END_TEST

/* With a timeout, or in a process that is no rank, all is as in the C library. */
START_TEST(test_leaves_others_alone)
{
    struct pollfd polled = {.events = POLLIN};
    begin();
    unsetenv("PMIX_RANK");
    double begun = now_s();
    for (int i = 0; i < POLLS; i++)
        for (int way = 0; way < WAYS; way++)
            ck_assert_int_eq(ways[way](), 0);
    polled.fd = ends[READ];
    ck_assert_int_eq(poll(&polled, 1, 20), 0);
    ck_assert_double_ge(now_s() - begun, 0.02);
    ck_assert_int_eq(epoll_wait(-1, &(struct epoll_event){0}, 1, 0), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

/* Yields are nothing at first, and a share of the wait when they are all that is done. */
START_TEST(test_yields)
{
    begin();
    errno = ERRNO_BEFORE;
    double begun = now_s();
    for (int i = 0; i < 64 + POLLS; i++)
        ck_assert_int_eq(i % 2 ? sched_yield() : usleep(0), 0);
    ck_assert_double_ge(now_s() - begun, POLLS * 1e-6);
    ck_assert_int_eq(errno, ERRNO_BEFORE);
}
END_TEST

START_TEST(test_clocks)
{
    double before = now_s();
    ck_assert_double_ge(MPI_Wtime(), before);
    ck_assert_double_ge(mpi_wtime_(), before);
    ck_assert_double_le(mpi_wtime_(), now_s());
    ck_assert_double_eq_tol(PMPI_Wtick(), 1e-9, 1e-15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clock");
    TCase *one = tcase_create("one");
    tcase_add_loop_test(one, test_finds_nothing, 0, WAYS);
    tcase_add_loop_test(one, test_finds_what_is_there, 0, WAYS);
    tcase_add_test(one, test_leaves_others_alone);
    tcase_add_test(one, test_yields);
    tcase_add_test(one, test_clocks);
    suite_add_tcase(suite, one);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
