#include "sim/report/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 256 << 20, CHUNK = 64 << 10, TICK_MS = 500, GRACE_S = 10 };

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP};
enum { PASSED_ON = sizeof passed_on / sizeof *passed_on };

struct running {
    pid_t pid;
    bool ended;
    int signals;  /* a signalfd: those passed on, and SIGCHLD */
    int pipes[2]; /* its standard output and error; -1 once closed */
    const struct child_watch *watch;
    double deadline_s; /* INFINITY: none */
    struct child_output *output;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* In the child: only what is safe after a fork. */
static void become(const char *const *arguments, const int writing[2], const sigset_t *mask)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int empty = open("/dev/null", O_RDONLY);
    dup2(empty, STDIN_FILENO);
    dup2(writing[0], STDOUT_FILENO);
    dup2(writing[1], STDERR_FILENO);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execv(arguments[0], (char *const *)arguments);
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", arguments[0], strerror(errno));
    _exit(EXIT_FAILED);
}

static int start(struct running *running, const char *const *arguments, const sigset_t *mask, struct err *err)
{
    int ends[2][2] = {{-1, -1}, {-1, -1}};
    int rc = pipe2(ends[0], O_CLOEXEC) == 0 && pipe2(ends[1], O_CLOEXEC) == 0 ? 0 : -errno;
    if (rc == 0) {
        running->pid = fork();
        rc = running->pid < 0 ? -errno : 0;
    }
    if (rc == 0 && running->pid == 0)
        become(arguments, (const int[]){ends[0][1], ends[1][1]}, mask);
    for (int i = 0; i < 2; i++) {
        close(ends[i][1]);
        running->pipes[i] = ends[i][0];
        fcntl(ends[i][0], F_SETFL, O_NONBLOCK);
    }
    if (rc < 0)
        return err_set(err, -rc, "cannot run %s: %s", arguments[0], strerror(-rc));
    setpgid(running->pid, running->pid);
    return 0;
}

/* Room for one more chunk and a zero byte. */
static int make_room(struct child_text *text, struct err *err)
{
    if (text->size - text->length > CHUNK)
        return 0;
    if (text->size > TEXT_MAX)
        return err_set(err, EFBIG, "it prints more than %d MB", TEXT_MAX >> 20);
    size_t size = 2 * text->size + 2 * CHUNK;
    char *larger = realloc(text->text, size);
    if (larger == NULL)
        return err_set(err, ENOMEM, "out of memory for what it prints");
    text->text = larger;
    text->size = size;
    return 0;
}

/* Takes all that is there now; closes the pipe at its end. */
static int take(struct running *running, int which, struct err *err)
{
    struct child_text *text = which == 0 ? &running->output->out : &running->output->errors;
    while (running->pipes[which] >= 0) {
        int rc = make_room(text, err);
        if (rc < 0)
            return rc;
        ssize_t got = read(running->pipes[which], text->text + text->length, CHUNK);
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got <= 0) {
            close(running->pipes[which]);
            running->pipes[which] = -1;
        } else {
            text->length += (size_t)got;
        }
        text->text[text->length] = '\0';
    }
    return 0;
}

/* What the signal means: the child may have ended, or somebody wants us to. */
static int take_signal(struct running *running)
{
    struct signalfd_siginfo info;
    while (read(running->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            running->output->signal = (int)info.ssi_signo;
            return -EINTR;
        }
        running->ended = running->ended || waitpid(running->pid, &running->output->status, WNOHANG) == running->pid;
    }
    return 0;
}

/* Once it has ended there is no waiting for the ends of its pipes: others may hold them. */
static int follow(struct running *running, struct err *err)
{
    int rc = 0;
    while (rc == 0 && !running->ended) {
        struct pollfd events[] = {
            {running->pipes[0], POLLIN, 0}, {running->pipes[1], POLLIN, 0}, {running->signals, POLLIN, 0}};
        poll(events, 3, TICK_MS);
        rc = take_signal(running);
        for (int i = 0; i < 2 && rc == 0; i++)
            rc = take(running, i, err);
        if (rc == 0 && !running->ended && now_s() > running->deadline_s)
            rc = err_set(err, ETIMEDOUT, "not done after %g s", running->watch->timeout_s);
        if (rc == 0 && running->watch->tick != NULL)
            running->watch->tick(running->watch->context);
    }
    return rc;
}

