/* What TCP makes of a long path, as Linux does it: bytes of headers, a window that opens from ten segments, and that is
 * closed again by silence. No SimGrid here.
 *
 * In rounds: what may leave in one round trip is the window. A window that is acknowledged opens by as much (slow
 * start, RFC 5681 3.1; net/ipv4/tcp_cong.c, tcp_slow_start). Rounds last a round trip where the window leaves in less;
 * else the window does not hold anything up.
 *
 * Range: no loss, so slow start never ends (CUBIC's further growth is not reached; HyStart is taken to be off, as in
 * the lab); buffers larger than what is in flight; acknowledgements take nothing of the way back; ranks that share a
 * queue have equal shares of it, and one that begins while others have filled it is not held up by them. */
#ifndef LONGHAUL_TCP_H
#define LONGHAUL_TCP_H

#include <stdbool.h>

/* Payload / bytes on the wire of a full segment: (MTU - 20 - 20 - 12) / (MTU + 14). IPv4 (RFC 791), TCP (RFC 9293) with
 * time stamps (RFC 7323, on by default in Linux), Ethernet's header as Linux' queues count it. */
double tcp_payload_share(double mtu_bytes);
double tcp_segment_bytes(double mtu_bytes); /* of payload */

/* The connections between two ranks, one way; all as one. */
struct tcp {
    double least_bytes;  /* initial window of all connections */
    double rtt_s;        /* of the empty path */
    double window_bytes; /* payload that may be in flight */
    double round_s;      /* when this round began */
    double round_bytes;  /* left in it */
    double sent_s;       /* when the sender last gave something to the network; -INFINITY: never */
    double timeout_s;    /* retransmission timeout */
    bool open;           /* the window has been seen to hold nothing up since the last silence */
};

/* `connections` of them, fresh: RFC 6928, ten segments each. */
void tcp_init(struct tcp *tcp, double mtu_bytes, double connections, double rtt_s);

/* Before something leaves at now_s. After a silence of more than a timeout the window is halved once for each timeout
 * that passed, down to the initial one (RFC 2861 section 3 and net/ipv4/tcp_output.c, tcp_cwnd_restart). */
void tcp_wake(struct tcp *tcp, double now_s);

/* How much may leave at now_s without waiting, INFINITY where the window is open. If it is 0, *wait_until_s is when the
 * next round begins. */
double tcp_room(struct tcp *tcp, double now_s, double *wait_until_s);

/* `bytes` (> 0), allowed by tcp_room, begin to leave; and later: they left from start_s to end_s. */
void tcp_take(struct tcp *tcp, double bytes);
void tcp_sent(struct tcp *tcp, double bytes, double start_s, double end_s);

/* The next step begins at 0; all messages have been acknowledged, and the ranks last exchanged something idle_s before.
 */
void tcp_next_step(struct tcp *tcp, double idle_s);

#endif
