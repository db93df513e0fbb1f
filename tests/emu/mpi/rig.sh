# shellcheck shell=sh disable=SC2034,SC2154
# Sourced by the tests of MPI programs in the lab, after expect.sh: ./waits (waits.c) in a folder of its own.
waits=$1
if ! command -v mpirun >/dev/null || [ ! -x "$waits" ]; then
    echo "skipped: no Open MPI (openmpi-bin, libopenmpi-dev)"
    exit 77
fi
cd "$scratch" || exit 1
cp "$waits" waits
"$program" run --quiet --timeout 60s lab-2x4 -- true 2>err || { code=$?; cat err; exit "$code"; }

# ranks CODE WORD...: ./waits with these, by nothing but mpirun; its figures in $figures.
ranks() {
    want=$1
    shift
    expect "$want" run --quiet --timeout 120s lab-2x4 -- mpirun ./waits "$@"
    figures=$(cat out)
    echo "$*: $figures"
}
# between WHAT VALUE LEAST MOST
between() {
    awk "BEGIN {exit !($2 >= $3 && $2 <= $4)}" || fail "$1: $2 is not from $3 to $4"
}
