/* Every way a scenario can be wrong: one line, at the right place, saying what is wrong and what would be right. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/scenario.h"
#include "tests/configs/sample.h"

static void expect(const char *text, size_t length, const char *const *sets, size_t set_count, const char *prefix,
                   const char *says)
{
    struct scenario scenario;
    struct err err = {""};
    int rc = scenario_parse("f", text, length, sets, set_count, &scenario, &err);
    ck_assert_msg(rc == -EINVAL, "accepted, rc %d; expected '%s %s'", rc, prefix, says);
    ck_assert_msg(!strncmp(err.text, prefix, strlen(prefix)), "got '%s'; expected it at '%s'", err.text, prefix);
    ck_assert_msg(strstr(err.text, says) != NULL, "got '%s'; expected '%s'", err.text, says);
    ck_assert(!strchr(err.text, '\n'));
    ck_assert_uint_eq(scenario.site_count, 0);
    ck_assert_ptr_null(scenario.sites);
}

/* One line of the sample replaced. */
static const struct {
    int line;
    const char *text;
    const char *at, *says;
} lines[] = {
    /* keys */
    {1, "nme: sample", "f:1:1: ", "unknown key 'nme' (did you mean 'name'?); keys of a scenario: name, datacenters"},
    {1, "name: sample\nname: again", "f:2:1: ", "given twice, first in line 1"},
    {1, "", "f:2:1: ", "a scenario needs 'name'"},
    {1, "name:", "f:1:1: ", "no value"},
    {1, "name: [a]", "f:1:7: ", "a list or mapping instead"},
    {1, "name: 9lives", "f:1:7: ", "is no name"},
    {1, "? [a]\n: b", "f:1:3: ", "a key is plain text"},
    {1, "<<: {name: b}", "f:1:1: ", "unknown key '<<'"},
    {1, "name: &x sample", "f:1:", "an anchor"},
    {1, "name: !!str sample", "f:1:", "a tag"},
    {1, "name: *x", "f:1:", ""},
    {1, "name: \"a\\0b\"", "f:1:7: ", "stands for no character"},
    {1, "name: sample\nseed: -1", "f:2:7: ", "not a whole number"},
    {1, "name: sample\nseed: 1.5", "f:2:7: ", "write 1"},
    {1, "name: sample\nfabric: 3", "f:2:9: ", "the fabric is a mapping"},
    {1, "name: sample\nfabric: {nvlnk: 450 GB/s}", "f:2:10: ", "(did you mean 'nvlink'?)"},
    {1, "name: sample\nfabric: {oversubscription: 0.5}", "f:2:28: ", "1 to 1000"},
    {1, "name: sample\nfabric: {oversubscription: 1e400}", "f:2:28: ", "out of range"},
    {1, "name: sample\nfabric: {oversubscription: nan}", "f:2:28: ", "not a plain number"},
    {1, "name: sample\ntransport: {window: 0 B}", "f:2:21: ", "above 0 B"},
    {1, "name: sample\ntransport: {slices: 99999999999999999999}", "f:2:21: ", "1 to 1024"},
    /* data centres */
    {3, "  - {name: a, nodes: 0, gpu: h100-sxm}", "f:3:22: ", "nodes: 0 is out of range; it can be 1 to"},
    {3, "  - {name: a, nodes: -2, gpu: h100-sxm}", "f:3:22: ", "not a whole number"},
    {3, "  - {name: a, nodes: 2 GB, gpu: h100-sxm}", "f:3:22: ", "write 2"},
    {3, "  - {name: a, nodes: 99999999999999999999, gpu: h100-sxm}", "f:3:22: ", "out of range"},
    {3, "  - {name: a, nodes: 10000000, gpu: h100-sxm}", "f:3:3: ", "at most 10000000"},
    {3, "  - {name: a, gpu: h100-sxm}", "f:3:5: ", "needs 'nodes'"},
    {3, "  - {name: a, nodes: 2}", "f:3:5: ", "needs 'gpu'"},
    {3, "  - {name: a, nodes: 2, gpu: h10-sxm}", "f:3:30: ", "(did you mean 'h100-sxm'?); presets: a100-sxm"},
    {3, "  - {name: a, nodes: 2, gpu: {preset: [x]}}", "f:3:39: ", "a preset is one name"},
    {3, "  - {name: a, nodes: 2, gpu: {preset: h100-sxm, memory: 80}}", "f:3:57: ", "'80 MB'"},
    {3, "  - {name: a, nodes: 2, gpu: {memory: 80 GB}}", "f:3:30: ", "needs 'power'"},
    {3, "  - {name: a, nodes: 2, gpu: {preset: h100-sxm, flops: {fp9: 1 TF}}}", "f:3:57: ", "(did you mean 'fp"},
    {4, "  - {name: a, nodes: 2, gpu: h100-sxm}\nseed: 3", "f:4:12: ", "two data centres are named 'a'"},
    {3, "  - {name: a b, nodes: 2, gpu: h100-sxm}", "f:3:12: ", "is no name"},
    {3, "  - a", "f:3:5: ", "a data centre is a mapping of keys, not a single value"},
    /* wan */
    {5, "wan: []", "f:4:12: ", "no path over the WAN from 'a' to 'b'; add a link"},
    {5, "", "f:4:12: ", "no path"},
    {5, "wan: {between: [a, b]}", "f:5:6: ", "wan is a list"},
    {5, "wan: [{between: [a, b], wave_rate: 100 Gb/s, rtt: 21}]",
     "f:5:51: ", "'21' has no unit; a time is written like"},
    {5, "wan: [{between: [a, b], wave_rate: 100 gb/s, rtt: 1 ms}]", "f:5:36: ", "(did you mean 'Gb/s'?)"},
    {5, "wan: [{between: [a, b], wave_rate: 100 Gbs, rtt: 1 ms}]", "f:5:36: ", "(did you mean 'Gb/s'?)"},
    {5, "wan: [{between: [a, b], wave_rate: 100, rtt: 1 ms}]", "f:5:36: ", "'100 Gb/s'"},
    {5, "wan: [{between: [a, b], wave_rate: 0, rtt: 1 ms}]", "f:5:36: ", "above 0 b/s"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: -1 ms}]", "f:5:49: ", "negative"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: nan}]", "f:5:49: ", "not a time"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1e400 s}]", "f:5:49: ", "too large"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: inf}]", "f:5:49: ", "not a time"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s}]", "f:5:7: ", "needs 'rtt'"},
    {5, "wan: [{between: [a, b], waves: 0, wave_rate: 1 Gb/s, rtt: 1 ms}]", "f:5:32: ", "1 to"},
    {5, "wan: [{between: [a, c], wave_rate: 1 Gb/s, rtt: 1 ms}]", "f:5:21: ", "no data centre 'c'"},
    {5, "wan: [{between: [a, a], wave_rate: 1 Gb/s, rtt: 1 ms}]", "f:5:21: ", "to itself"},
    {5, "wan: [{between: [a], wave_rate: 1 Gb/s, rtt: 1 ms}]", "f:5:17: ", "joins two data centres"},
    {5, "wan: [{between: [[], b], wave_rate: 1 Gb/s, rtt: 1 ms}]", "f:5:18: ", "no data centre"},
    {5, "wan: [{wave_rate: 1 Gb/s, rtt: 1 ms}]", "f:5:7: ", "joins two data centres"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, jitter: 0.7}]", "f:5:63: ", "a time is written like"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, jitter: 0.8 ms}]",
     "f:5:63: ", "is 565.7 us one way, more than the one-way delay of 500 us; at most 706.4 us"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, jitter: -1 us}]", "f:5:63: ", "negative"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, jitter: nan}]", "f:5:63: ", "not a time"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, jitter: inf}]", "f:5:63: ", "not a time"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, jitter: 0.7 MS}]", "f:5:63: ", "(did you mean 'ms'?)"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, jitter_shape: gauss}]",
     "f:5:69: ", "normal, pareto, paretonormal, uniform"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, jitter_shape: paretonorml}]",
     "f:5:69: ", "(did you mean 'paretonormal'?)"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss: 1}]", "f:5:61: ", "to below 100 %"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss: 100 %}]", "f:5:61: ", "to below 100 %"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss: 5}]", "f:5:61: ", "is above 1"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss: -1 %}]", "f:5:61: ", "negative"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss: 0.1 pct}]", "f:5:61: ", "no unit for a ratio"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss: nan}]", "f:5:61: ", "not a ratio"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss_burst: 2}]", "f:5:67: ", "without loss"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss_burst: 0.5}]", "f:5:67: ", "1 to 1000000"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss_burst: 2 B}]", "f:5:67: ", "not a plain number"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, loss: 60 %, loss_burst: 1.2}]",
     "f:5:79: ", "loss_burst 1.5 or more would fit"},
    {5, "wan: [{between: [a, b], wave_rate: 1 Gb/s, rtt: 1 ms, los: 1 %}]", "f:5:55: ", "(did you mean 'loss'?)"},
    /* emu and lab */
    {1, "name: sample\nemu: 3", "f:2:6: ", "emu is a mapping of keys"},
    {1, "name: sample\nemu: {}", "f:2:6: ", "emu needs 'sites'"},
    {1, "name: sample\nemu: {site: []}", "f:2:7: ", "(did you mean 'sites'?)"},
    {1, "name: sample\nemu: {sites: {a: b}}", "f:2:14: ", "emu needs 'sites', a list"},
    {1, "name: sample\nemu: {sites: []}", "f:2:14: ", "no addresses for 'a'"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: [10.1.0.0/16]}]}", "f:2:14: ", "no addresses for 'b'"},
    {1, "name: sample\nemu: {sites: [{prefixes: [10.1.0.0/16]}]}", "f:2:15: ", "need 'site'"},
    {1, "name: sample\nemu: {sites: [{site: c, prefixes: [10.1.0.0/16]}]}", "f:2:22: ", "no data centre 'c'"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: [10.1.0.0/16]}, {site: a, prefixes: [10.2.0.0/16]}]}",
     "f:2:58: ", "'a' is given twice"},
    {1, "name: sample\nemu: {sites: [{site: a}]}", "f:2:15: ", "write 'prefixes: ["},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: 10.1.0.0/16}]}", "f:2:35: ", "are a list"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: []}]}", "f:2:35: ", "1 to 4096"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: [10.1.2.3/16]}]}",
     "f:2:36: ", "prefixes: '10.1.2.3/16' has address bits beyond /16; write 10.1.0.0/16"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: [10.1.0.0/33]}]}", "f:2:36: ", "from 0 to 32"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: [west-1]}]}", "f:2:36: ", "names are not looked up"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: [fd00::]}]}", "f:2:41: ", "quote an IPv6 address"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: ['']}]}", "f:2:36: ", "an empty prefix"},
    {1, "name: sample\nemu: {sites: [{site: a, prefix: [10.1.0.0/16]}]}", "f:2:25: ", "(did you mean 'prefixes'?)"},
    {1,
     "name: sample\nemu: {sites: [{site: a, prefixes: [10.1.0.0/16, 10.1.0.0/16]}, {site: b, prefixes: "
     "[10.2.0.0/16]}]}",
     "f:2:49: ", "is given twice for 'a'"},
    {1,
     "name: sample\nemu: {sites: [{site: a, prefixes: [10.1.0.0/16]}, {site: b, prefixes: [10.2.0.0/16, "
     "10.1.7.0/24]}]}",
     "f:2:85: ", "10.1.7.0/24 of 'b' and 10.1.0.0/16 of 'a' overlap"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: [10.1.7.7]}, {site: b, prefixes: [10.0.0.0/8]}]}",
     "f:2:69: ", "10.0.0.0/8 of 'b' and 10.1.7.7 of 'a' overlap"},
    {1,
     "name: sample\nemu: {sites: [{site: a, prefixes: [10.1.0.0/16, 10.1.2.0/24]}, {site: b, prefixes: [10.1.2.3]}]}",
     "f:2:85: ", "overlap"},
    {1, "name: sample\nemu: {sites: [{site: a, prefixes: ['::1']}, {site: b, prefixes: ['::/0']}]}",
     "f:2:66: ", "overlap"},
    {1, "name: sample\nlab: 3", "f:2:6: ", "the lab is a mapping"},
    {1, "name: sample\nlab: {host: 2}", "f:2:7: ", "(did you mean 'hosts'?)"},
    {1, "name: sample\nlab: {hosts: 0}", "f:2:14: ", "1 to 64"},
    {1, "name: sample\nlab: {hosts: 3}", "f:2:14: ", "3 hosts a site, but 'a' has 2 nodes; 2 would fit"},
    {1, "name: sample\nlab: {hosts: 65}", "f:2:14: ", "1 to 64"},
    {1, "name: sample\nlab: {divide: 0}", "f:2:15: ", "1 to 1000000000000000"},
    {1, "name: sample\nlab: {divide: 10x}", "f:2:15: ", "write 10"},
    {1, "name: sample\nlab: {divide: 0.5}", "f:2:15: ", "1 to 1000000000000000"},
    /* model */
    {6, "", "f:1:1: ", "needs 'model'"},
    {6, "model: lama-3-405b", "f:6:8: ", "(did you mean 'llama-3-405b'?)"},
    {6, "model: {preset: 1b, layrs: 3}", "f:6:21: ", "(did you mean 'layers'?)"},
    {6, "model: {preset: 1b, heads: 17}", "f:6:28: ", "do not divide hidden"},
    {6, "model: {preset: 1b, kv_heads: 3}", "f:6:31: ", "do not divide 16 heads"},
    {6, "model: {layers: 24, hidden: 64, heads: 0, vocabulary: 9}", "f:6:40: ", "1 to"},
    {6, "model: {preset: 1b, gated: yes}", "f:6:28: ", "write true or false"},
    {6, "model: {preset: 1b, layers: 23}", "f:7:33: ", "pipeline 2 does not divide the model's 23 layers"},
    /* training */
    {7, "training: {tensor: 8, pipeline: 2}", "f:7:11: ", "needs 'global_batch'"},
    {7, "", "f:1:1: ", "needs 'global_batch'"},
    {7, "training: {tensor: 8, pipeline: 2, data: 3, global_batch: 8}",
     "f:7:42: ", "= 48, but there are 32 GPUs; data 2 would fit"},
    {7, "training: {tensor: 8, pipeline: 3, global_batch: 8}", "f:7:33: ", "do not divide the 32 GPUs"},
    {7, "training: {tensor: 16, pipeline: 1, global_batch: 8}", "f:7:20: ", "does not divide the 8 GPUs of a node"},
    {7, "training: {tensor: 8, pipeline: 4, global_batch: 8}", "f:7:33: ", "whole number of replicas"},
    {7, "training: {tensor: 8, pipeline: 2, global_batch: 7}", "f:7:50: ", "8 would fit"},
    {7, "training: {tensor: 8, pipeline: 2, global_batch: 1}", "f:7:50: ", "2 would fit"},
    {7, "training: {tensor: 8, pipeline: 2, interleave: 5, global_batch: 8}",
     "f:7:48: ", "interleave 5 does not divide"},
    {7, "training: {tensor: 8, pipeline: 2, interleave: 2, global_batch: 6}", "f:7:65: ", "global_batch 8 would fit"},
    {7, "training: {tensor: 8, pipeline: 2, global_batch: 8, gradient: bf61}", "f:7:63: ", "(did you mean 'bf16'?)"},
    {7, "training: {tensor: 8, pipeline: 2, global_batch: 8, compute: int4}", "f:7:62: ", "has no int4 peak"},
    {7, "training: {tensor: 8, pipeline: 2, global_batch: 8, optimizer: 12}", "f:7:64: ", "'12 MB'"},
    {7, "training: {tensor: 8, pipeline: 2, global_batch: 8, kernel_efficiency: 60}", "f:7:72: ", "51 %"},
    {7, "training: {tensor: 8, pipeline: 2, global_batch: 8, kernel_efficiency: 0 %}", "f:7:72: ", "above 0 %"},
    /* calibration, strategies, references */
    {8, "strategies: []", "f:8:13: ", "1 to 64"},
    {8, "strategies:", "f:1:1: ", "needs 'strategies'"},
    {8, "strategies: [{name: flat}]", "f:8:14: ", "needs 'allreduce'"},
    {8, "strategies: [{name: flat, allreduce: rings}]", "f:8:38: ", "(did you mean 'ring'?)"},
    {8, "strategies: [{name: x, allreduce: ring}, {name: x, allreduce: ring}]", "f:8:49: ", "two strategies are named"},
    {8, "strategies: [{name: x, allreduce: hierarchical, order: interleaved}]", "f:8:56: ", "order is for"},
    {8, "strategies: [{name: x, allreduce: ring, overlap: full}]", "f:8:50: ", "chunk: 1 layer"},
    {8, "strategies: [{name: x, allreduce: ring, overlap: {chunk: 1}}]", "f:8:58: ", "write '1 layer'"},
    {8, "strategies: [{name: x, allreduce: ring, overlap: {chunk: 2 GB}}]", "f:8:58: ", "write '2 layers'"},
    {8, "strategies: [{name: x, allreduce: ring, overlap: {chunk: 5 layers}}]",
     "f:8:50: ", "does not divide the 12 layers"},
    {8, "strategies: [{name: x, allreduce: ring, overlap: {depth: 0}}]", "f:8:58: ", "1 to"},
    {8, "strategies: [{name: x, allreduce: ring}]\ncalibrate: {mfu: 51}", "f:9:18: ", "'51 %'"},
    {8, "strategies: [{name: x, allreduce: ring}]\ncalibrate: {data: 2}", "f:9:12: ", "either 'mfu' or 'step'"},
    {8, "strategies: [{name: x, allreduce: ring}]\ncalibrate: {mfu: 51 %, step: 3 s}",
     "f:9:12: ", "either 'mfu' or 'step'"},
    {8, "strategies: [{name: x, allreduce: ring}]\ncalibrate: {mfu: 51 %, on: two}", "f:9:28: ", "on: one-datacenter"},
    {8, "strategies: [{name: x, allreduce: ring}]\ncalibrate: {mfu: 51 %, strategy: y}", "f:9:34: ", "no strategy 'y'"},
    {8, "strategies: [{name: x, allreduce: ring}]\ncalibrate: {mfu: 51 %, data: 3, global_batch: 4}",
     "f:9:47: ", "6 would fit"},
    {8, "strategies: [{name: x, allreduce: ring}]\nreference: [{strategy: y, step: 3 s, source: s}]",
     "f:9:24: ", "no strategy 'y'"},
    {8, "strategies: [{name: x, allreduce: ring}]\nreference: [{strategy: x, source: s}]",
     "f:9:13: ", "holds one figure"},
    {8, "strategies: [{name: x, allreduce: ring}]\nreference: [{strategy: x, step: 3 s}]",
     "f:9:13: ", "needs 'source'"},
    {8, "strategies: [{name: x, allreduce: ring}]\nreference: [{step: 3 s, source: s}]",
     "f:9:13: ", "needs 'strategy'"},
    {8, "strategies: [{name: x, allreduce: ring}]\nreference: [{strategy: x, step: 3, source: s}]",
     "f:9:33: ", "'3 ms'"},
    {8, "strategies: [{name: x, allreduce: ring}]\nreference: [{strategy: x, step: 3 s, source: \"a\\nb\"}]",
     "f:9:46: ", "one line"},
    /* YAML itself */
    {8, "strategies: [{name: x", "f:9:1: ", "not YAML"},
    {8, "strategies: \"x", "f:8:14: ", "not YAML"},
    {8, "strategies:\n\t- x", "f:9:1: ", "tab"},
    {8, "---\nname: b", "f:", "second document"},
    {8, "strategies: \xff", "f:8:13: ", "byte 0xff is not UTF-8"},
    {8, "strategies: \xc0\x80", "f:8:13: ", "is not UTF-8"},
    {8, "strategies: [[[[[[[[[[[[[[x]]]]]]]]]]]]]]", "f:8:", "nested more than"},
};

