/* From the distribution's kernel source to the lab's kernel, in a folder of its own inside the cache. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emu/lab/kernel.h"
#include "emu/lab/tree.h"

enum { WORDS_MAX = 12, LINE_MAX_BYTES = 512, OBJECTS_USUAL = 745 };
#define DISK_BYTES 1.7e9 /* sources 1.5 GB, objects 0.1 GB */

struct build {
    char cache[PATH_MAX - 300], tree[PATH_MAX - 200], log_path[PATH_MAX - 100];
    int log, signals, lock;
    bool terminal;
    struct timespec start;
    long objects;
    char line[LINE_MAX_BYTES]; /* of a step's output, not ended yet */
    size_t line_used;
};

/* ---- one step */

static double elapsed_s(const struct build *build)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - build->start.tv_sec) + 1e-9 * (double)(now.tv_nsec - build->start.tv_nsec);
}

/* One line that is overwritten on a terminal, one line each elsewhere (but not for every object). */
static void say(const struct build *build, const char *what)
{
    int seconds = (int)elapsed_s(build);
    if (!build->terminal)
        fprintf(stderr, "%s\n", what);
    else
        fprintf(stderr, "\r\033[K%s (%d:%02d)", what, seconds / 60, seconds % 60);
}

static void count_line(struct build *build)
{
    static const char *const compilers[] = {"  CC ", "  AS ", "  HOSTCC "};
    char text[96];
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++)
        if (!strncmp(build->line, compilers[i], strlen(compilers[i]))) {
            build->objects++;
            snprintf(text, sizeof text, "compiling the kernel: %ld of about %d objects", build->objects,
                     build->objects > OBJECTS_USUAL ? (int)build->objects : OBJECTS_USUAL);
            if (build->terminal)
                say(build, text);
            return;
        }
}

static void take_output(struct build *build, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != '\n') {
            if (build->line_used + 1 < sizeof build->line)
                build->line[build->line_used++] = data[i];
            continue;
        }
        build->line[build->line_used] = '\0';
        build->line_used = 0;
        count_line(build);
    }
    if (write(build->log, data, size) < 0)
        return; /* the log is for people; the build goes on */
}

static _Noreturn void become_step(const struct build *build, const char *const argv[], int output)
{
    static const char *const unwanted[] = {"MAKEFLAGS", "MFLAGS", "ARCH", "CROSS_COMPILE", "KBUILD_OUTPUT", "O", "CC"};
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, sigemptyset(&none) ? NULL : &none, NULL);
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
        unsetenv(unwanted[i]);
    setenv("LC_ALL", "C", 1);
    dup2(null, STDIN_FILENO), dup2(output, STDOUT_FILENO), dup2(output, STDERR_FILENO);
    if (chdir(build->tree) == 0)
        execvp(argv[0], (char *const *)argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(EXIT_FAILED);
}

