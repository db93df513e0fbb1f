#!/bin/sh
# An MPI program knows nothing of the lab, and is right there. Usage: test_mpirun.sh LONGHAUL_LAB EXPECT RIG WAITS
program=$1
# shellcheck source=tests/verbs/expect.sh
. "$2"
rig=$3
set -- "$4"
# shellcheck source=tests/emu/mpi/rig.sh
. "$rig"

# One rank a host, in their order; as many as asked, where asked; with the user's own settings.
ranks 0 hosts
[ "$figures" = "west-0 west-1 west-2 west-3 east-0 east-1 east-2 east-3" ] || fail "not one rank a host"
expect 0 run --quiet lab-2x4 -- mpirun -np 3 --host west-1,east-2:2 ./waits hosts
holds out "west-1 east-2 east-2"
# shellcheck disable=SC2016
OMPI_MCA_btl_tcp_if_include=10.1.0.0/16 OMPI_MCA_btl=self,tcp LD_PRELOAD=libm.so.6 expect 0 run --quiet lab-2x4 -- \
    sh -c 'echo $OMPI_MCA_btl_tcp_if_include $OMPI_MCA_btl $LD_PRELOAD'
holds out "10.1.0.0/16 self,tcp /run/longhaul/clock.so:libm.so.6"

# A round trip is that of the link, by every clock, while the other ranks wait in a barrier; and in every run. Between
# two polls with a sleep the sleep costs what it says and the poll nothing: 22 of 1 ms for a round trip of 21.3 ms to a
# rank that answers at once. (Were both to poll, it would be 22 or 23, as their sleeps happen to lie to each other.)
ranks 0 ping 50
first=${figures%% *}
for figure in $figures; do
    between "RTT" "$figure" 21.3 21.33
done
ranks 0 ping 50
between "a second run by the first" "$(awk "BEGIN {print ${figures%% *} / $first}")" 0.9999 1.0001
ranks 0 pairs 20
between "RTT of four pairs at once" "${figures%% *}" 21.3 21.33
ranks 0 test 20
between "RTT by polls 1 ms apart" "${figures%% *}" 22 22.11

# Waits for another thread: 10.65 ms within 1 %.
ranks 0 spin 10
for figure in $figures; do
    between "wait for a thread" "$figure" 10.65 10.7565
done

# Exit codes are mpirun's; a rank that fails leaves nothing.
ranks 7 exit 7
# shellcheck disable=SC2016
expect 134 run --quiet --timeout 60s lab-2x4 -- sh -c 'mpirun ./waits abort; code=$?
    ls -l /proc/[0-9]*/exe 2>/dev/null | grep -e waits -e orted; ls "${TMPDIR:-/tmp}"; exit $code'
[ ! -s out ] || fail "left behind: $(cat out)"

# In real time as well; what computing costs is said, where it costs nothing.
expect 0 run --timeout 60s --real-time lab-2x4 -- mpirun ./waits ping 5
explains "real time"
between "RTT in real time" "$(awk '{print $1}' out)" 21.3 1000
[ "$(cut -d ' ' -f 3 out)" = 0.000000 ] || fail "the preloaded library is there in real time"
expect 0 run --timeout 60s lab-2x4 -- mpirun ./waits hosts
holds err "compute costs no time"

# Hosts are reached as by rsh.
# shellcheck disable=SC2016
expect 3 run --quiet lab-2x4 -- sh -c '/run/longhaul/rsh east-2 hostname "&&" echo '\''$LONGHAUL_HOST'\'' "&&" exit 3'
[ "$(cat out)" = "east-2
east-2" ] || fail "rsh: $(cat out)"
expect 255 run --quiet lab-2x4 -- /run/longhaul/rsh east-9 true
says "east-9"
expect 255 run --quiet lab-2x4 -- /run/longhaul/rsh east-1
says "usage: rsh HOST COMMAND"
exit "$failed"
