#!/bin/sh
# fuzz.sh TARGET CORPUS: runs a libFuzzer target for FUZZ_SECONDS (10) from the kept corpus; what it finds stays in a scratch folder.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/new"
cd "$scratch"
"$1" -max_total_time="${FUZZ_SECONDS:-10}" -max_len=8192 -timeout=10 -verbosity=0 -print_final_stats=1 new "$2"
