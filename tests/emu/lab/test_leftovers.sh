#!/bin/sh
# However a run ends, no process and no file of it stays. Usage: test_leftovers.sh LONGHAUL_LAB EXPECT
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
"$program" run --quiet --timeout 60s lab-2x4 -- true 2>"$scratch/err" || {
    code=$?
    cat "$scratch/err"
    exit "$code"
}
mkdir "$scratch/tmp"
export TMPDIR="$scratch/tmp"

# below PID: all processes below it.
below() {
    for child in $(ps -e -o pid=,ppid= | awk -v p="$1" '$2 == p {print $1}'); do
        echo "$child"
        below "$child"
    done
}
# start COMMAND...: a run in the background that has come to its command: $launcher, $processes.
start() {
    rm -f "$scratch/go"
    "$program" run --quiet --real-time --writable "$scratch" lab-2x4 -- sh -c "echo >$scratch/go; $*" \
        >"$scratch/out" 2>"$scratch/err" &
    launcher=$!
    for _ in $(seq 200); do
        [ -e "$scratch/go" ] && break
        sleep 0.05
    done
    [ -e "$scratch/go" ] || fail "$name: did not start"
    processes=$(below "$launcher")
    [ "$(echo "$processes" | wc -w)" -ge 3 ] || fail "$name: too few processes to be one lab: $processes"
}
alive() {
    for pid in $processes; do
        case $(ps -o stat= -p "$pid" 2>/dev/null) in '' | Z*) ;; *) echo "$pid" ;; esac
    done
}
# gone: waits until all of $processes are, and looks at the private folder's place.
gone() {
    for _ in $(seq 100); do
        [ -z "$(alive)$(ls -A "$TMPDIR")" ] && break
        sleep 0.05
    done
    [ -z "$(alive)" ] || fail "$name: still there: $(alive)"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "$name: left behind: $(ls "$TMPDIR")"
}
expect_code() {
    wait "$launcher"
    got=$?
    [ "$got" -eq "$1" ] || { fail "$name: exit $got, expected $1"; cat "$scratch/err"; }
}

name="kill -9 of the launcher"
start 'sleep 1000 & sleep 1000'
ls "$TMPDIR"/longhaul-lab-* >/dev/null || fail "$name: no private folder"
[ "$(stat -c %a "$TMPDIR"/longhaul-lab-*)" = 700 ] || fail "$name: the private folder is open to others"
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null
gone

for signal in INT:130 TERM:143 HUP:129; do
    name="SIG${signal%:*}"
    start 'sleep 1000'
    kill -s "${signal%:*}" "$launcher"
    expect_code "${signal#*:}"
    gone
done

name="the kernel is killed"
start 'sleep 1000'
# shellcheck disable=SC2086
kernel=$(ps -o pid=,ppid= -p "$(echo $processes | tr ' ' ,)" | awk -v l="$(ps -o pid= --ppid "$launcher" | head -n 1)" '$2 == l+0 {print $1; exit}')
kill -KILL "$kernel"
expect_code 1
holds err "the lab's kernel ended"
gone

name="the guardian is killed"
start 'sleep 1000'
kill -KILL "$(ps -o pid= --ppid "$launcher" | head -n 1 | tr -d ' ')"
expect_code 1
holds err "the lab's kernel ended"
gone

name="the command ends"
start 'sleep 1000 & sleep 0.5; exit 3'
expect_code 3
gone

name="the reader goes away"
"$program" run --quiet lab-2x4 -- sh -c 'while :; do echo text; done' | head -n 1 >"$scratch/out"
[ "$(cat "$scratch/out")" = text ] || fail "$name"
processes=''
gone

# An ordinary user, where this is root.
if [ "$(id -u)" -eq 0 ]; then
    name="an ordinary user"
    kernel=$("$program" doctor --json | sed -n 's/.*"text": "\(.*\/linux-.*\)"$/\1/p' | head -n 1)
    cp "$kernel" "$scratch/kernel"
    chmod 755 "$scratch" "$scratch/kernel"
    mkdir "$scratch/user"
    chown 65534:65534 "$scratch/user"
    (cd "$scratch/user" && TMPDIR=$scratch/user setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$program" run --quiet --kernel "$scratch/kernel" lab-2x4 -- \
        sh -c 'id -u; ping -c 2 east-0; echo x >made; touch ../not-mine') >"$scratch/out" 2>"$scratch/err" &&
        fail "$name: wrote where it may not"
    holds out "21.3"
    [ "$(stat -c %u "$scratch/user/made")" = 65534 ] || fail "$name: the file is not the user's"
    [ "$(ls -A "$scratch/user")" = made ] || fail "$name: left behind: $(ls -A "$scratch/user")"
fi
exit "$failed"
