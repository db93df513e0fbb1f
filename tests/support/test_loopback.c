#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loopback.h"

enum { FLOATS = 64 };

static struct span floats(enum region region, uint64_t first, uint64_t count)
{
    return (struct span){region, first * sizeof(float), count * sizeof(float)};
}

static struct span gradient(uint64_t first, uint64_t count)
{
    return floats(REGION_GRADIENT, first, count);
}

/* Regions of FLOATS floats; activations are only counted. */
static struct loopback *world(int ranks)
{
    const size_t bytes[LOOPBACK_REGIONS] = {FLOATS * sizeof(float), FLOATS * sizeof(float), LOOPBACK_COUNTED};
    struct loopback *loopback = loopback_new(ranks, bytes);

    ck_assert_ptr_nonnull(loopback);
    return loopback;
}

static void send(struct stream *stream, int to, int channel, struct span span)
{
    transport_wait(stream, transport_isend(stream, to, channel, span));
}

static void receive(struct stream *stream, int from, int channel, struct span span, enum receive how)
{
    transport_wait(stream, transport_irecv(stream, from, channel, span, how));
}

/* Runs and expects this code and, where it fails, these words in the message. */
static void expect_run(struct loopback *loopback, stream_function *function, void *argument, int code,
                       const char *words)
{
    struct err err = {""};

    ck_assert_msg(loopback_run(loopback, function, argument, &err) == code, "got: %s", err.text);
    ck_assert_msg(strstr(err.text, words), "'%s' is not in '%s'", words, err.text);
}

static void expect_failure(int ranks, stream_function *function, int code, const char *words)
{
    struct loopback *loopback = world(ranks);

    expect_run(loopback, function, NULL, code, words);
    loopback_free(loopback);
}

/* ---- what works ---- */

static void ping(struct stream *stream, void *argument)
{
    int rank = transport_rank(stream);

    (void)argument;
    ck_assert_int_eq(transport_ranks(stream), 2);
    if (rank == 0) {
        send(stream, 1, 0, gradient(4, 8));
        receive(stream, 1, 0, floats(REGION_PARAMETER, 0, 8), RECEIVE_REPLACE);
    } else {
        receive(stream, 0, 0, gradient(16, 8), RECEIVE_REPLACE);
        send(stream, 0, 0, gradient(16, 8));
    }
}

START_TEST(test_ping)
{
    struct loopback *loopback = world(2);
    float *there = loopback_region(loopback, 0, REGION_GRADIENT),
          *back = loopback_region(loopback, 0, REGION_PARAMETER);

    for (int i = 0; i < FLOATS; i++)
        there[i] = (float)i;
    for (int run = 1; run <= 2; run++) {
        expect_run(loopback, ping, NULL, 0, "");
        for (int i = 0; i < FLOATS; i++)
            ck_assert_float_eq(back[i], i < 8 ? (float)(i + 4) : 0.0f);
        ck_assert_uint_eq(loopback_bytes(loopback, 0, 1), (uint64_t)run * 32);
        ck_assert_uint_eq(loopback_messages(loopback, 1, 0), (uint64_t)run);
    }
    ck_assert_uint_eq(loopback_bytes(loopback, 0, 0), 0);
    ck_assert_uint_eq(loopback_bytes(loopback, 0, 2), 0);
    ck_assert_ptr_null(loopback_region(loopback, 2, REGION_GRADIENT));
    ck_assert_ptr_null(loopback_region(loopback, 0, REGION_ACTIVATION));
    loopback_free(loopback);
}
END_TEST

/* Three messages on each of two channels; the receiver takes channel 1 first and waits from last to first. */
static void two_channels(struct stream *stream, void *argument)
{
    struct request *requests[6];

    (void)argument;
    for (int i = 0; i < 6; i++) {
        struct span there = gradient((uint64_t)i, 1), here = gradient((uint64_t)(i + 3) % 6, 1);

        requests[i] = transport_rank(stream) == 0 ? transport_isend(stream, 1, i / 3, there)
                                                  : transport_irecv(stream, 0, i < 3 ? 1 : 0, here, RECEIVE_REPLACE);
    }
    for (int i = 5; i >= 0; i--)
        transport_wait(stream, requests[i]);
}