START_TEST(refuses_line)
{
    char *text = sample_with(lines[_i].line, lines[_i].text);
    expect(text, strlen(text), NULL, 0, lines[_i].at, lines[_i].says);
    free(text);
}
END_TEST

static const struct {
    const char *text;
    const char *at, *says;
} files[] = {
    {"", "f:1:1: ", "empty"},
    {"# only a comment\n", "f:1:1: ", "empty"},
    {"---\n", "f:1:1: ", "empty"},
    {"just text", "f:1:1: ", "not a scenario"},
    {"- a\n- b\n", "f:1:1: ", "not a scenario"},
    {"}", "f:1:1: ", "not YAML"},
    {"\x7f"
     "ELF",
     "f:1:1: ", "not UTF-8 text"},
    {"\xef\xbb\xbfname: x", "f:1:1: ", "not UTF-8 text"},
    {"%YAML 1.1\n---\na: b", "f:1:1: ", "a directive"},
    {"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "f:1:", "an anchor"},
};

START_TEST(refuses_file)
{
    expect(files[_i].text, strlen(files[_i].text), NULL, 0, files[_i].at, files[_i].says);
}
END_TEST

START_TEST(refuses_binary)
{
    static const char zeros[64];
    expect(zeros, sizeof zeros, NULL, 0, "f:1:1: ", "byte 0x00 is not UTF-8 text");
}
END_TEST

/* Repetitions of a pattern, up to 10 MB: what a parser might choke on. */
static const struct {
    const char *pattern;
    size_t length;
    const char *says;
} floods[] = {
    {"a", 10 << 20, "larger than 1 MiB"},
    {"[", 1 << 20, "nested more than"},
    {"- ", 1 << 20, "nested more than"},
    {"{a: ", 1 << 20, "nested more than"},
    {"- a\n", 1 << 20, "more than 20000 values"},
    {"\"", 1 << 20, "not YAML"},
    {"? ", 1 << 16, ""},
    {": ", 1 << 16, ""},
    {"a: ", 1 << 16, "not YAML"},
    {"!", 1 << 20, ""},
    {"&a ", 1 << 16, ""},
    {"x ", 1 << 20, "not a scenario"},
    {"|\n ", 1 << 16, ""},
    {"'", 1 << 20, ""},
    {"%", 1 << 20, "a directive"},
    {"'", 1 << 10, ""},
    {"\"\\n", 1 << 16, ""},
};

START_TEST(refuses_flood)
{
    char *text = malloc(floods[_i].length);
    size_t period = strlen(floods[_i].pattern);
    for (size_t i = 0; i < floods[_i].length; i++)
        text[i] = floods[_i].pattern[i % period];
    expect(text, floods[_i].length, NULL, 0, "f:", floods[_i].says);
    free(text);
}
END_TEST

START_TEST(refuses_many_keys)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < 10000; i++)
        fprintf(out, "k%d: 1\n", i);
    fclose(out);
    expect(text, size, NULL, 0, "f:257:1: ", "more than 256 keys");
    free(text);
}
END_TEST

