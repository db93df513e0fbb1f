#!/bin/sh
# longhaul-emu verify and respond as their user sees them, in virtual time. test_verify.sh LONGHAUL_EMU EXPECT_SH RIG_SH
# shellcheck disable=SC2154
set -u
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
if [ "${VERIFY_INSIDE:-}" != 1 ]; then
    VERIFY_INSIDE=1 exec unshare -n sh "$0" "$@"
fi
program=$1
export TMPDIR=/dev/shm
# shellcheck source=tests/verbs/expect.sh
. "$2"
# shellcheck source=tests/emu/verify/rig.sh
. "$3"
build
# Processes that run as responders, started by a verify.
responders() { grep -lz -e '--attache[d]' /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3; }
none_left() { [ -z "$(responders)" ] || fail "$1: a responder stayed behind"; }

# As asked, in people's words; nothing stays behind.
shape 1 --delay 10.65ms --jitter 495us --rate 1Gb/s
verify 0 --delay 10.65ms --jitter 495us --rate 1Gb/s
holds out "out:  10.65 ms one way, jitter 495 us one way (sd, normal), 1 Gb/s"
holds out "RTT mean"
holds out "one-way mean back"
holds out "TCP out: "
holds out "within tolerance"
grep -q "$(printf '\033')" "$scratch/out" && fail "colours in a file"
[ -s "$scratch/err" ] && fail "$name: said something on standard error"
none_left "$name"

# Something else than asked.
verify 1 --delay 5ms --probes 100 --goodput 0s
holds out "OUT"
holds out "OUT of tolerance"
verify 1 --delay 10.65ms --rate 2Gb/s --jitter 495us --probes 100
grep -q "TCP goodput out.*OUT" "$scratch/out" || fail "half the rate was not told"
verify 1 --delay 10.9ms --jitter 495us --rate 1Gb/s --probes 400 --goodput 0s
verify 0 --delay 10.9ms --jitter 495us --rate 1Gb/s --probes 400 --goodput 0s --tolerance 3
verify 1 --delay 10.65ms --jitter 495us --one-sided --probes 100 --goodput 0s --json
holds out '"schema": "longhaul.emu-verify/1"'
holds out '"requested_by": "flags"'
holds out '"back": null'

# Reordering and duplicates, asked for and not.
shape 3 --delay 10.65ms --reorder 20% --duplicate 2%
verify 0 --delay 10.65ms --reorder 20% --duplicate 2% --probes 2000 --interval 5ms --goodput 0s
verify 1 --delay 10.65ms --probes 2000 --interval 5ms --goodput 0s
grep -q "reordered out.*OUT" "$scratch/out" || fail "reordering was not told"
grep -q "duplicated back.*OUT" "$scratch/out" || fail "duplicates were not told"

# What is applied on this very device, one direction.
unshape
applied="--dev a0 --to 10.2.0.0/16 --delay 3ms --loss 2% --seed 5"
# shellcheck disable=SC2086
ip netns exec a "$program" apply $applied >/dev/null || fail "apply on a"
verify 0 --one-sided --goodput 0s --json
holds out '"requested_by": "applied"'
verify 0 --one-sided --goodput 0s --bystander c --bystander-address 10.1.1.1
holds out "bystander RTT p50"
ip netns exec a "$program" clear >/dev/null
verify 2
explains "nothing is applied on a0"
ip netns exec b "$program" apply --dev b0 --to 10.1.0.0/16 --delay 3ms >/dev/null || fail "apply on b"
verify 0 --delay 3ms --at ingress --one-sided --goodput 0s
holds out "nothing (one-sided)"
ip netns exec b "$program" clear >/dev/null

# A path that must be as before, and is not.
shape 1 --delay 2ms
ip netns exec r1 "$program" apply --dev c1 --to 10.1.1.0/24 --delay 1ms >/dev/null || fail "apply on r1"
verify 1 --delay 2ms --goodput 0s --probes 50 --bystander c --bystander-address 10.1.1.1
grep -q "bystander RTT p50.*OUT" "$scratch/out" || fail "the bystander was not told"
unshape

# One line where nobody answers, the key is another one, or there is nothing to start.
verify 1 --delay 2ms --port 5 --key 00112233445566778899aabbccddeeff
explains "no responder at 10.2.0.1 port 5"
verify 1 --delay 2ms --remote-program /nowhere/longhaul-emu
explains "no responder on b"
verify 1 --delay 2ms --rsh /nowhere/ssh
explains "/nowhere/ssh"
ip netns exec b "$program" respond --address 10.2.0.1 --port 4000 --idle 3s >"$scratch/announced" &
by_hand=$!
sleep 0.5
key=$(sed -n 's/^port 4000 key //p' "$scratch/announced")
verify 1 --delay 2ms --port 4000 --key 00112233445566778899aabbccddeeff
explains "key"
shape 1 --delay 2ms
verify 0 --delay 2ms --port 4000 --key "$key" --probes 50 --goodput 1s
verify 0 --delay 2ms --port 4000 --key "$key" --probes 50 --goodput 1s
sleep 4
kill -0 "$by_hand" 2>/dev/null && fail "respond did not end when idle"
wait "$by_hand" || fail "respond ended with $?"

# Ended in the middle: each end tells in one line, and the other ends too.
start_long() {
    ip netns exec a "$program" verify --peer b --address 10.2.0.1 --rsh "ip netns exec" --remote-program "$program" \
        --delay 2ms --probes 100000 --goodput 0s >"$scratch/out" 2>"$scratch/err" &
    long=$!
    name="a verify that is ended"
    sleep 2
    [ "$(responders | wc -l)" -eq 1 ] || fail "no responder runs"
}
for signal in INT TERM; do
    (trap - INT; start_long; kill -"$signal" "$long"; wait "$long"; echo $? >"$scratch/code")
    [ "$(cat "$scratch/code")" -eq 1 ] || fail "$signal: exit $(cat "$scratch/code")"
    sleep 0.5
    none_left "$signal"
done
explains "interrupted"
start_long
kill -KILL "$long"
wait "$long"
sleep 0.5
none_left KILL
start_long
kill -KILL "$(responders)"
wait "$long" && fail "a dead responder was not told"
explains "went away in the middle"
exit "$failed"
