/* A small machine for tests of the engine, and programs of ring collectives, single messages and sleeps to run on it.
 */
#ifndef LONGHAUL_TEST_RIG_H
#define LONGHAUL_TEST_RIG_H

#include <check.h>

#include "sim/engine/engine.h"
#include "sim/training/ring.h"

/* Every node has one GPU, one NIC and one rank. Sites are joined as a chain a-b-c-..., and from three on as a ring. */
struct rig {
    int sites, nodes; /* nodes: of each site */
    double nic_byte_per_s, latency_s;
    double wan_byte_per_s, wan_rtt_s; /* of every link; one wave */
    long slices, channels;            /* 0: 1 */
};

/* A scenario of the rig; free with scenario_free. Fails the test when it cannot be made. */
void rig_scenario(const struct rig *rig, struct scenario *scenario);

/* One ring collective of a program; several run at the same time, each on a stream of its own. */
struct rig_ring {
    int count;
    const int *ranks; /* NULL: 0 .. count-1 */
    enum ring_kind kind;
    uint64_t bytes;
    int channel, slices;
    const double *start_s; /* [count]; NULL: all at start_all_s */
    double start_all_s;
    double *done_s; /* [count], from rig_shared: filled when each rank is done */
};

/* Runs the rings; bulk_above as in engine_job. outcome may be NULL. Fails the test when the run does. */
void rig_run_rings(const struct scenario *scenario, double bulk_above, const struct rig_ring *rings, int count,
                   struct engine_outcome *outcome);

/* One message. */
struct rig_message {
    int from, to, channel;
    uint64_t bytes;
    double send_at_s, receive_at_s;
    double sent_s, received_s; /* out: when both waits were over */
};

/* Runs the messages, each end on a stream of its own, posted in the order of the table where times are equal. messages
 * is from rig_shared. */
void rig_run_messages(const struct scenario *scenario, struct rig_message *messages, int count,
                      struct engine_outcome *outcome);

/* Runs any program on every rank. */
void rig_run(const struct scenario *scenario, double bulk_above, stream_function *main, void *argument,
             struct engine_outcome *outcome);

/* Zeroed memory that the process of a run writes into; lives until the test program ends. */
void *rig_shared(size_t bytes);

bool rig_close(double got, double expected, double relative);
#define rig_assert_close(got, expected, relative, ...) ck_assert_msg(rig_close(got, expected, relative), __VA_ARGS__)

/* Whether to leave out a case of a long loop: under the address sanitizer, where actors are threads and tens of times
 * slower, all but every ninth. */
bool rig_skips(int i);

int rig_main(const char *name, TCase *cases);

#endif
