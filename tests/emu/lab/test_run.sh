#!/bin/sh
# A command in the lab behaves as outside: streams, exit codes, folders, time. Usage: test_run.sh LONGHAUL_LAB EXPECT
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
cd "$scratch" || exit 1
inside() {
    want=$1
    shift
    expect "$want" run --quiet --timeout 60s lab-2x4 -- "$@"
}
"$program" run --quiet --timeout 60s lab-2x4 -- true 2>err || {
    code=$?
    cat err
    exit "$code"
}

# Output byte for byte, the two streams apart, also where the reader is slow.
head -c 1000000 /dev/urandom >bytes
inside 0 cat bytes
cmp bytes out || fail "standard output is not what was written"
[ ! -s err ] || fail "standard error is not empty"
inside 0 sh -c 'cat bytes >&2; echo out'
cmp bytes err || fail "standard error is not what was written"
[ "$(cat out)" = out ] || fail "standard output got something else"
# shellcheck disable=SC2016
"$program" run --quiet lab-2x4 -- sh -c 'date +%s.%N; cat bytes bytes bytes; date +%s.%N >&2' 2>after |
    (sleep 2; cat >slow)
before=$(head -n 1 slow)
awk "BEGIN {exit !($(cat after) - $before < 0.01)}" || fail "virtual time went on while the reader slept: $before, $(cat after)"
tail -c +"$((${#before} + 2))" slow >slow.bytes
cat bytes bytes bytes | cmp - slow.bytes || fail "a slow reader got something else"

# Exit codes.
inside 42 sh -c 'exit 42'
# shellcheck disable=SC2016
inside 143 sh -c 'kill -TERM $$'
# shellcheck disable=SC2016
inside 137 sh -c 'kill -KILL $$'
inside 127 no-such-program
says "no-such-program: No such file or directory"
inside 126 /etc/passwd
expect 1 run --quiet --timeout 1s lab-2x4 -- sh -c 'while :; do :; done'
says "--timeout"

# What the command leaves running does not keep the lab.
inside 0 sh -c 'sleep 1000000 & echo started'
holds out started

# No terminal, no input, the user's environment, the working directory; the project's programs on PATH.
LAB_TEST_WORD="two  words" inside 0 sh -c 'test -t 0 || test -t 1 || test -t 2 || echo none; cat; pwd; hostname; echo "$LAB_TEST_WORD"; (command -v longhaul-lab; command -v longhaul-emu) | wc -l; echo "$LONGHAUL_HOST"; id -u'
printf 'none\n%s\nwest-0\ntwo  words\n2\nwest-0\n0\n' "$(pwd -P)" | cmp - out || fail "environment: $(cat out)"
expect 0 run --quiet --on east-2 lab-2x4 -- hostname
holds out east-2

# One folder can be written, nothing else outside can.
inside 0 sh -c 'echo text >made && echo more >>made'
printf 'text\nmore\n' | cmp - made || fail "the working directory is not written through"
# shellcheck disable=SC2016
inside 0 sh -c 'for d in / /etc /usr; do touch $d/lab-test 2>/dev/null && echo $d; done; echo x >/run/x; echo x >/dev/shm/x; echo x >"${TMPDIR:-/tmp}"/x'
[ ! -s out ] || fail "can be written: $(cat out)"
mkdir other
expect 0 run --quiet --writable other lab-2x4 -- sh -c 'echo x >other/x; echo y >y 2>/dev/null; cat other/x'
[ -f other/x ] && [ ! -e y ] || fail "--writable other"
expect 0 run --quiet --writable "$scratch" lab-2x4 -- sh -c "mkdir -p a/b && mv made a/b && ln -s b a/c && rm -r other"
[ -f a/c/made ] || fail "folders and links do not come out"

# Virtual time: a long sleep costs nothing; a loop costs no time. Real time: as outside.
start=$(date +%s)
# shellcheck disable=SC2016
inside 0 sh -c 'a=$(date +%s%N); sleep 3600; b=$(date +%s%N); i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; c=$(date +%s%N); echo $((b-a)) $((c-b))'
[ $(($(date +%s) - start)) -lt 30 ] || fail "an hour of sleep took long"
read -r slept looped <out
[ "$slept" -ge 3600000000000 ] && [ "$slept" -lt 3600100000000 ] && [ "$looped" -lt 1000000 ] || fail "slept $slept ns, looped $looped ns"
start=$(date +%s%N)
expect 0 run --quiet --real-time lab-2x4 -- sleep 1
[ $(($(date +%s%N) - start)) -ge 1000000000 ] || fail "real time is not real"

# What the lab is made of, in one line on standard error.
expect 0 run twin-1536 -- true
explains "2 sites, 8 hosts; ord-iad RTT 21.3 ms, 80 Mb/s (bytes and rates are 1/10000); virtual time"

# A new kernel with a script instead of a kernel: the last words are told.
printf '#!/bin/sh\necho no kernel at all\n' >kernel && chmod +x kernel
expect 1 run --quiet --kernel ./kernel lab-2x4 -- true
says "no kernel at all"
exit "$failed"
