#!/bin/sh
# What longhaul-lab says before it starts anything. Usage: test_usage.sh LONGHAUL_LAB EXPECT
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"

expect 0 --help
holds out "longhaul-lab VERB"
for verb in build doctor run shell up down; do
    expect 0 "$verb" --help
    holds out "Exit status"
done
expect 2
expect 2 rum
says "unknown verb 'rum' (did you mean 'run'?)"
expect 2 run
holds err "needs a scenario"
expect 2 run lab-2x4
holds err "needs a command after the scenario"
expect 2 run lab-2x4 --timeout 5 -- true
holds err "--timeout 5: "
expect 2 run lab-2x4 --timeout 0s -- true
holds err "more than 0"
expect 2 run lab-2x4 --memory 10MB -- true
holds err "from 256 MB"
expect 2 build --jobs 0
holds err "a whole number from 1"
expect 2 build --source "$scratch/none.tar.xz"
says "not a file that can be read"
: >"$scratch/linux-source-5.10.tar.xz"
expect 2 build --source "$scratch/linux-source-5.10.tar.xz"
says "VERSION of 6.1 or later"
expect 2 up lab-2x4
holds err "--native"
expect 2 up --native
holds err "needs a scenario"

# A scenario that is wrong is told with its place, before a kernel is looked for.
printf 'name: x\ndatacenters: 5\n' >"$scratch/bad.yaml"
export XDG_CACHE_HOME="$scratch/cache"
expect 2 run "$scratch/bad.yaml" -- true
says "bad.yaml:2:14: "
expect 2 run lab-2x4 --on west-9 -- true
says "hosts are west-0 to east-3"
expect 2 run lab-2x4 --set wan.rtt=5 -- true
says "--set wan.rtt=5:1:"

# No kernel: 77, and the command that makes one.
expect 77 run --quiet lab-2x4 -- true
says "longhaul lab build"
[ ! -e "$scratch/cache" ] || fail "a run that cannot be made a cache folder"
expect 77 doctor
holds out "longhaul lab build"
expect 77 doctor --json
holds out '"ready": false'
expect 2 run --quiet --kernel "$scratch/none" lab-2x4 -- true
says "not a kernel that can be started"

# Tools that are missing are named with what to install.
: >"$scratch/linux-source-6.12.tar.xz"
PATH=$scratch expect 77 build --source "$scratch/linux-source-6.12.tar.xz"
says "apt-get install make gcc binutils bc bison flex xz-utils tar"
exit "$failed"
