# shellcheck shell=sh disable=SC2034,SC2154
# Sourced by the tests of one program: $program is its path. Leaves $scratch, and $failed for the exit code.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
    echo "$1"
    failed=1
}
# expect CODE ARGUMENTS...: runs the program with output in out and err.
expect() {
    code=$1
    shift
    name=$*
    "$program" "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" -eq "$code" ] || { fail "$name: exit $got, expected $code"; cat "$scratch/err"; }
}
# holds FILE TEXT: the last out or err has it.
holds() {
    grep -qF -- "$2" "$scratch/$1" || { fail "$name: no '$2' in $1:"; cat "$scratch/$1"; }
}
# explains TEXT: the last err is one line that has it.
explains() {
    holds err "$1"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "$name: not one line"
}
# says TEXT: explains, and nothing on standard output.
says() {
    explains "$1"
    [ ! -s "$scratch/out" ] || fail "$name: wrote to standard output"
}
