/* An oracle for ring collectives: exact completion times over FIFO wires, apart from all product code.
 *
 * A ring of N ranks moves S bytes in N segments of S/N bytes, each in k slices. In every step rank i sends one segment
 * to rank i+1: in step 0 its own, in step t the one received in step t-1, slice by slice as they come. Hop i (rank i to
 * i+1) is a wire of its own, in one direction, that carries one slice after the other:
 *
 *     leaves(i, t, j)  = max(arrives(i, t-1, j), leaves(i, previous slice)) + S / (N k) / rate[i]
 *     arrives(i+1, t, j) = leaves(i, t, j) + latency[i]
 *
 * which is the recursion of prototypes/ring_oracle.py. An all-reduce has 2(N-1) steps, a reduce-scatter or an
 * all-gather N-1.
 */
#ifndef LONGHAUL_RING_ORACLE_H
#define LONGHAUL_RING_ORACLE_H

#include <stdbool.h>

struct ring_oracle {
    int ranks;                     /* N >= 2 */
    int steps;                     /* >= 1 */
    int slices;                    /* k >= 1 pieces per segment */
    double bytes;                  /* S >= 0, of the whole buffer */
    const double *rate_byte_per_s; /* [N] > 0, of hop i; INFINITY allowed */
    const double *latency_s;       /* [N] >= 0, one way, of hop i */
    const double *start_s;         /* [N] >= 0, when rank i begins; NULL: all at 0 */
    bool rendezvous; /* hop i also waits for rank i+1 to begin, which posts all its receives at once; without it
                      * slices may arrive before and wait there */
};

/* Writes for every rank when the last slice it receives has arrived (arrived_s[N], not before its own start) and when
 * the last one it sends has left (sent_s[N]); a rank is done at the later one, and arrived_s alone tells the last
 * rank's. Either may be NULL. Times in s. Cost: steps x ranks x slices. Returns 0, -EINVAL for a value out of range,
 * -ENOMEM. */
int ring_oracle_times(const struct ring_oracle *ring, double *arrived_s, double *sent_s);

/* When the last rank is done, in s, or a negative errno as above. */
double ring_oracle_last(const struct ring_oracle *ring);

#endif
