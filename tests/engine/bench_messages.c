/* Messages per second of the transport beside a bare SimGrid program (put_async, get_async, wait, wait; latency in the
 * links) with the same ranks and messages, run in turn; fails where the median ratio is below 0.7 or where cost is not
 * linear in messages.
 *
 * Every rank sends to the next and receives from the one before, a step at a time, each step in slices. Times are CPU
 * seconds of the process of each run, set-up of the platform included, because the machine may be shared.
 */
#include <fcntl.h>
#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/engine/rig.h"

static const double least_ratio = 0.7;
enum { ROUNDS = 5, MOST_SLICES = 4 };

struct pattern {
    int ranks, slices, steps;
    struct layout layout;
};
static const uint64_t message_bytes = 100000;

/* ---- ours */

static void ours_main(struct stream *stream, void *argument)
{
    const struct pattern *pattern = argument;
    int rank = transport_rank(stream), n = pattern->ranks;
    struct span span = {REGION_GRADIENT, 0, message_bytes};
    struct request *in[MOST_SLICES], *out[MOST_SLICES];
    for (int step = 0; step < pattern->steps; step++) {
        for (int j = 0; j < pattern->slices; j++) {
            out[j] = transport_isend(stream, (rank + 1) % n, 0, span);
            in[j] = transport_irecv(stream, (rank + n - 1) % n, 0, span, RECEIVE_REPLACE);
        }
        for (int j = 0; j < pattern->slices; j++) {
            transport_wait(stream, in[j]);
            transport_wait(stream, out[j]);
        }
    }
}

static void run_ours(struct pattern *pattern, const struct scenario *scenario)
{
    struct engine_outcome outcome;
    rig_run(scenario, INFINITY, ours_main, pattern, &outcome);
    ck_assert_uint_eq(outcome.messages,
                      (uint64_t)pattern->ranks * (uint64_t)pattern->steps * (uint64_t)pattern->slices);
}

/* ---- bare SimGrid */

struct bare {
    const struct pattern *pattern;
    int rank;
};

static sg_mailbox_t box(int to)
{
    char name[32];
    snprintf(name, sizeof name, "to-%d", to);
    return sg_mailbox_by_name(name);
}

static void bare_main(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct bare *bare = sg_actor_self_get_data();
    const struct pattern *pattern = bare->pattern;
    static int payload;
    sg_mailbox_t next = box((bare->rank + 1) % pattern->ranks), own = box(bare->rank);
    sg_comm_t in[MOST_SLICES], out[MOST_SLICES];
    void *received[MOST_SLICES];
    for (int step = 0; step < pattern->steps; step++) {
        for (int j = 0; j < pattern->slices; j++) {
            out[j] = sg_mailbox_put_async(next, &payload, (long)message_bytes);
            in[j] = sg_mailbox_get_async(own, &received[j]);
        }
        for (int j = 0; j < pattern->slices; j++) {
            sg_comm_wait(in[j]);
            sg_comm_wait(out[j]);
        }
    }
}

static void load(const struct layout *layout)
{
    char path[64];
    struct ideal ideal = {0};
    FILE *out = fdopen(memfd_create("platform", MFD_CLOEXEC), "w");
    if (!out || platform_write(layout, &ideal, true, out, NULL))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(out));
    simgrid_load_platform(path);
    fclose(out);
}

static void simulate_bare(struct pattern *pattern)
{
    char *argv[] = {(char[]){"bare"},
                    (char[]){"--log=root.thresh:critical"},
                    (char[]){"--cfg=network/model:CM02"},
                    (char[]){"--cfg=network/TCP-gamma:0"},
                    (char[]){"--cfg=network/crosstraffic:0"},
                    (char[]){"--cfg=contexts/guard-size:0"},
                    (char[]){"--cfg=contexts/stack-size:64"},
                    NULL};
    int argc = 7;
    char host[LAYOUT_HOST_MAX];
    simgrid_init(&argc, argv);
    load(&pattern->layout);
    struct bare *bare = calloc((size_t)pattern->ranks, sizeof *bare);
    for (int i = 0; i < pattern->ranks; i++) {
        bare[i] = (struct bare){pattern, i};
        sg_actor_t actor = sg_actor_init("rank", sg_host_by_name(layout_host(&pattern->layout, i, host)));
        sg_actor_set_data(actor, &bare[i]);
        sg_actor_start_(actor, bare_main, 0, NULL);
    }
    simgrid_run();
    _exit(0);
}

static void run_bare(struct pattern *pattern)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        simulate_bare(pattern);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

/* ---- measuring */

static double children_s(void)
{
    struct rusage use;
    getrusage(RUSAGE_CHILDREN, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, ascending);
    return values[ROUNDS / 2];
}

static const struct pattern patterns[] = {
    {64, 1, 600}, {384, 1, 100}, {3072, 1, 16}, {64, 2, 300}, {384, 2, 50}, {3072, 2, 8},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* Measures one pattern: seconds of ours, and the ratio of rates. */
static double measure(struct pattern pattern, double *ours_s)
{
    struct scenario scenario;
    double ours[ROUNDS], bare[ROUNDS], ratio[ROUNDS];
    rig_scenario(&(struct rig){2, pattern.ranks / 2, 50e9, 5e-6, 50e9, 21e-3}, &scenario);
    ck_assert_int_eq(layout_init(&pattern.layout, &scenario, false, 1, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        double start_s = children_s();
        run_ours(&pattern, &scenario);
        double between_s = children_s();
        run_bare(&pattern);
        ours[i] = between_s - start_s;
        bare[i] = children_s() - between_s;
        ratio[i] = bare[i] / ours[i];
    }
    double messages = (double)pattern.ranks * pattern.steps * pattern.slices;
    *ours_s = median(ours);
    double middle = median(ratio);
    printf("%5d ranks, %d slices: %7.0f messages/s, bare SimGrid %7.0f, ratio %.2f\n", pattern.ranks, pattern.slices,
           messages / *ours_s, messages / median(bare), middle);
    layout_free(&pattern.layout);
    scenario_free(&scenario);
    return middle;
}

START_TEST(beside_bare_simgrid)
{
    double ours_s;
    double ratio = measure(patterns[_i], &ours_s);
    ck_assert_msg(ratio >= least_ratio, "%d ranks, %d slices: %.2f of bare SimGrid", patterns[_i].ranks,
                  patterns[_i].slices, ratio);
}
END_TEST

/* Four times the messages cost about four times as much; as many messages among 48 times as many ranks cost more,
 * because they leave the caches, and so they do in bare SimGrid: not twice as much more. */
START_TEST(linear_in_messages)
{
    double few_s, many_s, more_s;
    double few = measure((struct pattern){64, 1, 1200}, &few_s), many = measure((struct pattern){3072, 1, 25}, &many_s);
    measure((struct pattern){3072, 1, 100}, &more_s);
    printf("as many messages: %.2f s at 64 ranks, %.2f s at 3072; four times as many there: %.2f s\n", few_s, many_s,
           more_s);
    ck_assert_msg(many >= few / 2, "at 64 ranks %.2f of bare SimGrid's rate, at 3072 %.2f", few, many);
    ck_assert_msg(more_s <= 1.5 * 4 * many_s, "3072 ranks: %.2f s, %.2f s for four times the messages", many_s, more_s);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("messages");
    tcase_add_loop_test(tests, beside_bare_simgrid, 0, PATTERNS);
    tcase_add_test(tests, linear_in_messages);
    return rig_main("engine-messages", tests);
}
