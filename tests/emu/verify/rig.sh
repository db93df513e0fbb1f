# shellcheck shell=sh disable=SC2034,SC2154
# Sourced by the tests of verify in the lab, as root in a network of their own: namespaces
#   a (10.1.0.1), c (10.1.1.1) - r1 ====WAN==== r2 - b (10.2.0.1)
# with the impairments on the WAN devices of the routers, as apply sets them. $program is longhaul-emu.
export LONGHAUL_EMU_STATE="$scratch/state"
unset SSH_CONNECTION

wire() { # NAMESPACE DEVICE ADDRESS NAMESPACE DEVICE ADDRESS
    ip -n "$1" link add "$2" type veth peer name "$5" netns "$4"
    ip -n "$1" addr add "$3" dev "$2"
    ip -n "$4" addr add "$6" dev "$5"
    ip -n "$1" link set "$2" up
    ip -n "$4" link set "$5" up
}

build() {
    for name in a b c r1 r2; do
        ip netns add "$name" || { echo "skipped: no network namespaces"; exit 77; }
        ip -n "$name" link set lo up
        ip netns exec "$name" sysctl -qw net.ipv4.ip_forward=1
    done
    wire a a0 10.1.0.1/24 r1 a1 10.1.0.254/24
    wire c c0 10.1.1.1/24 r1 c1 10.1.1.254/24
    wire r1 w1 192.168.0.1/24 r2 w2 192.168.0.2/24
    wire b b0 10.2.0.1/24 r2 b1 10.2.0.254/24
    ip -n a route add default via 10.1.0.254
    ip -n c route add default via 10.1.1.254
    ip -n b route add default via 10.2.0.254
    ip -n r1 route add 10.2.0.0/16 via 192.168.0.2
    ip -n r2 route add 10.1.0.0/16 via 192.168.0.1
    ip netns exec r1 tc qdisc add dev w1 root netem 2>/dev/null || { echo "skipped: this kernel has no netem"; exit 77; }
    ip netns exec r1 tc qdisc del dev w1 root
}

# shape SEED FLAGS...: both directions, from the first random number on.
shape() {
    seed=$1
    shift
    unshape
    ip netns exec r1 "$program" apply --dev w1 --to 10.2.0.0/16 --seed "$seed" "$@" >/dev/null || fail "apply $* on r1"
    ip netns exec r2 "$program" apply --dev w2 --to 10.1.0.0/16 --seed "$((seed + 1))" "$@" >/dev/null ||
        fail "apply $* on r2"
}
unshape() {
    ip netns exec r1 "$program" clear >/dev/null
    ip netns exec r2 "$program" clear >/dev/null
}

# verify CODE FLAGS...: from a to b; output in $scratch/out and err.
verify() {
    wanted=$1
    shift
    name="verify $*"
    ip netns exec a "$program" verify --peer b --address 10.2.0.1 --rsh "ip netns exec" --remote-program "$program" \
        "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" -eq "$wanted" ] || { fail "$name: exit $got, expected $wanted"; cat "$scratch/out" "$scratch/err"; }
}

# figure KEY KEY...: the number at that place of the JSON in $scratch/out; each key is the first after the one before.
figure() {
    awk -v keys="$*" '
        BEGIN { count = split(keys, key, " "); at = 1 }
        at <= count && index($0, "\"" key[at] "\":") { if (at++ == count) { gsub(/.*: |,$/, ""); print; exit } }
    ' "$scratch/out"
}
# within WHAT VALUE WANTED TOLERANCE
within() {
    echo "$1: $2 (wanted $3 +- $4)"
    awk "BEGIN { d = ($2) - ($3); exit !(d <= ($4) && -d <= ($4)) }" || fail "$1: $2 is not $3 +- $4"
}
