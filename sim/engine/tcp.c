#include "sim/engine/tcp.h"

#include <math.h>

enum { IP_HEADER = 20, TCP_HEADER = 20, TIME_STAMPS = 12, ETHERNET_HEADER = 14, INITIAL_SEGMENTS = 10 };

/* The least that is added to the smoothed round trip to get the retransmission timeout: TCP_RTO_MIN, include/net/tcp.h
 * and tcp_rtt_estimator in net/ipv4/tcp_input.c. */
#define TIMEOUT_VARIANCE_S 0.2

/* The kernel counts silence and timeouts in whole ticks (jiffies): CONFIG_HZ 100, as in the lab. */
#define TICK_S 10e-3

double tcp_segment_bytes(double mtu_bytes)
{
    return mtu_bytes - IP_HEADER - TCP_HEADER - TIME_STAMPS;
}

double tcp_payload_share(double mtu_bytes)
{
    return tcp_segment_bytes(mtu_bytes) / (mtu_bytes + ETHERNET_HEADER);
}

void tcp_init(struct tcp *tcp, const struct tcp_path *path)
{
    double segment = tcp_segment_bytes(path->mtu_bytes), least = path->connections * INITIAL_SEGMENTS * segment;
    *tcp = (struct tcp){.segment_bytes = segment,
                        .least_bytes = least,
                        .rtt_s = path->rtt_s,
                        .window_bytes = least,
                        .round_s = -INFINITY,
                        .sent_s = -INFINITY,
                        .timeout_s = path->rtt_s + TIMEOUT_VARIANCE_S,
                        .loss_ratio = path->loss_ratio,
                        .drawn = path->seed,
                        .threshold_bytes = INFINITY,
                        .epoch_s = NAN,
                        .recovered_s = -INFINITY};
}

/* ---- growth */

/* RFC 9438 with Linux' figures: C 0.4 segments/s^3, beta 717/1024. Window and time in segments and seconds. */
#define CUBIC_C 0.4
#define CUBIC_BETA (717.0 / 1024)

static void begin_epoch(struct tcp *tcp, double now_s)
{
    double missing = fmax(0, tcp->most_bytes - tcp->window_bytes) / tcp->segment_bytes;
    tcp->epoch_s = now_s;
    tcp->origin_bytes = fmax(tcp->most_bytes, tcp->window_bytes);
    tcp->origin_after_s = cbrt(missing / CUBIC_C);
    tcp->friendly_bytes = tcp->window_bytes;
}

/* Congestion avoidance, a round's worth: W(t + RTT) of section 4.2, or Reno's window of 4.3 where that is larger; at
 * most half as much again (4.4). */
static double cubic_growth(struct tcp *tcp, double acknowledged, double now_s)
{
    if (isnan(tcp->epoch_s))
        begin_epoch(tcp, now_s);
    double t_s = now_s + tcp->rtt_s - tcp->epoch_s - tcp->origin_after_s;
    double target = tcp->origin_bytes + CUBIC_C * t_s * t_s * t_s * tcp->segment_bytes;
    tcp->friendly_bytes +=
        3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA) * tcp->segment_bytes * acknowledged / tcp->window_bytes;
    target = fmax(target, tcp->friendly_bytes);
    return fmin(fmax(0, target - tcp->window_bytes), acknowledged / 2);
}

/* A round that is acknowledged opens the window: by as much in slow start. */
static void end_round(struct tcp *tcp, double now_s)
{
    double acknowledged = tcp->round_bytes, doubled = fmin(acknowledged, tcp->threshold_bytes - tcp->window_bytes);
    double flight = fmax(tcp->round_bytes, tcp->flight_bytes);
    doubled = fmin(doubled, 2 * flight - tcp->window_bytes); /* tcp_is_cwnd_limited */
    tcp->flight_bytes = tcp->round_bytes;
    if (doubled > 0) {
        tcp->window_bytes += doubled;
        acknowledged -= doubled;
    }
    if (acknowledged > 0 && tcp->window_bytes >= tcp->threshold_bytes && tcp->round_bytes >= tcp->window_bytes / 2)
        tcp->window_bytes += cubic_growth(tcp, acknowledged, now_s);
    tcp->round_bytes = 0;
    tcp->round_s = now_s;
}

