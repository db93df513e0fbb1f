#!/bin/sh
# How exact what apply makes and verify measures is, in virtual time. test_accuracy.sh LONGHAUL_EMU EXPECT_SH RIG_SH
# shellcheck disable=SC2154
set -u
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
if [ "${ACCURACY_INSIDE:-}" != 1 ]; then
    ACCURACY_INSIDE=1 exec unshare -n sh "$0" "$@"
fi
program=$1
export TMPDIR=/dev/shm
# shellcheck source=tests/verbs/expect.sh
. "$2"
# shellcheck source=tests/emu/verify/rig.sh
. "$3"
build

# RTT: 21.3 ms with a jitter of 0.7 ms, twice from the same seed; a bystander that feels nothing.
delays() {
    shape 1 --delay 10.65ms --jitter 495us
    verify 0 --delay 10.65ms --jitter 495us --probes 11000 --interval 10ms --goodput 0s --json "$@"
    within "RTT mean, s" "$(figure measured rtt mean_s)" 21.3e-3 20e-6
    within "RTT sd, s" "$(figure measured rtt sd_s)" 0.7e-3 0.035e-3
    within "reordered out" "$(figure measured loss out reordered)" 0 0
    within "reordered back" "$(figure measured loss back reordered)" 0 0
    within "answers" "$(figure answers)" 11000 0
    mean=$(figure measured rtt mean_s)
    sd=$(figure measured rtt sd_s)
}
delays --bystander c --bystander-address 10.1.1.1 --bystander-rtt 200us
within "bystander RTT p50, s" "$(figure bystander p50_s)" 100e-6 100e-6
first_mean=$mean first_sd=$sd
delays
within "RTT mean again / before" "$(awk "BEGIN { print $mean / $first_mean }")" 1 0.001
within "RTT sd again / before" "$(awk "BEGIN { print $sd / $first_sd }")" 1 0.001

# Loss of 100,000 probes at 0.1 %: 99 % of all draws lie within 100 +- 26 (binomial, sd 10).
shape 3 --delay 10.65ms --loss 0.1%
verify 0 --delay 10.65ms --loss 0.1% --probes 100000 --interval 200us --goodput 0s --json
within "loss out, probes" "$(figure measured loss out lost)" 100 26
within "loss back, probes" "$(figure measured loss back lost)" 100 26

# Bursts: 5 % in bursts of 4 (Gilbert-Elliott).
shape 5 --delay 10.65ms --loss 5% --loss-burst 4
verify 0 --delay 10.65ms --loss 5% --loss-burst 4 --probes 60000 --interval 200us --goodput 0s --json
for way in out back; do
    within "lost in a row $way" "$(awk "BEGIN { print $(figure measured loss $way lost) / $(figure measured loss $way runs) }")" 4 0.4
done

# Goodput: rate x MSS / (MTU + 14), twice at 1 Gb/s.
rate_of() {
    shape 7 --delay 10.65ms --rate "$1"
    verify 0 --delay 10.65ms --rate "$1" --probes 100 --goodput 5s --json
    goodput=$(figure measured goodput bit_per_s)
    mss=$(figure measured goodput mss_bytes)
    mtu=$(figure measured goodput mtu_bytes)
    echo "TCP buffers at $1: $(figure measured goodput sndbuf_bytes) byte (sender), $(figure measured goodput rcvbuf_bytes) byte (receiver)"
    within "goodput at $1, of rate x MSS / (MTU + 14)" "$(awk "BEGIN { print $goodput / ($2 * $mss / ($mtu + 14)) }")" 1 0.01
}
rate_of 1Gb/s 1e9
first_goodput=$goodput
rate_of 1Gb/s 1e9
within "goodput again / before" "$(awk "BEGIN { print $goodput / $first_goodput }")" 1 0.001
rate_of 10Gb/s 1e10
exit "$failed"
