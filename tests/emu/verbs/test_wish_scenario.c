/* Wishes from a scenario: own site, routes, shares, seeds, devices, and every way it can be refused. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "configs/preset.h"
#include "tests/emu/verbs/command.h"
#include "tests/report/runner.h"

/* The shipped scenario of two sites of 192 nodes: 800 Gb/s, 21.3 ms, 0.7 ms; ord and iad. */
#define TWIN_ADDRESSES                                                                                                 \
    "emu: {sites: [{site: ord, prefixes: [10.1.0.0/16, 'fd00:1::/32']}, {site: iad, prefixes: [10.2.0.0/16, "          \
    "'fd00:2::/32']}]}\n"

#define THREE(wan)                                                                                                     \
    "name: three\n"                                                                                                    \
    "datacenters:\n"                                                                                                   \
    "  - {name: west, nodes: 2, gpus_per_node: 8, gpu: h100-sxm}\n"                                                    \
    "  - {name: east, nodes: 2, gpus_per_node: 8, gpu: h100-sxm}\n"                                                    \
    "  - {name: north, nodes: 2, gpus_per_node: 8, gpu: h100-sxm}\n"                                                   \
    "wan: [" wan "]\n"                                                                                                 \
    "model: 1b\n"                                                                                                      \
    "training: {tensor: 8, pipeline: 2, global_batch: 12}\n"                                                           \
    "strategies: [{name: flat, allreduce: ring}]\n"                                                                    \
    "seed: 5\n"                                                                                                        \
    "emu: {sites: [{site: north, prefixes: [10.3.0.0/16]}, {site: west, prefixes: [10.1.0.0/16]}, {site: east, "       \
    "prefixes: [10.2.0.0/16]}]}\n"

#define WEST_EAST "{between: [west, east], wave_rate: 100 Gb/s, rtt: 10 ms, jitter: 0.3 ms, loss: 1 %, loss_burst: 3}"
#define EAST_NORTH "{between: [east, north], wave_rate: 10 Gb/s, rtt: 30 ms, jitter: 0.4 ms, loss: 2 %}"
#define WEST_NORTH "{between: [north, west], wave_rate: 40 Gb/s, rtt: 20 ms}"

static char folder[] = "/tmp/longhaul-wish-XXXXXX";

