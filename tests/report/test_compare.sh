#!/bin/sh
# longhaul compare with made-up backends behind a front door of our own: what it runs, what it prints, how it fails.
# Usage: test_compare.sh LONGHAUL-COMPARE FAKE-BACKEND
# shellcheck disable=SC2016 # commands in single quotes are for the front door to expand
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
cp "$1" "$folder/longhaul-compare"
cp "$2" "$folder/fake-backend"
compare=$folder/longhaul-compare

# The front door that compare finds beside itself. FAKE_SIM and FAKE_LAB: commands in place of the good answer.
cat >"$folder/longhaul" <<'END'
#!/bin/sh
here=${0%/*}
echo "$*" >>"$here/calls"
case $1 in
sim) eval "${FAKE_SIM:-}" ;;
lab) eval "${FAKE_LAB:-}" ;;
esac
exec "$here/fake-backend" "$@"
END
chmod +x "$folder/longhaul"

fail() {
    echo "FAIL $*"
    failures=$((failures + 1))
}

# check NAME EXPECTED_CODE EXPECTED_TEXT COMMAND...: the code is exact, the text a part of stdout or stderr.
check() {
    name=$1 code=$2 text=$3
    shift 3
    got=0
    : >"$folder/calls"
    output=$("$@" 2>&1) || got=$?
    [ "$got" -eq "$code" ] || fail "$name: exit $got, expected $code: $output"
    case $output in
    *"$text"*) ;;
    *) fail "$name: no '$text' in: $output" ;;
    esac
}

calls() {
    sed "s|$folder|.|g" "$folder/calls"
}

# expect_calls NAME LINES: exactly these, in this order.
expect_calls() {
    [ "$(calls)" = "$2" ] || fail "$1: ran $(calls)"
}

check "one point" 0 "Error: median 4.8 %, worst -4.8 % (" "$compare" twin-1536
expect_calls "one point" "sim twin-1536 --lab-scale --json -
lab run twin-1536 --strategies --quiet --json -
sim twin-1536 --json -"
check "the scale" 0 "4 hosts a site, bytes and rates divided by" "$compare" twin-1536
check "many scales" 0 "not the same for all points" "$compare" twin-1536 --vary lab.hosts=2,4
check "at the scenario's own scale" 0 "own scale, 4 hosts a site." "$compare" lab-2x4
expect_calls "at the scenario's own scale" "sim lab-2x4 --lab-scale --json -
lab run lab-2x4 --strategies --quiet --json -"
check "options reach the backends" 0 "wait" "$compare" twin-1536 --set wan.rtt=9ms --steps 7
expect_calls "options reach the backends" "sim twin-1536 --set wan.rtt=9ms --lab-scale --json -
lab run twin-1536 --set wan.rtt=9ms --strategies --quiet --json - --steps 7
sim twin-1536 --set wan.rtt=9ms --json -"
check "points" 0 "error over wan.rtt, wan.waves" "$compare" twin-1536 --rtt 1ms,5ms --vary wan.waves=1,4 --strategy har
[ "$(grep -c '^lab run .*--set wan.rtt=.*--set wan.waves=' "$folder/calls")" -eq 4 ] || fail "points: ran $(calls)"
case $output in *flat*) fail "--strategy: $output" ;; esac

check "json" 0 '"schema": "longhaul.compare/1"' "$compare" twin-1536 --rtt 1ms,5ms --json -
printf '%s' "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert [p["sets"] for p in d["points"]] == [["wan.rtt=1ms"], ["wan.rtt=5ms"]]
s = d["points"][1]["strategies"][2]
assert s["name"] == "har" and abs(s["error"] - (1 / 1.05 - 1)) < 1e-12, s["error"]
assert abs(s["predicted"]["step_s"] - 1.205) < 1e-12 and s["measured"]["measured"]["steps"] == 3
assert abs(s["full_scale"]["step_s"] - 1.205) < 1e-12
assert abs(s["split"]["bandwidth"]["difference_s"] + 0.05) < 1e-12 and s["arises_in"] == "bandwidth"
assert d["points"][0]["lab"]["hosts_per_site"] == 4 and d["points"][0]["notes"]["measured"] == ["made up"]
assert abs(d["summary"]["worst_error"] - (1 / 1.05 - 1)) < 1e-12
' || fail "json: $output"
check "json to a file" 0 "Error: median" "$compare" twin-1536 --json "$folder/out.json"
python3 -m json.tool "$folder/out.json" >"$folder/tool" || fail "json to a file"
check "full disk" 1 "writing failed" "$compare" twin-1536 --json /dev/full

check "no scenario" 2 "needs a scenario" "$compare"
check "bad scenario" 2 "twin-1537" "$compare" twin-1537
expect_calls "bad scenario" ""
check "bad value of a later point" 2 "wan.rtt=5" "$compare" twin-1536 --rtt 1ms,5
expect_calls "bad value of a later point" ""
check "empty value" 2 "a value is empty" "$compare" twin-1536 --rtt 1ms,,5ms
check "no value" 2 "it is KEY=VALUE" "$compare" twin-1536 --vary wan.rtt
check "varied twice" 2 "varied twice" "$compare" twin-1536 --rtt 1ms --vary wan.rtt=2ms
check "unknown strategy" 2 "did you mean 'har'" "$compare" twin-1536 --strategy haar
check "steps" 2 "whole number" "$compare" twin-1536 --steps 0
check "timeout in what" 2 "--timeout" "$compare" twin-1536 --timeout 3
check "lists nest" 2 "--set training={a: 1, b: [2, 3]}:" "$compare" twin-1536 --vary 'training={a: 1, b: [2, 3]}'
check "help" 0 "longhaul compare twin-1536 --rtt" "$compare" --help

# with SIM LAB: what the front door does instead.
with() {
    sim=$1 lab=$2
    shift 2
    env FAKE_SIM="$sim" FAKE_LAB="$lab" "$@"
}

check "the lab fails" 1 "wan.rtt=5ms: longhaul lab run: longhaul-lab: it broke" \
    with '' 'echo noise >&2; echo longhaul-lab: it broke >&2; echo Try --help >&2; exit 1' "$compare" twin-1536 --rtt 5ms
check "the simulator fails" 1 "longhaul sim --lab-scale: no SimGrid today" \
    with 'echo no SimGrid today >&2; exit 9' '' "$compare" twin-1536
check "full scale fails" 1 "longhaul sim: too large" \
    with 'case $* in *--lab-scale*) ;; *) echo too large >&2; exit 1 ;; esac' '' "$compare" twin-1536
check "no lab" 77 "longhaul lab run: longhaul: 'lab' is not installed here" \
    with '' "echo \"longhaul: 'lab' is not installed here\" >&2; exit 77" "$compare" twin-1536
check "the scenario does not scale" 2 "at the scale of the lab" \
    with 'echo "longhaul-sim: x at the scale of the lab: no" >&2; exit 2' '' "$compare" twin-1536
check "says nothing" 1 "exit code 3, without a word" with '' 'exit 3' "$compare" twin-1536
check "dies" 1 "ended by signal 9" with '' 'kill -9 $$' "$compare" twin-1536
check "garbage" 1 "longhaul lab run: its JSON cannot be read: line 1" with '' 'echo "{nonsense"; exit 0' "$compare" twin-1536
check "nothing" 1 "its JSON cannot be read" with '' 'exit 0' "$compare" twin-1536
check "no result" 1 "missing" with 'echo "{}"; exit 0' '' "$compare" twin-1536
check "another scenario" 1 "longhaul lab run: scenario.hash:" \
    with '' 'exec "$here/fake-backend" lab run twin-1536 --set wan.rtt=1ms' "$compare" twin-1536
check "another backend" 1 "a result of backend sim, not emu" \
    with '' 'exec "$here/fake-backend" sim --lab-scale twin-1536' "$compare" twin-1536
check "warnings pass" 0 "beware" with '' 'echo beware >&2' "$compare" twin-1536
check "a large answer" 0 "Error: median" with '' 'head -c 3000000 /dev/zero | tr "\000" " "' "$compare" twin-1536
check "too slow" 1 "longhaul lab run: not done after 0.5 s" with '' 'sleep 60' "$compare" twin-1536 --timeout 500ms
check "pipes held open by others" 0 "Error: median" with '' 'sleep 3 & echo $! >"$here/holder"' "$compare" twin-1536
kill "$(cat "$folder/holder")" 2>"$folder/kill" || true
mkdir "$folder/alone"
cp "$1" "$folder/alone/longhaul-compare"
check "no front door" 77 "no program longhaul beside this one" "$folder/alone/longhaul-compare" twin-1536

# living GROUP: has it processes that are not just waiting to be reaped?
living() {
    cat /proc/[0-9]*/stat 2>"$folder/cat" | awk -v group="$1" '{ sub(/^.*\) /, ""); if ($3 == group && $1 != "Z") found = 1 }
        END { exit !found }'
}

# interrupted SIGNAL CODE: ends with that code, and what it started ends too.
interrupted() {
    rm -f "$folder/pid"
    FAKE_LAB='echo $$ >"$here/pid.new"; mv "$here/pid.new" "$here/pid"; sleep 60; exit 1' \
        env --default-signal=INT "$compare" twin-1536 >"$folder/out" 2>&1 &
    compare_pid=$!
    for _ in $(seq 200); do
        [ ! -s "$folder/pid" ] || break
        sleep 0.05
    done
    child=$(cat "$folder/pid")
    kill -"$1" "$compare_pid"
    got=0
    wait "$compare_pid" || got=$?
    [ "$got" -eq "$2" ] || fail "SIG$1: exit $got: $(cat "$folder/out")"
    for _ in $(seq 40); do
        living "$child" || break
        sleep 0.05
    done
    if living "$child"; then
        fail "SIG$1: processes are left in group $child"
        kill -9 -"$child"
    fi
}
interrupted INT 130
interrupted TERM 143

[ "$failures" -eq 0 ]
