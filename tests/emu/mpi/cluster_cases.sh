#!/bin/sh
# In the lab, as on a cluster: longhaul-emu run, and what is left when it fails. Prints "CASE EXIT-CODE SHAPED-HOSTS RANKS LINES"
# for each; standard error of each in CASE.err. Usage: cluster_cases.sh SCENARIO HOSTS SABOTAGE
scenario=$1
hosts=$2
sabotage=$3
interrupter=
names="west-0 west-1 west-2 west-3 east-0 east-1 east-2 east-3"

# case NAME ARGUMENTS...
case_of() {
    name=$1
    shift
    $interrupter longhaul-emu run "$scenario" --hosts "$hosts" --rsh /run/longhaul/rsh --strategy har "$@" >"$name.out" 2>"$name.err"
    code=$?
    shaped=0
    for host in $names; do
        /run/longhaul/rsh "$host" longhaul-emu status | grep -q 'nothing of longhaul-emu' || shaped=$((shaped + 1))
    done
    ranks=$(ls -l /proc/[0-9]*/exe 2>/dev/null | grep -c -e longhaul-rank -e orted -e mpirun)
    echo "$name $code $shaped $ranks $(wc -l <"$name.err")"
}
case_of fine --json result.json
case_of strategy --strategy nobody
LD_PRELOAD=$sabotage SABOTAGE=kill case_of kill
LD_PRELOAD=$sabotage SABOTAGE=hang case_of late --timeout 30s
interrupter="timeout --preserve-status --foreground -s INT 20"
LD_PRELOAD=$sabotage SABOTAGE=hang case_of interrupted
interrupter=
mkdir bin
for tool in sh env longhaul-emu ls grep wc; do
    ln -s "$(command -v "$tool")" "bin/$tool"
done
PATH=$PWD/bin case_of no-mpirun
echo 'west-0 slot=1' >wrong
hosts=wrong
case_of wrong
