#!/bin/sh
# The front door: dispatch, search order, help, suggestions, exit codes. Usage: test_front_door.sh LONGHAUL VERSION
set -eu
longhaul=$1
version=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# check NAME EXPECTED_CODE EXPECTED_TEXT COMMAND...: the code is exact, the text a part of stdout or stderr.
check() {
    name=$1 code=$2 text=$3
    shift 3
    got=0
    output=$("$@" 2>&1) || got=$?
    if [ "$got" -ne "$code" ]; then
        echo "FAIL $name: exit $got, expected $code: $output"
        failures=$((failures + 1))
    fi
    case $output in
    *"$text"*) ;;
    *)
        echo "FAIL $name: no '$text' in: $output"
        failures=$((failures + 1))
        ;;
    esac
}

program() {
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

mkdir "$folder/bin"
cp "$longhaul" "$folder/bin/longhaul"
door=$folder/bin/longhaul
PATH=/usr/bin:/bin
export PATH
unset LONGHAUL_EXEC_PATH

check "no argument" 0 "usage: longhaul VERB" "$door"
check "--help" 0 "predict a training step" "$door" --help
check "help marks what is missing" 0 "(not installed)" "$door" help
check "--version" 0 "longhaul $version" "$door" --version
check "known but absent" 77 "'sim' is not installed here; install longhaul built with SimGrid" "$door" sim
check "help of an absent verb" 77 "not installed" "$door" help sim
check "unknown verb, near" 2 "did you mean 'collective'" "$door" colective
check "unknown verb, far" 2 "unknown verb 'zzzzzzzz'; see longhaul --help" "$door" zzzzzzzz
check "unknown option" 2 "unknown verb '--frob'" "$door" --frob
check "no path as verb" 2 "unknown verb" "$door" ../bin/longhaul
check "empty verb" 2 "unknown verb ''" "$door" ""

program "$folder/path/longhaul-sim" 'echo "path $*"; exit 3'
program "$folder/extra/longhaul-sim" 'echo "extra $*"; exit 4'
program "$folder/extra/longhaul-other" 'echo "other $*"'
echo plain >"$folder/extra/longhaul-notaprogram"
check "PATH" 3 "path a b c" env PATH="$folder/path:$PATH" "$door" sim a "b c"
check "LONGHAUL_EXEC_PATH before PATH" 4 "extra x" \
    env PATH="$folder/path:$PATH" LONGHAUL_EXEC_PATH="/nowhere:$folder/extra" "$door" sim x
LONGHAUL_EXEC_PATH=$folder/extra
export LONGHAUL_EXEC_PATH
check "others are listed" 0 "Also here: other" "$door" --help
check "others run" 0 "other 1" "$door" other 1
check "help VERB" 4 "extra --help" "$door" help sim
# shellcheck disable=SC2016 # for the program to expand
program "$folder/bin/longhaul-sim" 'echo "beside ${0##*/} $*"'
check "beside comes first" 0 "beside longhaul-sim y" "$door" sim y
program "$folder/bin/longhaul-broken" ''
printf '#!/no/such/interpreter\n' >"$folder/bin/longhaul-broken"
check "cannot run" 1 "cannot run" "$door" broken

# A build tree: neighbours are searched there, and only there.
mkdir -p "$folder/tree/sim"
cp "$longhaul" "$folder/tree/sim/longhaul"
program "$folder/tree/sim/engine/longhaul-collective" 'echo "engine $*"'
program "$folder/tree/configs/longhaul-config" 'echo "configs $*"'
program "$folder/tree/sim/report/longhaul-compare" 'echo "report $*"'
check "no build tree, no neighbours" 77 "not installed" "$folder/tree/sim/longhaul" config
touch "$folder/tree/build.ninja"
check "build tree: configs" 0 "configs show x" "$folder/tree/sim/longhaul" config show x
check "build tree: report" 0 "report z" "$folder/tree/sim/longhaul" compare z
check "build tree: engine" 0 "engine y" "$folder/tree/sim/longhaul" collective y

[ "$failures" -eq 0 ]