static void write_file(const char *name, const char *text, const char *more)
{
    FILE *out = fopen(name, "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "%s%s", text, more);
    ck_assert_int_eq(fclose(out), 0);
}

static void write_scenarios(void)
{
    const struct preset *twin = preset_find(PRESET_SCENARIO, "twin-1536");
    ck_assert_ptr_nonnull(twin);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    write_file("twin.yaml", twin->text, TWIN_ADDRESSES);
    write_file("line.yaml", THREE(WEST_EAST ", " EAST_NORTH), "");
    write_file("full.yaml", THREE(WEST_EAST ", " EAST_NORTH ", " WEST_NORTH), "");
    write_file("slow.yaml",
               THREE(WEST_EAST ", " EAST_NORTH ", {between: [west, north], wave_rate: 40 Gb/s, rtt: 90 ms}"), "");
}

static void remove_scenarios(void)
{
    static const char *const names[] = {"twin.yaml", "line.yaml", "full.yaml", "slow.yaml"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(names[i]);
    if (!chdir("/"))
        rmdir(folder);
}

static const struct machine at_ord = {.addresses = {"192.168.7.7", "fd00:1::8", "10.1.0.8"},
                                      .routes = {{"10.0.0.0/8", "eth0"}, {"fd00::/16", "eth0"}}};
static const struct machine at_west = {.addresses = {"10.1.0.8"}, .routes = {{"0.0.0.0/0", "eth0"}}};

static const struct path *path_named(const struct wishes *wishes, const char *name)
{
    for (size_t i = 0; i < wishes->count; i++)
        for (size_t k = 0; k < wishes->wishes[i].path_count; k++)
            if (!strcmp(wishes->wishes[i].paths[k].name, name))
                return &wishes->wishes[i].paths[k];
    ck_abort_msg("no path '%s'", name);
    return NULL;
}

/* 21.3 ms is 10.65 ms each way, 0.7 ms sd is 0.7 / sqrt(2); a node has 1/192 of the rate. */
START_TEST(two_sites)
{
    struct wishes wishes = command_wishes("twin.yaml", &at_ord);
    ck_assert_uint_eq(wishes.count, 1);
    ck_assert_uint_eq(wishes.wishes[0].path_count, 1);
    ck_assert_str_eq(wishes.wishes[0].device, "eth0");
    const struct path *path = path_named(&wishes, "ord -> iad");
    ck_assert_str_eq(command_prefixes(path), "10.2.0.0/16 fd00:2::/32");
    const struct impairment *it = &path->impairment;
    ck_assert_uint_eq(it->delay_ns, 10650000);
    ck_assert_uint_eq(it->jitter_ns, (uint64_t)llrint(700000 / sqrt(2)));
    ck_assert_int_eq(it->jitter_shape, JITTER_NORMAL);
    ck_assert_uint_eq(it->rate_byte_per_s, (uint64_t)llrint(100e9 / 192));
    ck_assert_int_eq(it->loss.kind, LOSS_NONE);
    ck_assert(it->seed_given && !it->limit_given);
    ck_assert(command_noted(&wishes, "ord -> iad: RTT 21.3 ms = 2 x 10.65 ms one way; jitter 700 us sd RTT = 495 us "
                                     "sd one way"));
    ck_assert(command_noted(&wishes, "4.167 Gb/s one way: this node's 1/192 of 800 Gb/s; --share changes it"));
    ck_assert(command_noted(&wishes, "the other site gives the way back"));
    ck_assert(!command_noted(&wishes, "--gso-off"));
    wishes_free(&wishes);
}
END_TEST

START_TEST(flags_beside_a_scenario)
{
    struct wishes wishes = command_wishes("twin.yaml --set wan.rtt=40ms --set wan.loss=0.1% --share 25% --limit 77 "
                                          "--dev ib0 --gso-off --site iad",
                                          &at_ord);
    const struct impairment *it = &path_named(&wishes, "iad -> ord")->impairment;
    ck_assert_str_eq(wishes.wishes[0].device, "ib0");
    ck_assert(wishes.wishes[0].gso_off);
    ck_assert_uint_eq(it->delay_ns, 20000000);
    ck_assert_double_eq(it->loss.ratio, 0.001);
    ck_assert_uint_eq(it->rate_byte_per_s, UINT64_C(25000000000));
    ck_assert(it->limit_given);
    ck_assert_uint_eq(it->limit_packets, 77);
    ck_assert(command_noted(&wishes, "200 Gb/s one way: this node's 25% of 800 Gb/s"));
    wishes_free(&wishes);
    wishes = command_wishes("twin.yaml --share 1/8 --set wan.loss=0.1%", &at_ord);
    ck_assert_uint_eq(path_named(&wishes, "ord -> iad")->impairment.rate_byte_per_s, UINT64_C(12500000000));
    ck_assert(command_noted(&wishes, "--gso-off"));
    wishes_free(&wishes);
    wishes = command_wishes("twin.yaml --set wan.wave_rate=inf", &at_ord);
    ck_assert_uint_eq(path_named(&wishes, "ord -> iad")->impairment.rate_byte_per_s, IMPAIRMENT_RATE_NONE);
    ck_assert(!command_noted(&wishes, "--share"));
    wishes_free(&wishes);
}
END_TEST

/* At the receiver the path is the way here: the other site's seed and name, its prefixes as sources. */
START_TEST(ingress)
{
    struct wishes wishes = command_wishes("twin.yaml --at ingress", &at_ord);
    ck_assert_int_eq(wishes.wishes[0].at, PLAN_INGRESS);
    const struct path *path = path_named(&wishes, "iad -> ord");
    ck_assert_str_eq(command_prefixes(path), "10.2.0.0/16 fd00:2::/32");
    wishes_free(&wishes);
}
END_TEST

START_TEST(ipv6_alone)
{
    static const struct machine machine = {.addresses = {"fd00:2::1"}, .routes = {{"fd00::/16", "eth6"}}};
    struct wishes wishes = command_wishes("twin.yaml", &machine);
    ck_assert_str_eq(wishes.wishes[0].device, "eth6");
    ck_assert_str_eq(command_prefixes(path_named(&wishes, "iad -> ord")), "10.1.0.0/16 fd00:1::/32");
    ck_assert(command_noted(&wishes, "no route to 1 of 2 prefixes"));
    wishes_free(&wishes);
}
END_TEST

/* Two rails: each prefix on its own device, which has half of the node's rate and a seed of its own. */
START_TEST(rails)
{
    static const struct machine machine = {.addresses = {"10.1.0.8"},
                                           .routes = {{"10.2.0.0/16", "eth0"}, {"fd00:2::/32", "eth1"}}};
    struct wishes wishes = command_wishes("twin.yaml", &machine);
    ck_assert_uint_eq(wishes.count, 2);
    const struct path *one = &wishes.wishes[0].paths[0], *other = &wishes.wishes[1].paths[0];
    ck_assert_str_eq(command_prefixes(one), "10.2.0.0/16");
    ck_assert_str_eq(command_prefixes(other), "fd00:2::/32");
    ck_assert_str_eq(one->name, other->name);
    ck_assert_uint_eq(one->impairment.rate_byte_per_s, (uint64_t)llrint(100e9 / 192) / 2);
    ck_assert_uint_eq(other->impairment.rate_byte_per_s, one->impairment.rate_byte_per_s);
    ck_assert_uint_ne(other->impairment.seed, one->impairment.seed);
    ck_assert_uint_lt(other->impairment.limit_packets,
                      2 * 0.014 * (double)other->impairment.rate_byte_per_s / 1514 + 1001);
    ck_assert(command_noted(&wishes, "leaves by 2 devices; each has its equal part of that rate"));
    wishes_free(&wishes);
}
END_TEST

START_TEST(three_sites)
{
    struct wishes wishes = command_wishes("full.yaml", &at_west);
    ck_assert_uint_eq(wishes.count, 1);
    ck_assert_uint_eq(wishes.wishes[0].path_count, 2);
    const struct path *east = path_named(&wishes, "west -> east"), *north = path_named(&wishes, "west -> north");
    ck_assert_uint_eq(east->impairment.delay_ns, 5000000);
    ck_assert_uint_eq(north->impairment.delay_ns, 10000000);
    ck_assert_uint_eq(north->impairment.rate_byte_per_s, UINT64_C(2500000000));
    ck_assert_str_eq(command_prefixes(north), "10.3.0.0/16");
    ck_assert_int_eq(east->impairment.loss.kind, LOSS_GILBERT_ELLIOTT);
    ck_assert_double_eq_tol(1 / east->impairment.loss.r, 3, 1e-12);
    ck_assert(!command_noted(&wishes, "links as one"));
    ck_assert(command_noted(&wishes, "the other sites gives"));
    wishes_free(&wishes);
}
END_TEST

/* Delays add, variances add, survivals multiply, the narrower link decides. */
START_TEST(no_direct_link)
{
    struct wishes wishes = command_wishes("line.yaml", &at_west);
    const struct impairment *it = &path_named(&wishes, "west -> north")->impairment;
    ck_assert_uint_eq(it->delay_ns, 20000000);
    ck_assert_double_eq_tol((double)it->jitter_ns, 500000 / sqrt(2), 1.5);
    ck_assert_double_eq_tol(it->loss.ratio, 1 - 0.99 * 0.98, 1e-15);
    ck_assert_uint_eq(it->rate_byte_per_s, 625000000);
    ck_assert(command_noted(&wishes, "west -> north: over east, 2 links as one; losses of two links"));
    ck_assert(command_noted(&wishes, "west -> north: RTT 40 ms = 2 x 20 ms one way; jitter 500 us sd RTT"));
    ck_assert(command_noted(&wishes, "5 Gb/s one way: this node's 1/2 of 10 Gb/s"));
    wishes_free(&wishes);
}
END_TEST

/* As in the simulator and in the lab, a direct link is not taken where two others are shorter. */
START_TEST(shorter_detour)
{
    struct wishes wishes = command_wishes("slow.yaml", &at_west);
    ck_assert_uint_eq(path_named(&wishes, "west -> north")->impairment.delay_ns, 20000000);
    wishes_free(&wishes);
    wishes = command_wishes("slow.yaml --set wan.1.rtt=80ms", &at_west); /* 10 + 80 = 90: fewest links */
    ck_assert_uint_eq(path_named(&wishes, "west -> north")->impairment.rate_byte_per_s, UINT64_C(2500000000));
    ck_assert(!command_noted(&wishes, "links as one"));
    wishes_free(&wishes);
}
END_TEST

START_TEST(devices_by_site)
{
    static const struct machine machine = {.addresses = {"10.1.0.8"},
                                           .routes = {{"10.2.0.0/16", "wan-east"}, {"10.3.0.0/16", "wan-north"}}};
    struct wishes wishes = command_wishes("full.yaml", &machine);
    ck_assert_uint_eq(wishes.count, 2);
    ck_assert_str_eq(wishes.wishes[0].device, "wan-east");
    ck_assert_str_eq(wishes.wishes[0].paths[0].name, "west -> east");
    ck_assert_str_eq(wishes.wishes[1].device, "wan-north");
    ck_assert_str_eq(wishes.wishes[1].paths[0].name, "west -> north");
    wishes_free(&wishes);
}
END_TEST

/* A router shapes the link itself: all of its rate, the far end and what lies behind it. */
START_TEST(via)
{
    struct wishes wishes = command_wishes("line.yaml --site west --via east --dev wan0", NULL);
    ck_assert_uint_eq(wishes.wishes[0].path_count, 1);
    const struct path *path = path_named(&wishes, "west -> east");
    ck_assert_str_eq(command_prefixes(path), "10.2.0.0/16 10.3.0.0/16");
    ck_assert_uint_eq(path->impairment.delay_ns, 5000000);
    ck_assert_uint_eq(path->impairment.rate_byte_per_s, UINT64_C(12500000000));
    ck_assert(command_noted(&wishes, "100 Gb/s one way: the whole link"));
    ck_assert(command_noted(&wishes, "the router of 'east'"));
    wishes_free(&wishes);
    wishes = command_wishes("line.yaml --site east --via north --dev wan0 --share 1/4", NULL);
    path = path_named(&wishes, "east -> north");
    ck_assert_str_eq(command_prefixes(path), "10.3.0.0/16");
    ck_assert_uint_eq(path->impairment.rate_byte_per_s, 312500000);
    ck_assert(command_noted(&wishes, "this router's 1/4 of 10 Gb/s"));
    wishes_free(&wishes);
    /* nothing is routed over it, but it is what it is */
    wishes = command_wishes("slow.yaml --site west --via north --dev wan1", NULL);
    path = path_named(&wishes, "west -> north");
    ck_assert_uint_eq(path->impairment.delay_ns, 45000000);
    ck_assert_str_eq(command_prefixes(path), "10.3.0.0/16");
    wishes_free(&wishes);
}
END_TEST

static uint64_t seed_of(const char *line, const struct machine *machine)
{
    struct wishes wishes = command_wishes(line, machine);
    uint64_t seed = wishes.wishes[0].paths[0].impairment.seed;
    wishes_free(&wishes);
    return seed;
}

/* The same for the same, another for each direction, path and node; but a link has one whatever router asks. */
START_TEST(seeds)
{
    static const struct machine here = {.addresses = {"10.1.0.8"}}, there = {.addresses = {"10.2.0.8"}},
                                beside = {.addresses = {"10.1.0.9"}},
                                more = {.addresses = {"fd00:1::3", "172.16.0.1", "10.1.0.8"}};
    const uint64_t all[] = {
        seed_of("twin.yaml --dev e", &here),
        seed_of("twin.yaml --dev e", &there),
        seed_of("twin.yaml --dev e", &beside),
        seed_of("twin.yaml --dev e --set seed=2", &here),
        seed_of("twin.yaml --dev e --at ingress", &here),
        seed_of("twin.yaml --dev e --via iad", &here),
        seed_of("twin.yaml --dev e --via ord", &there),
        seed_of("full.yaml --dev e", &here),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(all[i] != all[k], "%zu and %zu", i, k);
    ck_assert_uint_eq(seed_of("twin.yaml --dev f --share 1", &here), all[0]);
    ck_assert_uint_eq(seed_of("twin.yaml --dev e", &more), all[0]);
    ck_assert_uint_eq(seed_of("twin.yaml --dev e --via iad", &beside), all[5]);
    ck_assert_uint_eq(seed_of("twin.yaml --dev e --via iad --at ingress", &here), all[6]);
    struct wishes wishes = command_wishes("full.yaml", &at_west);
    ck_assert_uint_ne(path_named(&wishes, "west -> east")->impairment.seed,
                      path_named(&wishes, "west -> north")->impairment.seed);
    wishes_free(&wishes);
}
END_TEST

static const struct machine nowhere = {.addresses = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"}},
                            both = {.addresses = {"10.2.0.1", "10.1.0.1"}}, unrouted = {.addresses = {"10.1.0.1"}};

static const struct {
    const char *line;
    const struct machine *machine;
    int code;
    const char *at, *says;
} refused[] = {
    {"twin-1536", &at_ord, -EINVAL, "twin-1536 says no addresses of its sites; add",
     "emu: {sites: [{site: ord, prefixes: [10.1.0.0/16]}, {site: iad, prefixes: [10.2.0.0/16]}]}"},
    {"twin-1537", &at_ord, -ENOENT, "", "(did you mean 'twin-1536'?)"},
    {"twin.yaml --set wan.rtt=21", &at_ord, -EINVAL, "--set wan.rtt=21:1:9: ", "'21' has no unit"},
    {"twin.yaml", &nowhere, -EINVAL, "no address of this machine (192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4, ...) is",
     "--site (ord, iad)"},
    {"twin.yaml", NULL, -EINVAL, "no address of this machine (it has none) is", "--site (ord, iad)"},
    {"twin.yaml", &both, -EINVAL, "this machine is in two sites: 10.1.0.1 in 'ord', 10.2.0.1 in 'iad'; ", "--site"},
    {"twin.yaml", &unrouted, -ENOENT, "ord -> iad: no route to 10.2.0.0/16", "--dev"},
    {"twin.yaml --site iat", &at_ord, -EINVAL, "--site: no site 'iat' (did you mean 'iad'?)", "ord, iad"},
    {"twin.yaml --via iad", &at_ord, -EINVAL, "--via: ", "needs --dev"},
    {"twin.yaml --dev e --via ord", &at_ord, -EINVAL, "--via: 'ord' is this machine's own site", "other end"},
    {"twin.yaml --dev e --via north", &at_ord, -EINVAL, "--via: no site 'north'", "ord, iad"},
    {"line.yaml --dev e --via north", &at_west, -EINVAL, "--via: no link from 'west' to 'north'", "lead to east"},
    {"twin.yaml --share 0", &at_ord, -EINVAL, "--share: '0' is out of range", "like 1/8"},
    {"twin.yaml --share 0%", &at_ord, -EINVAL, "--share: ", "out of range"},
    {"twin.yaml --share 101%", &at_ord, -EINVAL, "--share: ", "out of range"},
    {"twin.yaml --share 2", &at_ord, -EINVAL, "--share: '2' has no unit and is above 1", ""},
    {"twin.yaml --share 1/0", &at_ord, -EINVAL, "--share: '1/0' is no share", "like 1/8"},
    {"twin.yaml --share 2/3", &at_ord, -EINVAL, "--share: '2/3' is no share", ""},
    {"twin.yaml --share 1/", &at_ord, -EINVAL, "--share: '1/' is no share", ""},
    {"twin.yaml --share 1/8x", &at_ord, -EINVAL, "--share: '1/8x' is no share", ""},
    {"twin.yaml --share=-1", &at_ord, -EINVAL, "--share: '-1' is negative", ""},
    {"twin.yaml --share 1/99999999999999", &at_ord, -EINVAL, "ord -> iad: a rate of", "8 b/s to 8 Tb/s"},
    {"twin.yaml --set wan.waves=100 --share 1", &at_ord, -EINVAL, "ord -> iad: a rate of 10 Tb/s", "8 Tb/s"},
    {"twin.yaml --limit 0", &at_ord, -EINVAL, "--limit: 0 is out of range", "1 to"},
    {"twin.yaml --at gress", &at_ord, -EINVAL, "--at: ", "egress"},
    {"twin.yaml --delay 1ms", &at_ord, -EINVAL, "--delay: not together with a SCENARIO", "--set wan.rtt=20ms"},
    {"twin.yaml --jitter 1ms", &at_ord, -EINVAL, "--jitter: not together", "--set wan.jitter"},
    {"twin.yaml --jitter-shape pareto", &at_ord, -EINVAL, "--jitter-shape: not together", "wan.jitter_shape"},
    {"twin.yaml --jitter-table x", &at_ord, -EINVAL, "--jitter-table: not together", "no such figure"},
    {"twin.yaml --correlation 1%", &at_ord, -EINVAL, "--correlation: not together", "no such figure"},
    {"twin.yaml --loss 1%", &at_ord, -EINVAL, "--loss: not together", "--set wan.loss"},
    {"twin.yaml --loss-burst 2", &at_ord, -EINVAL, "--loss-burst: not together", "--set wan.loss_burst"},
    {"twin.yaml --loss-in-burst 2%", &at_ord, -EINVAL, "--loss-in-burst: not together", "no such figure"},
    {"twin.yaml --reorder 1%", &at_ord, -EINVAL, "--reorder: not together", "no such figure"},
    {"twin.yaml --duplicate 1%", &at_ord, -EINVAL, "--duplicate: not together", "no such figure"},
    {"twin.yaml --corrupt 1%", &at_ord, -EINVAL, "--corrupt: not together", "no such figure"},
    {"twin.yaml --rate 1Gb/s", &at_ord, -EINVAL, "--rate: not together", "--share"},
    {"twin.yaml --seed 1", &at_ord, -EINVAL, "--seed: not together", "--set seed="},
    {"twin.yaml --to 10.2.0.0/16", &at_ord, -EINVAL, "--to: not together with a SCENARIO", "emu:"},
};

START_TEST(refuses)
{
    command_refused(refused[_i].line, refused[_i].machine, refused[_i].code, refused[_i].at, refused[_i].says);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("wish scenario");
    tcase_set_timeout(cases, 60);
    tcase_add_unchecked_fixture(cases, write_scenarios, remove_scenarios);
    tcase_add_test(cases, two_sites);
    tcase_add_test(cases, flags_beside_a_scenario);
    tcase_add_test(cases, ingress);
    tcase_add_test(cases, ipv6_alone);
    tcase_add_test(cases, rails);
    tcase_add_test(cases, three_sites);
    tcase_add_test(cases, no_direct_link);
    tcase_add_test(cases, shorter_detour);
    tcase_add_test(cases, devices_by_site);
    tcase_add_test(cases, via);
    tcase_add_test(cases, seeds);
    tcase_add_loop_test(cases, refuses, 0, sizeof refused / sizeof *refused);
    return run_cases("wish scenario", cases);
}
