/* What probes must show where a path does what was asked of it: means, deviations and how far samples may be off. */
#ifndef LONGHAUL_VERIFY_EXPECT_H
#define LONGHAUL_VERIFY_EXPECT_H

#include <stdbool.h>

#include "emu/shape/impairment.h"
#include "emu/verify/verify.h"

/* One direction. */
struct expected {
    /* Of the delay one way, what the clamp at 0, reordering and the time on the wire do included: mean, variance,
     * fourth central moment. */
    double delay_mean_s, delay_variance, delay_fourth;
    double spacing_s; /* probes closer than this wait for each other, which changes mean and variance */

    double loss_low, loss_high; /* the ratio; a range where packets are corrupted, most of which checksums catch */
    double loss_dependence;     /* >= 1: a sample of n packets says as much as n / this independent ones */
    double burst, burst_sd;     /* packets lost in a row: mean and deviation; 0 where no packet is lost */
    bool bursts;                /* Gilbert-Elliott: the length of bursts was asked for */

    double reorder, duplicate; /* ratios */
    double rate_bit_per_s;     /* INFINITY: none */
    bool hurts_tcp; /* packets are lost, corrupted or overtaken: goodput is what congestion control makes of it */
};

/* size_bytes: of a probe as the qdisc counts it, Ethernet header included. -ENOMEM, or why the jitter table of a file
 * cannot be read. */
int expect_direction(const struct impairment *impairment, double size_bytes, struct expected *expected,
                     struct err *err);

#endif
