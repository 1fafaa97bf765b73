#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Faults below and beside vbdisk: storage errors, a failed flush, refused grants, a frontend that dies, a lost xenstore.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
disk=$(image disk.img 16M)

# A frontend that is killed leaves nothing behind once its domain is gone.
loopback attach 1 xvda "aio:$disk"
loopback wait 1 xvda --backend-state 2
front --domid 1 --vdev xvda --job mixed --size 8M --runtime 30 --depth 16 >/dev/null 2>&1 &
front_pid=$!
eventually be_state_is 1 51712 4
kill -9 $front_pid
wait $front_pid 2>/dev/null
check "a new frontend connects after the old one was killed" \
	front --domid 1 --vdev xvda --job mixed --size 1M --count 50 --verify

# A grant that the hypervisor refuses: that request fails, the next one works.
loopback refuse-grant 20
front --domid 1 --vdev xvda --job rand-write --size 1M --count 200 --depth 1 >"$scratch/front.out" 2>&1
check "a refused grant fails a request, not the VBD" \
	front --domid 1 --vdev xvda --job mixed --size 1M --count 50 --verify
loopback refuse-grant 1 1
front --domid 1 --vdev xvda --job mixed --size 1M --count 1 --timeout 5 >"$scratch/front.out" 2>&1
loopback refuse-grant 1 0
check "a ring that cannot be mapped: the next connect works" \
	front --domid 1 --vdev xvda --job mixed --size 1M --count 50 --verify
check "detach" loopback detach 1 xvda
check_audit "after frontend faults"

# xenstore is lost: the process ends by itself, and says so.
loopback attach 1 xvda "aio:$disk"
loopback wait 1 xvda --backend-state 2
pid=$(vbd_pid 1 51712)
kill -9 "$host_pid"
wait "$host_pid" 2>/dev/null
check "without xenstore vbdisk ends" eventually test ! -e "/proc/$pid"
check "without xenstore vbdiskd ends" eventually test ! -e "/proc/$daemon_pid"
wait "$daemon_pid"
check_is "vbdiskd's status says so" 4 $?
daemon_pid=
check_like "and the log" "xenstore" "$(tail -n 3 "$scratch/vbdiskd.log")"
done_testing
