#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Several rings: their layouts in xenstore, verified load over all of them, workers, faults of one of them.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start -o queues=4
loopback domain-create 1
disk=$(image disk.img 64M)
attach 1 xvda "aio:$disk"
check_is "the queues are offered" 4 "$(be_key 1 51712 multi-queue-max-queues)"
check "two queues, one page each: verified" \
	front --domid 1 --vdev xvda --queues 2 --job mixed --size 16M --count 3000 --depth 64 --verify --flush-every 50
front_start --domid 1 --vdev xvda --queues 4 --ring-page-order 2 --job mixed --size 16M --runtime 20 --depth 256
eventually be_state_is 1 51712 4
check_is "the frontend's layout: number of queues" 4 "$(store_read /local/domain/1/device/vbd/51712/multi-queue-num-queues)"
check_like "the frontend's layout: ring references" "^[0-9]+$" "$(store_read /local/domain/1/device/vbd/51712/queue-3/ring-ref3)"
pid=$(vbd_pid 1 51712)
# vbdisk-0 ... are the workers; as many as queues, but no more than CPUs.
cpus=$(getconf _NPROCESSORS_ONLN)
check_is "workers" "$((cpus < 4 ? cpus : 4))" "$(cat "/proc/$pid/task/"*/comm | grep -c 'vbdisk-')"
kill -TERM $front_pid
wait $front_pid
check_is "ended in order" 0 $?
for order in 0 4; do
	check "four queues of $((1 << order)) pages: verified, reconnecting" \
		front --domid 1 --vdev xvda --queues 4 --ring-page-order $order --job mixed --size 16M --count 1500 \
		--depth 512 --block-size 16K --verify --reconnect 3
done
output=$(front --domid 1 --vdev xvda --queues 5 --job mixed --count 1 2>&1)
check_is "more queues than offered" 3 $?
check_like "more queues than offered: said" "offers 4" "$output"
# Killed while it uses all of them.
front_start --domid 1 --vdev xvda --queues 4 --job mixed --size 16M --runtime 30 --depth 128
eventually be_state_is 1 51712 4
kill -9 $front_pid
wait $front_pid 2>/dev/null
check "a new frontend after a killed one" \
	front --domid 1 --vdev xvda --queues 3 --job mixed --size 4M --count 500 --depth 64 --verify
# Taken away under load.
front_start --domid 1 --vdev xvda --queues 4 --job mixed --size 16M --runtime 30 --depth 128
eventually be_state_is 1 51712 4
check "detached under load" loopback detach 1 xvda
kill -TERM $front_pid 2>/dev/null
wait $front_pid 2>/dev/null
check_audit "detached under load"

for workers in 0 1 3; do
	daemon_restart -o queues=4 -o workers=$workers
	attach 1 xvda "aio:$disk"
	front_start --domid 1 --vdev xvda --queues 4 --job mixed --size 16M --count 3000 --depth 128 --verify --linger 20
	eventually be_state_is 1 51712 4
	pid=$(vbd_pid 1 51712)
	check_is "workers=$workers" $workers "$(cat "/proc/$pid/task/"*/comm | grep -c 'vbdisk-')"
	kill -TERM $front_pid
	wait $front_pid
	check_is "workers=$workers: verified" 0 $?
	loopback detach 1 xvda
done

# Suspend: everything of every queue is brought to stable storage.
daemon_restart -o queues=4
attach 1 xvda "aio:$disk"
front_start --domid 1 --vdev xvda --queues 4 --job mixed --size 16M --runtime 20 --depth 128
eventually be_state_is 1 51712 4
kill -USR1 "$(vbd_pid 1 51712)"
check "suspended under load" eventually grep -q "guest suspended: everything written is on stable storage" "$scratch/vbdiskd.log"
kill -TERM $front_pid
wait $front_pid
check_is "served on after the suspension" 0 $?
loopback detach 1 xvda

check_audit "at the end"
done_testing
