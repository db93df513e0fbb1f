#!/bin/sh
# Packets take the time that the scenario says, by names and both families. Usage: test_paths.sh LONGHAUL_LAB EXPECT
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
"$program" run --quiet --timeout 60s lab-2x4 -- true 2>"$scratch/err" || {
    code=$?
    cat "$scratch/err"
    exit "$code"
}
# between LOW HIGH: every "time=" of the last out is within (ms), and there is one.
between() {
    grep -q 'time=' "$scratch/out" || fail "$name: no answers"
    sed -n 's/.*time=\([0-9.]*\) ms.*/\1/p' "$scratch/out" | awk -v low="$1" -v high="$2" \
        '$1 < low || $1 > high {bad = 1} END {exit bad}' || { fail "$name: not within $1 to $2 ms"; cat "$scratch/out"; }
}
# rtt: mdev of the last out in ms below, mean within 20 us of what is given.
mean() {
    sed -n 's|^rtt [^=]*= [^/]*/\([^/]*\)/[^/]*/\(.*\) ms|\1 \2|p' "$scratch/out" | awk -v want="$1" \
        '{d = $1 - want; if (d < -0.02 || d > 0.02 || $2 > 0.002) bad = 1} END {exit bad || !NR}' ||
        { fail "$name: mean is not $1 ms"; cat "$scratch/out"; }
}

for family in -4 -6; do
    expect 0 run --quiet lab-2x4 -- ping "$family" -c 20 -i 0.1 east-0
    mean 21.3
    expect 0 run --quiet lab-2x4 --on east-3 -- ping "$family" -c 20 -i 0.1 west-1
    mean 21.3
    expect 0 run --quiet lab-2x4 -- ping "$family" -c 20 -i 0.1 west-3
    mean 0.1
    between 0.09 0.2
done
# The first packet is as fast as the others, and two runs give the same.
expect 0 run --quiet lab-2x4 -- ping -c 3 east-0
grep '^rtt' "$scratch/out" >"$scratch/first"
expect 0 run --quiet lab-2x4 -- ping -c 3 east-0
between 21.3 21.32
awk '{split($4, a, "/"); if (a[2] < 21.30 || a[2] > 21.32) exit 1}' "$scratch/first" || fail "two runs differ"
expect 0 run --quiet lab-2x4 --set wan.rtt=50ms -- ping -c 3 east-0
mean 50

# Every host by its name, from a host of the other site.
# shellcheck disable=SC2016
expect 0 run --quiet lab-2x4 --on east-1 -- sh -c 'for h in west-0 west-1 west-2 west-3 east-0 east-2 east-3; do ping -q -c 1 $h >/dev/null || echo $h; done; ip netns exec west-2 ping -q -c 1 east-3 >/dev/null || echo netns'
[ ! -s "$scratch/out" ] || fail "not reached: $(cat "$scratch/out")"

# Three sites in a row: hop by hop, delays add.
cat >"$scratch/row.yaml" <<'Y'
name: row
datacenters:
  - {name: Left, nodes: 2, gpus_per_node: 1, gpu: h100-sxm}
  - {name: middle, nodes: 2, gpus_per_node: 1, gpu: h100-sxm}
  - {name: right, nodes: 2, gpus_per_node: 1, gpu: h100-sxm}
fabric: {nics_per_node: 1, nic_rate: 10 Gb/s, latency: 20 us}
wan:
  - {between: [Left, middle], waves: 1, wave_rate: 1 Gb/s, rtt: 10 ms}
  - {between: [middle, right], waves: 1, wave_rate: 1 Gb/s, rtt: 7 ms}
model: {layers: 2, hidden: 64, heads: 2, vocabulary: 1000, source: invented}
training: {data: 6, sequence: 64, global_batch: 6, micro_batch: 1}
strategies: [{name: flat, allreduce: ring}]
lab: {divide: 1}
Y
for family in -4 -6; do
    expect 0 run --quiet "$scratch/row.yaml" -- ping "$family" -c 5 right-1
    mean 17
    holds out "ttl=61"
    expect 0 run --quiet "$scratch/row.yaml" --on right-0 -- ping "$family" -c 5 middle-0
    mean 7
done

# 64 hosts in each of two sites.
start=$(date +%s)
expect 0 run --quiet twin-1536 --set lab.hosts=64 --set lab.divide=1000 --set wan.jitter=0ms -- ping -c 2 iad-63
mean 21.3
echo "128 hosts: $(($(date +%s) - start)) s"
exit "$failed"
