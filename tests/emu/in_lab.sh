#!/bin/sh
# in_lab.sh PROGRAM ARGUMENTS...: runs it as root of the lab (scenario lab-2x4, on host west-0; SCENARIO and ON choose
# others) in virtual time, or in real time with REAL_TIME=1. Exits with its exit status; 77 where the lab cannot run.
# LONGHAUL_LAB: path of longhaul-lab. WRITABLE: the folder that can be written inside (default: an empty one).
set -eu
: "${LONGHAUL_LAB:?path of longhaul-lab}"
if [ -z "${WRITABLE:-}" ]; then
    WRITABLE=$(mktemp -d "$PWD/in-lab-XXXXXX") # not below /tmp: the lab has an empty one of its own then
    trap 'rm -rf "$WRITABLE"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
fi
code=0
"$LONGHAUL_LAB" run --quiet ${REAL_TIME:+--real-time} ${ON:+--on "$ON"} --writable "$WRITABLE" \
    --timeout "${LAB_TIMEOUT:-600s}" "${SCENARIO:-lab-2x4}" -- "$@" || code=$?
exit "$code"
