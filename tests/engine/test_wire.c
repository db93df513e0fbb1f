/* Single messages: when they leave and arrive; sharing, order, windows, eager messages and handshakes. Times are exact.
 */
#include <math.h>
#include <string.h>

#include "tests/engine/rig.h"

static const double exact = 1e-6;

/* 1 GB/s NICs; 100 us in the site; two sites at 10.5 ms one way over 1 GB/s. */
static const struct rig plain = {2, 3, 1e9, 1e-4, 1e9, 21e-3};
enum { MOST = 6 };

static const struct wire {
    const char *what;
    struct rig_message messages[MOST]; /* with the expected times in sent_s and received_s */
    double eager, window, wan_byte_per_s, nic_byte_per_s;
    long handshakes, connections, waves;
} wires[] = {
    {"a + S/B in a site", {{0, 1, 0, 1000000000, 0, 0, 1, 1.0001}}},
    {"a + S/B across", {{0, 3, 0, 1000000000, 0, 0, 1, 1.0106}}},
    {"no bytes", {{0, 3, 0, 0, 0, 0, 0, 0.0106}}},
    {"WAN rate below the NIC", {{0, 3, 0, 100000000, 0, 0, 1, 1.0106}}, .wan_byte_per_s = 1e8},
    {"window: c W / RTT", {{0, 3, 0, 100000000, 0, 0, 1, 1.0106}}, .window = 2.1e6},
    {"window x 4 connections", {{0, 3, 0, 100000000, 0, 0, .25, .2606}}, .window = 2.1e6, .connections = 4},
    {"window does not bind inside a site", {{0, 1, 0, 100000000, 0, 0, .1, .1001}}, .window = 2.1e6},
    {"one connection is held to one wave",
     {{0, 3, 0, 100000000, 0, 0, .4, .4106}},
     .wan_byte_per_s = 2.5e8,
     .waves = 4},
    {"two flows take two waves",
     {{0, 3, 0, 100000000, 0, 0, .4, .4106}, {1, 4, 0, 100000000, 0, 0, .4, .4106}},
     .wan_byte_per_s = 2.5e8,
     .waves = 4},
    {"two connections take two waves",
     {{0, 3, 0, 100000000, 0, 0, .2, .2106}},
     .wan_byte_per_s = 2.5e8,
     .waves = 4,
     .connections = 2},
    {"LAN and WAN flow share a NIC equally",
     {{0, 1, 0, 10000000000, 0, 0, 20, 20.0001}, {0, 3, 0, 10000000000, 0, 0, 20, 20.0106}}},
    {"LAN and WAN flow share a receiving NIC equally",
     {{1, 0, 0, 10000000000, 0, 0, 20, 20.0001}, {3, 0, 0, 10000000000, 0, 0, 20, 20.0106}}},
    {"directions do not share", {{0, 3, 0, 1000000000, 0, 0, 1, 1.0106}, {3, 0, 0, 1000000000, 0, 0, 1, 1.0106}}},
    {"channels of a pair share its NIC",
     {{0, 3, 0, 500000000, 0, 0, 1, 1.0106}, {0, 3, 1, 500000000, 0, 0, 1, 1.0106}}},
    {"one connection: one after the other",
     {{0, 3, 0, 500000000, 0, 0, .5, .5106}, {0, 3, 0, 250000000, 0, 0, .75, .7606}}},
    {"the wire waits for the first receive",
     {{0, 1, 0, 500000000, 0, 1, 1.5, 1.5001}, {0, 1, 0, 250000000, 0, 1.1, 1.75, 1.7501}}},
    {"leaves when the receive is posted", {{0, 3, 0, 100000000, 0, .5, .6, .6106}}},
    {"leaves when it is sent", {{0, 3, 0, 100000000, .5, 0, .6, .6106}}},
    {"eager: leaves before the receive", {{0, 3, 0, 100000000, 0, .5, .1, .5}}, .eager = 1e8},
    {"eager: received while it arrives", {{0, 3, 0, 100000000, 0, .105, .1, .1106}}, .eager = 1e8},
    {"above eager", {{0, 3, 0, 100000004, 0, .5, .600000004, .610600004}}, .eager = 1e8},
    {"one handshake: ask, answer, then the bytes", {{0, 3, 0, 100000000, 0, 0, .1212, .1318}}, .handshakes = 1},
    {"one handshake, receiver late: only its answer", {{0, 3, 0, 100000000, 0, .5, .6106, .6212}}, .handshakes = 1},
    {"one handshake, sender late", {{0, 3, 0, 100000000, .5, 0, .6212, .6318}}, .handshakes = 1},
    {"two handshakes", {{0, 3, 0, 100000000, 0, 0, .1424, .1530}}, .handshakes = 2},
    {"eager needs no handshake", {{0, 3, 0, 100000000, 0, 0, .1, .1106}}, .handshakes = 1, .eager = 1e8},
    {"a flow that ends frees its share",
     {{0, 1, 0, 100000000, 0, 0, .2, .2001}, {0, 2, 0, 300000000, 0, 0, .4, .4001}}},
    {"a busy receiver does not hold up a flow",
     {{0, 1, 0, 100000000, 0, 0, .1, .1001},
      {2, 1, 0, 100000000, 0.1, 0, .2, .2001},
      {0, 1, 1, 100000000, 0.3, 0.35, .45, .4501}}},
};

static void set_up(const struct wire *wire, struct scenario *scenario)
{
    struct rig rig = plain;
    rig.nic_byte_per_s = wire->nic_byte_per_s > 0 ? wire->nic_byte_per_s : rig.nic_byte_per_s;
    rig.wan_byte_per_s = wire->wan_byte_per_s > 0 ? wire->wan_byte_per_s : rig.wan_byte_per_s;
    rig_scenario(&rig, scenario);
    scenario->transport.eager_bytes = wire->eager;
    scenario->transport.handshakes = wire->handshakes;
    scenario->transport.window_bytes = wire->window > 0 ? wire->window : INFINITY;
    scenario->transport.connections = wire->connections ? wire->connections : 1;
    scenario->wan[0].waves = wire->waves ? wire->waves : 1;
}

START_TEST(times)
{
    const struct wire *wire = &wires[_i];
    struct scenario scenario;
    int count = 0;
    while (count < MOST && wire->messages[count].from != wire->messages[count].to)
        count++;
    struct rig_message *messages = rig_shared(sizeof wire->messages);
    memcpy(messages, wire->messages, sizeof wire->messages);
    set_up(wire, &scenario);
    rig_run_messages(&scenario, messages, count, NULL);
    for (int i = 0; i < count; i++) {
        const struct rig_message *want = &wire->messages[i];
        rig_assert_close(messages[i].sent_s, want->sent_s, exact, "%s, message %d: sent at %.9g, not %.9g", wire->what,
                         i, messages[i].sent_s, want->sent_s);
        rig_assert_close(messages[i].received_s, want->received_s, exact, "%s, message %d: received at %.9g, not %.9g",
                         wire->what, i, messages[i].received_s, want->received_s);
    }
    scenario_free(&scenario);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wire");
    tcase_add_loop_test(tests, times, 0, (int)(sizeof wires / sizeof *wires));
    return rig_main("engine-wire", tests);
}
