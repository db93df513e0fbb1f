#include "emu/lab/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/lab/guardian.h"

/* Bytes a pipe holds: a command that prints much need not wait for the launcher at every turn. */
enum { PIPE_BYTES = 1 << 20 };

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int open_pipe(int ends[2], struct err *err)
{
    if (pipe2(ends, O_CLOEXEC)) {
        ends[0] = ends[1] = -1;
        return err_set(err, errno, "no pipe: %s", strerror(errno));
    }
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    return 0;
}

int machine_program(char *path, size_t size, struct err *err)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        return err_set(err, errno, "/proc/self/exe: %s; is /proc mounted?", strerror(errno));
    path[length] = '\0';
    return 0;
}

/* The sanitizer's shadow memory lies beyond the 512 GB of addresses that a process of the lab has. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#elif defined __has_feature
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

enum { LIFE, INPUT, OUTPUT, ERROR, CONTROL, PIPE_COUNT };

int machine_start(const struct machine_options *options, struct machine *machine, struct err *err)
{
    int pipes[PIPE_COUNT][2], rc = 0;
    memset(pipes, -1, sizeof pipes);
    *machine = (struct machine){.life = -1, .input = -1, .streams = {-1, -1}, .control = -1};
    if (SANITIZED)
        rc = err_set(err, ENOTSUP,
                     "a program built with address sanitizer cannot be the lab's first process; use another "
                     "build of longhaul");
    for (int i = 0; i < PIPE_COUNT && !rc; i++)
        rc = open_pipe(pipes[i], err);
    machine->guardian = rc ? -1 : fork();
    if (!rc && machine->guardian < 0)
        rc = err_set(err, errno, "no process: %s", strerror(errno));
    if (machine->guardian == 0) {
        close(pipes[LIFE][1]), close(pipes[INPUT][1]);
        close(pipes[OUTPUT][0]), close(pipes[ERROR][0]), close(pipes[CONTROL][0]);
        guardian_run(options,
                     &(struct guardian_ends){
                         pipes[LIFE][0], pipes[INPUT][0], {pipes[OUTPUT][1], pipes[ERROR][1]}, pipes[CONTROL][1]});
    }
    close_fd(&pipes[LIFE][0]), close_fd(&pipes[INPUT][0]);
    close_fd(&pipes[OUTPUT][1]), close_fd(&pipes[ERROR][1]), close_fd(&pipes[CONTROL][1]);
    machine->life = pipes[LIFE][1], machine->input = pipes[INPUT][1];
    machine->streams[0] = pipes[OUTPUT][0], machine->streams[1] = pipes[ERROR][0];
    machine->control = pipes[CONTROL][0];
    if (!rc && !options->spec->shell)
        close_fd(&machine->input);
    if (rc)
        machine_stop(machine);
    return rc;
}

void machine_stop(struct machine *machine)
{
    int status;
    close_fd(&machine->life), close_fd(&machine->input);
    close_fd(&machine->streams[0]), close_fd(&machine->streams[1]), close_fd(&machine->control);
    while (machine->guardian > 0 && waitpid(machine->guardian, &status, 0) < 0 && errno == EINTR)
        ;
    machine->guardian = -1;
}
