#!/usr/bin/env bash
# The figures of README.md: predictions beside published figures, and the output of its examples, in Markdown. Usage:
#   tests/validation.sh LONGHAUL            prints every block between lines like <!-- validation -->
#   tests/validation.sh LONGHAUL README.md  fails when README's blocks are others
#   tests/validation.sh LONGHAUL README.md --update  writes them into it
# Published figures and where they come from: see each row. No setting is fitted to a row that is predicted.
set -euo pipefail
longhaul=$1
readme=${2:-}
mode=${3:-}
json=$(mktemp)
trap 'rm -f "$json"' EXIT

# value PATH: one number of the last result, e.g. strategies.0.step_s.
value() {
    python3 -c '
import json, sys
node = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    node = node[int(key) if isinstance(node, list) else key]
print(repr(node))' "$json" "$1"
}

# row WHAT SOURCE PUBLISHED PREDICTED SCALE FORMAT: PREDICTED is in SI units; PREDICTED x SCALE in those of PUBLISHED.
row() {
    awk -v what="$1" -v source="$2" -v published="$3" -v predicted="$4" -v scale="$5" -v format="$6" 'BEGIN {
        printf "| %s | %s | " format " | " format " | %+.1f %% |\n",
            what, source, published, predicted * scale, 100 * (predicted * scale / published - 1)
    }'
}

# sim SCENARIO SETTING...: runs it.
sim() {
    local scenario=$1 sets=() setting
    shift
    for setting in "$@"; do sets+=(--set "$setting"); done
    "$longhaul" sim "$scenario" "${sets[@]}" --json - >"$json"
}

# collective OPERATION SCENARIO SIZE SETTING...: runs it.
collective() {
    local operation=$1 scenario=$2 size=$3 sets=() setting
    shift 3
    for setting in "$@"; do sets+=(--set "$setting"); done
    "$longhaul" collective "$scenario" --op "$operation" --size "$size" "${sets[@]}" --json - >"$json"
}

# one_site SCENARIO WHAT SOURCE PUBLISHED SETTING...: both strategies, each calibrated with itself.
one_site() {
    local scenario=$1 what=$2 source=$3 published=$4 index=0 strategy
    shift 4
    for strategy in no-overlap scheduled; do
        sim "$scenario" "calibrate.strategy=$strategy" "$@"
        row "$what, $strategy" "$source" "$published" "$(value "strategies.$index.step_s")" 1 '%.2f s'
        index=$((index + 1))
    done
}

nemotron() {
    one_site dgxc-2048 "Nemotron-4 340B, $1 H100, DP $2, batch $3, step" "arXiv 2406.11704" "$4" \
        training.pipeline=12 training.interleave=8 "datacenters.nodes=$(($1 / 8))" "training.data=$2" \
        "training.global_batch=$3" "calibrate.step=10.3 s" calibrate.data=16 calibrate.global_batch=768 reference=
}

# twin CONVENTION: the two-site references with the 51 % read under this convention.
twin() {
    local what="twin-1536, har-chunked, 51 % read as $1"
    sim twin-1536 "calibrate.convention=$1"
    row "$what: efficiency" "NVIDIA NeMo 25.02 blog; project brief" 96 "$(value strategies.3.efficiency)" 100 '%.1f %%'
    row "$what: MFU ($1)" "NVIDIA NeMo 25.02 blog" 49 "$(value "strategies.3.mfu.$1")" 100 '%.1f %%'
    row "$what: tokens/s, two sites" "project brief" 146 "$(value strategies.3.tokens_per_s)" 1e-3 '%.0fk'
    row "$what: tokens/s, one site of 3072" "project brief (whether for 1536 or 3072 GPUs is not said)" 152 \
        "$(value strategies.3.baseline.tokens_per_s)" 1e-3 '%.0fk'
}

nccl() {
    collective allreduce nccl-aws 128MiB "datacenters.nodes=$1" "fabric.latency=$2" "fabric.nic_rate=$3"
    row "NCCL all-reduce 128 MiB, $1 nodes, $2, $3" "AWS V100, tc_cluster_setting" "$4" "$(value results.0.time_s)" 1e3 '%.0f ms'
}

pair() {
    collective sendrecv nccl-aws 128MiB datacenters.nodes=2 "fabric.latency=$1" "fabric.nic_rate=$2"
    row "NCCL send 128 MiB, $1, $2" "AWS V100, tc_cluster_setting" "$3" "$(value results.0.time_s)" 1e3 '%.0f ms'
}

# 16 connections share the window that the 67 ms row gives: 790 Mb/s x 67 ms / 16.
window() {
    collective sendrecv lab-2x4 1GiB "wan.rtt=$1" "wan.wave_rate=10 Gb/s" transport.connections=16 "transport.window=413516 B"
    row "NCCL send between regions, 4 x 4 sockets, RTT $1" "AWS, tc_cluster_setting" "$2" \
        "$(value results.0.algbw_byte_per_s)" 8e-6 '%.0f Mb/s'
}

block_validation() {
    echo "| what | source of the published figure | published | predicted | error |"
    echo "|---|---|---:|---:|---:|"
    one_site dgxc-512 "Nemotron-4 340B, 512 H100, step" dgxc-benchmarking 4.70
    one_site dgxc-2048 "Nemotron-4 340B, 2048 H100, step" dgxc-benchmarking 4.84
    nemotron 3072 32 1536 10.3
    nemotron 6144 64 2304 8.0
    twin mha
    twin gqa
    nccl 8 "1 ms" "5 Gb/s" 383
    nccl 8 "5 ms" "2 Gb/s" 970
    nccl 8 "10 ms" "1 Gb/s" 1940
    nccl 32 "1 ms" "5 Gb/s" 434
    nccl 32 "5 ms" "2 Gb/s" 1071
    nccl 32 "10 ms" "1 Gb/s" 2141
    pair "5 ms" "10 Gb/s" 134
    pair "10 ms" "10 Gb/s" 171
    pair "10 ms" "1 Gb/s" 1083
    window "96 ms" 523
    window "143 ms" 404
    window "163 ms" 341
}

# The strategies of the main job, without the sentences around them.
block_planner() {
    echo '```'
    "$longhaul" sim twin-1536 | sed -n '/^strategy /,/^$/p' | sed '$d'
    echo '```'
}

block_engineer() {
    echo '```'
    "$longhaul" collective twin-1536 --size 64MiB,1GiB,16GiB | sed -n '/^ *size /,/^$/p' | sed '$d'
    echo '```'
}

blocks() {
    local name
    for name in planner engineer validation; do
        echo "<!-- $name -->"
        "block_$name"
        echo "<!-- $name -->"
    done
}

# update: replaces what stands between each pair of markers.
update() {
    local new
    new=$(awk '
        NR == FNR { if (/^<!-- [a-z]* -->$/) name = $2; text[name] = text[name] $0 "\n"; next }
        /^<!-- [a-z]* -->$/ { inside = !inside; if (inside) printf "%s", text[$2]; next }
        !inside' <(blocks) "$readme")
    printf '%s\n' "$new" >"$readme"
}

if [ -z "$readme" ]; then
    blocks
elif [ "$mode" = --update ]; then
    update
else
    diff <(awk '/^<!-- [a-z]* -->$/ { inside = !inside; print; next } inside' "$readme") <(blocks) ||
        { echo "$readme (<) is out of date: tests/validation.sh $longhaul $readme --update"; exit 1; }
fi
