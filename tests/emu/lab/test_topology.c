/* Addresses, names, ways, and the scenario that the programs of the lab see. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "emu/lab/topology.h"
#include "tests/report/runner.h"

/* Sites a, b, c, d; a-b 10 ms, b-c 10 ms, a-c 25 ms, c-d 5 ms: from a to c it is shorter by b. */
static const char square[] =
    "name: square\n"
    "datacenters:\n"
    "  - {name: a, nodes: 2, gpus_per_node: 1, gpu: h100-sxm}\n"
    "  - {name: b, nodes: 2, gpus_per_node: 1, gpu: h100-sxm}\n"
    "  - {name: c, nodes: 2, gpus_per_node: 1, gpu: h100-sxm}\n"
    "  - {name: d-with-a-long-name, nodes: 2, gpus_per_node: 1, gpu: h100-sxm}\n"
    "fabric: {nics_per_node: 2, nic_rate: 10 Gb/s, latency: 50 us}\n"
    "wan:\n"
    "  - {between: [a, b], waves: 2, wave_rate: 50 Gb/s, rtt: 10 ms}\n"
    "  - {between: [c, b], waves: 1, wave_rate: 100 Gb/s, rtt: 10 ms, jitter: 0.5 ms, loss: 0.1 %}\n"
    "  - {between: [a, c], waves: 1, wave_rate: 100 Gb/s, rtt: 25 ms}\n"
    "  - {between: [c, d-with-a-long-name], waves: 1, wave_rate: 100 Gb/s, rtt: 5 ms}\n"
    "model: {layers: 2, hidden: 64, heads: 2, vocabulary: 1000, source: invented}\n"
    "training: {data: 8, sequence: 64, global_batch: 8, micro_batch: 1}\n"
    "strategies: [{name: flat, allreduce: ring}]\n"
    "lab: {hosts: 2, divide: 100}\n";

static struct scenario scenario;
static struct topology topology;

static void build(const char *text)
{
    struct err err = {""};
    ck_assert_msg(!scenario_parse("test", text, strlen(text), NULL, 0, &scenario, &err), "%s", err.text);
    ck_assert_msg(!topology_build(&scenario, &topology, &err), "%s", err.text);
}

static void done(void)
{
    topology_free(&topology);
    scenario_free(&scenario);
}

static void expect_address(const struct prefix *prefix, const char *text)
{
    char buffer[PREFIX_TEXT_MAX];
    ck_assert_str_eq(prefix_format(prefix, buffer, sizeof buffer), text);
}

START_TEST(hosts_have_names_and_addresses)
{
    build(square);
    ck_assert_uint_eq(topology.host_count, 8);
    ck_assert_str_eq(topology.hosts[3].name, "b-1");
    expect_address(&topology.hosts[3].ipv4, "10.2.2.2");
    expect_address(&topology.hosts[3].gateway4, "10.2.2.1");
    expect_address(&topology.hosts[3].ipv6, "fd10:0:2:2::2");
    expect_address(&topology.hosts[3].gateway6, "fd10:0:2:2::1");
    ck_assert_ptr_eq(topology_host(&topology, "b-1"), &topology.hosts[3]);
    ck_assert_ptr_null(topology_host(&topology, "b-2"));
    done();
}
END_TEST

START_TEST(figures_are_divided_and_times_are_not)
{
    build(square);
    ck_assert_double_eq_tol(topology.nic_bit_per_s, 2 * 10e9 / 100, 1);
    ck_assert_double_eq(topology.fabric_latency_s, 50e-6);
    done();
}
END_TEST

static bool same(const struct prefix *a, const struct prefix *b)
{
    return prefix_contains(a, b) && prefix_contains(b, a);
}

/* Every address once, each host's in its site's prefix and in no other's, no link's in any. */
START_TEST(addresses_are_disjoint)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct prefix all[128];
    size_t count = 0;
    build(square);
    for (size_t i = 0; i < topology.host_count; i++) {
        const struct lab_host *host = &topology.hosts[i];
        const struct prefix own[] = {host->ipv4, host->ipv6, host->gateway4, host->gateway6};
        memcpy(&all[count], own, sizeof own);
        count += 4;
        for (size_t site = 0; site < scenario.site_count; site++)
            for (size_t f = 0; f < 2; f++) {
                struct prefix prefix = topology_site_prefix(site, families[f]);
                ck_assert_int_eq(prefix_contains(&prefix, f ? &host->ipv6 : &host->ipv4), site == host->site);
            }
    }
    for (size_t i = 0; i < topology.wan_count; i++)
        for (size_t end = 0; end < 2; end++) {
            all[count++] = topology.wans[i].ipv4[end];
            all[count++] = topology.wans[i].ipv6[end];
            for (size_t site = 0; site < scenario.site_count; site++) {
                struct prefix prefix = topology_site_prefix(site, AF_INET), six = topology_site_prefix(site, AF_INET6);
                ck_assert(!prefix_contains(&prefix, &topology.wans[i].ipv4[end]));
                ck_assert(!prefix_contains(&six, &topology.wans[i].ipv6[end]));
            }
        }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert(!same(&all[i], &all[k]));
    done();
}
END_TEST

