#!/bin/sh
# fuzz.sh TARGET CORPUS: runs a libFuzzer target for FUZZ_SECONDS (10) from the kept corpus, which stays as it is.
# An input that breaks it is printed (base64).
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/new"
"$1" -max_total_time="${FUZZ_SECONDS:-10}" -max_len=8192 -timeout=10 -print_final_stats=1 -artifact_prefix="$scratch/" \
    "$scratch/new" "$2"
