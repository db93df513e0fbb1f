#!/bin/sh
# test_cli.sh LONGHAUL-CONFIG README: exit codes, streams and round trips of the program itself.
set -u
config=$1
readme=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# expect CODE NAME COMMAND...: runs with output in out and err.
expect() {
    code=$1 name=$2
    shift 2
    "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" -eq "$code" ] || { echo "$name: exit $got, expected $code"; cat "$scratch/err"; failed=1; }
}
# holds FILE TEXT: the last out or err has it.
holds() {
    grep -qF -- "$2" "$scratch/$1" || { echo "$name: no '$2' in $1:"; cat "$scratch/$1"; failed=1; }
}

expect 0 check "$config" check twin-1536 lab-2x4
holds out 'twin-1536: fine: 2 sites, 3072 GPUs'
holds out 'lab-2x4: fine'

expect 2 check-bad "$config" check twin-1536 --set wan.rtt=21
holds err "--set wan.rtt=21:1:9: rtt: '21' has no unit"
[ ! -s "$scratch/out" ] || { echo "check-bad: wrote to standard output"; failed=1; }

: >"$scratch/empty.yaml"
expect 2 check-empty "$config" check "$scratch/empty.yaml" lab-2x4
holds err 'empty.yaml:1:1: the file is empty'
holds out 'lab-2x4: fine'

expect 0 show "$config" show twin-1536 --set wan.rtt=5ms
holds out 'rtt: 5 ms'
cp "$scratch/out" "$scratch/shown.yaml"
expect 0 show-json "$config" show "$scratch/shown.yaml" --json="$scratch/shown.json"
expect 0 show-again "$config" check "$scratch/shown.yaml" "$scratch/shown.json"
[ "$(sed 's/.*hash //' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || { echo "show: hashes differ"; failed=1; }

expect 1 unwritable "$config" show lab-2x4 --json=/nowhere/x.json
holds err '/nowhere/x.json: cannot be written'

expect 0 list "$config" list
holds out 'h100-sxm'
holds out 'nemotron-4-340b'
expect 0 keys "$config" keys
# shellcheck disable=SC2016 # the README quotes keys like this
holds out '`wan[].rtt`'
grep -vxFf "$readme" "$scratch/out" >"$scratch/missing" && { echo "README lacks, or has otherwise:"; cat "$scratch/missing"; failed=1; }
expect 0 help "$config" --help
holds out 'longhaul config show twin-1536'
expect 0 version "$config" --version
holds out 'longhaul '
expect 2 no-verb "$config"
expect 2 unknown-verb "$config" chekc x
expect 2 unknown-option "$config" check --nonsense
expect 2 no-file "$config" show
expect 2 unknown-preset "$config" check twin-153
holds err "did you mean 'twin-1536'"
exit "$failed"
