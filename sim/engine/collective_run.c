/* Runs of `longhaul collective`, a few at a time, and the invariants that every result has to keep. */
#include "sim/engine/collective.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A simulated time may miss its floor by rounding. */
#define FLOOR_TOLERANCE 1e-9
#define BYTES_TOLERANCE 1e-6

static int check_ranks(const struct bench *bench, struct err *err)
{
    for (int i = 0; i < bench->ranks; i++)
        if (!isfinite(bench->done_s[i]))
            return err_set(err, EIO, "rank %d of %d did not finish", i, bench->ranks);
    return 0;
}

static int check_arrival(const struct bench *bench, struct err *err)
{
    const struct engine_outcome *outcome = &bench->job.outcomes[PROBE_BASE];
    if (fabs(outcome->sent_bytes - outcome->received_bytes) > BYTES_TOLERANCE * outcome->sent_bytes)
        return err_set(err, EIO, "%.17g bytes were sent, %.17g arrived", outcome->sent_bytes, outcome->received_bytes);
    return 0;
}

/* What the formula puts on every link and direction: pairs of sites that are no neighbours use several links. */
static void expected_load(const struct bench *bench, const struct layout *layout, double *pairs, double *links)
{
    size_t sites = bench->placement.sites;
    bench_wan_bytes(bench, pairs);
    for (size_t pair = 0; pair < sites * sites; pair++) {
        size_t to = pair % sites;
        for (size_t at = pair / sites; at != to;) {
            long link = layout->routes.next_link[at * sites + to];
            links[2 * link + (bench->scenario.wan[link].between[0] != at)] += pairs[pair];
            at = route_other_end(&bench->scenario, link, at);
        }
    }
}

/* Segments are whole elements of 4 bytes, so every rank's may be off by two elements a lap and channel. */
static double rounding_bytes(const struct bench *bench)
{
    return 2 * 8.0 * (double)bench->ranks * (double)bench->scenario.transport.channels;
}

static int compare_load(const struct bench *bench, const double *links, struct err *err)
{
    const struct scenario *scenario = &bench->scenario;
    for (size_t i = 0; i < 2 * scenario->wan_count; i++) {
        const size_t *between = scenario->wan[i / 2].between;
        double bytes = bench->job.wan[i].bytes;
        if (!(fabs(bytes - links[i]) <= BYTES_TOLERANCE * links[i] + rounding_bytes(bench)))
            return err_set(err, EIO, "%.17g bytes went from %s to %s, its formula says %.17g", bytes,
                           scenario->sites[between[i % 2]].name, scenario->sites[between[!(i % 2)]].name, links[i]);
    }
    return 0;
}

static int check_wan(const struct bench *bench, struct err *err)
{
    struct layout layout;
    size_t pairs = bench->placement.sites * bench->placement.sites;
    double *bytes = calloc(pairs + 2 * bench->scenario.wan_count, sizeof *bytes);
    int rc = bytes ? layout_init(&layout, &bench->scenario, false, 1, err) : err_set(err, ENOMEM, "out of memory");
    if (rc == 0) {
        expected_load(bench, &layout, bytes, bytes + pairs);
        rc = compare_load(bench, bytes + pairs, err);
        layout_free(&layout);
    }
    free(bytes);
    return rc;
}

static int check_floor(const struct collective_row *row, struct err *err)
{
    if (row->time_s < row->floor_s * (1 - FLOOR_TOLERANCE))
        return err_set(err, EIO, "it took %.17g s, below its floor of %.17g s", row->time_s, row->floor_s);
    return 0;
}

static int fill_row(const struct bench *bench, struct collective_row *row, struct err *err)
{
    const struct engine_outcome *outcome = &bench->job.outcomes[PROBE_BASE];
    size_t wan_bytes = 2 * bench->scenario.wan_count * sizeof *row->wan;
    for (int i = 0; i < bench->ranks; i++)
        row->time_s = fmax(row->time_s, bench->done_s[i]);
    row->ranks = bench->ranks;
    row->floor_s = bench_floor(bench);
    row->algbw_byte_per_s = row->time_s > 0 ? (double)row->bytes / row->time_s : INFINITY;
    row->busbw_byte_per_s = row->algbw_byte_per_s * bench_bus_factor(bench);
    row->messages = outcome->messages;
    row->bulk = outcome->used_bulk;
    row->wan = malloc(wan_bytes ? wan_bytes : 1);
    if (!row->wan)
        return err_set(err, ENOMEM, "out of memory");
    memcpy(row->wan, bench->job.wan, wan_bytes);
    return 0;
}

static int take_result(const struct bench *bench, struct collective_row *row, struct err *err)
{
    int rc = fill_row(bench, row, err);
    rc = rc ? rc : check_ranks(bench, err);
    rc = rc ? rc : check_arrival(bench, err);
    rc = rc ? rc : check_wan(bench, err);
    return rc ? rc : check_floor(row, err);
}

static void name_run(const struct collective_question *question, const struct collective_row *row, struct err *err)
{
    char size[32];
    err_prefix(err, "%s of %s, %s", question->op->name, collective_size(row->bytes, size, sizeof size),
               row->algorithm->name);
}

/* Runs some rows at once. Their groups take memory of the order of ranks squared, so not all rows at once. */
static int run_batch(const struct collective_question *question, struct bench *benches, struct engine_job **jobs,
                     size_t count, void (*step)(void *), void *context, struct collective_row *rows, struct err *err)
{
    size_t made = 0;
    int rc = 0;
    for (; made < count && rc == 0; made += rc == 0) {
        const struct collective_row *row = &rows[made];
        rc = bench_init(&benches[made], question->scenario, question->op->op, row->algorithm->allreduce,
                        row->algorithm->order, row->bytes, question->skew_s, err);
        jobs[made] = &benches[made].job;
    }
    rc = rc ? rc : engine_run(jobs, count, (int)count, step, context, err);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = take_result(&benches[i], &rows[i], err);
        if (rc < 0)
            name_run(question, &rows[i], err);
    }
    for (size_t i = 0; i < made; i++)
        bench_free(&benches[i]);
    return rc;
}

int collective_run(const struct collective_question *question, void (*step)(void *context), void *context,
                   struct collective_row **rows, struct err *err)
{
    size_t count = question->size_count * question->algorithm_count, workers = (size_t)engine_workers();
    *rows = calloc(count, sizeof **rows);
    struct bench *benches = calloc(workers, sizeof *benches);
    struct engine_job **jobs = calloc(workers, sizeof *jobs);
    int rc = *rows && benches && jobs ? 0 : err_set(err, ENOMEM, "out of memory for %zu runs", count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        (*rows)[i].bytes = question->sizes[i / question->algorithm_count];
        (*rows)[i].algorithm = question->algorithms[i % question->algorithm_count];
    }
    for (size_t i = 0; i < count && rc == 0; i += workers)
        rc = run_batch(question, benches, jobs, count - i < workers ? count - i : workers, step, context, *rows + i,
                       err);
    free(jobs);
    free(benches);
    return rc;
}

void collective_free(struct collective_row *rows, size_t count)
{
    for (size_t i = 0; rows && i < count; i++)
        free(rows[i].wan);
    free(rows);
}
