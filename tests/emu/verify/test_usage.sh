#!/bin/sh
# What verify and respond refuse, and a verify over loopback by a remote shell of our own; needs no root.
# test_usage.sh LONGHAUL_EMU EXPECT_SH
# shellcheck disable=SC2154
set -u
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
key=00112233445566778899aabbccddeeff

# expect 2, nothing on standard output, and the text.
refuses() {
    text=$1
    shift
    expect 2 "$@"
    holds err "$text"
    [ ! -s "$scratch/out" ] || fail "$name: wrote to standard output"
}
refuses "--peer is missing" verify
refuses "'10' has no unit" verify --peer x --delay 10 --address 127.0.0.1
refuses "--interval: '10' has no unit" verify --peer x --interval 10
refuses "--interval: '0ms' is not more than 0" verify --peer x --interval 0ms
refuses "--goodput: '5' has no unit" verify --peer x --goodput 5
refuses "--probes: '1' is no whole number from 2 to" verify --peer x --probes 1
refuses "--probes: '-7' is no whole number" verify --peer x --probes=-7
refuses "--probes: '1e3' is no whole number" verify --peer x --probes 1e3
refuses "--size: '20B' is not from 48B to" verify --peer x --size 20B
refuses "--size: '64' has no unit" verify --peer x --size 64
refuses "--tolerance: '0' is no number above 0" verify --peer x --tolerance 0
refuses "--tolerance: 'nan' is no number above 0" verify --peer x --tolerance nan
refuses "--port: '70000' is no whole number" verify --peer x --port 70000 --key $key
refuses "--port and --key belong together" verify --peer x --port 7000
refuses "--port and --key belong together" verify --peer x --key $key
refuses "--bystander HOST is missing" verify --peer x --bystander-address 10.3.0.1
refuses "--bystander-rtt: '1' has no unit" verify --peer x --bystander y --bystander-rtt 1
refuses "no address of 'no-such-host.invalid' is known" verify --peer no-such-host.invalid --delay 1ms
refuses "'10.2.0.300' is no IP address" verify --peer x --address 10.2.0.300 --delay 1ms
refuses "none of the prefixes asked for holds it" verify --peer x --address 127.0.0.1 --to 127.0.0.2 --delay 1ms
refuses "a key is 32 digits" verify --peer x --address 127.0.0.1 --delay 1ms --port 1 --key abc
refuses "right would be \"ssh -o BatchMode=yes\"" verify --peer x --address 127.0.0.1 --delay 1ms --rsh " "
refuses "takes no argument 'x'" respond x
refuses "--idle: '60' has no unit" respond --idle 60
refuses "--port: '0' is no whole number" respond --port 0
refuses "'nowhere' is no IP address" respond --address nowhere
for verb in verify respond; do
    expect 0 $verb --help
    holds out "Exit status: 0"
done

# A remote shell that stays here. The delay is not there: OUT, and told so.
cat >"$scratch/rsh" <<'END'
#!/bin/sh
[ "$1" = -o ] && [ "$2" = option ] && [ "$3" = there ] || exit 9
shift 3
exec "$@"
END
chmod +x "$scratch/rsh"
over_loopback() {
    wanted=$1
    shift
    expect "$wanted" verify --peer there --address 127.0.0.1 --rsh "$scratch/rsh -o  option" --remote-program "$program" \
        --delay 10ms --probes 20 --goodput 100ms "$@"
}
over_loopback 1
holds out "127.0.0.1, requested by flags"
holds out "one-way mean out"
holds out "OUT of tolerance"
over_loopback 1 --json
holds out '"schema": "longhaul.emu-verify/1"'
holds out '"ok": false'
over_loopback 1 --json="$scratch/file"
grep -q '"longhaul.emu-verify/1"' "$scratch/file" || fail "$name: no JSON in the file"
expect 1 verify --peer there --address 127.0.0.1 --rsh "$scratch/rsh" --remote-program "$program" --delay 10ms
explains "no responder on there"
expect 1 verify --peer there --address 127.0.0.1 --delay 10ms --port 1 --key $key
explains "no responder at 127.0.0.1 port 1"
exit "$failed"
