#include "emu/lab/guardian.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emu/lab/tree.h"

#define LOG_FILE "kernel.log"

/* The kernel makes a socket below this folder, whose path may have 108 bytes, and takes no quoted words. */
enum { FOLDER_MAX = 80, LOG_TAIL_BYTES = 600 };

/* ---- the private folder */

static bool plain_path(const char *path)
{
    for (const char *c = path; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("/._-+@", *c))
            return false;
    return *path == '/' && strlen(path) < FOLDER_MAX - 24;
}

static int make_folder(char folder[FOLDER_MAX], struct err *err)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, FOLDER_MAX, "%s/longhaul-lab-XXXXXX", base && plain_path(base) ? base : "/tmp");
    if (mkdtemp(folder))
        return 0;
    int rc = err_set(err, errno, "%s: cannot be made: %s; set TMPDIR", folder, strerror(errno));
    *folder = '\0';
    return rc;
}

static int fill_folder(const struct machine_options *options, const char *folder, int *log, struct err *err)
{
    char path[FOLDER_MAX + 32], program[PATH_MAX];
    int rc = machine_program(program, sizeof program, err);
    snprintf(path, sizeof path, "%s/init", folder);
    if (!rc && symlink(program, path))
        rc = err_set(err, errno, "%s: cannot be made: %s", path, strerror(errno));
    snprintf(path, sizeof path, "%s/" SPEC_FILE, folder);
    rc = rc ? rc : spec_write(options->spec, path, err);
    snprintf(path, sizeof path, "%s/" LOG_FILE, folder);
    *log = rc ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (!rc && *log < 0)
        rc = err_set(err, errno, "%s: cannot be made: %s", path, strerror(errno));
    return rc;
}

/* ---- the kernel */

/* Shared memory holds the machine's memory where it has room; else a file that is deleted while it is open. */
static const char *memory_folder(double memory_bytes)
{
    struct statvfs room;
    bool fits = statvfs("/dev/shm", &room) == 0 && (double)room.f_bavail * (double)room.f_frsize > memory_bytes;
    return fits && access("/dev/shm", W_OK) == 0 ? "TMPDIR=/dev/shm" : "TMPDIR=/tmp";
}

enum { ARGUMENT_MAX = 160, ARGUMENTS = 16 };

static void command_line(const struct machine_options *options, const char *folder, const struct guardian_ends *ends,
                         int log, char words[ARGUMENTS][ARGUMENT_MAX], char *argv[ARGUMENTS + 2])
{
    int n = 0;
    snprintf(words[n++], ARGUMENT_MAX, "mem=%lldM", (long long)(options->memory_bytes / (1 << 20)));
    snprintf(words[n++], ARGUMENT_MAX, "uml_dir=%s/", folder);
    snprintf(words[n++], ARGUMENT_MAX, "umid=lab");
    snprintf(words[n++], ARGUMENT_MAX, "rootfstype=hostfs");
    snprintf(words[n++], ARGUMENT_MAX, "rootflags=/");
    snprintf(words[n++], ARGUMENT_MAX, "ro");
    snprintf(words[n++], ARGUMENT_MAX, "quiet");
    snprintf(words[n++], ARGUMENT_MAX, "init=%s/init", folder);
    snprintf(words[n++], ARGUMENT_MAX, "con=null");
    snprintf(words[n++], ARGUMENT_MAX, "con%d=null,fd:%d", CONSOLE_KERNEL, log);
    if (options->spec->shell)
        snprintf(words[n++], ARGUMENT_MAX, "con%d=fd:%d,fd:%d", CONSOLE_COMMAND, ends->input, ends->streams[0]);
    else
        snprintf(words[n++], ARGUMENT_MAX, "con%d=null,fd:%d", CONSOLE_COMMAND, ends->streams[0]);
    snprintf(words[n++], ARGUMENT_MAX, "con%d=null,fd:%d", CONSOLE_ERROR, ends->streams[1]);
    snprintf(words[n++], ARGUMENT_MAX, "con%d=null,fd:%d", CONSOLE_CONTROL, ends->control);
    if (!options->spec->real_time)
        snprintf(words[n++], ARGUMENT_MAX, "time-travel=inf-cpu");
    argv[0] = (char *)options->kernel;
    for (int i = 0; i < n; i++)
        argv[i + 1] = words[i];
    argv[n + 1] = NULL;
}

/* One process of the machine runs at a time and hands over to the next at every system call: on one CPU that takes 0.7
 * of the time. The one that the scheduler chose just now. */
static void stay_on_cpu(void)
{
    cpu_set_t set;
    int cpu = sched_getcpu();
    CPU_ZERO(&set);
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_SET(cpu, &set);
        (void)sched_setaffinity(0, sizeof set, &set);
    }
}

