#!/bin/sh
# An interactive shell: a terminal inside, job control, real time, the terminal outside as before.
# Usage: test_shell.sh LONGHAUL_LAB EXPECT
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
command -v script >/dev/null || {
    echo "no script (bsdutils) to make a terminal with"
    exit 77
}
"$program" run --quiet --timeout 60s lab-2x4 -- true 2>"$scratch/err" || {
    code=$?
    cat "$scratch/err"
    exit "$code"
}
cd "$scratch" || exit 1
expect 2 shell --quiet lab-2x4 </dev/null
explains "standard input is no terminal"

cat >inside <<'S'
test -t 0 && test -t 1 && test -t 2 && echo "all:terminals"
echo "size:$(stty size)"
hostname | sed s/^/host:/
set -m; sleep 100 & sleep 0.3; kill %1; wait %1; echo "job:$?"
a=$(date +%s%N); sleep 0.5; b=$(date +%s%N)
[ $((b - a)) -ge 500000000 ] && echo "time:passed"
exit 7
S
# Typed line by line, slowly enough for a person.
{
    sleep 2
    printf '. ./inside\n'
    sleep 3
} | SHELL=/bin/sh script -qec "stty rows 33 cols 91; stty -a >before; '$program' shell --quiet lab-2x4 --on east-1; echo code:\$?; stty -a >after" /dev/null >out 2>&1
for text in all:terminals "size:33 91" host:east-1 job:143 time:passed code:7; do
    name=shell
    holds out "$text"
done
cmp before after || fail "the terminal is not as before"

# A command on a terminal sees one, and lines end as on a terminal.
name=run
script -qec "'$program' run --quiet lab-2x4 -- sh -c 'test -t 1 && test -t 2 && ! test -t 0 && echo yes:terminal'" /dev/null >out </dev/null
holds out yes:terminal
exit "$failed"
