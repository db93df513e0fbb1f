#include "emu/lab/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "emu/lab/network.h"
#include "emu/lab/sysctl.h"

#define HOSTS_FILE GUEST_FOLDER "/hosts"

/* ---- consoles */

int guest_console(enum spec_console console)
{
    char path[32];
    struct termios settings;
    snprintf(path, sizeof path, "/dev/tty%d", (int)console);
    int fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && tcgetattr(fd, &settings) == 0) {
        cfmakeraw(&settings);
        (void)tcsetattr(fd, TCSANOW, &settings);
    }
    return fd;
}

void guest_write(int fd, const void *data, size_t size)
{
    const char *next = data;
    while (size > 0) {
        ssize_t written = write(fd, next, size);
        if (written > 0)
            next += written, size -= (size_t)written;
        else if (written < 0 && errno != EAGAIN && errno != EINTR)
            return;
        else
            sched_yield();
    }
}

void guest_drain(int fd)
{
    int queued;
    while (fd >= 0 && ioctl(fd, TIOCOUTQ, &queued) == 0 && queued > 0)
        sched_yield();
}

/* ---- the network */

static int write_file(const char *path, const char *text, struct err *err)
{
    FILE *file = fopen(path, "w");
    int failed = !file || fputs(text, file) < 0;
    if (file)
        failed |= fclose(file) != 0;
    return failed ? err_set(err, EIO, "%s: cannot be written: %s", path, strerror(errno)) : 0;
}

/* Limits of the whole machine: sockets may ask for large buffers, bursts of many packets find room. A flow's first
 * growth ends at the first loss, not where HyStart believes to see a queue: on paths this long it ends far too early,
 * and at another moment for every flow (fasterdata.es.net, "Linux tuning"). */
static int set_limits(struct err *err)
{
    static const struct sysctl table[] = {
        {"net/core/rmem_max", "268435456"},
        {"net/core/wmem_max", "268435456"},
        {"net/core/netdev_max_backlog", "100000"},
        {"kernel/hostname", "lab"},
    };
    int rc = sysctl_set(table, sizeof table / sizeof *table, err);
    return rc ? rc : write_file("/sys/module/tcp_cubic/parameters/hystart", "0", err);
}

static int name_hosts(const struct topology *topology, struct err *err)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return err_set(err, ENOMEM, "out of memory");
    network_print_hosts(topology, out);
    int rc = fclose(out) ? err_set(err, ENOMEM, "out of memory") : write_file(HOSTS_FILE, text, err);
    free(text);
    return rc ? rc : guest_cover_hosts(HOSTS_FILE, err);
}

static int set_up(const struct spec *spec, const struct topology *topology, struct err *err)
{
    int rc = set_limits(err);
    if (!rc && mkdir(GUEST_FOLDER, 0755))
        rc = err_set(err, errno, GUEST_FOLDER ": %s", strerror(errno));
    char *text = rc ? NULL : topology_scenario(topology, err);
    if (!rc && !text)
        rc = -ENOMEM;
    rc = rc ? rc : write_file(GUEST_SCENARIO, text, err);
    free(text);
    rc = rc ? rc : name_hosts(topology, err);
    rc = rc ? rc : guest_mpi_files(spec, topology, err);
    rc = rc ? rc : network_build(topology, "", err);
    return rc ? rc : network_shape(topology, "", spec->shaper, GUEST_SCENARIO, err);
}

/* A virtual clock stood still while the kernel started. Let it pass the points where timers become exact (the first
 * tick), where programs take a clock near 0 for unset (ping), and where the last device is up: a device drops what it
 * is given until the kernel has seen that its cable is plugged in, for 100 devices a second (MAX_DO_DEV_WORK in
 * net/core/link_watch.c). It costs nothing. */
static void settle(const struct spec *spec, const struct topology *topology)
{
    const struct timespec while_s = {2 + (time_t)topology->host_count / 25, 0};
    if (!spec->real_time)
        nanosleep(&while_s, NULL);
}

/* Builds the network and runs the command: its exit code, or a negative errno. */
static int run_scenario(const struct spec *spec, struct err *err)
{
    struct scenario scenario = {0};
    struct topology topology = {0};
    int rc = scenario_parse("the scenario", spec->scenario, strlen(spec->scenario), NULL, 0, &scenario, err);
    rc = rc ? rc : topology_build(&scenario, &topology, err);
    rc = rc ? rc : set_up(spec, &topology, err);
    setenv("LONGHAUL_SCENARIO", GUEST_SCENARIO, 1);
    settle(spec, &topology);
    rc = rc ? rc : guest_command(spec, spec->host ? spec->host : topology.hosts[0].name, err);
    topology_free(&topology);
    scenario_free(&scenario);
    return rc;
}

/* ---- */

static int run(const char *folder, struct err *err)
{
    char path[PATH_MAX];
    struct spec spec;
    snprintf(path, sizeof path, "%s/" SPEC_FILE, folder);
    int rc = spec_read(path, &spec, err);
    rc = rc ? rc : guest_mount(&spec, err);
    if (!rc && spec.scenario)
        rc = run_scenario(&spec, err);
    spec_free(&spec);
    return rc;
}

_Noreturn void guest_run(const char *folder)
{
    struct err err = {""};
    char verdict[ERR_TEXT_MAX + 32];
    umask(022);
    int rc = guest_mount_first(&err);
    int control = guest_console(CONSOLE_CONTROL);
    rc = rc ? rc : run(folder, &err);
    if (rc < 0)
        snprintf(verdict, sizeof verdict, "fail %d %s\n", err_exit_code(rc), err.text);
    else
        snprintf(verdict, sizeof verdict, "exit %d\n", rc);
    kill(-1, SIGKILL);
    sync();
    guest_write(control, verdict, strlen(verdict));
    guest_drain(control);
    reboot(RB_POWER_OFF);
    abort(); /* the kernel panics and ends: there is no other way left */
}
