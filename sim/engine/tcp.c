#include "sim/engine/tcp.h"

#include <math.h>

enum { IP_HEADER = 20, TCP_HEADER = 20, TIME_STAMPS = 12, ETHERNET_HEADER = 14, INITIAL_SEGMENTS = 10 };

/* The least that is added to the smoothed round trip to get the retransmission timeout: TCP_RTO_MIN, include/net/tcp.h
 * and tcp_rtt_estimator in net/ipv4/tcp_input.c. */
#define TIMEOUT_VARIANCE_S 0.2

double tcp_segment_bytes(double mtu_bytes)
{
    return mtu_bytes - IP_HEADER - TCP_HEADER - TIME_STAMPS;
}

double tcp_payload_share(double mtu_bytes)
{
    return tcp_segment_bytes(mtu_bytes) / (mtu_bytes + ETHERNET_HEADER);
}

void tcp_init(struct tcp *tcp, double mtu_bytes, double connections, double rtt_s)
{
    double least = connections * INITIAL_SEGMENTS * tcp_segment_bytes(mtu_bytes);
    *tcp = (struct tcp){.least_bytes = least,
                        .rtt_s = rtt_s,
                        .window_bytes = least,
                        .round_s = -INFINITY,
                        .sent_s = -INFINITY,
                        .timeout_s = rtt_s + TIMEOUT_VARIANCE_S};
}

/* A round that is acknowledged opens the window by as much. */
static void end_round(struct tcp *tcp, double now_s)
{
    tcp->window_bytes += tcp->round_bytes;
    tcp->round_bytes = 0;
    tcp->round_s = now_s;
}

void tcp_wake(struct tcp *tcp, double now_s)
{
    double silence_s = now_s - tcp->sent_s;
    if (isinf(silence_s) || silence_s <= tcp->timeout_s)
        return;
    end_round(tcp, now_s);
    while ((silence_s -= tcp->timeout_s) > 0 && tcp->window_bytes > tcp->least_bytes)
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
    tcp->open = tcp->open || end_s >= tcp->round_s + tcp->rtt_s;
}

void tcp_next_step(struct tcp *tcp, double idle_s)
{
    end_round(tcp, -INFINITY);
    tcp->sent_s = isinf(tcp->sent_s) ? tcp->sent_s : -idle_s;
}
