#!/bin/sh
# longhaul-emu run on a cluster: the hosts of a lab whose own links have neither delay nor rate.
# Usage: test_cluster.sh LONGHAUL_LAB EXPECT SABOTAGE CASES LAB_2X4
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
sabotage=$3 cases=$4
if ! command -v mpirun >/dev/null || [ ! -e "$sabotage" ]; then
    echo "skipped: no Open MPI (openmpi-bin, libopenmpi-dev)"
    exit 77
fi
# A gradient of 1 MB, and the lab's addresses as those of a cluster.
sed 's/nic_rate: 10 Gb/nic_rate: inf # 10 Gb/; s/hidden: 256/hidden: 64/; s/vocabulary: 6656/vocabulary: 1024/' "$5" |
    sed 's/nic_rate: inf.*/nic_rate: inf, latency: 50 us}/' >"$scratch/mine.yaml"
echo 'emu: {sites: [{site: west, prefixes: [10.1.0.0/16, "fd10:0:1::/48"]}, {site: east, prefixes: [10.2.0.0/16, "fd10:0:2::/48"]}]}' >>"$scratch/mine.yaml"
for host in west-0 west-1 west-2 west-3 east-0 east-1 east-2 east-3; do
    echo "$host slots=1 # one rank"
done >"$scratch/hosts"
cp "$cases" "$scratch/cases.sh"
cd "$scratch" || exit 1
"$program" run --quiet --timeout 60s lab-2x4 -- true 2>err || { code=$?; cat err; exit "$code"; }
expect 0 run mine.yaml --quiet --timeout 300s --writable "$scratch" --set wan.rtt=0s --set wan.wave_rate=inf -- \
    sh ./cases.sh mine.yaml hosts "$sabotage"
cat out
for line in "fine 0 0 0 0" "strategy 2 0 0 1" "kill 1 0 0 1" "late 1 0 0 1" "interrupted 130 0 0 0" "no-mpirun 77 0 0 1" \
    "wrong 2 0 0 1"; do
    grep -qx "$line" out || { fail "not: $line"; cat "${line%% *}.err"; }
done
grep -q '"backend": "emu"' result.json || fail "no result"
awk '/"step_s"/ && !step {step = $2 + 0} END {exit !(step > 0.0213 && step < 0.1)}' result.json || fail "the step is not that of 21.3 ms"
grep -q "the ranks had not finished" late.err || fail "late: $(cat late.err)"
grep -q "wrong:1:8" wrong.err || fail "wrong: $(cat wrong.err)"
exit "$failed"
