#include "sim/engine/tcp.h"

#include <math.h>

#include "tests/engine/rig.h"

#define RTT_S 21.3e-3
#define SEGMENT 1448.0
#define INITIAL (10 * SEGMENT) /* RFC 6928 */

/* (1500 - 20 - 20 - 12) / (1500 + 14), and what the lab measured of it: 1.00003 of 0.95641 x 1 Gb/s. */
START_TEST(headers_take_their_share)
{
    ck_assert_double_eq_tol(tcp_payload_share(1500), 1448.0 / 1514.0, 1e-15);
    ck_assert_double_eq_tol(tcp_payload_share(9000), 8948.0 / 9014.0, 1e-15);
    ck_assert_double_eq_tol(tcp_segment_bytes(1500), SEGMENT, 1e-9);
}
END_TEST

static void fresh(struct tcp *tcp, double connections)
{
    const struct tcp_path path = {1500, connections, RTT_S, 0, 1};
    tcp_init(tcp, &path);
}

/* Sends `bytes` from `now_s` on at a rate; returns when the last has left. */
static double send_all(struct tcp *tcp, double bytes, double now_s, double byte_per_s)
{
    double wait_until_s = 0;
    tcp_wake(tcp, now_s);
    while (bytes > 0) {
        double room = fmin(tcp_room(tcp, now_s, &wait_until_s), bytes);
        if (room <= 0) {
            ck_assert_double_gt(wait_until_s, now_s);
            now_s = wait_until_s;
            continue;
        }
        tcp_take(tcp, room);
        tcp_sent(tcp, room, now_s, now_s + room / byte_per_s);
        now_s += room / byte_per_s;
        bytes -= room;
    }
    return now_s;
}

/* 10, 20, 40 ... segments, one window a round trip: n rounds carry (2^n - 1) initial windows. */
START_TEST(a_fresh_window_doubles_every_round_trip)
{
    for (int rounds = 1; rounds <= 12; rounds++) {
        struct tcp tcp;
        double bytes = (exp2(rounds) - 1) * INITIAL;
        fresh(&tcp, 1);
        ck_assert_double_eq_tol(send_all(&tcp, bytes, 1, 1e18), 1 + (rounds - 1) * RTT_S, 1e-9);
        fresh(&tcp, 1);
        ck_assert_double_eq_tol(send_all(&tcp, bytes + SEGMENT, 1, 1e18), 1 + rounds * RTT_S, 1e-9);
    }
}
END_TEST

START_TEST(connections_open_side_by_side)
{
    struct tcp tcp;
    fresh(&tcp, 4);
    ck_assert_double_eq_tol(send_all(&tcp, 12 * INITIAL, 0, 1e18), RTT_S, 1e-9);
}
END_TEST

/* Rounds until a window outlasts a round trip, then the rate alone. */
START_TEST(an_open_window_leaves_the_rate)
{
    const double rate = 125e6 * 1448 / 1514;
    double held_s = 0, bytes = 100e6, window = INITIAL;
    for (; window / rate < RTT_S; window *= 2)
        held_s += RTT_S - window / rate;
    struct tcp tcp;
    fresh(&tcp, 1);
    ck_assert_double_eq_tol(send_all(&tcp, bytes, 0, rate), bytes / rate + held_s, 1e-9);
}
END_TEST

/* tcp_cwnd_restart: a window is halved once for each whole timeout of silence, and is never below the initial one. */
START_TEST(silence_closes_the_window)
{
    const double windows = 64;
    for (int halvings = 0; halvings <= 8; halvings++) {
        struct tcp tcp;
        fresh(&tcp, 1);
        tcp.window_bytes = windows * INITIAL;
        tcp.sent_s = 0;
        tcp_wake(&tcp, (halvings + 0.5) * tcp.timeout_s);
        double expected = fmax(windows / exp2(halvings), 1);
        ck_assert_double_eq_tol(tcp.window_bytes, expected * INITIAL, 1e-6);
    }
}
END_TEST

/* The kernel compares whole ticks: 22 of silence are not above 23 of 221.3 ms. */
START_TEST(silence_is_counted_in_ticks)
{
    struct tcp tcp;
    fresh(&tcp, 1);
    tcp.window_bytes = 64 * INITIAL;
    tcp.sent_s = 0;
    tcp_wake(&tcp, tcp.timeout_s + 5e-3);
    ck_assert_double_eq_tol(tcp.window_bytes, 64 * INITIAL, 1e-6);
    tcp_wake(&tcp, 0.2405);
    ck_assert_double_eq_tol(tcp.window_bytes, 32 * INITIAL, 1e-6);
}
END_TEST

/* A sender that has too little to send does not open its window beyond twice that. */
START_TEST(an_unused_window_stays)
{
    struct tcp tcp;
    fresh(&tcp, 1);
    for (int i = 0; i < 100; i++)
        (void)send_all(&tcp, 2 * INITIAL, i * 0.15, 1e18);
    ck_assert_double_le(tcp.window_bytes, 4 * INITIAL);
    ck_assert_double_ge(tcp.window_bytes, 2 * INITIAL);
}
END_TEST

