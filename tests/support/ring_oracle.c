#include "ring_oracle.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* Also false for NaN. */
static bool is_time(double s)
{
    return s >= 0 && isfinite(s);
}

static bool is_valid(const struct ring_oracle *ring)
{
    if (ring->ranks < 2 || ring->steps < 1 || ring->slices < 1 || !is_time(ring->bytes))
        return false;
    for (int i = 0; i < ring->ranks; i++)
        if (!(ring->rate_byte_per_s[i] > 0) || !is_time(ring->latency_s[i]) ||
            (ring->start_s && !is_time(ring->start_s[i])))
            return false;
    return true;
}

static double start_of(const struct ring_oracle *ring, int rank)
{
    return ring->start_s ? ring->start_s[rank] : 0;
}

/* One step of every rank: from the arrivals [rank][slice] of the step before to those of this one. */
static void step(const struct ring_oracle *ring, const double *arrived, double *next, double *wire_free)
{
    int k = ring->slices;
    double slice_bytes = ring->bytes / ring->ranks / k;

    for (int i = 0; i < ring->ranks; i++) {
        const double *have = arrived + (size_t)i * (size_t)k;
        double *there = next + (size_t)((i + 1) % ring->ranks) * (size_t)k;

        for (int j = 0; j < k; j++) {
            wire_free[i] = fmax(have[j], wire_free[i]) + slice_bytes / ring->rate_byte_per_s[i];
            there[j] = wire_free[i] + ring->latency_s[i];
        }
    }
}

/* Before step 0: every rank has its own segment at its start, and no wire is open before that. */
static void begin(const struct ring_oracle *ring, double *arrived, double *wire_free)
{
    for (int i = 0; i < ring->ranks; i++) {
        double start_s = start_of(ring, i);

        for (int j = 0; j < ring->slices; j++)
            arrived[(size_t)i * (size_t)ring->slices + (size_t)j] = start_s;
        wire_free[i] = ring->rendezvous ? fmax(start_s, start_of(ring, (i + 1) % ring->ranks)) : start_s;
    }
}

int ring_oracle_times(const struct ring_oracle *ring, double *arrived_s, double *sent_s)
{
    double *arrived = NULL, *next = NULL, *wire_free = NULL, *swap;
    size_t ranks, slices;
    int rc = -ENOMEM;

    if (!is_valid(ring))
        return -EINVAL;
    ranks = (size_t)ring->ranks;
    slices = (size_t)ring->slices;
    arrived = calloc(ranks * slices, sizeof *arrived);
    next = calloc(ranks * slices, sizeof *next);
    wire_free = calloc(ranks, sizeof *wire_free);
    if (!arrived || !next || !wire_free)
        goto out;
    begin(ring, arrived, wire_free);
    for (int t = 0; t < ring->steps; t++) {
        step(ring, arrived, next, wire_free);
        swap = arrived;
        arrived = next;
        next = swap;
    }
    for (size_t i = 0; i < ranks; i++) {
        if (arrived_s) /* the last slice is the latest: a wire is FIFO */
            arrived_s[i] = fmax(arrived[i * slices + slices - 1], start_of(ring, (int)i));
        if (sent_s)
            sent_s[i] = wire_free[i];
    }
    rc = 0;
out:
    free(wire_free);
    free(next);
    free(arrived);
    return rc;
}

double ring_oracle_last(const struct ring_oracle *ring)
{
    double last_s = 0, *arrived_s = NULL;
    int rc;

    if (!is_valid(ring))
        return -EINVAL;
    arrived_s = calloc((size_t)ring->ranks, sizeof *arrived_s);
    if (!arrived_s)
        return -ENOMEM;
    rc = ring_oracle_times(ring, arrived_s, NULL);
    for (int i = 0; i < ring->ranks && rc == 0; i++)
        last_s = fmax(last_s, arrived_s[i]);
    free(arrived_s);
    return rc ? rc : last_s;
}
