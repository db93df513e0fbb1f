#include "sim/engine/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/engine/record.h"
#include "sim/engine/rehearsal.h"
#include "sim/engine/sim.h"

/* The state of this process; SimGrid's engine, one per process, is as global as this. */
struct process {
    struct engine_job *job;
    struct layout layout;
    struct sim sim;
    struct rehearsal rehearsal;
    FILE *rehearses;         /* this process only runs for what it writes here; NULL: no */
    enum engine_probe probe; /* whose outcome this process writes */
    struct engine_outcome *outcome;
};

static struct process *process_of(struct sim *sim)
{
    return (struct process *)((char *)sim - offsetof(struct process, sim));
}

/* ---- what-ifs */

/* Forks a process for a what-if and waits for its end. Returns true in the new process, which goes on simulating. */
static bool branch(struct process *process, enum engine_probe probe, const struct ideal *ideal,
                   struct engine_outcome *outcome)
{
    int status;
    *outcome = (struct engine_outcome){.unfinished = -1};
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        process->probe = probe;
        process->outcome = outcome;
        process->sim.ideal = *ideal;
        return true;
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_FINE)
        abort();
    return false;
}

static bool unchanged(double step_s, double base_s)
{
    return step_s <= base_s * (1 + 1e-9);
}

static bool delayed(struct process *process, double delay_s, struct engine_outcome *outcome)
{
    struct ideal ideal = process->job->ideal;
    ideal.extra_wan_delay_s = delay_s;
    return branch(process, PROBE_COUNT, &ideal, outcome);
}

/* The largest extra delay that leaves the step unchanged, to 0.1 % or 1 us: doubles until the step changes, then
 * bisects. Returns true in a process that is to go on simulating. */
static bool find_slack(struct process *process, double *slack_s)
{
    double base_s = process->job->outcomes[PROBE_BASE].step_s, good_s = 0, bad_s = 1e-3;
    struct engine_outcome *scratch = engine_share(sizeof *scratch);
    if (!scratch)
        abort();
    for (;; bad_s *= 2) {
        if (delayed(process, bad_s, scratch))
            return true;
        if (!unchanged(scratch->step_s, base_s))
            break;
        good_s = bad_s;
        if (bad_s > base_s)
            break;
    }
    while (bad_s - good_s > fmax(1e-6, 1e-3 * good_s) && good_s <= base_s) {
        double middle_s = (good_s + bad_s) / 2;
        if (delayed(process, middle_s, scratch))
            return true;
        *(unchanged(scratch->step_s, base_s) ? &good_s : &bad_s) = middle_s;
    }
    *slack_s = good_s;
    engine_unshare(scratch, sizeof *scratch);
    return false;
}

/* Splits this process into one per what-if. Returns in each of those; the process that was split ends here. */
static void split(struct process *process)
{
    struct engine_job *job = process->job;
    struct engine_outcome *outcomes = job->outcomes;
    struct ideal ideals[PROBE_COUNT] = {job->ideal, job->ideal, job->ideal, job->ideal, job->ideal};
    ideals[PROBE_WAN_RATE].wan_rate = true;
    ideals[PROBE_WAN_LATENCY].wan_latency = true;
    ideals[PROBE_WINDOW].window = true;
    ideals[PROBE_SLOW_START].slow_start = true;
    bool same[PROBE_COUNT] = {[PROBE_WINDOW] = isinf(job->scenario->transport.window_bytes),
                              [PROBE_SLOW_START] = job->scenario->transport.protocol != PROTOCOL_TCP};
    for (int probe = 0; probe < PROBE_COUNT; probe++) {
        if (same[probe])
            outcomes[probe] = outcomes[PROBE_BASE];
        else if (branch(process, (enum engine_probe)probe, &ideals[probe], &outcomes[probe]))
            return;
    }
    *job->slack_s = 0;
    if (unchanged(outcomes[PROBE_BASE].step_s, outcomes[PROBE_WAN_LATENCY].step_s) && find_slack(process, job->slack_s))
        return;
    _exit(EXIT_FINE);
}