START_TEST(test_fifo_per_channel)
{
    struct loopback *loopback = world(2);

    for (int i = 0; i < 6; i++)
        loopback_region(loopback, 0, REGION_GRADIENT)[i] = (float)(i + 1);
    expect_run(loopback, two_channels, NULL, 0, "");
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(loopback_region(loopback, 1, REGION_GRADIENT)[i], (float)(i + 1));
    loopback_free(loopback);
}
END_TEST

/* Rank 0 sums everybody's gradient into its own. */
static void sum_at_zero(struct stream *stream, void *argument)
{
    (void)argument;
    if (transport_rank(stream) != 0)
        send(stream, 0, 7, gradient(0, FLOATS));
    else
        for (int from = transport_ranks(stream) - 1; from > 0; from--)
            receive(stream, from, 7, gradient(0, FLOATS), RECEIVE_ACCUMULATE);
}

START_TEST(test_accumulate)
{
    const int site_of[5] = {0, 0, 1, 1, 1};
    struct loopback *loopback = world(5);

    for (int rank = 0; rank < 5; rank++)
        for (int i = 0; i < FLOATS; i++)
            loopback_region(loopback, rank, REGION_GRADIENT)[i] = (float)(rank * 100 + i);
    expect_run(loopback, sum_at_zero, NULL, 0, "");
    for (int i = 0; i < FLOATS; i++)
        ck_assert_float_eq(loopback_region(loopback, 0, REGION_GRADIENT)[i], (float)(1000 + 5 * i));
    ck_assert_uint_eq(loopback_site_bytes(loopback, site_of, 1, 0), 3 * FLOATS * sizeof(float));
    ck_assert_uint_eq(loopback_site_bytes(loopback, site_of, 0, 0), FLOATS * sizeof(float));
    ck_assert_uint_eq(loopback_site_bytes(loopback, site_of, 0, 1), 0);
    loopback_free(loopback);
}
END_TEST

/* Spans of any size where a region has no buffer. */
static void huge(struct stream *stream, void *argument)
{
    struct span span = {REGION_ACTIVATION, 1, UINT64_C(1) << 50};

    (void)argument;
    if (transport_rank(stream) == 0)
        send(stream, 1, 0, span);
    else
        receive(stream, 0, 0, span, RECEIVE_REPLACE);
}

START_TEST(test_counted_region)
{
    struct loopback *loopback = world(2);

    expect_run(loopback, huge, NULL, 0, "");
    ck_assert_uint_eq(loopback_bytes(loopback, 0, 1), UINT64_C(1) << 50);
    loopback_free(loopback);
}
END_TEST

/* ---- streams and time ---- */

static void communicate(struct stream *stream, void *argument)
{
    int peer = 1 - transport_rank(stream);
    struct request *request = transport_irecv(stream, peer, 1, floats(REGION_PARAMETER, 0, 4), RECEIVE_REPLACE);

    send(stream, peer, 1, gradient(0, 4));
    transport_wait(stream, request);
    transport_compute(stream, 0.25);
    *(double *)argument = transport_now(stream);
}

/* Rank r computes (r + 1) s, then an exchange of 0.25 s beside 1 s of compute: rank 0 ends with the exchange. */
static void overlap(struct stream *stream, void *argument)
{
    double child_end = 0;
    struct stream *child;

    (void)argument;
    transport_compute(stream, transport_rank(stream) + 1);
    child = transport_spawn(stream, communicate, &child_end, "communication");
    transport_compute(stream, 1);
    transport_join(stream, child);
    ck_assert_double_eq(child_end, 2.25);
    ck_assert_double_eq(transport_now(stream), transport_rank(stream) == 0 ? 2.25 : 3);
}

START_TEST(test_spawn_join_and_time)
{
    struct loopback *loopback = world(2);

    loopback_region(loopback, 1, REGION_GRADIENT)[3] = 5;
    expect_run(loopback, overlap, NULL, 0, "");
    ck_assert_float_eq(loopback_region(loopback, 0, REGION_PARAMETER)[3], 5);
    ck_assert_double_eq(loopback_time(loopback), 3);
    loopback_free(loopback);
}
END_TEST

/* Ten rounds of a token that every rank adds one to, and against the order in which the ranks start. */
static void token_ring(struct stream *stream, void *argument)
{
    int rank = transport_rank(stream), ranks = transport_ranks(stream);
    int next = (rank + ranks - 1) % ranks, previous = (rank + 1) % ranks;
    float *token = loopback_region(argument, rank, REGION_GRADIENT);

    for (int round = 0; round < 10; round++) {
        if (rank != 0)
            receive(stream, previous, 0, gradient(0, 1), RECEIVE_REPLACE);
        *token += 1;
        send(stream, next, 0, gradient(0, 1));
        if (rank == 0)
            receive(stream, previous, 0, gradient(0, 1), RECEIVE_REPLACE);
    }
}

