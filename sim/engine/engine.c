#include "sim/engine/engine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/engine/process.h"

void *engine_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void engine_unshare(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

int engine_job_init(struct engine_job *job, struct err *err)
{
    size_t links = 2 * job->scenario->wan_count;
    size_t outcomes = PROBE_COUNT * sizeof(struct engine_outcome), wan = links * sizeof(struct engine_wan);
    job->shared_bytes = outcomes + wan + sizeof(double);
    char *memory = engine_share(job->shared_bytes);
    if (!memory)
        return err_set(err, ENOMEM, "out of memory for the results of a run");
    job->outcomes = (struct engine_outcome *)memory;
    job->wan = (struct engine_wan *)(memory + outcomes);
    job->slack_s = (double *)(memory + outcomes + wan);
    return 0;
}

void engine_job_free(struct engine_job *job)
{
    engine_unshare(job->outcomes, job->shared_bytes);
    job->outcomes = NULL;
    job->wan = NULL;
    job->slack_s = NULL;
}

int engine_workers(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The process of one job; dies with its parent, so that an interrupted command leaves nothing behind. */
static pid_t start(struct engine_job *job)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILED);
    process_run(job);
    _exit(EXIT_FINE);
}

static int check_outcome(const struct engine_outcome *outcome, struct err *err)
{
    if (outcome->failure)
        return err_set(err, -outcome->failure, "%s: %s", *outcome->text ? outcome->text : "a rank failed",
                       strerror(-outcome->failure));
    if (!outcome->finished)
        return err_set(err, EIO, "invariant broken: %d stream%s of ranks did not finish, waiting for what nobody sends",
                       outcome->unfinished, outcome->unfinished == 1 ? "" : "s");
    return 0;
}

static int check_job(const struct engine_job *job, int status, struct err *err)
{
    if (WIFSIGNALED(status))
        return err_set(err, EIO, "the simulation ended by signal %d (%s)%s", WTERMSIG(status),
                       strsignal(WTERMSIG(status)), WTERMSIG(status) == SIGKILL ? ": out of memory?" : "");
    if (WEXITSTATUS(status) != EXIT_FINE)
        return err_set(err, EIO, "the simulation ended with code %d", WEXITSTATUS(status));
    int last = job->probe_wan ? PROBE_COUNT : 1, rc = 0;
    for (int i = 0; i < last && rc == 0; i++)
        rc = check_outcome(&job->outcomes[i], err);
    return rc;
}

static size_t index_of(const pid_t *pids, size_t count, pid_t pid)
{
    size_t i = 0;
    while (i < count && pids[i] != pid)
        i++;
    return i;
}

struct first_error {
    size_t job; /* the lowest that failed, whichever ended first; SIZE_MAX: none */
    int rc;
};

/* Waits for any one of the processes. */
static void reap(struct engine_job *const *jobs, pid_t *pids, size_t started, struct first_error *first,
                 struct err *err)
{
    int status;
    pid_t pid;
    do
        pid = wait(&status);
    while (pid < 0 && errno == EINTR);
    size_t i = pid < 0 ? started : index_of(pids, started, pid);
    if (i == started)
        return;
    struct err own = {""};
    int rc = check_job(jobs[i], status, &own);
    pids[i] = 0;
    if (rc < 0 && i < first->job) {
        *first = (struct first_error){i, rc};
        err_set(err, -rc, "%s", own.text);
    }
}

int engine_run(struct engine_job *const *jobs, size_t count, int workers, void (*step)(void *context), void *context,
               struct err *err)
{
    pid_t *pids = calloc(count + 1, sizeof *pids);
    size_t started = 0, ended = 0;
    struct first_error first = {SIZE_MAX, pids ? 0 : err_set(err, ENOMEM, "out of memory for %zu runs", count)};
    while (ended < started || (first.rc == 0 && started < count)) {
        if (first.rc == 0 && started < count && started - ended < (size_t)workers) {
            pids[started] = start(jobs[started]);
            if (pids[started] < 0)
                first.rc = err_set(err, errno, "cannot start a simulation process: %s", strerror(errno));
            else
                started++;
            continue;
        }
        reap(jobs, pids, started, &first, err);
        ended++;
        if (step)
            step(context);
    }
    free(pids);
    return first.rc;
}
