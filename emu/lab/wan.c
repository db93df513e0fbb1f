/* Shaping of the WAN's links by the program that shapes a cluster, run at either end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/lab/network.h"
#include "emu/lab/space.h"

enum { WORDS_MAX = 12 };

/* Queues hold what comes, in large packets or small: a path loses what the scenario says and nothing else. */
#define QUEUE_PACKETS "1000000"

/* What a program says before it fails, as one line. */
static void gather(int fd, char *text, size_t size)
{
    size_t used = 0;
    ssize_t length;
    while (used + 1 < size && (length = read(fd, text + used, size - used - 1)) > 0)
        used += (size_t)length;
    while (used > 0 && (text[used - 1] == '\n' || text[used - 1] == ' '))
        used--;
    text[used] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

static _Noreturn void become(const char *prefix, const char *space, char *const argv[], int words)
{
    struct err err = {""};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (network_enter(prefix, space, &err)) {
        dprintf(words, "%s\n", err.text);
        _exit(EXIT_FAILED);
    }
    unsetenv("SSH_CONNECTION"); /* no session of anybody comes through this namespace */
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO), dup2(null, STDOUT_FILENO), dup2(words, STDERR_FILENO);
    execv(argv[0], argv);
    dprintf(words, "%s: cannot be run: %s\n", argv[0], strerror(errno));
    _exit(EXIT_UNAVAILABLE);
}

/* Runs a program in a namespace to its end. */
static int run_in(const char *prefix, const char *space, char *const argv[], struct err *err)
{
    int ends[2], status = 0;
    char text[700];
    if (pipe2(ends, O_CLOEXEC))
        return err_set(err, errno, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        become(prefix, space, argv, ends[1]);
    close(ends[1]);
    gather(ends[0], text, sizeof text);
    close(ends[0]);
    if (pid < 0)
        return err_set(err, EAGAIN, "no process for %s", argv[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    int code = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_UNAVAILABLE ? ENOTSUP : EIO;
    return err_set(err, code, "%s %s in %s%s failed: %s", argv[0], argv[1], prefix, space, text);
}

/* longhaul-emu keeps a lock a device for ever, since another may wait for it; here the device goes away. */
static void forget(const char *prefix, const char *space, const char *device)
{
    const char *state = getenv("LONGHAUL_EMU_STATE");
    char path[512];
    struct stat namespace;
    state = state && *state ? state : "/run/longhaul-emu";
    snprintf(path, sizeof path, NETWORK_FOLDER "/%.100s%.100s", prefix, space);
    if (stat(path, &namespace))
        return;
    snprintf(path, sizeof path, "%.300s/%ju-%s.lock", state, (uintmax_t) namespace.st_ino, device);
    (void)unlink(path);
    (void)rmdir(state); /* while it holds anything it stays */
}

/* Shapes, or takes the shape away, at each end of each link. */
static int each_end(const struct topology *topology, const char *prefix, bool shaping, const char *shaper,
                    const char *scenario_path, struct err *err)
{
    const struct scenario *scenario = topology->scenario;
    int rc = 0;
    for (size_t i = 0; i < topology->wan_count && !rc; i++)
        for (size_t end = 0; end < 2 && !rc; end++) {
            const struct lab_wan *wan = &topology->wans[i];
            const size_t *between = scenario->wan[wan->link].between;
            char router[96];
            const char *apply[WORDS_MAX] = {shaper,
                                            "apply",
                                            scenario_path,
                                            "--site",
                                            scenario->sites[between[end]].name,
                                            "--via",
                                            scenario->sites[between[!end]].name,
                                            "--dev",
                                            wan->device[end],
                                            "--limit",
                                            QUEUE_PACKETS,
                                            NULL};
            const char *clear[WORDS_MAX] = {shaper, "clear", "--dev", wan->device[end], NULL};
            topology_router(scenario, between[end], router, sizeof router);
            rc = run_in(prefix, router, (char *const *)(shaping ? apply : clear), shaping ? err : NULL);
            if (shaping)
                continue;
            rc = 0; /* what is taken away need not be whole */
            forget(prefix, router, wan->device[end]);
        }
    return rc;
}

int network_shape(const struct topology *topology, const char *prefix, const char *shaper, const char *scenario_path,
                  struct err *err)
{
    return each_end(topology, prefix, true, shaper, scenario_path, err);
}

int network_remove(const struct topology *topology, const char *prefix, const char *shaper, size_t *count,
                   struct err *err)
{
    *count = 0;
    if (shaper)
        (void)each_end(topology, prefix, false, shaper, NULL, err);
    for (size_t i = 0; i < topology->host_count; i++)
        *count += space_remove(prefix, topology->hosts[i].name);
    for (size_t site = 0; site < topology->scenario->site_count; site++) {
        char router[96];
        *count += space_remove(prefix, topology_router(topology->scenario, site, router, sizeof router));
    }
    return 0;
}
