#include "emu/mpi/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/route.h"
#include "emu/mpi/recording.h"
#include "emu/mpi/sockets.h"

#define TICK_S 10e-3

/* One step: of this rank, after reduce_step of all. */
struct step {
    double took_s, compute_s, messages, checked_bytes;
    double late_s; /* how much later than agreed it began */
    struct sockets sockets;
    double *sent, *crossed; /* [sites]: payload of this rank to each, as the application and as the sockets count */
};

struct measurement {
    struct process *process;
    struct step_plan plan;
    double ended_s;         /* of the last step, by the common clock; NAN before the first */
    double *bytes;          /* [sites * sites]: payload sent in the last step, as the application counts */
    double *wire;           /* the same as the sockets do */
    double *before, *after; /* [sites] */
};

static double all_max(const struct process *process, double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, process->ranks);
    return value;
}

static double all_sum(const struct process *process, double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, process->ranks);
    return value;
}

/* The first message of any rank reaches all: 0, or what the lowest rank with one says. */
static int share_failure(const struct process *process, int rc, struct err *err)
{
    int mine = rc ? process->rank : process->count, first;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, process->ranks);
    if (first == process->count)
        return 0;
    MPI_Bcast(err->text, sizeof err->text, MPI_CHAR, first, process->ranks);
    MPI_Bcast(&rc, 1, MPI_INT, first, process->ranks);
    return rc;
}

/* All begin at the same moment of the common clock, a fixed time after the last step: at the next tick of 10 ms, where
 * the kernel's coarse timers (its jiffies) stand the same in every run. */
static double begin(struct measurement *measurement)
{
    struct process *process = measurement->process;
    double last_s = isnan(measurement->ended_s) ? all_max(process, process_common(process)) : measurement->ended_s;
    double start_s = ceil((last_s + step_gap_s(process->scenario)) / TICK_S) * TICK_S;
    process->start_s = start_s - process->offset_s;
    process_sleep_until(process->start_s);
    return start_s;
}

/* What this rank's counters say of the step; reduced over the ranks later: between steps there is time for one
 * reduction only. */
static void count_step(struct measurement *measurement, struct step *step, const struct sockets *before)
{
    struct process *process = measurement->process;
    size_t sites = process->scenario->site_count;
    struct sockets *sockets = &step->sockets;
    sockets_count(process->scenario, process->site, sockets, measurement->after);
    sockets->wire_bytes -= before->wire_bytes;
    sockets->sent_bytes -= before->sent_bytes;
    sockets->retransmits -= before->retransmits;
    for (size_t to = 0; to < sites; to++) {
        step->sent[to] = (double)atomic_exchange(&process->sent_to_site[to], 0);
        step->crossed[to] = measurement->after[to] - measurement->before[to];
    }
    step->compute_s = process->compute_s;
    step->messages = (double)atomic_exchange(&process->messages, 0);
    step->checked_bytes = (double)atomic_exchange(&process->checked_bytes, 0);
}

static int run_step(struct measurement *measurement, bool check, struct step *step, struct err *err)
{
    struct process *process = measurement->process;
    struct sockets before;
    sockets_count(process->scenario, process->site, &before, measurement->before);
    process->check = check;
    process->compute_s = 0;
    double start_s = begin(measurement);
    step->late_s = process_clock() - process->start_s;
    transport_run(process, step_main, &measurement->plan);
    bool wrong = process->wrong.text[0] || measurement->plan.failure;
    double ends[] = {process_common(process), wrong};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_MAX, process->ranks);
    measurement->ended_s = ends[0];
    step->took_s = ends[0] - start_s;
    count_step(measurement, step, &before);
    if (ends[1] <= 0)
        return 0;
    if (process->wrong.text[0])
        *err = process->wrong;
    else if (measurement->plan.failure)
        err_set(err, EIO, "rank %d: %s", process->rank, strerror(-measurement->plan.failure));
    return share_failure(process, wrong ? -EIO : 0, err);
}