static void split_at_first_wan_byte(struct sim *sim)
{
    struct process *process = process_of(sim);
    split(process);
    sim_idealise(sim, &process->sim.ideal);
}

/* ---- one run */

static void start_simgrid(void)
{
    char name[] = "longhaul", log[] = "--log=root.thresh:critical", model[] = "--cfg=network/model:CM02",
         gamma[] = "--cfg=network/TCP-gamma:0", cross[] = "--cfg=network/crosstraffic:0",
         weight[] = "--cfg=network/weight-S:0", guard[] = "--cfg=contexts/guard-size:0",
         timing[] = "--cfg=surf/precision:1e-12", stack[64];
    char factory[] = "--cfg=contexts/factory:thread";
    snprintf(stack, sizeof stack, "--cfg=contexts/stack-size:%d", ACTORS_ARE_THREADS ? 1024 : 64);
    char *argv[] = {name, log, model, gamma, cross, weight, guard, timing, stack, factory, NULL};
    int argc = ACTORS_ARE_THREADS ? 10 : 9;
    argv[argc] = NULL;
    simgrid_init(&argc, argv);
}

/* What goes wrong is told by our own parent, in one line; SimGrid would add a page. */
static void silence_simgrid(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDERR_FILENO);
}

static void load_platform(struct process *process)
{
    char path[64];
    int file = memfd_create("platform", MFD_CLOEXEC);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    if (!out || platform_write(&process->layout, &process->sim.ideal, false, out, NULL))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    simgrid_load_platform(path);
    fclose(out);
}

static void *zeroed(size_t count, size_t size)
{
    return sim_need(calloc(count ? count : 1, size));
}

static void set_up(struct process *process)
{
    struct engine_job *job = process->job;
    struct sim *sim = &process->sim;
    const struct transport_settings *transport = &job->scenario->transport;
    struct ideal ideal = sim->ideal;
    *sim = (struct sim){.layout = &process->layout, .ideal = ideal};
    sim->wan_bytes_scale = (double)process->layout.wan_flows;
    sim->bulk_above =
        transport->protocol == PROTOCOL_TCP ? INFINITY : job->bulk_above; /* its formulas know no windows */
    sim->eager_bytes = transport->eager_bytes;
    sim->handshakes = transport->handshakes;
    sim->hosts = zeroed((size_t)process->layout.count, sizeof *sim->hosts);
    if (process->layout.wan_skips_nic)
        sim->borders = zeroed(process->layout.placement.sites, sizeof *sim->borders);
    sim->connections = zeroed((size_t)process->layout.count, sizeof *sim->connections);
    sim->wan = zeroed(2 * job->scenario->wan_count, sizeof *sim->wan);
    sim->rehearsal = &process->rehearsal;
    if (job->probe_wan && !ACTORS_ARE_THREADS && !process->rehearses)
        sim->first_wan_byte = split_at_first_wan_byte;
    sim->queues = zeroed(2 * job->scenario->wan_count, sizeof *sim->queues);
    sim->timeline = job->timeline && !process->rehearses ? timeline_new() : NULL;
}

static void start_ranks(struct process *process)
{
    struct sim *sim = &process->sim;
    char host[LAYOUT_HOST_MAX];
    for (int i = 0; i < process->layout.count; i++)
        sim->hosts[i] = sg_host_by_name(layout_host(&process->layout, layout_rank(&process->layout, i), host));
    for (size_t s = 0; sim->borders && s < process->layout.placement.sites; s++) {
        snprintf(host, sizeof host, "%.64s-border", process->job->scenario->sites[s].name);
        sim->borders[s] = sg_host_by_name(host);
    }
    for (int i = 0; i < process->layout.count; i++)
        sim_stream(sim, i, process->job->main, process->job->argument, "main");
}

static void write_timeline(struct process *process)
{
    struct sim *sim = &process->sim;
    struct err err = {""};
    int rc = record_wan_tracks(sim, process->outcome->step_s);
    rc = rc ? rc : timeline_write(sim->timeline, process->job->timeline, &err);
    if (rc == 0 && fflush(process->job->timeline))
        rc = -errno;
    if (rc < 0) {
        process->outcome->failure = rc;
        snprintf(process->outcome->text, sizeof process->outcome->text, "cannot write the timeline");
    }
}