static const struct {
    const char *set;
    const char *at, *says;
} sets[] = {
    {"wan.rtt=5", "--set wan.rtt=5:1:9: ", "rtt: '5' has no unit"},
    {"wan.0.rtt=5 MS", "--set wan.0.rtt=5 MS:1:11: ", "(did you mean 'ms'?)"},
    {"wan.7.rtt=5ms", "--set wan.7.rtt=5ms:1:5: ", "no element 7; the list has 1"},
    {"wan.rt=5ms", "--set wan.rt=5ms:1:5: ", "(did you mean 'rtt'?)"},
    {"wam.rtt=5ms", "--set wam.rtt=5ms:1:1: ", "(did you mean 'wan'?)"},
    {"strategies.flt.order=x", "--set strategies.flt.order=x:1:12: ", "unknown key 'flt'"},
    {"strategies.flat=x", "--set strategies.flat=x:1:12: ", "a whole element"},
    {"strategies.flat.overlap.depth=x", "--set strategies.flat.overlap.depth=x:1:31: ", "not a whole number"},
    {"training.tensor.x=1", "--set training.tensor.x=1:1:10: ", "tensor: a list or mapping"},
    {"training.data=3", "--set training.data=3:1:15: ", "data 2 would fit"},
    {"emu.sites.a.prefixes=[]", "--set emu.sites.a.prefixes=[]:1:5: ", "emu needs 'sites', a list"},
    {"lab.hosts=9", "--set lab.hosts=9:1:11: ", "2 would fit"},
    {"wan.loss_burst=9", "--set wan.loss_burst=9:1:16: ", "without loss"},
    {"name=", "f:1:1: ", "needs 'name'"},
    {"name", "--set name:1:1: ", "not KEY=VALUE"},
    {"=x", "--set =x:1:1: ", "not KEY=VALUE"},
    {"wan..rtt=5ms", "--set wan..rtt=5ms:1:5: ", "no key here"},
    {"wan.rtt=[1", "--set wan.rtt=[1:", "not YAML"},
    {"a.b.c.d.e.f.g.h.i.j.k.l=1", "--set a.b.c.d", "keys deep"},
};

