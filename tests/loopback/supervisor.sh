#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# vbdiskd: processes that die, its own restart, double starts, domains that die or are suspended.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
loopback domain-create 2
a=$(image a.img 16M)
b=$(image b.img 16M)
c=$(image c.img 16M)

loopback attach 1 xvda "aio:$a"
loopback attach 1 xvdb "aio:$b"
loopback attach 2 xvda "aio:$c"
for vbd in "1 xvda" "1 xvdb" "2 xvda"; do
	# shellcheck disable=SC2086
	check "vbd $vbd is ready" loopback wait $vbd --backend-state 2
done

output=$("$top_builddir/vbdiskd" --vbdisk "$top_builddir/vbdisk" --loopback "$host" --run-dir "$run_dir" 2>&1)
check_is "a second vbdiskd is refused: status" 5 $?
check_like "a second vbdiskd is refused: message names the first" "process $daemon_pid is .* already" "$output"
output=$("$top_builddir/vbdisk" --loopback "$host" --run-dir "$run_dir" backend/qdisk/1/51712 2>&1)
check_is "a second vbdisk for one VBD is refused: status" 5 $?
check_like "a second vbdisk for one VBD is refused: message" "process $(vbd_pid 1 51712) serves this VBD" "$output"

# Restart of the daemon under load.
front_start --domid 1 --vdev xvda --job mixed --size 8M --runtime 3 --depth 8 --verify
eventually be_state_is 1 51712 4
pids="$(vbd_pid 1 51712) $(vbd_pid 1 51728) $(vbd_pid 2 51712)"
check "vbdiskd stops when told to" daemon_stop
check_is "its processes go on" "$pids" "$(vbd_pid 1 51712) $(vbd_pid 1 51728) $(vbd_pid 2 51712)"
daemon_start
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null
check_is "they survive its kill -9, too" "$pids" "$(vbd_pid 1 51712) $(vbd_pid 1 51728) $(vbd_pid 2 51712)"
daemon_start
check_is "they are found, not started again" "$pids" "$(vbd_pid 1 51712) $(vbd_pid 1 51728) $(vbd_pid 2 51712)"
wait $front_pid
check_is "the guest's I/O has not noticed" 0 $?

# One killed before its frontend connected is started again.
victim=$(vbd_pid 2 51712)
kill -9 "$victim"
new_process() { local now; now=$(vbd_pid 2 51712) && [ "$now" != "$victim" ]; }
check "killed in InitWait: a new process" eventually new_process
check "killed in InitWait: the disk works" eventually front --domid 2 --vdev xvda --job mixed --size 1M --count 50 --verify

# One killed while connected is closed, with a reason; the others go on.
front_start --domid 1 --vdev xvdb --job mixed --size 8M --runtime 3 --depth 8 --verify
front_b=$front_pid
front_start --domid 2 --vdev xvda --job mixed --size 8M --runtime 20 --depth 8
front_c=$front_pid
eventually be_state_is 1 51728 4
eventually be_state_is 2 51712 4
kill -9 "$(vbd_pid 2 51712)"
check "killed while connected: closed" eventually be_state_is 2 51712 6
check_like "killed while connected: the error node says why" "killed|ended" "$(error_node 2 51712)"
check_like "killed while connected: the log says why" "vbd 2/51712: its (vbdisk )?process (was killed by signal 9|ended)" \
	"$(cat "$scratch/vbdiskd.log")"
wait $front_b
check_is "the other VBD's I/O has not noticed" 0 $?
kill $front_c 2>/dev/null
wait $front_c 2>/dev/null
check "the dead VBD can be detached" loopback detach 2 xvda
loopback attach 2 xvda "aio:$c"
check "and attached again" loopback wait 2 xvda --backend-state 2
check "and used" front --domid 2 --vdev xvda --job mixed --size 1M --count 50 --verify

# Killed while the daemon is away.
daemon_stop
kill -9 "$(vbd_pid 2 51712)"
daemon_start
check "killed while vbdiskd was away: dealt with" \
	eventually sh -c "[ \"\$(xenstore-read /local/domain/0/backend/qdisk/2/51712/state)\" = 6 ] || [ -e $run_dir/qdisk-2-51712 ]"
check "detach" loopback detach 2 xvda

# A detach that overtakes the daemon: nobody has taken the VBD up, and the toolstack waits for its end.
kill -STOP "$daemon_pid"
loopback attach 2 xvdc "aio:$c"
loopback detach 2 xvdc --timeout 15 &
detach_pid=$!
sleep 0.3
kill -CONT "$daemon_pid"
wait $detach_pid
check_is "a detach that overtakes vbdiskd ends" 0 $?

# Without a stderr, no descriptor of ours may take its place.
daemon_stop
"$top_builddir/vbdiskd" --vbdisk "$top_builddir/vbdisk" --loopback "$host" --run-dir "$run_dir" 2>&- &
daemon_pid=$!
loopback attach 2 xvdc "aio:$c"
check "with stderr closed a disk is served" loopback wait 2 xvdc --backend-state 2
check "with stderr closed its I/O works" front --domid 2 --vdev xvdc --job mixed --size 1M --count 50 --verify
check "detach" loopback detach 2 xvdc
daemon_stop
daemon_start

# Suspended, and dead.
front_start --domid 1 --vdev xvda --job mixed --size 8M --runtime 30 --depth 8
eventually be_state_is 1 51712 4
kill -STOP $front_pid
loopback domain-suspend 1
check "a suspended guest's data is brought to stable storage" \
	eventually grep -q "vbd 1/51712: guest suspended" "$scratch/vbdiskd.log"
loopback domain-resume 1
loopback domain-destroy 1 --keep-nodes --grace 0 &
check "a dead guest's VBDs end, nodes or not" eventually vbd_gone 1 51712
wait $!
kill -9 $front_pid
wait $front_pid 2>/dev/null
loopback domain-destroy 1 --grace 0 2>/dev/null
loopback domain-destroy 2 --grace 0
check_audit "at the end"
done_testing
