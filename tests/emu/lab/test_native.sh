#!/bin/sh
# up and down on "this machine's own kernel": run inside the lab, whose kernel has netem.
# Usage: test_native.sh LONGHAUL_LAB EXPECT
program=$1
if [ "${3:-}" != inside ]; then
    exec "$program" run --quiet --timeout 120s lab-2x4 -- "$0" "$1" "$2" inside
fi
# shellcheck source=tests/verbs/expect.sh
. "$2"
state() {
    ls /run/netns
    ls -A /run/longhaul-lab 2>/dev/null
    ls -A /run/longhaul-emu 2>/dev/null
    ip -o link | sed 's/ .*//'
    ip route
}
mkdir -p /run/longhaul-lab
state >"$scratch/before"

expect 0 down --native
holds out "nothing is up"
expect 0 up --native lab-2x4
holds out longhaul-east-3
ip netns exec longhaul-west-0 ping -c 3 10.2.1.2 >"$scratch/ping"
grep -q '= 21.3' "$scratch/ping" || fail "no 21.3 ms: $(cat "$scratch/ping")"
ip netns exec longhaul-west-0 ping -c 3 fd10:0:2:4::2 | grep -q '= 21.3' || fail "no 21.3 ms by IPv6"
state >"$scratch/up"
expect 0 up --native lab-2x4
holds out "already up"
state | cmp - "$scratch/up" || fail "up twice is not up once"
expect 0 up --native lab-2x4 --json
holds out '"status": "already up"'
holds out '"netns": "longhaul-west-0"'
expect 1 up --native lab-2x4 --set wan.rtt=5ms
says "another scenario is up"
expect 0 down --native
holds out "10 namespaces removed"
state | cmp - "$scratch/before" || { fail "down leaves something"; state | diff "$scratch/before" -; }
expect 0 down --native
holds out "nothing is up"

# All or nothing: a name that is taken.
ip netns add longhaul-east-2
expect 1 up --native lab-2x4
says "longhaul-east-2: is there already"
ip netns del longhaul-east-2
state | cmp - "$scratch/before" || { fail "a failed up leaves something"; state | diff "$scratch/before" -; }
expect 0 up --native lab-2x4 --set wan.rtt=5ms
ip netns exec longhaul-west-0 ping -c 3 10.2.1.2 | grep -q '= 5.0' || fail "no 5 ms"
expect 0 down --native

# No privilege: 77, nothing changed.
setpriv --reuid 65534 --regid 65534 --clear-groups "$program" up --native lab-2x4 2>"$scratch/err"
[ $? -eq 77 ] || fail "an ordinary user: not 77"
name="an ordinary user"
explains "needs root"
exit "$failed"
