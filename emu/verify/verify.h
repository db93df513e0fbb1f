/* Measures what a path does: RTT, loss, reordering by UDP probes with monotonic time stamps, goodput by TCP, against a
 * responder at the other end (the same program). Only this end's clock enters an RTT. */
#ifndef LONGHAUL_VERIFY_H
#define LONGHAUL_VERIFY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "configs/err.h"

struct probe_plan {
    const char *key;      /* that the responder announced */
    const char *address;  /* numeric, of the responder */
    uint16_t port;        /* of its control connection (TCP); the UDP port is the same number */
    size_t probes;        /* >= 2 */
    double interval_s;    /* > 0, between probes */
    size_t payload_bytes; /* >= 32 */
    double grace_s;       /* waits this long for late answers after the last probe */
    double goodput_s;     /* length of the TCP measurement after its warm-up; 0: none */
    double warmup_s;
    uint32_t buffer_bytes; /* SO_SNDBUF and SO_RCVBUF asked for (FORCE where allowed) */
};

struct direction_loss {
    uint64_t sent, lost;
    double low, high;   /* Clopper-Pearson interval of the loss ratio, 99 % */
    double burst;       /* mean number of packets lost in a row; 0: none lost */
    uint64_t reordered; /* arrived after one sent later (RFC 4737) */
    uint64_t duplicated;
};

struct measured {
    size_t answers;
    double rtt_mean_s, rtt_sd_s, rtt_min_s, rtt_p50_s, rtt_p90_s, rtt_p99_s, rtt_max_s;
    double one_way_mean_s[2], one_way_sd_s[2]; /* only where both ends share a clock (same boot): one_way_known */
    bool one_way_known;
    struct direction_loss out, back; /* told apart by the responder's own sequence numbers */
    bool goodput_known;
    double goodput_bit_per_s;                       /* payload bytes that arrived / time, at the receiver */
    uint32_t mss_bytes, sndbuf_bytes, rcvbuf_bytes; /* as the kernel gave them */
    uint64_t retransmits;
};

/* Runs the plan. -ETIMEDOUT: nobody answered. progress (may be NULL): a terminal. */
int probe_run(const struct probe_plan *plan, FILE *progress, struct measured *measured, struct err *err);

/* The responder: listens on address (NULL: any) and port (0: any), prints "port N\n" to announce and serves one prober
 * at a time until idle for idle_s. Never answers a probe that does not carry the key (32 hex digits) printed in the
 * same line ("port N key K"): nobody else's packets are echoed. */
int respond_run(const char *address, uint16_t port, double idle_s, FILE *announce, struct err *err);

/* A responder started at the other end by a remote shell: `RSH HOST longhaul-emu respond ...`; rsh is split at spaces.
 * Stops with it. */
struct responder;
struct responder *responder_start(const char *rsh, const char *host, const char *program, uint16_t *port, char key[33],
                                  struct err *err);
void responder_stop(struct responder *responder);

/* One line of "requested beside measured". */
struct check {
    const char *what; /* "RTT mean", "loss out", ... literal */
    char requested[64], measured[64], tolerance[64];
    bool judged; /* false: nothing was requested, shown only */
    bool good;
};

#endif