START_TEST(the_way_is_the_shortest)
{
    enum { A, B, C, D };
    build(square);
    ck_assert_uint_eq(topology_next(&topology, A, B), B);
    ck_assert_uint_eq(topology_next(&topology, A, C), B); /* 20 ms by b, 25 ms straight */
    ck_assert_uint_eq(topology_next(&topology, C, A), B);
    ck_assert_uint_eq(topology_next(&topology, A, D), B);
    ck_assert_uint_eq(topology_next(&topology, D, A), C);
    ck_assert_uint_eq(topology_next_link(&topology, C, B), 1);
    scenario.wan[2].rtt_s = 20e-3; /* as long as by b: fewer links */
    ck_assert_uint_eq(topology_next(&topology, A, C), C);
    ck_assert_uint_eq(topology_next(&topology, A, D), C);
    done();
}
END_TEST

/* A walk along next reaches its end from everywhere: no loop. */
START_TEST(every_walk_arrives)
{
    build(square);
    for (size_t from = 0; from < scenario.site_count; from++)
        for (size_t to = 0; to < scenario.site_count; to++) {
            size_t at = from, hops = 0;
            for (; at != to && hops < scenario.site_count; hops++)
                at = topology_next(&topology, at, to);
            ck_assert_uint_eq(at, to);
        }
    done();
}
END_TEST

START_TEST(devices_fit_and_differ)
{
    build(square);
    ck_assert_str_eq(topology.wans[0].device[0], "wan-b");
    ck_assert_str_eq(topology.wans[0].device[1], "wan-a");
    ck_assert_str_eq(topology.wans[3].device[0], "wan3"); /* wan-d-with-a-long-name is too long for a device */
    ck_assert_str_eq(topology.wans[3].device[1], "wan-c");
    char router[96];
    ck_assert_str_eq(topology_router(&scenario, 3, router, sizeof router), "d-with-a-long-name-router");
    done();
}
END_TEST

START_TEST(the_scenario_inside_loads_again)
{
    struct scenario inside;
    struct err err = {""};
    build(square);
    char *text = topology_scenario(&topology, &err);
    ck_assert_msg(text != NULL, "%s", err.text);
    ck_assert_msg(!scenario_parse("inside", text, strlen(text), NULL, 0, &inside, &err), "%s", err.text);
    ck_assert_int_eq(inside.lab.divide, 1);
    ck_assert_int_eq(inside.lab.hosts, 2);
    ck_assert_double_eq_tol(inside.wan[0].wave_bit_per_s, 0.5e9, 1);
    ck_assert_double_eq_tol(inside.fabric.nic_bit_per_s, 0.1e9, 1);
    ck_assert_double_eq_tol(inside.wan[1].rtt_s, 10e-3, 1e-12);
    ck_assert_double_eq_tol(inside.wan[1].jitter_s, 0.5e-3, 1e-12);
    ck_assert_uint_eq(inside.emu_site_count, 4);
    for (size_t i = 0; i < inside.emu_site_count; i++) {
        const struct emu_site *site = &inside.emu_sites[i];
        struct prefix four = topology_site_prefix(site->site, AF_INET),
                      six = topology_site_prefix(site->site, AF_INET6);
        ck_assert_uint_eq(site->prefix_count, 2);
        ck_assert(same(&site->prefixes[0], &four) && same(&site->prefixes[1], &six));
    }
    ck_assert_double_eq(scenario.wan[0].wave_bit_per_s, 50e9); /* the caller's is as it was */
    scenario_free(&inside);
    free(text);
    done();
}
END_TEST

START_TEST(every_preset_fits)
{
    static const char *const presets[] = {"lab-2x4", "quad-768", "twin-1536", "twin-1536-hsdp"};
    struct err err = {""};
    ck_assert_int_eq(scenario_load(presets[_i], NULL, 0, &scenario, &err), 0);
    ck_assert_msg(!topology_build(&scenario, &topology, &err), "%s", err.text);
    ck_assert_uint_eq(topology.wan_count, scenario.wan_count);
    done();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("topology");
    tcase_add_test(tests, hosts_have_names_and_addresses);
    tcase_add_test(tests, figures_are_divided_and_times_are_not);
    tcase_add_test(tests, addresses_are_disjoint);
    tcase_add_test(tests, the_way_is_the_shortest);
    tcase_add_test(tests, every_walk_arrives);
    tcase_add_test(tests, devices_fit_and_differ);
    tcase_add_test(tests, the_scenario_inside_loads_again);
    tcase_add_loop_test(tests, every_preset_fits, 0, 4);
    return run_cases("emu-lab-topology", tests);
}