/* Sums, and where it says so maxima, over the ranks. */
static void reduce_step(struct measurement *measurement, struct step *step)
{
    struct process *process = measurement->process;
    size_t sites = process->scenario->site_count, from = process->site * sites;
    double sums[] = {step->messages, step->checked_bytes, step->sockets.wire_bytes, step->sockets.sent_bytes,
                     step->sockets.retransmits};
    double most[] = {step->compute_s, step->late_s};
    MPI_Allreduce(MPI_IN_PLACE, sums, sizeof sums / sizeof *sums, MPI_DOUBLE, MPI_SUM, process->ranks);
    MPI_Allreduce(MPI_IN_PLACE, most, sizeof most / sizeof *most, MPI_DOUBLE, MPI_MAX, process->ranks);
    step->messages = sums[0], step->checked_bytes = sums[1];
    step->sockets = (struct sockets){0, sums[3], sums[2], sums[4]};
    step->compute_s = most[0], step->late_s = most[1];
    memset(measurement->bytes, 0, 2 * sites * sites * sizeof *measurement->bytes);
    memcpy(measurement->bytes + from, step->sent, sites * sizeof *step->sent);
    memcpy(measurement->wire + from, step->crossed, sites * sizeof *step->crossed);
    MPI_Allreduce(MPI_IN_PLACE, measurement->bytes, (int)(2 * sites * sites), MPI_DOUBLE, MPI_SUM, process->ranks);
}

/* Every byte that a strategy sends to another site crosses the link in a connection of this process: what does not went
 * another way (shared memory, RDMA), and the measured time is not the link's. */
static int check_crossing(const struct measurement *measurement, struct err *err)
{
    const struct scenario *scenario = measurement->process->scenario;
    size_t sites = scenario->site_count;
    for (size_t pair = 0; scenario->emu_site_count && pair < sites * sites; pair++)
        if (pair / sites != pair % sites && measurement->wire[pair] < measurement->bytes[pair])
            return err_set(
                err, EIO,
                "the link was bypassed: %.0f bytes were sent from %s to %s, but their TCP connections carried "
                "%.0f; shared memory or RDMA took the rest",
                measurement->bytes[pair], scenario->sites[pair / sites].name, scenario->sites[pair % sites].name,
                measurement->wire[pair]);
    return 0;
}

/* ---- the result */

static int by_time(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    return (x->took_s > y->took_s) - (x->took_s < y->took_s);
}

static double link_rate(const struct scenario *scenario, size_t link)
{
    return (double)scenario->wan[link].waves * scenario->wan[link].wave_bit_per_s / 8;
}

static int fill_wan(const struct measurement *measurement, const struct step *step, struct strategy_result *result,
                    struct err *err)
{
    const struct scenario *scenario = measurement->process->scenario;
    struct routes routes;
    double headers = step->sockets.sent_bytes > 0 ? step->sockets.wire_bytes / step->sockets.sent_bytes : 1;
    int rc = routes_init(&routes, scenario, err);
    result->wan_count = 2 * scenario->wan_count;
    result->wan = calloc(result->wan_count + 1, sizeof *result->wan);
    if (rc || !result->wan)
        return rc ? rc : err_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < result->wan_count; i++) {
        const struct wan_link *link = &scenario->wan[i / 2];
        struct wan_result *wan = &result->wan[i];
        double rate = link_rate(scenario, i / 2);
        double wire = headers * routes_link_bytes(&routes, scenario, measurement->wire, (long)(i / 2), i % 2);
        *wan = (struct wan_result){.from = link->between[i % 2], .to = link->between[!(i % 2)]};
        wan->bytes = routes_link_bytes(&routes, scenario, measurement->bytes, (long)(i / 2), i % 2);
        wan->utilisation = isfinite(rate) ? wire / rate / step->took_s : 0;
        wan->peak_utilisation = NAN;
        wan->rate_per_gpu_bit_per_s = wan->bytes * 8 / step->took_s / (double)site_gpus(&scenario->sites[wan->from]);
        result->wan_busy_s = fmax(result->wan_busy_s, isfinite(rate) ? wire / rate : 0);
    }
    routes_free(&routes);
    return 0;
}

static int fill_result(struct measurement *measurement, struct step *steps, int count, double open_s,
                       struct strategy_result *result, struct err *err)
{
    const struct process *process = measurement->process;
    const struct scenario *scenario = process->scenario;
    struct measured *measured = &result->measured;
    *result = (struct strategy_result){.strategy = (size_t)(measurement->plan.strategy - scenario->strategies)};
    result->bound_by = result->floor_bound = BOUND_COUNT;
    for (int bound = 0; bound < BOUND_COUNT; bound++)
        result->gain_s[bound] = NAN;
    result->slack_s = result->floor_s = result->efficiency = NAN;
    result->baseline = (struct step_result){.step_s = NAN, .tokens_per_s = NAN, .mfu = {NAN, NAN}};
    qsort(steps, (size_t)count, sizeof *steps, by_time);
    const struct step *median = &steps[count / 2];
    *measured = (struct measured){count, steps[0].took_s, steps[count - 1].took_s, 0, 0, median->checked_bytes};
    for (int i = 0; i < count; i++) {
        measured->retransmits += steps[i].sockets.retransmits / count;
        measured->wan_wire_bytes += steps[i].sockets.sent_bytes / count;
    }
    step_result_fill(&result->step, scenario, median->took_s, FIDELITY_MEASURED, (uint64_t)median->messages);
    result->slow_start_s = isnan(open_s) ? NAN : fmax(0, median->took_s - open_s);
    result->compute_s = median->compute_s;
    int rc = step_free(&measurement->plan, &result->free_step_s, NULL, err);
    result->bubble_s = fmax(0, result->free_step_s - step_compute_s(&measurement->plan));
    result->exposed_comm_s = fmax(0, median->took_s - result->free_step_s);
    rc = rc ? rc : fill_wan(measurement, median, result, err);
    return rc ? rc : model_memory(scenario, measurement->plan.strategy, scenario->site_count, &result->memory, err);
}

