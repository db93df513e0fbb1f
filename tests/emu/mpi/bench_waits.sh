#!/bin/sh
# What a wait costs: seconds of this machine per second of virtual time, 8 ranks that wait for messages of 21.3 ms. Both
# figures are to be below 1. Usage: bench_waits.sh LONGHAUL_LAB EXPECT RIG WAITS
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
rig=$3
set -- "$4"
# shellcheck source=tests/emu/mpi/rig.sh
. "$rig"

# wall MODE N: milliseconds
wall() {
    begin=$(date +%s%N)
    expect 0 run --quiet --timeout 120s lab-2x4 -- mpirun ./waits "$1" "$2"
    echo $((($(date +%s%N) - begin) / 1000000))
}
for mode in ping pairs; do
    short=$(wall $mode 10)
    long=$(wall $mode 245) # 235 x 21.31 ms: 5 s more
    ratio=$(awk "BEGIN {print ($long - $short) / 5000}")
    echo "$mode: $ratio s per virtual second"
    awk "BEGIN {exit !($ratio < 1)}" || fail "$mode: not below 1"
done
exit "$failed"
