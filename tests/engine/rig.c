#include "tests/engine/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void *rig_shared(size_t bytes)
{
    void *memory = engine_share(bytes);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

bool rig_close(double got, double expected, double relative)
{
    return fabs(got - expected) <= relative * fabs(expected) + 1e-12;
}

static void print_wan(const struct rig *rig, FILE *out)
{
    int links = rig->sites > 2 ? rig->sites : rig->sites - 1;
    if (links > 0)
        fprintf(out, "wan:\n");
    for (int l = 0; l < links; l++)
        fprintf(out, "  - {between: [%c, %c], wave_rate: 1 Gb/s, rtt: 1 ms}\n", 'a' + l, 'a' + (l + 1) % rig->sites);
}

static char *text_of(const struct rig *rig)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "name: rig\ndatacenters:\n");
    for (int s = 0; s < rig->sites; s++)
        fprintf(out, "  - {name: %c, nodes: %d, gpus_per_node: 1, gpu: h100-sxm}\n", 'a' + s, rig->nodes);
    fprintf(out, "fabric: {nics_per_node: 1}\n");
    print_wan(rig, out);
    fprintf(out, "model: 1b\ntraining: {global_batch: %d}\nstrategies: [{name: flat, allreduce: ring}]\n",
            rig->sites * rig->nodes);
    fclose(out);
    return text;
}

void rig_scenario(const struct rig *rig, struct scenario *scenario)
{
    struct err err = {""};
    char *text = text_of(rig);
    size_t length = 0;
    while (text[length])
        length++;
    ck_assert_msg(scenario_parse("rig", text, length, NULL, 0, scenario, &err) == 0, "%s\n%s", err.text, text);
    free(text);
    scenario->fabric.nic_bit_per_s = 8 * rig->nic_byte_per_s;
    scenario->fabric.latency_s = rig->latency_s;
    for (size_t l = 0; l < scenario->wan_count; l++) {
        scenario->wan[l].wave_bit_per_s = 8 * rig->wan_byte_per_s;
        scenario->wan[l].rtt_s = rig->wan_rtt_s;
    }
    scenario->transport.slices = rig->slices ? rig->slices : 1;
    scenario->transport.channels = rig->channels ? rig->channels : 1;
}

void rig_run(const struct scenario *scenario, double bulk_above, stream_function *main, void *argument,
             struct engine_outcome *outcome)
{
    struct engine_job job = {
        .scenario = scenario, .wan_flows = 1, .bulk_above = bulk_above, .main = main, .argument = argument};
    struct engine_job *jobs = &job;
    struct err err = {""};
    ck_assert_int_eq(engine_job_init(&job, &err), 0);
    int rc = engine_run(&jobs, 1, 1, NULL, NULL, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_uint_eq(job.outcomes->messages, job.outcomes->arrived);
    ck_assert_double_eq(job.outcomes->sent_bytes, job.outcomes->received_bytes);
    if (outcome)
        *outcome = *job.outcomes;
    engine_job_free(&job);
}

/* ---- rings */

struct rings {
    const struct rig_ring *rings;
    int count;
};

struct ring_part {
    const struct rig_ring *ring;
    struct group group;
    int *ranks;
    int rc;
};

static void wait_until(struct stream *stream, double time_s)
{
    if (time_s > transport_now(stream))
        transport_compute(stream, time_s - transport_now(stream));
}

static void run_ring(struct stream *stream, void *argument)
{
    struct ring_part *part = argument;
    const struct rig_ring *ring = part->ring;
    int position = part->group.position;
    wait_until(stream, ring->start_s ? ring->start_s[position] : ring->start_all_s);
    struct span span = {REGION_GRADIENT, 0, ring->bytes};
    part->rc = ring_run(stream, &part->group, ring->kind, span, ring->channel, ring->slices);
    ring->done_s[position] = part->rc ? INFINITY : transport_now(stream);
}

static int find_rank(const struct rig_ring *ring, int rank)
{
    for (int i = 0; i < ring->count; i++)
        if ((ring->ranks ? ring->ranks[i] : i) == rank)
            return i;
    return -1;
}

/* The ranks stay until the run ends: a bulk ring reads them as long as any rank is in it. */
static void make_part(struct ring_part *part, const struct rig_ring *ring, int position)
{
    *part = (struct ring_part){.ring = ring, .ranks = calloc((size_t)ring->count, sizeof(int))};
    for (int i = 0; i < ring->count; i++)
        part->ranks[i] = ring->ranks ? ring->ranks[i] : i;
    part->group = (struct group){ring->count, part->ranks, position};
}

enum { MOST_RINGS = 8 };

static void rings_main(struct stream *stream, void *argument)
{
    struct rings *rings = argument;
    struct ring_part *parts = calloc(MOST_RINGS, sizeof *parts); /* freed with the run's process */
    struct stream *streams[MOST_RINGS] = {NULL};
    for (int r = 0; r < rings->count; r++) {
        int position = find_rank(&rings->rings[r], transport_rank(stream));
        if (position < 0)
            continue;
        make_part(&parts[r], &rings->rings[r], position);
        streams[r] = transport_spawn(stream, run_ring, &parts[r], "ring");
    }
    for (int r = 0; r < rings->count; r++)
        if (streams[r])
            transport_join(stream, streams[r]);
}

void rig_run_rings(const struct scenario *scenario, double bulk_above, const struct rig_ring *rings, int count,
                   struct engine_outcome *outcome)
{
    struct rings argument = {rings, count};
    ck_assert_int_le(count, MOST_RINGS);
    rig_run(scenario, bulk_above, rings_main, &argument, outcome);
}

/* ---- messages */

struct messages {
    struct rig_message *messages;
    int count;
};

enum { MOST_MESSAGES = 64 };

static void send_message(struct stream *stream, void *argument)
{
    struct rig_message *message = argument;
    wait_until(stream, message->send_at_s);
    struct span span = {REGION_GRADIENT, 0, message->bytes};
    transport_wait(stream, transport_isend(stream, message->to, message->channel, span));
    message->sent_s = transport_now(stream);
}

static void receive_message(struct stream *stream, void *argument)
{
    struct rig_message *message = argument;
    wait_until(stream, message->receive_at_s);
    struct span span = {REGION_GRADIENT, 0, message->bytes};
    transport_wait(stream, transport_irecv(stream, message->from, message->channel, span, RECEIVE_REPLACE));
    message->received_s = transport_now(stream);
}

static void messages_main(struct stream *stream, void *argument)
{
    struct messages *all = argument;
    struct stream *streams[MOST_MESSAGES];
    int rank = transport_rank(stream), count = 0;
    for (int i = 0; i < all->count; i++) {
        struct rig_message *message = &all->messages[i];
        if (message->from == rank || message->to == rank)
            streams[count++] =
                transport_spawn(stream, message->from == rank ? send_message : receive_message, message, "message");
    }
    for (int i = 0; i < count; i++)
        transport_join(stream, streams[i]);
}

void rig_run_messages(const struct scenario *scenario, struct rig_message *messages, int count,
                      struct engine_outcome *outcome)
{
    struct messages argument = {messages, count};
    ck_assert_int_le(count, MOST_MESSAGES);
    rig_run(scenario, INFINITY, messages_main, &argument, outcome);
}

bool rig_skips(int i)
{
#if defined(__SANITIZE_ADDRESS__)
    return i % 9 != 0;
#else
    (void)i;
    return false;
#endif
}

int rig_main(const char *name, TCase *cases)
{
    Suite *suite = suite_create(name);
    tcase_set_timeout(cases, 0);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