/* Linux: round trip and at least 200 ms. */
START_TEST(a_timeout_is_a_round_trip_and_200_ms)
{
    struct tcp tcp;
    fresh(&tcp, 1);
    ck_assert_double_eq_tol(tcp.timeout_s, 0.2213, 1e-12);
}
END_TEST

START_TEST(what_was_acknowledged_opens_the_next_step)
{
    struct tcp tcp;
    fresh(&tcp, 1);
    double end_s = send_all(&tcp, 7 * INITIAL, 0, 1e18);
    ck_assert_double_eq_tol(end_s, 2 * RTT_S, 1e-9);
    tcp_next_step(&tcp, 0.1);
    ck_assert_double_eq_tol(send_all(&tcp, 8 * INITIAL, 0, 1e18), 0, 1e-9);
}
END_TEST

static void lossy(struct tcp *tcp, double rtt_s, double loss_ratio)
{
    const struct tcp_path path = {1500, 1, rtt_s, loss_ratio, 7};
    tcp_init(tcp, &path);
}

/* 1,000 losses are expected; their sd is 32. */
START_TEST(losses_are_as_many_as_asked)
{
    struct tcp tcp;
    double lost = 0, again_s;
    lossy(&tcp, RTT_S, 1e-3);
    for (int i = 0; i < 10000; i++)
        lost += tcp_lost(&tcp, 100 * SEGMENT, i, i + 1, &again_s);
    ck_assert_double_eq_tol(lost / SEGMENT, 1000, 4 * 32);
}
END_TEST

START_TEST(a_loss_shrinks_the_window_once_a_round_trip)
{
    struct tcp tcp;
    double again_s;
    lossy(&tcp, RTT_S, 0.5); /* of 1000 segments many */
    tcp.window_bytes = 1000 * SEGMENT;
    (void)tcp_lost(&tcp, 1000 * SEGMENT, 1, 1 + 1e-3, &again_s);
    ck_assert_double_eq_tol(tcp.window_bytes, 1000 * SEGMENT * 717 / 1024, 1e-3);
    ck_assert_double_ge(again_s, 1 + RTT_S);
    ck_assert_double_le(again_s, 1 + 1e-3 + RTT_S);
}
END_TEST

/* RFC 9438, 4.2: K seconds after a loss the window is W_max again, K = cbrt(W_max (1 - beta) / C). */
START_TEST(cubic_is_back_after_k)
{
    const double most = 2000, k_s = cbrt(most * (1 - 717.0 / 1024) / 0.4);
    struct tcp tcp;
    double now_s = 0, wait_until_s = 0;
    lossy(&tcp, RTT_S, 1e-300);
    tcp.most_bytes = most * SEGMENT;
    tcp.window_bytes = tcp.threshold_bytes = most * SEGMENT * 717 / 1024;
    for (; now_s < k_s; now_s = wait_until_s) {
        double room = tcp_room(&tcp, now_s, &wait_until_s);
        tcp_take(&tcp, room);
        tcp_sent(&tcp, room, now_s, now_s);
        ck_assert_double_le(tcp.window_bytes, 1.001 * most * SEGMENT);
    }
    ck_assert_double_ge(tcp.window_bytes, 0.98 * most * SEGMENT);
}
END_TEST

/* RFC 9438, 5.1: the average window is (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4), here 187 segments: for a
 * loss every 1 / p segments; where losses come at random, the windows between them differ. */
START_TEST(cubic_has_the_average_window_of_its_formula)
{
    const double rtt_s = 0.1, p = 1e-4, formula = pow(0.4 * 3.7 / (4 * 0.3), 0.25) * pow(rtt_s / p, 0.75);
    struct tcp tcp;
    double sum = 0, again_s, wait_until_s = 0;
    int rounds = 40000;
    lossy(&tcp, rtt_s, p);
    for (int i = 0; i < rounds; i++) {
        double now_s = (i + 0.5e-6 * i) * rtt_s, room = tcp_room(&tcp, now_s, &wait_until_s);
        sum += tcp.window_bytes / SEGMENT;
        tcp_take(&tcp, room);
        tcp_sent(&tcp, room, now_s, now_s);
        (void)tcp_lost(&tcp, room, now_s, now_s, &again_s);
    }
    ck_assert_double_eq_tol(sum / rounds, formula, 0.2 * formula);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tcp");
    tcase_add_test(tests, headers_take_their_share);
    tcase_add_test(tests, a_fresh_window_doubles_every_round_trip);
    tcase_add_test(tests, connections_open_side_by_side);
    tcase_add_test(tests, an_open_window_leaves_the_rate);
    tcase_add_test(tests, silence_closes_the_window);
    tcase_add_test(tests, silence_is_counted_in_ticks);
    tcase_add_test(tests, an_unused_window_stays);
    tcase_add_test(tests, a_timeout_is_a_round_trip_and_200_ms);
    tcase_add_test(tests, what_was_acknowledged_opens_the_next_step);
    tcase_add_test(tests, losses_are_as_many_as_asked);
    tcase_add_test(tests, a_loss_shrinks_the_window_once_a_round_trip);
    tcase_add_test(tests, cubic_is_back_after_k);
    tcase_add_test(tests, cubic_has_the_average_window_of_its_formula);
    return rig_main("engine-tcp", tests);
}