START_TEST(test_token_ring_of_256)
{
    struct loopback *loopback = world(256);

    expect_run(loopback, token_ring, loopback, 0, "");
    ck_assert_float_eq(*loopback_region(loopback, 0, REGION_GRADIENT), 2560);
    for (int rank = 0; rank < 256; rank++)
        ck_assert_uint_eq(loopback_messages(loopback, rank, (rank + 255) % 256), 10);
    loopback_free(loopback);
}
END_TEST

/* ---- what must be reported ---- */

/* All ranks receive first; what they hold must be released all the same. */
static void all_receive(struct stream *stream, void *argument)
{
    int ranks = transport_ranks(stream), next = (transport_rank(stream) + 1) % ranks;
    int *held = malloc(sizeof *held);

    (void)argument;
    receive(stream, (transport_rank(stream) + ranks - 1) % ranks, 3, gradient(0, 2), RECEIVE_REPLACE);
    send(stream, next, 3, gradient(0, 2));
    free(held);
}

/* Sends without a posted receive do not end: no message is eager. */
static void all_send(struct stream *stream, void *argument)
{
    int peer = 1 - transport_rank(stream);

    (void)argument;
    send(stream, peer, 0, gradient(0, 1));
    receive(stream, peer, 0, gradient(0, 1), RECEIVE_REPLACE);
}

static void stuck_child(struct stream *stream, void *argument)
{
    (void)argument;
    receive(stream, 0, 0, gradient(0, 1), RECEIVE_REPLACE);
}

/* Rank 1 joins a child that waits for ever. */
static void join_stuck(struct stream *stream, void *argument)
{
    if (transport_rank(stream) == 1)
        transport_join(stream, transport_spawn(stream, stuck_child, argument, "stuck"));
}

static void join_other(struct stream *stream, void *argument)
{
    transport_join(stream, ((struct stream **)argument)[0]);
}

/* Two children that join each other, through an array on their parent's stack. */
static void join_cycle(struct stream *stream, void *argument)
{
    struct stream *children[2];

    (void)argument;
    children[1] = transport_spawn(stream, join_other, &children[0], "first");
    children[0] = transport_spawn(stream, join_other, &children[1], "second");
    receive(stream, 1 - transport_rank(stream), 0, gradient(0, 1), RECEIVE_REPLACE);
}

START_TEST(test_deadlock)
{
    expect_failure(3, all_receive, -EDEADLK, "rank 0 (stream main) waits to receive 8 bytes from rank 2 on channel 3");
    expect_failure(2, all_send, -EDEADLK, "rank 0 (stream main) waits to send 4 bytes to rank 1 on channel 0");
    expect_failure(2, join_stuck, -EDEADLK, "rank 1 (stream stuck) waits to receive 4 bytes from rank 0 on channel 0");
    expect_failure(2, join_cycle, -EDEADLK, "rank 0 (stream main) waits to receive");
}
END_TEST

static void lengths(struct stream *stream, void *argument)
{
    (void)argument;
    if (transport_rank(stream) == 0)
        send(stream, 1, 2, gradient(0, 4));
    else
        receive(stream, 0, 2, gradient(0, 3), RECEIVE_REPLACE);
}

START_TEST(test_length_mismatch)
{
    struct loopback *loopback = world(2);

    expect_run(loopback, lengths, NULL, -EINVAL, "rank 0 sends 16 bytes to rank 1 on channel 2, which receives 12");
    expect_run(loopback, ping, NULL, 0, "");
    ck_assert_int_eq(loopback_run(loopback, lengths, NULL, NULL), -EINVAL);
    loopback_free(loopback);
}
END_TEST

static void send_unmatched(struct stream *stream, void *argument)
{
    (void)argument;
    if (transport_rank(stream) == 0)
        transport_isend(stream, 1, 0, gradient(0, 4));
}

static void receive_not_waited_for(struct stream *stream, void *argument)
{
    (void)argument;
    if (transport_rank(stream) == 0)
        send(stream, 1, 0, gradient(0, 4));
    else
        transport_irecv(stream, 0, 0, gradient(0, 4), RECEIVE_REPLACE);
}

