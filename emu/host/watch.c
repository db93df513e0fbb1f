/* The process that takes an apply back when its time is up, whatever became of the tool that started it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "emu/host/apply.h"

int64_t watch_boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* State (field 3) and start (field 22) in /proc/PID/stat. False: no such process. */
static bool look_at(pid_t process, char *state, uint64_t *start)
{
    char path[64], line[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    return end &&
           sscanf(end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
                  state, start) == 2;
}

bool watch_alive(pid_t watcher, uint64_t start)
{
    char state;
    uint64_t found;
    return watcher > 0 && look_at(watcher, &state, &found) && found == start && state != 'Z' && state != 'X';
}

/* By a file descriptor where the kernel has them (5.3): the id cannot change hands between look and signal. */
void watch_stop(pid_t watcher, uint64_t start)
{
    if (watcher <= 0 || watcher == getpid())
        return;
    int fd = (int)syscall(SYS_pidfd_open, watcher, 0);
    if (watch_alive(watcher, start)) {
        if (fd >= 0)
            (void)syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0);
        else
            (void)kill(watcher, SIGTERM);
    }
    if (fd >= 0)
        close(fd);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!write(fd, text, strlen(text));
    close(fd);
}

/* Out of the job: a batch system ends a job by ending its cgroup and its session, and the cluster must be put back
 * after that. Each of these may fail where the machine does not allow or know it. */
static void leave_job(void)
{
    sigset_t none;
    static const int usual[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        signal(usual[i], usual[i] == SIGHUP ? SIG_IGN : SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    write_file("/sys/fs/cgroup/cgroup.procs", "0");
    write_file("/sys/fs/cgroup/systemd/cgroup.procs", "0");
    write_file("/proc/self/oom_score_adj", "-1000");
    prctl(PR_SET_NAME, "longhaul-expiry");
    (void)!chdir("/");
}

/* Sleeps to the end, looking once a minute whether it is still wanted. */
static bool sleep_until(const struct device *device, int64_t expires_boot_ns, int timer)
{
    enum { LOOK_S = 60 };
    for (;;) {
        struct record record;
        int64_t now = watch_boot_ns(), next = now + LOOK_S * INT64_C(1000000000);
        if (now >= expires_boot_ns)
            return true;
        next = next < expires_boot_ns ? next : expires_boot_ns;
        struct itimerspec when = {.it_value = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000}};
        uint64_t expirations;
        if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) || read(timer, &expirations, sizeof expirations) < 0)
            return true; /* never too late */
        int rc = record_read(device, &record, NULL);
        bool wanted = rc ? rc != -ENOENT : record.watcher == getpid();
        if (!rc)
            record_free(&record);
        if (!wanted)
            return false;
    }
}

static void watch(const struct device *device, int64_t expires_boot_ns)
{
    enum { TRIES = 10 };
    struct err err = {"no timer"};
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC), rc = -1;
    if (!sleep_until(device, expires_boot_ns, timer))
        return;
    for (int i = 0; rc && rc != -EEXIST && i < TRIES; i++) {
        if (i)
            sleep((unsigned)i);
        struct netlink *netlink = netlink_open(&err);
        rc = netlink ? apply_expire(netlink, device, &err) : -1;
        netlink_close(netlink);
    }
    openlog("longhaul-emu", LOG_PID, LOG_DAEMON);
    if (rc)
        syslog(LOG_ERR, "%s: expired, but not put back: %s", device->name, err.text);
    else
        syslog(LOG_INFO, "%s: expired, put back", device->name);
}

/* The grandchild: tells its id, then holds nothing of its starter's. */
static void be_watcher(const struct device *device, int64_t expires_boot_ns, int tell)
{
    pid_t self = getpid();
    bool told = write(tell, &self, sizeof self) == sizeof self;
    closefrom(0);
    for (int i = 0; i < 3; i++)
        (void)!open("/dev/null", O_RDWR);
    leave_job();
    if (told)
        watch(device, expires_boot_ns);
    _exit(0);
}

int watch_start(const struct device *device, int64_t expires_boot_ns, pid_t *watcher, uint64_t *start, struct err *err)
{
    int pipe_ends[2];
    char state;
    pid_t id = 0;
    if (pipe2(pipe_ends, O_CLOEXEC))
        return err_set(err, errno, "no process for the expiry: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        setsid();
        pid_t grandchild = fork(); /* not the session's leader: it can never get a terminal */
        if (grandchild == 0)
            be_watcher(device, expires_boot_ns, pipe_ends[1]);
        _exit(grandchild < 0);
    }
    close(pipe_ends[1]);
    ssize_t length;
    while ((length = child < 0 ? -1 : read(pipe_ends[0], &id, sizeof id)) < 0 && child > 0 && errno == EINTR)
        ;
    close(pipe_ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (length != sizeof id)
        return err_set(err, EAGAIN, "no process for the expiry could be started");
    *watcher = id;
    return look_at(id, &state, start) ? 0 : err_set(err, EAGAIN, "the process for the expiry ended at once");
}
