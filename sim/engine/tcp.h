/* What TCP makes of a long path, as Linux does it: bytes of headers, a window that opens from ten segments, and that is
 * closed again by silence. No SimGrid here.
 *
 * In rounds: what may leave in one round trip is the window. What is acknowledged opens it by as much (slow start, RFC
 * 5681 3.1; net/ipv4/tcp_cong.c, tcp_slow_start), up to twice what was in flight (include/net/tcp.h,
 * tcp_is_cwnd_limited). Rounds last a round trip where the window leaves in less; else the window does not hold
 * anything up.
 *
 * A lost segment is sent again a round trip later (SACK, RFC 6675), and once a round trip at most the window shrinks to
 * 717/1024 of it; from then on it grows as CUBIC says (RFC 9438; net/ipv4/tcp_cubic.c), slow start only up to there.
 *
 * A queue before a link serves first what came first (wire.c): a sender whose window is open hands it a whole message
 * at the rate of its NIC, and who comes later waits.
 *
 * Range: HyStart is taken to be off, as in the lab; buffers and queues larger than what is in flight, so that nothing
 * is lost but by the link's loss ratio, which hits every segment alike (a burst counts as one loss); tail losses are
 * found as fast as others; acknowledgements are not lost and take nothing of the way back; a round trip is that of the
 * empty path, whatever stands in the queues; what goes to another site takes nothing of a NIC from what stays. */
#ifndef LONGHAUL_TCP_H
#define LONGHAUL_TCP_H

#include <stdbool.h>
#include <stdint.h>

/* Payload / bytes on the wire of a full segment: (MTU - 20 - 20 - 12) / (MTU + 14). IPv4 (RFC 791), TCP (RFC 9293) with
 * time stamps (RFC 7323, on by default in Linux), Ethernet's header as Linux' queues count it. */
double tcp_payload_share(double mtu_bytes);
double tcp_segment_bytes(double mtu_bytes); /* of payload */

struct tcp_path {
    double mtu_bytes;
    double connections; /* side by side */
    double rtt_s;       /* of the empty path */
    double loss_ratio;  /* [0, 1): losses / segments, one way; of bursts, bursts / segments */
    uint64_t seed;      /* of what is drawn */
};

/* The connections between two ranks, one way; all as one. */
struct tcp {
    double segment_bytes;
    double least_bytes;  /* initial window of all connections */
    double rtt_s;        /* of the empty path */
    double window_bytes; /* payload that may be in flight */
    double round_s;      /* when this round began */
    double round_bytes;  /* left in it */
    double flight_bytes; /* left in the one before */
    double sent_s;       /* when the sender last gave something to the network; -INFINITY: never */
    double timeout_s;    /* retransmission timeout */
    bool open;           /* the window has been seen to hold nothing up since the last silence */
    double loss_ratio;
    uint64_t drawn;                                      /* state of the random numbers */
    double threshold_bytes;                              /* slow start ends there; INFINITY before the first loss */
    double most_bytes;                                   /* CUBIC's W_max */
    double epoch_s;                                      /* when its growth began; NAN: not yet */
    double origin_bytes, origin_after_s, friendly_bytes; /* its W_max, K and W_est of this epoch */
    double recovered_s;                                  /* losses before this do not shrink the window again */
};

/* Fresh: RFC 6928, ten segments each. */
void tcp_init(struct tcp *tcp, const struct tcp_path *path);

/* Before something leaves at now_s. After a silence of more than a timeout the window is halved once for each timeout
 * that passed, both in whole ticks, down to the initial one (RFC 2861 section 3 and net/ipv4/tcp_output.c,
 * tcp_cwnd_restart). */
void tcp_wake(struct tcp *tcp, double now_s);

/* How much may leave at now_s without waiting, INFINITY where the window is open. If it is 0, *wait_until_s is when the
 * next round begins. */
double tcp_room(struct tcp *tcp, double now_s, double *wait_until_s);

/* `bytes` (> 0), allowed by tcp_room, begin to leave; and later: they left from start_s to end_s. */
void tcp_take(struct tcp *tcp, double bytes);
void tcp_sent(struct tcp *tcp, double bytes, double start_s, double end_s);

/* Of these bytes some may have been lost: how many have to be sent again, and from when on (*again_s). Shrinks the
 * window. */
double tcp_lost(struct tcp *tcp, double bytes, double start_s, double end_s, double *again_s);

/* Times are those of a step that ended at 0, and from here on of the next, which begins at 0. All messages have been
 * acknowledged, and the ranks last exchanged something idle_s before.
 */
void tcp_next_step(struct tcp *tcp, double idle_s);

#endif
