/* The command and its environment, and the relay of its streams to the consoles. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/lab/guest.h"

enum { CHUNK_BYTES = 64 << 10, NOT_FOUND = 127, NOT_RUNNABLE = 126 };

/* One stream of the command: what it writes to `inside` is read from `outside` and written to `console`. */
struct stream {
    int inside, outside, console;
};

static int open_stream(struct stream *stream, enum spec_console console, bool terminal, bool cooked,
                       const struct spec *spec, struct err *err)
{
    int ends[2] = {-1, -1}, failed;
    stream->console = guest_console(console);
    if (terminal) {
        const struct winsize size = {.ws_row = (unsigned short)spec->rows, .ws_col = (unsigned short)spec->columns};
        struct termios settings;
        failed = openpty(&ends[0], &ends[1], NULL, NULL, &size);
        if (!failed && !cooked && tcgetattr(ends[1], &settings) == 0) { /* the terminal outside ends the lines */
            settings.c_oflag &= ~(tcflag_t)OPOST;
            (void)tcsetattr(ends[1], TCSANOW, &settings);
        }
    } else {
        failed = pipe(ends);
    }
    if (failed || stream->console < 0)
        return err_set(err, errno, "no stream for the command: %s", strerror(errno));
    stream->outside = ends[0], stream->inside = ends[1];
    (void)fcntl(stream->outside, F_SETFL, O_NONBLOCK);
    (void)fcntl(stream->outside, F_SETFD, FD_CLOEXEC);
    (void)fcntl(stream->inside, F_SETFD, FD_CLOEXEC);
    return 0;
}

/* ---- the command's own process */

static void set_environment(const struct spec *spec)
{
    const char *scenario = getenv("LONGHAUL_SCENARIO");
    char *scenario_path = strdup(scenario ? scenario : "");
    clearenv();
    for (size_t i = 0; spec->envp[i]; i++)
        if (strchr(spec->envp[i], '='))
            putenv(spec->envp[i]);
    const char *user_path = getenv("PATH");
    char *path = NULL;
    if (asprintf(&path, "%s:%s", spec->programs,
                 user_path && *user_path ? user_path : "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin") > 0)
        setenv("PATH", path, 1);
    setenv("LONGHAUL_SCENARIO", scenario_path ? scenario_path : "", 1);
    static const char *const temporary[] = {"TMPDIR", "TMP", "TEMP"};
    for (size_t i = 0; i < sizeof temporary / sizeof *temporary && !spec->private_tmp; i++)
        setenv(temporary[i], "/run/tmp", 1);
}

static _Noreturn void become_command(const struct spec *spec, const char *host, const struct stream streams[2])
{
    struct err err = {""};
    sigset_t none;
    int input = spec->shell ? streams[0].inside : open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    dup2(input, STDIN_FILENO), dup2(streams[0].inside, STDOUT_FILENO);
    dup2(streams[spec->shell ? 0 : 1].inside, STDERR_FILENO);
    if (spec->shell)
        (void)ioctl(STDIN_FILENO, TIOCSCTTY, 0);
    set_environment(spec);
    if (guest_mpi_environment(spec, &err) || guest_become_host(host, &err)) {
        fprintf(stderr, "longhaul lab: %s\n", err.text);
        _exit(EXIT_FAILED);
    }
    if (!spec->real_time)
        prctl(PR_SET_TIMERSLACK, 1UL); /* else every sleep is 50 us longer than asked */
    if (chdir(spec->folder)) {
        fprintf(stderr, "longhaul lab: %s is not there inside: %s\n", spec->folder, strerror(errno));
        _exit(EXIT_FAILED);
    }
    sigprocmask(SIG_SETMASK, sigemptyset(&none) ? NULL : &none, NULL);
    execvp(spec->argv[0], spec->argv);
    int code = errno == ENOENT ? NOT_FOUND : NOT_RUNNABLE;
    fprintf(stderr, "longhaul lab: %s: %s\n", spec->argv[0], strerror(errno));
    _exit(code);
}

/* ---- the relay */

/* Passes on what is there. False at the end of the stream. */
static bool pass_on(int from, int to)
{
    static char chunk[CHUNK_BYTES]; /* one thread */
    ssize_t length = read(from, chunk, sizeof chunk);
    if (length > 0)
        guest_write(to, chunk, (size_t)length);
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

/* All that is there now: what the command left running may hold the other end for ever. */
static void pass_rest(const struct stream *stream)
{
    struct pollfd event = {.fd = stream->outside, .events = POLLIN};
    while (stream->outside >= 0 && poll(&event, 1, 0) > 0 && (event.revents & POLLIN) &&
           pass_on(stream->outside, stream->console))
        ;
    guest_drain(stream->console);
}

/* Takes in every process that ended; true when the command is among them. */
static bool reap(pid_t command, int *status)
{
    int one;
    bool ended = false;
    for (pid_t pid; (pid = waitpid(-1, &one, WNOHANG)) > 0;)
        if (pid == command) {
            ended = true;
            *status = one;
        }
    return ended;
}

static int relay(pid_t command, struct stream streams[2], bool shell, int signals)
{
    int status = 0;
    for (bool ended = false; !ended;) {
        struct pollfd events[] = {{.fd = signals, .events = POLLIN},
                                  {.fd = streams[0].outside, .events = POLLIN},
                                  {.fd = streams[1].outside, .events = POLLIN},
                                  {.fd = shell ? streams[0].console : -1, .events = POLLIN}};
        struct signalfd_siginfo signal;
        if (poll(events, 4, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < 2; i++)
            if (events[1 + i].revents && !pass_on(streams[i].outside, streams[i].console)) {
                close(streams[i].outside);
                streams[i].outside = -1;
            }
        if (events[3].revents & POLLIN)
            (void)pass_on(streams[0].console, streams[0].outside);
        if (events[0].revents && read(signals, &signal, sizeof signal) > 0)
            ended = reap(command, &status);
    }
    pass_rest(&streams[0]);
    pass_rest(&streams[1]);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int guest_command(const struct spec *spec, const char *host, struct err *err)
{
    struct stream streams[2] = {{-1, -1, -1}, {-1, -1, -1}};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    int rc = open_stream(&streams[0], CONSOLE_COMMAND, spec->shell || spec->terminal[0], spec->shell, spec, err);
    rc = rc || spec->shell ? rc : open_stream(&streams[1], CONSOLE_ERROR, spec->terminal[1], false, spec, err);
    pid_t command = rc ? -1 : fork();
    if (command == 0)
        become_command(spec, host, streams);
    if (!rc && command < 0)
        rc = err_set(err, errno, "no process: %s", strerror(errno));
    for (int i = 0; i < 2; i++)
        if (streams[i].inside >= 0)
            close(streams[i].inside);
    return rc ? rc : relay(command, streams, spec->shell, signals);
}
