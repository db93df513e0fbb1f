/* What prober and responder say to each other.
 *
 * Over the control connection (TCP), lines; P: prober, R: responder:
 *   P  probe KEY COUNT             R  ready UDP-PORT CLOCK         (a wrong key: R closes without a word)
 *   P  report SENT                 R  report MISSING RUNS REORDERED DUPLICATED   of the probes 0 to SENT-1
 *   P  goodput out|back BUFFER WINDOW WARMUP-NS TIME-NS             R  go
 *      P connects once more to the same port: data KEY; then bytes flow out or back; at last
 *                                  R  goodput BYTES NS BUFFER MSS MTU RETRANSMITS CONGESTION   what R knows of it
 * Over UDP, datagrams of one size: a probe, and the same bytes back with the answer's number and R's time. */
#ifndef LONGHAUL_VERIFY_WIRE_H
#define LONGHAUL_VERIFY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "emu/verify/verify.h"

enum { WIRE_KEY_BYTES = VERIFY_KEY_DIGITS / 2, WIRE_BATCH = 64, WIRE_CLOCK_MAX = 80, WIRE_UDP_BUFFER_BYTES = 16 << 20 };

struct datagram {
    uint8_t key[WIRE_KEY_BYTES];
    bool answer;
    uint32_t number;              /* of the probe */
    uint32_t nth_answer;          /* 0, 1, ... in the order in which answers left */
    int64_t sent_ns, received_ns; /* the prober's clock when it left; the responder's when it arrived there */
};
void wire_pack(const struct datagram *datagram, uint8_t bytes[VERIFY_PAYLOAD_MIN]);
/* Is it one with this key? */
bool wire_unpack(const uint8_t *bytes, size_t size, const uint8_t key[WIRE_KEY_BYTES], struct datagram *datagram);

/* From 32 hex digits; -EINVAL. */
int wire_key_parse(const char *text, uint8_t key[WIRE_KEY_BYTES], struct err *err);
/* A random one, as text. */
int wire_key_new(char text[VERIFY_KEY_DIGITS + 1], struct err *err);
/* In a time that does not depend on where they differ. */
bool wire_key_equal(const uint8_t *a, const uint8_t *b);

/* Names the clock CLOCK_MONOTONIC of this process: the same on two ends whose stamps can be compared. One word. */
void wire_clock(char name[WIRE_CLOCK_MAX]);

/* Numeric address and port; address NULL: any, IPv6 where the kernel has it (IPv4 included). -EINVAL. */
int wire_address(const char *address, uint16_t port, struct sockaddr_storage *name, socklen_t *length, struct err *err);
void wire_set_port(struct sockaddr_storage *name, uint16_t port);
uint16_t wire_port(const struct sockaddr_storage *name);
bool wire_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/* SO_SNDBUFFORCE and SO_RCVBUFFORCE where allowed; else nothing is set, since the unprivileged calls would switch the
 * kernel's own sizing off for less. Before listen or connect: the window scale follows from them. */
void wire_set_buffers(int fd, uint32_t bytes);

/* Buffers for many datagrams at once. */
struct batch {
    struct mmsghdr messages[WIRE_BATCH];
    struct iovec parts[WIRE_BATCH];
    struct sockaddr_storage names[WIRE_BATCH];
    uint8_t *bytes; /* owned: WIRE_BATCH x stride */
    size_t stride;
};
struct batch *batch_new(size_t stride); /* NULL out of memory */
void batch_free(struct batch *batch);
/* Receives what is there, at most WIRE_BATCH, with senders' names; the number of datagrams, 0 for none. */
int batch_receive(struct batch *batch, int fd);
/* Sends the first count datagrams, waiting for room; those that the kernel refuses count as lost. named: to their
 * names; else fd is connected. */
void batch_send(struct batch *batch, int fd, unsigned count, bool named);

#endif