static void write_outcome(struct process *process)
{
    struct sim *sim = &process->sim;
    struct engine_outcome *outcome = process->outcome;
    outcome->step_s = simgrid_get_clock();
    outcome->messages = sim->messages;
    outcome->arrived = sim->arrived;
    outcome->sent_bytes = sim->sent_bytes;
    outcome->received_bytes = sim->received_bytes;
    outcome->used_bulk = sim->used_bulk;
    outcome->unfinished = sim->running;
    outcome->finished = sim->running == 0;
    outcome->failure = process->job->failure ? *process->job->failure : 0;
    if (process->probe != PROBE_BASE)
        return;
    for (size_t i = 0; i < 2 * process->job->scenario->wan_count; i++) {
        struct engine_wan *wan = &process->job->wan[i];
        double rate = platform_wan_rate(&process->layout, &sim->ideal, (long)(i / 2)) * sim->wan_bytes_scale;
        wan->bytes = record_load(sim, i)->bytes;
        record_utilisation(record_load(sim, i), rate, outcome->step_s, &wan->utilisation, &wan->peak_utilisation);
    }
    if (sim->timeline)
        write_timeline(process);
}

/* A run that never touches the WAN has nothing to split: all its what-ifs are itself. */
static void copy_untouched(struct process *process)
{
    struct engine_job *job = process->job;
    if (!job->probe_wan || ACTORS_ARE_THREADS || !process->sim.first_wan_byte)
        return;
    for (int probe = 1; probe < PROBE_COUNT; probe++)
        job->outcomes[probe] = job->outcomes[PROBE_BASE];
    *job->slack_s = INFINITY;
}

/* ---- the steps before */

/* Two: after the first step of all, connections are as later ones find them but for what they carried before. */
enum { REHEARSALS = 2 };

/* Forks a process that runs the step for its connections. Returns true in it. */
static bool rehearse(struct process *process)
{
    int status, file = memfd_create("rehearsal", MFD_CLOEXEC);
    FILE *left = file < 0 ? NULL : fdopen(file, "w+");
    if (!left)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        process->rehearses = left;
        process->sim.ideal = (struct ideal){0};
        return true;
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    rewind(left);
    rehearsal_free(&process->rehearsal);
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_FINE ||
        rehearsal_read(&process->rehearsal, process->job->scenario, left) != 0)
        abort();
    fclose(left);
    return false;
}

static bool needs_rehearsal(const struct engine_job *job)
{
    const struct scenario *scenario = job->scenario;
    return job->repeats && scenario->wan_count > 0 && scenario->transport.protocol == PROTOCOL_TCP;
}

static void write_results(struct process *process)
{
    if (process->rehearses) {
        rehearsal_write(&process->sim, simgrid_get_clock(), process->rehearses);
        _exit(fflush(process->rehearses) ? EXIT_FAILED : EXIT_FINE);
    }
    write_outcome(process);
    copy_untouched(process);
}

void process_run(struct engine_job *job)
{
    struct process process = {.job = job, .probe = PROBE_BASE, .outcome = &job->outcomes[PROBE_BASE]};
    struct err err = {""};
    for (int i = 0; needs_rehearsal(job) && !process.rehearses && i < REHEARSALS; i++)
        (void)rehearse(&process);
    if (!process.rehearses)
        process.sim.ideal = job->ideal;
    if (job->probe_wan && ACTORS_ARE_THREADS && !process.rehearses)
        split(&process);
    if (!ACTORS_ARE_THREADS)
        silence_simgrid();
    if (layout_init(&process.layout, job->scenario, job->fold, job->wan_flows, &err) < 0) {
        process.outcome->failure = -ENOMEM;
        return;
    }
    start_simgrid();
    load_platform(&process);
    set_up(&process);
    start_ranks(&process);
    simgrid_run();
    write_results(&process);
    timeline_free(process.sim.timeline);
    sim_release(&process.sim);
    rehearsal_free(&process.rehearsal);
    layout_free(&process.layout);
    _exit(EXIT_FINE);
}
