#!/bin/sh
# test_collective.sh LONGHAUL-COLLECTIVE: exit codes, messages, table and JSON of the program.
set -u
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$(dirname "$0")/expect.sh"

expect 0 lab-2x4 --size 1KiB..8KiB
holds out '2 sites (west 4 nodes, east 4 nodes), 8 ranks of 1 GPU, 10 Gb/s per rank'
holds out 'RTT 21.3 ms'
[ "$(grep -cE 'KiB  (ring|hierarchical) .* message$' "$scratch/out")" -eq 8 ] || { fail "not 8 rows"; cat "$scratch/out"; }
[ ! -s "$scratch/err" ] || fail "progress on a standard error that is no terminal"

expect 0 lab-2x4 --size 64MB,1KiB --algorithm interleaved,hierarchical --skew 1ms
holds out 'ranks start within 1 ms'
for op in allreduce reducescatter allgather sendrecv; do
    expect 0 lab-2x4 --op "$op" --size 1MB
    holds out "$op"
    expect 0 lab-2x4 --op "$op" --size 12345679B --set transport.channels=3 --set transport.slices=3
    expect 0 quad-768 --op "$op" --size 1MB
done
# One message over warm connections: 10.65 ms + 50 us + 1 MB x 1514 / 1448 / 1 Gb/s.
expect 0 lab-2x4 --op sendrecv --size 1MB
holds out '19.06 ms'

expect 0 lab-2x4 --size 1KiB..1MiB --json "$scratch/a.json"
expect 0 lab-2x4 --size 1KiB..1MiB --json "$scratch/b.json"
cmp -s "$scratch/a.json" "$scratch/b.json" || fail "two runs give different JSON"
expect 0 lab-2x4 --size 1KiB --json -
holds out '"schema": "longhaul.collective/1"'
holds out '"notes": []'
head -c 1 "$scratch/out" | grep -q '{' || fail "--json - mixes table and JSON"

# Jitter and loss are not simulated: said, also in the JSON.
expect 0 quad-768 --size 1KiB --set wan.0.jitter=0.7ms --set wan.3.loss=1e-6 --json "$scratch/a.json"
holds out 'Not simulated, as if it were zero: ord-iad jitter 700 us (sd of the RTT); dfw-ord'
grep -qF '"Not simulated, as if it were zero: ord-iad jitter 700 us (sd of the RTT); dfw-ord loss 1e-4 % (one way)."' "$scratch/a.json" || fail "no note in the JSON"

expect 2 lab-2x4 --op allreduc --size 1KiB
says "--op: 'allreduc' is unknown (did you mean 'allreduce'?)"
expect 2 lab-2x4 --size 12
says "--size: '12' has no unit"
expect 2 lab-2x4 --size 1kib
says "--size: '1kib'"
expect 2 lab-2x4 --size 0
says '--size'
expect 2 lab-2x4 --size inf
says '--size'
expect 2 lab-2x4 --size ''
says '--size'
expect 2 lab-2x4 --size 1MB,
says '--size'
expect 2 lab-2x4 --size 1GiB..1KiB
says '--size: the range ends below its start'
expect 2 lab-2x4 --algorithm rng
says "--algorithm: 'rng' is unknown (did you mean 'ring'?)"
expect 2 lab-2x4 --algorithm ring,ring
says "'ring' stands there twice"
expect 2 lab-2x4 --op allgather --algorithm hierarchical --size 1KiB
says 'hierarchical is an all-reduce'
expect 2 lab-2x4 --op sendrecv --algorithm ring
says 'sendrecv has only one way'
expect 2 lab-2x4 --skew 3
says "--skew: '3' has no unit"
expect 2 lab-2x4 --set wan.rtt=5
says 'has no unit'
expect 2 twin-153
says "did you mean 'twin-1536'"
expect 2
holds err 'needs a SCENARIO'
expect 2 lab-2x4 twin-1536
holds err 'is another'
expect 1 lab-2x4 --size 1KiB --json /nowhere/x.json
holds err '/nowhere/x.json: cannot be written'
expect 0 --help
holds out 'longhaul collective twin-1536'
exit "$failed"
