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
        tcp_init(&tcp, 1500, 1, RTT_S);
        ck_assert_double_eq_tol(send_all(&tcp, bytes, 1, 1e18), 1 + (rounds - 1) * RTT_S, 1e-9);
        tcp_init(&tcp, 1500, 1, RTT_S);
        ck_assert_double_eq_tol(send_all(&tcp, bytes + SEGMENT, 1, 1e18), 1 + rounds * RTT_S, 1e-9);
    }
}
END_TEST

START_TEST(connections_open_side_by_side)
{
    struct tcp tcp;
    tcp_init(&tcp, 1500, 4, RTT_S);
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
    tcp_init(&tcp, 1500, 1, RTT_S);
    ck_assert_double_eq_tol(send_all(&tcp, bytes, 0, rate), bytes / rate + held_s, 1e-9);
}
END_TEST

/* tcp_cwnd_restart: a window is halved once for each whole timeout of silence, and is never below the initial one. */
START_TEST(silence_closes_the_window)
{
    const double windows = 64;
    for (int halvings = 0; halvings <= 8; halvings++) {
        struct tcp tcp;
        tcp_init(&tcp, 1500, 1, RTT_S);
        tcp.window_bytes = windows * INITIAL;
        tcp.sent_s = 0;
        tcp_wake(&tcp, (halvings + 0.5) * tcp.timeout_s);
        double expected = fmax(windows / exp2(halvings), 1);
        ck_assert_double_eq_tol(tcp.window_bytes, expected * INITIAL, 1e-6);
    }
}
END_TEST

/* Linux: round trip and at least 200 ms. */
START_TEST(a_timeout_is_a_round_trip_and_200_ms)
{
    struct tcp tcp;
    tcp_init(&tcp, 1500, 1, RTT_S);
    ck_assert_double_eq_tol(tcp.timeout_s, 0.2213, 1e-12);
}
END_TEST

START_TEST(what_was_acknowledged_opens_the_next_step)
{
    struct tcp tcp;
    tcp_init(&tcp, 1500, 1, RTT_S);
    double end_s = send_all(&tcp, 7 * INITIAL, 0, 1e18);
    ck_assert_double_eq_tol(end_s, 2 * RTT_S, 1e-9);
    tcp_next_step(&tcp, 0.1);
    ck_assert_double_eq_tol(send_all(&tcp, 8 * INITIAL, 0, 1e18), 0, 1e-9);
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
    tcase_add_test(tests, a_timeout_is_a_round_trip_and_200_ms);
    tcase_add_test(tests, what_was_acknowledged_opens_the_next_step);
    return rig_main("engine-tcp", tests);
}
