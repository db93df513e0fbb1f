/* Measures what a path does: RTT, loss, reordering by UDP probes with monotonic time stamps, goodput by TCP, against a
 * responder at the other end (the same program). Only this end's clock enters an RTT.
 *
 * Layers: statistics.h; io.h (waiting that can be stopped, lines); wire.h (what the two ends say to each other); then
 * probe.c and goodput.c of the prober, respond.c of the other end, responder.c that starts it; judge.h compares. */
#ifndef LONGHAUL_VERIFY_H
#define LONGHAUL_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "configs/err.h"

enum {
    VERIFY_KEY_DIGITS = 32,
    VERIFY_PAYLOAD_MIN = 48,    /* bytes: a probe's own fields */
    VERIFY_PAYLOAD_MAX = 65507, /* of UDP over IPv4 */
    VERIFY_PROBES_MAX = 10000000,
};

/* OUT: from the prober to the responder. */
enum direction { OUT, BACK };

struct probe_plan {
    const char *key;     /* that the responder announced */
    const char *address; /* numeric, of the responder */
    uint16_t port;       /* of its control connection (TCP); UDP uses the same number where it is free */

    size_t probes;        /* 2 to VERIFY_PROBES_MAX */
    double interval_s;    /* > 0, between probes, which leave on an absolute schedule */
    size_t payload_bytes; /* VERIFY_PAYLOAD_MIN to _MAX */
    double grace_s;       /* waits this long for late answers after the last probe; longer than the RTT */

    double goodput_s; /* length of the TCP measurement after its warm-up; 0: none */
    double warmup_s;
    enum direction goodput_direction;
    uint32_t buffer_bytes; /* SO_SNDBUFFORCE, SO_RCVBUFFORCE; where this is not allowed the kernel sizes them itself */
    uint32_t window_bytes; /* at most so much in flight (TCP_WINDOW_CLAMP), so that a long queue is not filled; 0: no
                              limit */

    int stop_fd; /* readable: stop with -EINTR; -1: none */
};

struct direction_loss {
    uint64_t sent, lost;
    double low, high;   /* Clopper-Pearson interval of the loss ratio, 99 % */
    uint64_t runs;      /* how often a loss began: lost / runs is the mean number lost in a row */
    uint64_t reordered; /* arrived after one sent later (RFC 4737) */
    uint64_t duplicated;
};

/* One TCP connection, seen from both ends. */
struct goodput {
    bool known;
    enum direction direction; /* in which the data went */
    double bit_per_s;         /* payload that arrived / time, at the receiver */
    double time_s;            /* that was measured over */
    uint64_t bytes;
    uint32_t mss_bytes, mtu_bytes;       /* as the sender's kernel has them */
    uint32_t sndbuf_bytes, rcvbuf_bytes; /* as the two kernels gave them (twice what is for data) */
    uint64_t retransmits;
    char congestion[16]; /* of the sender */
};

struct measured {
    size_t answers;
    double rtt_mean_s, rtt_sd_s, rtt_min_s, rtt_p50_s, rtt_p90_s, rtt_p99_s, rtt_max_s;
    bool one_way_known; /* both ends share a clock: same boot, same time namespace */
    double one_way_mean_s[2], one_way_sd_s[2];
    struct direction_loss loss[2]; /* told apart by the responder's own numbers */
    size_t address_bytes;          /* of an address of the family used: 4 or 16 */
    struct goodput goodput;
};

/* Runs the plan. -ETIMEDOUT: nobody answered. -EACCES: the key is not the responder's. -ECONNRESET: it went away in the
 * middle. -EINTR: stopped. terminal (may be NULL) is told how long it takes. */
int probe_run(const struct probe_plan *plan, FILE *terminal, struct measured *measured, struct err *err);

struct respond_options {
    const char *address; /* numeric; NULL: any */
    uint16_t port;       /* 0: any */
    const char *key;     /* NULL: a new one */
    double idle_s;       /* ends when nobody has used it for so long */
    int stop_fd;         /* readable (also at its end): ends; -1: none */
};

/* The responder: prints "port N key K\n" to announce and serves one prober at a time until idle or stopped (0). There
 * is a UDP socket only while a prober that knows the key holds a control connection; it answers datagrams from that
 * prober's address that carry the key, each once: nobody else's packets are echoed. */
int respond_run(const struct respond_options *options, FILE *announce, struct err *err);

/* A responder started at the other end by a remote shell: `RSH HOST PROGRAM respond --attached ...`; rsh is split at
 * spaces. It ends with this process, whatever ends that: its standard input is held open from here. */
struct responder {
    int input, output; /* pipes to it */
    int process;
    char *host; /* owned */
    uint16_t port;
    char key[VERIFY_KEY_DIGITS + 1];
};
/* address (may be NULL): that it shall listen on. -ECHILD: it could not be started there; the message has its last
 * words. */
int responder_start(const char *rsh, const char *host, const char *program, const char *address, int stop_fd,
                    struct responder *responder, struct err *err);
void responder_stop(struct responder *responder); /* NULL, stopped and zeroed are fine */

#endif
