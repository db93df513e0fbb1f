#!/bin/sh
# The scenario's strategies on real ranks: results, the same in every run, and what is said when something is wrong.
# Usage: test_strategies.sh LONGHAUL_LAB EXPECT SABOTAGE
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
sabotage=$3
if ! command -v mpirun >/dev/null || [ ! -e "$sabotage" ]; then
    echo "skipped: no Open MPI (openmpi-bin, libopenmpi-dev)"
    exit 77
fi
cd "$scratch" || exit 1
export TMPDIR="$scratch"
"$program" run --quiet --timeout 60s lab-2x4 -- true 2>err || { code=$?; cat err; exit "$code"; }
small="--set model.hidden=64 --set model.vocabulary=1024"

# measure CODE ARGUMENTS...: with a gradient of 1 MB.
measure() {
    want=$1
    shift
    # shellcheck disable=SC2086
    expect "$want" run lab-2x4 --quiet $small --strategies "$@"
}
# one_line TEXT: all that is said, and nothing is left.
one_line() {
    says "$1"
    [ "$(wc -l <err)" -eq 1 ] || { fail "$name: not one line:"; cat err; }
    [ ! -s out ] || fail "$name: printed $(cat out)"
    for folder in "${TMPDIR:-/tmp}"/longhaul-lab-*; do
        [ ! -e "$folder" ] || fail "$name: left $folder"
    done
}
step_of() {
    sed -n 's/^ *"step_s": \([0-9.]*\),$/\1/p' "$1" | head -n 1
}

# ---- results
measure 0 --strategy har --json result.json --timeline step.json
[ ! -s out ] || fail "--json and --timeline leave nothing to print"
holds result.json '"backend": "emu"'
holds result.json '"fidelity": "measured"'
awk '/"checked_bytes"/ && $2 + 0 > 0 {found = 1} END {exit !found}' result.json || fail "no sums were checked"
python3 - step.json <<'P' || fail "the timeline is none"
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
kinds = {event.get("cat") for event in events if event.get("ph") == "X"}
sys.exit(not {"compute", "wait", "send"} <= kinds)
P
measure 0 --strategy har --json - --steps 1
python3 -c 'import json, sys; json.load(sys.stdin)' <out || fail "--json - prints something else"
[ ! -s err ] || fail "--quiet says $(cat err)"
measure 0 --strategy har --steps 1
holds out "measured on real ranks"

# ---- the same in every run, whatever else the machine does: within 0.5 %
expect 0 run lab-2x4 --quiet --strategies --strategy har --json result.json
sh -c 'while :; do :; done' &
first_load=$!
sh -c 'while :; do :; done' &
second_load=$!
expect 0 run lab-2x4 --quiet --strategies --strategy har --json loaded.json
kill "$first_load" "$second_load"
difference=$(awk "BEGIN {print $(step_of loaded.json) / $(step_of result.json) - 1}")
echo "step of har: $(step_of result.json) s, on a loaded machine $(step_of loaded.json) s ($difference)"
awk "BEGIN {exit !($difference < 0.005 && $difference > -0.005)}" || fail "two runs differ by $difference"

# ---- what is wrong
measure 2 --strategy nobody
one_line "the scenario has no strategy of that name"
expect 2 run lab-2x4 --json out.json -- true
holds err "are of --strategies"
expect 2 run lab-2x4 --strategies -- true
holds err "no command"

export LD_PRELOAD="$sabotage"
SABOTAGE=flip measure 1 --strategy har
one_line "the sum of gradient element"
SABOTAGE=kill measure 1 --strategy har
one_line "ended by signal 9"
SABOTAGE=hang measure 1 --strategy har --timeout 15s
one_line "--timeout"
SABOTAGE=spin measure 1 --strategy har --timeout 15s
one_line "--timeout"
unset LD_PRELOAD

# All ranks on one host, through its memory; in real time, for there is no waiting for memory in virtual time.
echo "west-0 slots=8" >one_host
OMPI_MCA_orte_default_hostfile=$PWD/one_host OMPI_MCA_btl=vader,self measure 1 --strategy har --real-time --timeout 60s --steps 1
one_line "the link was bypassed"

# No mpirun.
mkdir bin
for tool in sh env ping true; do
    ln -s "$(command -v "$tool")" "bin/$tool"
done
PATH=$PWD/bin measure 77
one_line "mpirun is not installed here"

# Ctrl-C.
# shellcheck disable=SC2086
"$program" run lab-2x4 --quiet $small --strategies >out 2>err &
lab=$!
sleep 4
kill -INT "$lab"
wait "$lab"
code=$?
[ "$code" -eq 130 ] || fail "Ctrl-C: exit $code"
name="Ctrl-C"
for folder in "${TMPDIR:-/tmp}"/longhaul-lab-*; do
    [ ! -e "$folder" ] || fail "$name: left $folder"
done
exit "$failed"