/* Reads what the step says to its end. -EINTR: a signal came. */
static int follow(struct build *build, int output)
{
    static char chunk[1 << 16]; /* one thread */
    for (;;) {
        struct pollfd events[] = {{.fd = output, .events = POLLIN}, {.fd = build->signals, .events = POLLIN}};
        if (poll(events, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (events[1].revents)
            return -EINTR;
        if (!events[0].revents)
            continue;
        ssize_t length = read(output, chunk, sizeof chunk);
        if (length == 0)
            return 0;
        if (length > 0)
            take_output(build, chunk, (size_t)length);
    }
}

static int run_step(struct build *build, const char *what, const char *const argv[], struct err *err)
{
    int ends[2], status = 0;
    say(build, what);
    if (pipe2(ends, O_CLOEXEC))
        return err_set(err, errno, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        become_step(build, argv, ends[1]);
    close(ends[1]);
    int rc = pid < 0 ? -EAGAIN : follow(build, ends[0]);
    if (pid > 0 && rc)
        kill(-pid, SIGKILL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    if (rc == -EINTR)
        return err_set(err, EINTR, "interrupted; nothing is left behind");
    if (rc || !WIFEXITED(status) || WEXITSTATUS(status))
        return err_set(err, EIO, "%s failed (%s %s)", what, argv[0], argv[1]);
    return 0;
}

/* ---- the steps */

static int unpack(struct build *build, const struct kernel_source *source, struct err *err)
{
    const char *argv[] = {"tar", "-xJf", source->path, "--strip-components=1", NULL};
    return run_step(build, "unpacking the kernel source", argv, err);
}

static int make(struct build *build, const char *what, const char *target, const char *jobs, struct err *err)
{
    const char *argv[] = {"make", "ARCH=um", target, jobs, NULL};
    return run_step(build, what, argv, err);
}

static int append_fragment(const struct build *build, struct err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/.config", build->tree);
    FILE *file = fopen(path, "a");
    int failed = !file || fputs(kernel_fragment, file) < 0;
    if (file)
        failed |= fclose(file) != 0;
    return failed ? err_set(err, EIO, "%s: cannot be written: %s", path, strerror(errno)) : 0;
}

/* Kconfig drops, without a word, what depends on something that is off. */
static int check_options(const struct build *build, struct err *err)
{
    char path[PATH_MAX], wanted[128];
    snprintf(path, sizeof path, "%s/.config", build->tree);
    char *config = tree_read(path);
    int rc = config ? 0 : err_set(err, EIO, "%s: cannot be read", path);
    for (const char *line = kernel_fragment; !rc && *line;) {
        size_t length = strcspn(line, "\n");
        snprintf(wanted, sizeof wanted, "\n%.*s\n", (int)length, line);
        if (*line != '#' && length > 0 && length < sizeof wanted - 3 && !strstr(config, wanted))
            rc = err_set(err, EIO, "this kernel source does not take %.*s; try another with --source", (int)length,
                         line);
        line += length + (line[length] == '\n');
    }
    free(config);
    return rc;
}

static int keep(struct build *build, const char *path, struct err *err)
{
    char stripped[PATH_MAX];
    snprintf(stripped, sizeof stripped, "%s/linux.stripped", build->tree);
    const char *argv[] = {"strip", "-o", stripped, "linux", NULL};
    int rc = run_step(build, "keeping the kernel", argv, err);
    int fd = rc ? -1 : open(stripped, O_RDONLY | O_CLOEXEC);
    if (!rc && (fd < 0 || fsync(fd) || rename(stripped, path)))
        rc = err_set(err, errno, "%s: cannot be written: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

static int steps(struct build *build, const struct kernel_source *source, const char *path, int jobs, struct err *err)
{
    char parallel[32];
    snprintf(parallel, sizeof parallel, "-j%d", jobs);
    int rc = unpack(build, source, err);
    rc = rc ? rc : make(build, "configuring the kernel", "tinyconfig", parallel, err);
    rc = rc ? rc : append_fragment(build, err);
    rc = rc ? rc : make(build, "configuring the kernel", "olddefconfig", parallel, err);
    rc = rc ? rc : check_options(build, err);
    rc = rc ? rc : make(build, "compiling the kernel", "linux", parallel, err);
    return rc ? rc : keep(build, path, err);
}

/* ---- the place */

static int make_folders(const char *path, struct err *err)
{
    char part[PATH_MAX];
    for (const char *slash = path; (slash = strchr(slash + 1, '/')) != NULL;) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        (void)mkdir(part, 0777);
    }
    if (mkdir(path, 0777) && errno != EEXIST)
        return err_set(err, errno, "%s: cannot be made: %s", path, strerror(errno));
    return 0;
}

/* One build at a time; the tree of one that was killed is removed by the next. */
static int take_lock(struct build *build, struct err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", build->cache);
    build->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (build->lock < 0)
        return err_set(err, errno, "%s: %s", path, strerror(errno));
    if (flock(build->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    fprintf(stderr, "another build is running; waiting for it\n");
    if (flock(build->lock, LOCK_EX))
        return err_set(err, errno, "%s: %s", path, strerror(errno));
    return 0;
}

static int check_room(const struct build *build, struct err *err)
{
    struct statvfs room;
    if (statvfs(build->cache, &room))
        return err_set(err, errno, "%s: %s", build->cache, strerror(errno));
    double free_bytes = (double)room.f_bavail * (double)room.f_frsize;
    if (free_bytes >= DISK_BYTES)
        return 0;
    return err_set(err, ENOSPC, "%s has %.1f GB free and the build needs %.1f GB; make room, or set XDG_CACHE_HOME",
                   build->cache, free_bytes / 1e9, DISK_BYTES / 1e9);
}

static int prepare(struct build *build, const char *path, struct err *err)
{
    snprintf(build->cache, sizeof build->cache, "%.*s", (int)(strrchr(path, '/') - path), path);
    snprintf(build->tree, sizeof build->tree, "%s/building", build->cache);
    snprintf(build->log_path, sizeof build->log_path, "%s/build.log", build->cache);
    int rc = make_folders(build->cache, err);
    rc = rc ? rc : take_lock(build, err);
    if (rc || access(path, X_OK) == 0)
        return rc; /* somebody else has built it meanwhile */
    tree_remove(build->tree);
    rc = check_room(build, err);
    if (!rc && mkdir(build->tree, 0777))
        rc = err_set(err, errno, "%s: cannot be made: %s", build->tree, strerror(errno));
    build->log = rc ? -1 : open(build->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (!rc && build->log < 0)
        rc = err_set(err, errno, "%s: cannot be written: %s", build->log_path, strerror(errno));
    return rc;
}

/* Signals that end a build are read at a step's side, so that its end is orderly. */
static int catch_signals(struct build *build, sigset_t *before, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT), sigaddset(&set, SIGTERM), sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, before);
    build->signals = signalfd(-1, &set, SFD_CLOEXEC);
    return build->signals < 0 ? err_set(err, errno, "no signals: %s", strerror(errno)) : 0;
}

int kernel_build(const struct kernel_source *source, const char *path, int jobs, struct err *err)
{
    struct build build = {.log = -1, .signals = -1, .lock = -1, .terminal = isatty(STDERR_FILENO)};
    sigset_t before;
    clock_gettime(CLOCK_MONOTONIC, &build.start);
    int rc = catch_signals(&build, &before, err);
    rc = rc ? rc : prepare(&build, path, err);
    bool building = !rc && access(path, X_OK) != 0;
    if (building)
        rc = steps(&build, source, path, jobs, err);
    if (building && build.terminal)
        fputs("\r\033[K", stderr);
    if (build.lock >= 0 && *build.tree)
        tree_remove(build.tree);
    if (build.log >= 0 && rc && rc != -EINTR) {
        char text[ERR_TEXT_MAX];
        snprintf(text, sizeof text, "%.600s", err->text);
        err_set(err, -rc, "%s; the log is %s", text, build.log_path);
    } else if (build.log >= 0) {
        (void)unlink(build.log_path);
    }
    if (build.log >= 0)
        close(build.log);
    if (build.lock >= 0)
        close(build.lock);
    if (build.signals >= 0)
        close(build.signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}
