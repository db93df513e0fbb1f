#include "emu/lab/pump.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "emu/lab/tree.h"

enum { CHUNK_BYTES = 1 << 16, VERDICT_BYTES = 4096, TICK_MS = 1000 };

struct pump {
    struct machine *machine;
    const struct pump_options *options;
    struct timespec deadline;
    int signal; /* that ended the wait, or 0 */
    bool late;
    size_t used;
    char verdict[VERDICT_BYTES + 1]; /* all lines of the control console so far */
    char chunk[CHUNK_BYTES];
};

static int signals_set(sigset_t *set)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        sigaddset(set, ending[i]);
    return sigprocmask(SIG_BLOCK, set, NULL);
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EAGAIN) { /* somebody made it non-blocking: wait instead */
            struct pollfd event = {.fd = fd, .events = POLLOUT};
            (void)poll(&event, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return false;
        } else if (written > 0) {
            data += written, size -= (size_t)written;
        }
    }
    return true;
}

static void shut(int *fd)
{
    close(*fd);
    *fd = -1;
}

static void pass_stream(struct pump *pump, int *from, int to)
{
    ssize_t length = read(*from, pump->chunk, sizeof pump->chunk);
    if (length == 0 || (length < 0 && errno != EINTR && errno != EAGAIN))
        shut(from);
    else if (length > 0 && !write_all(to, pump->chunk, (size_t)length))
        shut(&pump->machine->life); /* nobody reads any more */
}

static void pass_control(struct pump *pump)
{
    ssize_t length = read(pump->machine->control, pump->chunk, sizeof pump->chunk);
    if (length == 0 || (length < 0 && errno != EINTR && errno != EAGAIN)) {
        shut(&pump->machine->control);
        return;
    }
    size_t room = VERDICT_BYTES - pump->used, taken = length < 0 ? 0 : (size_t)length;
    taken = taken < room ? taken : room;
    memcpy(pump->verdict + pump->used, pump->chunk, taken);
    pump->used += taken;
}

static void pass_input(struct pump *pump)
{
    ssize_t length = read(pump->options->input, pump->chunk, sizeof pump->chunk);
    if (length <= 0 || !write_all(pump->machine->input, pump->chunk, (size_t)length))
        shut(&pump->machine->input); /* the shell sees no end of file: a terminal has none; ^D is a byte */
}

/* Milliseconds to the deadline; -1: none. */
static int left_ms(const struct pump *pump)
{
    struct timespec now;
    if (pump->options->deadline_s <= 0 || pump->late)
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double left_s =
        (double)(pump->deadline.tv_sec - now.tv_sec) + 1e-9 * (double)(pump->deadline.tv_nsec - now.tv_nsec);
    return left_s <= 0 ? 0 : left_s > 1e6 ? 1000000000 : (int)(left_s * 1e3) + 1;
}

/* How long the next turn may wait. */
static int wait_ms(const struct pump *pump)
{
    int left = left_ms(pump);
    return pump->options->tick && (left < 0 || left > TICK_MS) ? TICK_MS : left;
}

/* One turn; false when every stream has ended. */
static bool turn(struct pump *pump, int signals)
{
    struct machine *machine = pump->machine;
    bool input = machine->input >= 0 && pump->options->input >= 0;
    struct pollfd events[] = {{.fd = machine->streams[0], .events = POLLIN},
                              {.fd = machine->streams[1], .events = POLLIN},
                              {.fd = machine->control, .events = POLLIN},
                              {.fd = signals, .events = POLLIN},
                              {.fd = input ? pump->options->input : -1, .events = POLLIN}};
    struct signalfd_siginfo signal;
    if (machine->streams[0] < 0 && machine->streams[1] < 0 && machine->control < 0)
        return false;
    int ready = poll(events, 5, wait_ms(pump));
    if (pump->options->tick)
        pump->options->tick(pump->options->context);
    if (ready == 0 && left_ms(pump) == 0) {
        pump->late = true;
        shut(&machine->life);
    }
    for (int i = 0; ready > 0 && i < 2; i++)
        if (events[i].revents)
            pass_stream(pump, &machine->streams[i], pump->options->output[i]);
    if (ready > 0 && events[2].revents)
        pass_control(pump);
    if (ready > 0 && events[4].revents)
        pass_input(pump);
    if (ready > 0 && events[3].revents && read(signals, &signal, sizeof signal) == sizeof signal && !pump->signal) {
        pump->signal = (int)signal.ssi_signo;
        if (machine->life >= 0)
            shut(&machine->life);
    }
    return true;
}

/* What follows word in the first line of the control console that starts with it; cut at its end. NULL: none. */
static char *line_of(char *verdict, const char *word)
{
    for (char *line = verdict; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, word, strlen(word)))
            return line + strlen(word);
    return NULL;
}

/* What the control console said. */
static int judge(struct pump *pump, int *code, struct err *err)
{
    int failed, at = 0;
    const char *ended = line_of(pump->verdict, "exit ");
    char *fail = line_of(pump->verdict, "fail "), *log = line_of(pump->verdict, "log ");
    if (ended && sscanf(ended, "%d", code) == 1)
        return 0;
    if (fail && sscanf(fail, "%d %n", &failed, &at) == 1 && at > 0) {
        fail[strcspn(fail, "\n")] = '\0';
        return err_set(err,
                       failed == EXIT_USAGE         ? EINVAL
                       : failed == EXIT_UNAVAILABLE ? ENOTSUP
                                                    : EIO,
                       "%s", fail + at);
    }
    if (log)
        log[strcspn(log, "\n")] = '\0';
    return err_set(err, EIO, "the lab's kernel ended before the command did%s%s", log ? "; its last words: " : "",
                   log ? log : "");
}

/* The guardian removes its folder itself, unless somebody killed it; "log" is its last line. */
static void clean_after(struct pump *pump)
{
    char *folder = line_of(pump->verdict, "folder ");
    if (!folder || line_of(pump->verdict, "log "))
        return;
    char *path = strndup(folder, strcspn(folder, "\n"));
    if (path)
        tree_remove(path);
    free(path);
}

int pump_signals(struct err *err)
{
    sigset_t set;
    int fd = signals_set(&set) ? -1 : signalfd(-1, &set, SFD_CLOEXEC);
    return fd < 0 ? err_set(err, errno, "no signals: %s", strerror(errno)) : fd;
}

int pump_run(struct machine *machine, const struct pump_options *options, int *code, struct err *err)
{
    struct pump *pump = calloc(1, sizeof *pump);
    int signals = pump ? pump_signals(err) : err_set(err, ENOMEM, "out of memory"), rc = signals < 0 ? signals : 0;
    if (!rc) {
        pump->machine = machine;
        pump->options = options;
        clock_gettime(CLOCK_MONOTONIC, &pump->deadline);
        pump->deadline.tv_sec += (time_t)options->deadline_s;
        pump->deadline.tv_nsec += (long)((options->deadline_s - (double)(time_t)options->deadline_s) * 1e9);
        while (turn(pump, signals))
            ;
    }
    machine_stop(machine);
    if (!rc)
        clean_after(pump);
    if (!rc && pump->signal) {
        *code = 128 + pump->signal;
        rc = -EINTR;
    } else if (!rc && pump->late) {
        rc = err_set(err, ETIME, "ended after --timeout: the command had not finished");
    } else if (!rc) {
        rc = judge(pump, code, err);
    }
    if (signals >= 0)
        close(signals);
    free(pump);
    return rc;
}