/* Asks its group to end, and no longer asks after a while. */
static void finish(struct running *running, int signal)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    double end_s = now_s() + GRACE_S;
    kill(-running->pid, signal);
    while (waitpid(running->pid, &running->output->status, WNOHANG) == 0) {
        if (now_s() > end_s)
            kill(-running->pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
}

static int watch_signals(struct running *running, sigset_t *before, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (int i = 0; i < PASSED_ON; i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, before);
    running->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return running->signals >= 0 ? 0 : err_set(err, errno, "signalfd: %s", strerror(errno));
}

int child_run(const char *const *arguments, const struct child_watch *watch, struct child_output *output,
              struct err *err)
{
    struct running running = {.pipes = {-1, -1}, .watch = watch, .output = output};
    sigset_t before;
    *output = (struct child_output){0};
    running.deadline_s = now_s() + watch->timeout_s;
    int rc = watch_signals(&running, &before, err);
    bool started = rc == 0 && (rc = start(&running, arguments, &before, err)) == 0;
    if (started)
        rc = follow(&running, err);
    if (started && !running.ended)
        finish(&running, output->signal != 0 ? output->signal : SIGTERM);
    for (int i = 0; i < 2; i++) {
        if (rc == 0)
            rc = take(&running, i, err);
        if (running.pipes[i] >= 0)
            close(running.pipes[i]);
    }
    if (running.signals >= 0)
        close(running.signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* The one line that says why: the first that a program of ours wrote, else the last. Cuts the text up. */
static const char *reason(char *text)
{
    const char *last = NULL;
    for (char *line, *rest = text; (line = strsep(&rest, "\n")) != NULL;) {
        if (strncmp(line, "longhaul", strlen("longhaul")) == 0)
            return line;
        last = *line != '\0' ? line : last;
    }
    return last;
}

static int failed(const struct child_output *output, struct err *err)
{
    if (WIFSIGNALED(output->status))
        return err_set(err, EIO, "ended by signal %d (%s)", WTERMSIG(output->status),
                       strsignal(WTERMSIG(output->status)));
    int code = WEXITSTATUS(output->status);
    int error = code == EXIT_USAGE ? EINVAL : code == EXIT_UNAVAILABLE ? ENOTSUP : EIO;
    const char *why = output->errors.text != NULL ? reason(output->errors.text) : NULL;
    if (why == NULL && output->out.text != NULL)
        why = reason(output->out.text);
    if (why == NULL)
        return err_set(err, error, "exit code %d, without a word", code);
    return err_set(err, error, "%s", why);
}

static bool went_well(const struct child_output *output)
{
    return WIFEXITED(output->status) && WEXITSTATUS(output->status) == EXIT_FINE;
}

int child_words(struct child_output *output, char **words, struct err *err)
{
    if (!went_well(output))
        return failed(output, err);
    if (words) {
        *words = output->out.text;
        output->out.text = NULL;
    }
    return 0;
}

int child_json(struct child_output *output, json_t **json, struct err *err)
{
    if (!went_well(output))
        return failed(output, err);
    if (output->errors.length > 0)
        fputs(output->errors.text, stderr); /* a warning */
    json_error_t error;
    const char *text = output->out.text != NULL ? output->out.text : "";
    *json = json_loadb(text, output->out.length, JSON_REJECT_DUPLICATES, &error);
    return *json != NULL ? 0 : err_set(err, EIO, "its JSON cannot be read: line %d: %s", error.line, error.text);
}

void child_output_free(struct child_output *output)
{
    free(output->out.text);
    free(output->errors.text);
    output->out = output->errors = (struct child_text){0};
}