static void do_nothing(struct stream *stream, void *argument)
{
    (void)stream, (void)argument;
}

static void not_joined(struct stream *stream, void *argument)
{
    if (transport_rank(stream) == 1)
        transport_spawn(stream, do_nothing, argument, "lost");
}

START_TEST(test_leftovers)
{
    expect_failure(2, send_unmatched, -EINVAL, "rank 0 asked to send 16 bytes to rank 1 on channel 0 and nothing ever");
    expect_failure(2, receive_not_waited_for, -EINVAL,
                   "rank 1 asked to receive 16 bytes from rank 0 on channel 0 and "
                   "never waited");
    expect_failure(2, not_joined, -EINVAL, "rank 1 never joined its stream lost");
}
END_TEST

static void change_while_sending(struct stream *stream, void *argument)
{
    if (transport_rank(stream) == 0) {
        struct request *request = transport_isend(stream, 1, 0, gradient(0, 4));

        loopback_region(argument, 0, REGION_GRADIENT)[2] = 1;
        transport_wait(stream, request);
    } else {
        receive(stream, 0, 0, gradient(0, 4), RECEIVE_REPLACE);
    }
}

START_TEST(test_change_while_sending)
{
    struct loopback *loopback = world(2);

    expect_run(loopback, change_while_sending, loopback, -EINVAL, "bytes 0 + 16 of the gradient region changed");
    loopback_free(loopback);
}
END_TEST

/* One wrong call each, by rank 0. */
static void wrong_call(struct stream *stream, void *argument)
{
    struct stream *child;

    if (transport_rank(stream) != 0)
        return;
    switch (*(const int *)argument) {
    case 0:
        send(stream, 0, 0, gradient(0, 1));
        break;
    case 1:
        receive(stream, 2, 0, gradient(0, 1), RECEIVE_REPLACE);
        break;
    case 2:
        send(stream, 1, -1, gradient(0, 1));
        break;
    case 3:
        send(stream, 1, 0, gradient(FLOATS - 1, 2));
        break;
    case 4:
        receive(stream, 1, 0, (struct span){REGION_GRADIENT, 0, 6}, RECEIVE_ACCUMULATE);
        break;
    case 5:
        send(stream, 1, 0, floats((enum region)LOOPBACK_REGIONS, 0, 1));
        break;
    case 6:
        transport_compute(stream, -1);
        break;
    case 7:
        transport_join(stream, stream);
        break;
    default:
        child = transport_spawn(stream, do_nothing, NULL, "child");
        transport_join(stream, child);
        transport_join(stream, child);
    }
}

static const char *const wrong_words[] = {
    "isend to rank 0 of 2",
    "irecv from rank 2 of 2",
    "channel -1",
    "of bytes 252 + 8 of the gradient region, which has 256",
    "0 + 6 to accumulate are not whole floats",
    "region 3",
    "compute for -1 s",
    "joins a stream to itself",
    "has been joined already",
};

START_TEST(test_wrong_calls)
{
    struct loopback *loopback = world(2);

    expect_run(loopback, wrong_call, &_i, -EINVAL, wrong_words[_i]);
    loopback_free(loopback);
}
END_TEST

START_TEST(test_new_rejects)
{
    const size_t too_much[LOOPBACK_REGIONS] = {SIZE_MAX - 1, 0, 0}, none[LOOPBACK_REGIONS] = {0};

    ck_assert_ptr_null(loopback_new(0, none));
    ck_assert_ptr_null(loopback_new(2, too_much));
    loopback_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loopback");
    TCase *works = tcase_create("works"), *reports = tcase_create("reports");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(works, test_ping);
    tcase_add_test(works, test_fifo_per_channel);
    tcase_add_test(works, test_accumulate);
    tcase_add_test(works, test_counted_region);
    tcase_add_test(works, test_spawn_join_and_time);
    tcase_add_test(works, test_token_ring_of_256);
    tcase_add_test(reports, test_deadlock);
    tcase_add_test(reports, test_length_mismatch);
    tcase_add_test(reports, test_leftovers);
    tcase_add_test(reports, test_change_while_sending);
    tcase_add_loop_test(reports, test_wrong_calls, 0, (int)(sizeof wrong_words / sizeof *wrong_words));
    tcase_add_test(reports, test_new_rejects);
    suite_add_tcase(suite, works);
    suite_add_tcase(suite, reports);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
