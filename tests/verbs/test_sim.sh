#!/bin/sh
# test_sim.sh LONGHAUL-SIM: exit codes, messages, JSON, timeline and what an interrupted run leaves.
set -u
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$(dirname "$0")/expect.sh"

expect 0 lab-2x4
grep -q '^Best: ' "$scratch/out" || fail "no advice"
expect 0 lab-2x4 --json -
mv "$scratch/out" "$scratch/first"
expect 0 lab-2x4 --json -
cmp "$scratch/first" "$scratch/out" || fail "two runs differ"

# What is not simulated is said, also in the JSON, and changes nothing else: jitter, and without TCP loss.
grep -q 'Not simulated' "$scratch/first" && fail "a note about jitter that nobody asked for"
expect 0 lab-2x4 --set transport.protocol=ideal --json -
mv "$scratch/out" "$scratch/first"
expect 0 lab-2x4 --set transport.protocol=ideal --set wan.jitter=0.7ms --set wan.loss=0.1% --set wan.loss_burst=3
holds out 'Not simulated, as if it were zero: west-east jitter 700 us (sd of the RTT), loss 0.1 % (one way,'
expect 0 lab-2x4 --set transport.protocol=ideal --set wan.loss=0.1% --json -
holds out '"Not simulated, as if it were zero: west-east loss 0.1 % (one way)."'
grep -v '"hash"\|"Not simulated' "$scratch/out" | sed 's/no jitter.",$/no jitter."/' >"$scratch/lossy"
grep -v '"hash"' "$scratch/first" | cmp -s - "$scratch/lossy" || fail "loss changed more than the notes"
expect 0 lab-2x4 --set wan.jitter=0.7ms --set wan.loss=0.1% --json -
holds out '"Not simulated, as if it were zero: west-east jitter 700 us (sd of the RTT)."'

expect 0 lab-2x4 --timeline "$scratch/step.json" --strategy har
for kind in compute send wait; do
    grep -q "\"cat\": *\"$kind\"" "$scratch/step.json" || fail "no $kind in the timeline"
done
grep -q '"ph": *"C"' "$scratch/step.json" || fail "no link load in the timeline"
if command -v python3 >/dev/null; then
    python3 -m json.tool "$scratch/step.json" >/dev/null || fail "the timeline is no JSON"
else
    echo "timeline's JSON left unchecked: no python3"
fi

if [ -e /dev/full ]; then
    expect 1 lab-2x4 --timeline /dev/full
    explains 'cannot write the timeline'
    expect 1 lab-2x4 --json /dev/full
    explains 'writing failed'
fi
expect 1 lab-2x4 --json "$scratch/none/result.json"
explains 'cannot be written'
expect 2 no-such-scenario
explains 'no-such-scenario'
expect 2 lab-2x4 --strategy nobody
explains 'no strategy of that name'
expect 2 lab-2x4 --set wan.rtt=21
explains 'has no unit'
expect 2 lab-2x4 --set 'calibrate={step: 1 us}'
explains 'cannot take'
expect 2 lab-2x4 --set datacenters.1.nodes=3 --set training.data=7 --set training.global_batch=14
explains 'the same number of replicas'
"$program" --fidelity perfect >"$scratch/out" 2>"$scratch/err"
[ $? -eq 2 ] || fail "--fidelity perfect is taken"
"$program" --help | grep -q 'longhaul sim twin-1536 --set' || fail "--help has no example"

# Interrupted in the middle, it ends by the signal with all its processes. A shell's background jobs ignore SIGINT: env
# undoes that.
interrupt() {
    signal=$1 code=$2
    shift 2
    "$@" "$program" twin-1536 --fidelity message >/dev/null 2>&1 &
    pid=$!
    children=
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sleep 0.3
        children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
        [ -z "$children" ] || break
    done
    kill "-$signal" "$pid"
    wait "$pid" 2>/dev/null
    got=$?
    [ "$got" -eq "$code" ] || fail "SIG$signal: exit $got, expected $code"
    [ -n "$children" ] || fail "SIG$signal: no process to look for"
    sleep 0.2
    for child in $children; do
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$child/status" 2>/dev/null)
        case "$state" in '' | Z) ;; *) fail "SIG$signal: process $child goes on" ;; esac
    done
}
interrupt TERM 143
if env --default-signal=INT true 2>/dev/null; then
    interrupt INT 130 env --default-signal=INT
else
    echo "SIGINT left out: env has no --default-signal"
fi
exit "$failed"