static _Noreturn void become_kernel(const struct machine_options *options, const char *folder,
                                    const struct guardian_ends *ends, int log)
{
    char words[ARGUMENTS][ARGUMENT_MAX], *argv[ARGUMENTS + 2];
    char *environment[] = {(char *)memory_folder(options->memory_bytes), NULL};
    int inherited[] = {ends->input, ends->streams[0], ends->streams[1], ends->control, log};
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < sizeof inherited / sizeof *inherited; i++)
        (void)fcntl(inherited[i], F_SETFD, 0);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    command_line(options, folder, ends, log, words, argv);
    signal(SIGPIPE, SIG_DFL);
    stay_on_cpu();
    sigprocmask(SIG_SETMASK, sigemptyset(&none) ? NULL : &none, NULL);
    execve(options->kernel, argv, environment);
    dprintf(ends->control, "fail 1 %s: cannot be started: %s\n", options->kernel, strerror(errno));
    _exit(EXIT_FAILED);
}

/* ---- the end */

/* The parent of a process, or -1. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *behind = strrchr(text, ')'); /* the name before it may hold anything */
    int parent;
    return behind && sscanf(behind + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

static void kill_children(void)
{
    pid_t self = getpid();
    DIR *directory = opendir("/proc");
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0]) && parent_of(entry->d_name) == self)
            kill(atoi(entry->d_name), SIGKILL);
    if (directory)
        closedir(directory);
}

/* Being the reaper of all below, this process becomes the parent of whatever the kernel leaves: until none is left. */
static void end_all(void)
{
    const struct timespec pause = {0, 2000000};
    for (;;) {
        kill_children();
        pid_t pid;
        while ((pid = waitpid(-1, NULL, __WALL | WNOHANG)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return;
        nanosleep(&pause, NULL);
    }
}

/* The kernel's last words as one line, for the launcher that may have got no other. */
static void send_log(int log, int control)
{
    char tail[LOG_TAIL_BYTES + 1];
    off_t size = lseek(log, 0, SEEK_END);
    ssize_t length = pread(log, tail, LOG_TAIL_BYTES, size > LOG_TAIL_BYTES ? size - LOG_TAIL_BYTES : 0);
    tail[length > 0 ? length : 0] = '\0';
    for (char *c = tail; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' ';
    dprintf(control, "log %s\n", tail);
}

/* Until the kernel has ended, or the launcher, or somebody asks. */
static void watch(pid_t kernel, int signals, int life)
{
    for (;;) {
        struct pollfd events[] = {{.fd = signals, .events = POLLIN}, {.fd = life, .events = POLLIN}};
        if (poll(events, 2, -1) < 0 && errno != EINTR)
            return;
        struct signalfd_siginfo signal;
        if (events[1].revents)
            return;
        if (!events[0].revents || read(signals, &signal, sizeof signal) != sizeof signal)
            continue;
        if (signal.ssi_signo != SIGCHLD)
            return;
        for (pid_t pid; (pid = waitpid(-1, NULL, __WALL | WNOHANG)) > 0;)
            if (pid == kernel)
                return;
    }
}

/* Own session, no terminal, no stream of the caller's, signals as a file. Returns that file. */
static int detach(void)
{
    sigset_t set;
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD), sigaddset(&set, SIGTERM), sigaddset(&set, SIGINT), sigaddset(&set, SIGHUP);
    sigprocmask(SIG_SETMASK, &set, NULL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static void close_ends(const struct guardian_ends *ends)
{
    close(ends->input);
    close(ends->streams[0]);
    close(ends->streams[1]);
}

_Noreturn void guardian_run(const struct machine_options *options, const struct guardian_ends *ends)
{
    char folder[FOLDER_MAX] = "";
    struct err err = {""};
    int log = -1;
    int terminal = options->terminal >= 0 ? fcntl(options->terminal, F_DUPFD_CLOEXEC, 3) : -1;
    int signals = detach();
    int rc = make_folder(folder, &err);
    if (!rc)
        dprintf(ends->control, "folder %s\n", folder);
    rc = rc ? rc : fill_folder(options, folder, &log, &err);
    pid_t kernel = rc ? -1 : fork();
    if (kernel == 0)
        become_kernel(options, folder, ends, log);
    if (!rc && kernel < 0)
        rc = err_set(&err, errno, "no process: %s", strerror(errno));
    close_ends(ends);
    if (rc)
        dprintf(ends->control, "fail %d %s\n", err_exit_code(rc), err.text);
    else
        watch(kernel, signals, ends->life);
    end_all();
    if (*folder)
        tree_remove(folder);
    if (log >= 0)
        send_log(log, ends->control);
    if (terminal >= 0)
        (void)tcsetattr(terminal, TCSANOW, options->settings);
    _exit(EXIT_FINE);
}
