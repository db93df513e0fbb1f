#!/bin/sh
# longhaul-emu plan, apply, status, clear as their user sees them. Runs as root in the lab, whose time is virtual.
# test_verbs.sh LONGHAUL_EMU EXPECT_SH
# shellcheck disable=SC2154,SC2016
set -u
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
if [ "${VERBS_INSIDE:-}" != 1 ]; then
    VERBS_INSIDE=1 exec unshare -n sh "$0" "$@"
fi

program=$1
export TMPDIR=/dev/shm
# shellcheck source=/dev/null
. "$2"
export LONGHAUL_EMU_STATE="$scratch/state"
unset SSH_CONNECTION

# A network of its own: e0 to a host 10.2.0.2 (far) and a bystander 10.3.0.2 in the namespace of another process.
ip link add e0 type veth peer name e1
ip link set lo up
unshare -n sleep 100000 &
far=$!
trap 'kill $far; rm -rf "$scratch"' EXIT
sleep 0.5
ip link set e1 netns "$far"
inside() { nsenter -t "$far" -n "$@"; }
ip addr add 10.1.0.1/8 dev e0
ip link set e0 up
inside ip addr add 10.2.0.2/8 dev e1
inside ip addr add 10.3.0.2/8 dev e1
inside ip link set e1 up
tc qdisc add dev e0 root netem 2>/dev/null || { echo "skipped: this kernel has no netem"; exit 77; }
tc qdisc del dev e0 root

# rtt ADDRESS: the smallest of three pings, in ms.
rtt() { ping -c 3 -i 0.2 "$1" | sed -n 's,^rtt[^=]*= \([0-9.]*\)/.*,\1,p'; }
between() { awk "BEGIN { exit !($2 >= $1 && $2 <= $3) }" || fail "$4: $2 is not from $1 to $3"; }
qdiscs() { tc qdisc show dev e0; tc class show dev e0; tc filter show dev e0; }
wish="--dev e0 --to 10.2.0.0/16 --delay 10ms"

ping -c 1 10.2.0.2 >/dev/null # ARP
ping -c 1 10.3.0.2 >/dev/null
qdiscs >"$scratch/before"
same() { qdiscs >"$scratch/now"; cmp -s "$scratch/before" "$scratch/now" || fail "$1: not as before"; }

# shellcheck disable=SC2086
{
    expect 0 plan $wish
    holds out "10 ms one way"
    holds out "tc qdisc add dev e0 root handle 10a0: htb"
    holds out "tc filter add dev e0 parent 10a0: protocol ip"
    same plan
    # What plan prints, run by hand, is what apply does.
    sed -n 's/^    \(tc .*\)/\1/p' "$scratch/out" | sh -e || fail "plan's commands do not run"
    between 10.0 "$(rtt 10.2.0.2)" 10.2 "by hand"
    tc qdisc del dev e0 root
    expect 0 plan $wish --json
    holds out '"schema": "longhaul.emu-plan/1"'

    expect 0 clear
    holds out "nothing of longhaul-emu is there"
    expect 0 apply $wish
    holds out "applied, read back"
    between 10.0 "$(rtt 10.2.0.2)" 10.2 "shaped"
    between 0 "$(rtt 10.3.0.2)" 0.2 "bystander"
    expect 0 apply $wish
    holds out "already applied"
    expect 0 status
    holds out "as asked"
    holds out "stays until cleared"
    expect 0 status --json
    holds out '"schema": "longhaul.emu-status/1"'
    holds out '"as_asked": true'
    tc qdisc change dev e0 parent 10a0:1 handle 10a1: netem delay 5ms
    expect 0 status
    holds out "another one-way delay"
    expect 0 apply $wish
    between 10.0 "$(rtt 10.2.0.2)" 10.2 "put right"
    expect 0 apply --dev e0 --to 10.2.0.0/16 --delay 20ms --json
    holds out '"schema": "longhaul.emu-apply/1"'
    between 20.0 "$(rtt 10.2.0.2)" 20.2 "changed"
    expect 0 clear --json
    holds out '"outcome": "restored"'
    same clear
    expect 0 clear --dev e0
    holds out "nothing of longhaul-emu is there"

    # Expiry: the tool is long gone; its session is killed too.
    (setsid sh -c "'$program' apply $wish --for 1h >/dev/null; kill -9 0") 2>/dev/null
    expect 0 status
    holds out "is waiting for it"
    sleep 3500
    expect 0 status --json
    holds out '"watcher": "alive"'
    sleep 101
    same expiry
    expect 0 status
    holds out "nothing of longhaul-emu is there"
    # A watcher that was killed is told.
    expect 0 apply $wish --for 1h
    expect 0 status
    kill -9 "$(sed -n 's/.*(process \([0-9]*\) .*/\1/p' "$scratch/out")"
    sleep 1
    expect 0 status
    holds out "GONE"
    expect 0 clear
    same "clear without watcher"

    # Refused, one line, nothing changed.
    tc qdisc add dev e0 root handle 5: pfifo limit 77
    qdiscs >"$scratch/before"
    expect 1 apply $wish
    says "qdisc pfifo 5: is there already"
    expect 0 plan $wish
    holds out "--take-over"
    expect 0 apply $wish --take-over
    expect 0 clear
    same take-over
    tc qdisc del dev e0 root
    qdiscs >"$scratch/before"
    expect 2 apply --dev e7 --to 10.2.0.0/16 --delay 10ms
    says 'no network device "e7"; there are'
    expect 2 clear --dev e7
    says 'no network device "e7"'
    expect 2 apply $wish --for 1
    holds err "--for: '1' has no unit"
    expect 2 apply $wish --for 0
    holds err "--for: must be more than 0"
    SSH_CONNECTION="10.2.0.9 51234 10.1.0.1 22"
    export SSH_CONNECTION
    expect 1 apply $wish
    says '10.2.0.9 ($SSH_CONNECTION)'
    same guard
    expect 0 apply $wish --force
    unset SSH_CONNECTION
    expect 0 clear
    same force

    # What arrives.
    expect 0 apply $wish --at ingress
    between 10.0 "$(rtt 10.2.0.2)" 10.2 "ingress"
    between 0 "$(rtt 10.3.0.2)" 0.2 "bystander at ingress"
    expect 0 clear
    same ingress
}

expect 0 --help
holds out "longhaul-emu apply"
expect 0 help clear
holds out "Clearing"
expect 2 claer
says "did you mean 'clear'"
expect 2 status e0
holds err "name a device with --dev"
for verb in plan apply status clear; do
    expect 0 $verb --help
    holds out "Exit status: 0"
done
exit "$failed"
