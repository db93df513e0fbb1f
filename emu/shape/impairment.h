/* What one direction of a long-haul link does to packets, in the kernel's own terms and exact: whole nanoseconds, bytes
 * per second. Everything here is ONE WAY; the words "rtt" and "one way" stand in every name and line that a user sees.
 *
 * Source: sch_netem.c of Linux 6.12. Time to send of a packet = max(now + delay + jitter, time to send of the packet
 * before it) + length / rate: with a rate, however high, packets never overtake each other. So a rate is always sent,
 * and reordering happens only where it is asked for.
 */
#ifndef LONGHAUL_IMPAIRMENT_H
#define LONGHAUL_IMPAIRMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "configs/err.h"
#include "configs/scenario.h"

/* The kernel keeps jitter in a signed 32-bit count of ns. */
#define IMPAIRMENT_JITTER_MAX_NS INT32_MAX
/* "No rate": 10^15 byte/s, at which a packet of up to 1 MB takes 0 ns; tc can spell it exactly. */
#define IMPAIRMENT_RATE_NONE UINT64_C(1000000000000000)
/* Above it the class that sorts packets would be the bottleneck (plan.h): 8 Tb/s. */
#define IMPAIRMENT_RATE_MAX UINT64_C(1000000000000)
/* The kernel keeps delays in signed 64-bit ns; more than this is no link (1,000,000 s). */
#define IMPAIRMENT_DELAY_MAX_NS UINT64_C(1000000000000000)

enum loss_kind { LOSS_NONE, LOSS_INDEPENDENT, LOSS_GILBERT_ELLIOTT };

/* Gilbert-Elliott (Elliott 1963; sch_netem.c loss_gilb_ell): a good and a bad state, left with probability p and r
 * after each packet; of the packets in the bad state 1-h, of those in the good state 1-k are lost. From what people
 * know: r = 1 / burst, share of bad = p / (p + r) = loss / (1-h) where 1-k = 0. */
struct loss {
    enum loss_kind kind;
    double ratio;     /* LOSS_INDEPENDENT: [0, 1]; LOSS_GILBERT_ELLIOTT: the mean that follows from p, r, h, k */
    double p, r;      /* (0, 1]: good to bad, bad to good, per packet */
    double lost_bad;  /* (0, 1]: 1-h */
    double lost_good; /* [0, 1]: 1-k */
};

struct impairment {
    uint64_t delay_ns;
    uint64_t jitter_ns; /* standard deviation (with a table_file: times that of the table); 0 to
                         * IMPAIRMENT_JITTER_MAX_NS */
    /* [0, 1], asked of a packet's jitter with the one before; netem keeps and shows it, yet delays come out
     * uncorrelated: the place in the table is the correlated number's lowest bits (tabledist: rnd % size). Measured on
     * Linux 6.12 with 90 % asked, 1,500 packets: -0.02. */
    double correlation;
    enum jitter_shape jitter_shape;
    char *table_file; /* owned; NULL: jitter_shape. A distribution in tc's format (.dist), see distribution.h */
    struct loss loss;
    double reorder;            /* [0, 1]: packets that are sent at once, past those in flight; needs a delay */
    double duplicate, corrupt; /* [0, 1] */
    uint64_t rate_byte_per_s;  /* >= 1; IMPAIRMENT_RATE_NONE */
    uint32_t limit_packets;    /* >= 1; see impairment_limit */
    bool limit_given;          /* the user chose it */
    bool seed_given;
    uint64_t seed; /* TCA_NETEM_PRNG_SEED, since Linux 6.4; older kernels ignore it (say so) */
};

/* No delay, no loss, no rate. */
void impairment_init(struct impairment *impairment);
void impairment_free(struct impairment *impairment); /* what it owns; zeroes it */

/* One direction of a WAN link: delay rtt/2, jitter sd/sqrt(2), rate waves x wave_rate x share, seed from the
 * scenario's. share: (0, 1], this node's part of the link. Returns 0, -EINVAL, -ENOMEM. */
int impairment_of_link(const struct wan_link *link, uint64_t seed, double share, struct impairment *impairment,
                       struct err *err);
/* Two links one after the other as one: delays add, jitter variances add, losses combine (1-(1-a)(1-b)), the lower
 * rate. Where one has burst loss the result keeps that burst length at the combined mean. Approximations are named in
 * *note (a literal, or NULL). into is the first link before and both after. */
int impairment_append(struct impairment *into, const struct impairment *next, const char **note, struct err *err);

/* Queue limit that never drops at the BDP: 2 x (delay + 4 jitter + 1 ms) x rate / 1514 byte + 1000 packets, at most
 * 2^31-1; for IMPAIRMENT_RATE_NONE, 800 Gb/s is assumed. GSO packets count as one, so this is on the safe side. Sets
 * limit_packets unless limit_given. */
void impairment_limit(struct impairment *impairment);

/* What can be expressed in the kernel's types and makes sense; one clear line otherwise. -EINVAL or 0. */
int impairment_check(const struct impairment *impairment, struct err *err);
/* Share of packets whose delay + jitter would be below 0 and is clamped there: changes mean and sd. 0 to 1. */
double impairment_clamped(const struct impairment *impairment);

/* "10.65 ms one way, jitter 495 us (sd, normal), loss 0.1 %, 100 Gb/s": allocated, caller frees; NULL out of memory. */
char *impairment_text(const struct impairment *impairment);

bool impairment_equal(const struct impairment *a, const struct impairment *b);

#endif