void tcp_wake(struct tcp *tcp, double now_s)
{
    double silence_s = now_s - tcp->sent_s;
    if (silence_s > tcp->rtt_s && !isnan(tcp->epoch_s))
        tcp->epoch_s += silence_s - tcp->rtt_s; /* bictcp_cwnd_event: CUBIC's clock stands still meanwhile */
    if (isinf(silence_s))
        return;
    double ticks = floor(silence_s / TICK_S), timeout = ceil(tcp->timeout_s / TICK_S);
    if (ticks <= timeout)
        return;
    end_round(tcp, now_s);
    tcp->threshold_bytes = fmax(tcp->threshold_bytes, 0.75 * tcp->window_bytes); /* tcp_current_ssthresh */
    while ((ticks -= timeout) > 0 && tcp->window_bytes > tcp->least_bytes)
        tcp->window_bytes /= 2;
    tcp->window_bytes = fmax(tcp->window_bytes, tcp->least_bytes);
    tcp->open = false;
}

double tcp_room(struct tcp *tcp, double now_s, double *wait_until_s)
{
    if (tcp->open)
        return INFINITY;
    if (now_s >= tcp->round_s + tcp->rtt_s)
        end_round(tcp, now_s);
    *wait_until_s = tcp->round_s + tcp->rtt_s;
    return fmax(0, tcp->window_bytes - tcp->round_bytes);
}

void tcp_take(struct tcp *tcp, double bytes)
{
    tcp->round_bytes += bytes;
}

/* ---- loss */

/* Uniform in (0, 1]: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static double draw(struct tcp *tcp)
{
    uint64_t z = tcp->drawn += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return ((double)(z >> 11) + 1) * 0x1p-53;
}

static void shrink(struct tcp *tcp, double lost_s)
{
    double found_s = lost_s + tcp->rtt_s, window = tcp->window_bytes;
    if (found_s < tcp->recovered_s)
        return;
    tcp->most_bytes = window < tcp->most_bytes ? window * (1 + CUBIC_BETA) / 2 : window; /* fast convergence, 4.7 */
    tcp->window_bytes = tcp->threshold_bytes = fmax(2 * tcp->segment_bytes, window * CUBIC_BETA);
    tcp->epoch_s = NAN;
    tcp->recovered_s = found_s + tcp->rtt_s;
    tcp->open = false;
}

double tcp_lost(struct tcp *tcp, double bytes, double start_s, double end_s, double *again_s)
{
    double segments = ceil(bytes / tcp->segment_bytes), lost = 0;
    *again_s = end_s;
    if (tcp->loss_ratio <= 0)
        return 0;
    /* From one lost segment to the next: geometric. */
    for (double at = 0; (at += ceil(log(draw(tcp)) / log1p(-tcp->loss_ratio))) <= segments;) {
        double lost_s = start_s + (end_s - start_s) * at / segments;
        lost += tcp->segment_bytes;
        *again_s = lost_s + tcp->rtt_s;
        shrink(tcp, lost_s);
    }
    return fmin(lost, bytes);
}

/* ---- */

/* All but what the last window holds had been acknowledged when the last byte was given to the network. */
static double last_flight(const struct tcp *tcp, double bytes)
{
    double window = tcp->window_bytes;
    return window >= bytes ? bytes : (window + bytes) / 2;
}

void tcp_sent(struct tcp *tcp, double bytes, double start_s, double end_s)
{
    double took_s = end_s - start_s, queued_s = took_s * last_flight(tcp, bytes) / bytes;
    tcp->sent_s = end_s - queued_s;
    tcp->timeout_s = tcp->rtt_s + queued_s + TIMEOUT_VARIANCE_S;
    tcp->open = tcp->loss_ratio <= 0 && (tcp->open || end_s >= tcp->round_s + tcp->rtt_s);
}

void tcp_next_step(struct tcp *tcp, double idle_s)
{
    end_round(tcp, 0);
    tcp->round_s = -INFINITY;
    tcp->sent_s = isinf(tcp->sent_s) ? tcp->sent_s : -idle_s;
    tcp->epoch_s -= idle_s;
    tcp->recovered_s = -INFINITY;
}