/* ---- all steps */

/* TCP's restart after idle, of this network. False where it cannot be changed. */
static bool set_restart(bool on)
{
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "w");
    bool failed = !file || fputs(on ? "1" : "0", file) == EOF;
    if (file)
        failed |= fclose(file) != 0;
    return !failed;
}

static int run_open(struct measurement *measurement, bool check, struct step *step, double *open_s, struct err *err)
{
    const struct process *process = measurement->process;
    bool all = all_sum(process, set_restart(false)) >= process->count;
    int rc = all ? run_step(measurement, check, step, err) : 0;
    if (all && rc == 0)
        *open_s = step->took_s;
    (void)set_restart(true);
    return rc;
}

static void show_progress(const struct measurement *measurement, const struct measure_options *options, int step)
{
    if (options->progress && measurement->process->rank == 0)
        fprintf(stderr, "longhaul-rank: measures %s, step %d of %d\n", measurement->plan.strategy->name, step,
                options->steps);
}

/* The first step opens the connections and is not among the measured. */
static int run_all(struct measurement *measurement, const struct measure_options *options, struct step *steps,
                   double *open_s, struct err *err)
{
    struct process *process = measurement->process;
    show_progress(measurement, options, 0);
    int rc = run_step(measurement, true, &steps[0], err);
    for (int i = 1; i <= options->steps && rc == 0; i++) {
        if (options->timeline && i == options->steps)
            recording_begin(process);
        show_progress(measurement, options, i);
        rc = run_step(measurement, options->check_all, &steps[i], err);
    }
    if (rc == 0 && options->timeline)
        rc = recording_write(process, options->timeline, err);
    if (rc == 0 && options->open_windows)
        rc = run_open(measurement, options->check_all, &steps[options->steps + 1], open_s, err);
    for (int i = 0; i <= options->steps && rc == 0; i++) {
        reduce_step(measurement, &steps[i]);
        rc = check_crossing(measurement, err);
    }
    return rc;
}

/* Steps with their counters: one before and one after the measured. */
static struct step *steps_new(int count, size_t sites)
{
    size_t all = (size_t)count + 2;
    struct step *steps = calloc(1, all * (sizeof *steps + 2 * sites * sizeof(double)));
    double *counters = (double *)(void *)(steps + all);
    for (size_t i = 0; steps && i < all; i++) {
        steps[i].sent = counters + 2 * i * sites;
        steps[i].crossed = steps[i].sent + sites;
    }
    return steps;
}

int measure(struct process *process, const struct strategy *strategy, const struct measure_options *options,
            struct strategy_result *result, struct err *err)
{
    const struct scenario *scenario = process->scenario;
    size_t sites = scenario->site_count;
    struct measurement measurement = {.process = process, .ended_s = NAN};
    struct step *steps = steps_new(options->steps, sites);
    double open_s = NAN;
    measurement.bytes = calloc(2 * sites * sites + 2 * sites, sizeof *measurement.bytes);
    int rc = measurement.bytes && steps ? 0 : err_set(err, ENOMEM, "out of memory");
    rc = rc ? rc : step_plan_init(&measurement.plan, scenario, strategy, scenario->training.kernel_efficiency, err);
    rc = share_failure(process, rc, err);
    if (rc == 0) {
        measurement.wire = measurement.bytes + sites * sites;
        measurement.before = measurement.wire + sites * sites;
        measurement.after = measurement.before + sites;
        measurement.plan.values = &process_values;
        rc = process_prepare(process, &measurement.plan, err);
        rc = rc ? rc : run_all(&measurement, options, steps, &open_s, err);
        rc = rc ? rc : fill_result(&measurement, steps + 1, options->steps, open_s, result, err);
    }
    step_plan_free(&measurement.plan);
    free(measurement.bytes);
    free(steps);
    return rc;
}