START_TEST(refuses_set)
{
    char *text = sample_with(0, NULL);
    const char *one[] = {sets[_i].set};
    expect(text, strlen(text), one, 1, sets[_i].at, sets[_i].says);
    free(text);
}
END_TEST

START_TEST(refuses_paths)
{
    static const struct {
        const char *path;
        int code;
        const char *says;
    } paths[] = {
        {"twin-1537", -ENOENT, "(did you mean 'twin-1536'?)"},
        {"/nowhere/x.yaml", -ENOENT, "cannot be read"},
        {"/", -EINVAL, "cannot be read"},
        {"/dev/zero", -EINVAL, "larger than 1 MiB"},
        {"", -ENOENT, "no such file"},
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct scenario scenario;
        struct err err = {""};
        ck_assert_int_eq(scenario_load(paths[i].path, NULL, 0, &scenario, &err), paths[i].code);
        ck_assert_msg(strstr(err.text, paths[i].says) != NULL, "%s", err.text);
        ck_assert_int_eq(err_exit_code(paths[i].code), EXIT_USAGE);
    }
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("bad input");
    tcase_set_timeout(cases, 30);
    tcase_add_loop_test(cases, refuses_line, 0, sizeof lines / sizeof lines[0]);
    tcase_add_loop_test(cases, refuses_file, 0, sizeof files / sizeof files[0]);
    tcase_add_test(cases, refuses_binary);
    tcase_add_loop_test(cases, refuses_flood, 0, sizeof floods / sizeof floods[0]);
    tcase_add_test(cases, refuses_many_keys);
    tcase_add_loop_test(cases, refuses_set, 0, sizeof sets / sizeof sets[0]);
    tcase_add_test(cases, refuses_paths);
    return sample_run("bad input", cases);
}
