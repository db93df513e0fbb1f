/* One TCP connection measured at its receiver. Both ends use the same code. */
#ifndef LONGHAUL_VERIFY_GOODPUT_H
#define LONGHAUL_VERIFY_GOODPUT_H

#include <stdint.h>

#include "emu/verify/progress.h"
#include "emu/verify/verify.h"

/* What is asked of both ends. */
struct goodput_task {
    uint32_t buffer_bytes, window_bytes; /* 0: the kernel's own */
    int64_t warmup_ns, time_ns;
};

double goodput_bit_per_s(uint64_t bytes, double time_s);

/* Sends on fd until end_fd has something to read or ended, fd broke (both 0), until_ns (-ETIMEDOUT) or stop. Then asks
 * the kernel for the sender's share of goodput: MSS, MTU, buffer, retransmits, congestion control. progress
 * may be NULL. */
int goodput_send(int fd, int end_fd, int64_t until_ns, int stop_fd, struct progress *progress, struct goodput *goodput);
/* Reads and drops; counts what arrives in time_ns after warmup_ns. Fills the receiver's share: bytes, time_s,
 * bit_per_s, rcvbuf_bytes. -ECONNRESET: the sender ended too early. progress may be NULL. */
int goodput_receive(int fd, const struct goodput_task *task, int stop_fd, struct progress *progress,
                    struct goodput *goodput);

#endif
