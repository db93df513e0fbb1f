#!/bin/sh
# test_platform.sh LONGHAUL-PLATFORM PING.C: the program's exit codes, and that smpirun takes its platform and keeps the latencies.
set -u
platform=$1
source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
    echo "$1"
    failed=1
}

"$platform" lab-2x4 >"$scratch/out.xml" 2>"$scratch/err" || fail "lab-2x4: exit $?"
"$platform" lab-2x4 -o "$scratch/lab.xml" || fail "-o: exit $?"
cmp -s "$scratch/out.xml" "$scratch/lab.xml" || fail "standard output and -o differ"
grep -q '<host id="east-3"' "$scratch/lab.xml" || fail "no host east-3"
# 1 Gb/s x 1448 / 1514: what TCP leaves of it.
grep -q 'id="wan0-west-east" bandwidth="119550858[.0-9]*Bps" latency="0.01065' "$scratch/lab.xml" || fail "WAN link is not as asked"
"$platform" lab-2x4 --set transport.protocol=ideal | grep -q 'id="wan0-west-east" bandwidth="125000000Bps" ' || fail "ideal: WAN link is not as asked"
grep -q 'jitter' "$scratch/lab.xml" && fail "a remark about jitter that nobody asked for"
"$platform" lab-2x4 --set wan.jitter=0.7ms | grep -q "jitter and loss are left out" || fail "jitter dropped in silence"

# expect CODE TEXT ARGUMENTS...: wrong input is told in one line (usage adds argp's own hint).
expect() {
    code=$1 text=$2
    shift 2
    "$platform" "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" -eq "$code" ] || fail "$*: exit $got, expected $code"
    grep -qF -- "$text" "$scratch/err" || { fail "$*: no '$text' in:"; cat "$scratch/err"; }
}
expect 2 'needs a SCENARIO'
expect 2 "did you mean 'lab-2x4'" lab-2x
expect 2 'has no unit' lab-2x4 --set wan.rtt=5
expect 1 '/nowhere/x.xml: cannot be written' lab-2x4 -o /nowhere/x.xml
[ "$failed" -eq 0 ] || exit 1

command -v smpicc >/dev/null && command -v smpirun >/dev/null || { echo "skipped: no smpicc and smpirun here"; exit 77; }
smpicc -o "$scratch/ping" "$source" || { echo "smpicc failed"; exit 1; }
printf '%s\n' west-0 west-1 east-0 east-1 >"$scratch/hosts"

# one_way RTT LEAST MOST: one way between the first and the last of four ranks, us, as smpirun sees it.
one_way() {
    "$platform" lab-2x4 --set "wan.rtt=$1" -o "$scratch/lab.xml" || fail "rtt $1: exit $?"
    said=$(smpirun -platform "$scratch/lab.xml" -hostfile "$scratch/hosts" -np 4 --log=root.thres:warning \
        --cfg=network/model:CM02 --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:no \
        --cfg=smpi/bw-factor:1 --cfg=smpi/lat-factor:1 --cfg=smpi/simulate-computation:no "$scratch/ping" 2>"$scratch/err") ||
        { fail "smpirun failed"; cat "$scratch/err"; }
    us=$(echo "$said" | sed -n 's/^one way \([0-9]*\) us, sum 4 of 4$/\1/p')
    [ -n "$us" ] && [ "$us" -ge "$2" ] && [ "$us" -le "$3" ] || fail "rtt $1: '$said', expected $2 to $3 us and the whole sum"
}
# Half the RTT, 50 us of fabric.
one_way '21.3 ms' 10590 10810
one_way '100 ms' 49550 50550
exit "$failed"
