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
front_start --domid 1 --vdev xvda --job mixed --size 8M --runtime 30 --depth 16
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

# Errors of storage reach the guest as errors, and nothing else fails.
loopback attach 1 xvda "fault:op=write,error-every=7:file:$disk"
loopback wait 1 xvda --backend-state 2
output=$(front --domid 1 --vdev xvda --job rand-write --size 1M --count 70 --allow-errors --json 2>&1)
check_like "each 7th write fails, no other" '"writes": 70,.*"error": 10,' "$output"
loopback detach 1 xvda

# Late and out of order.
loopback attach 1 xvda "fault:delay-ms=5,reorder=8,split=1:file:$disk"
loopback wait 1 xvda --backend-state 2
check "delayed, split and reordered: verified" \
	front --domid 1 --vdev xvda --job mixed --size 4M --count 400 --depth 16 --block-size 16K --verify
loopback detach 1 xvda

# A failed flush is never answered, and no write succeeds after it.
loopback attach 1 xvda "fault:op=flush,error-at=1:file:$disk"
loopback wait 1 xvda --backend-state 2
output=$(front --domid 1 --vdev xvda --job flush --count 1 --timeout 2 2>&1)
check_is "a failed flush: no answer" 4 $?
check_like "a failed flush: the error node says what to do" "flush .* failed.*held" "$(error_node 1 51712)"
check "the VBD can be detached all the same" loopback detach 1 xvda
check_audit "after storage faults"

# xenstore is lost under a connected guest. (libxenstore does not tell that its connection is gone before it is used
# again, so nothing ends by itself.)
loopback attach 1 xvda "aio:$disk"
loopback wait 1 xvda --backend-state 2
pid=$(vbd_pid 1 51712)
kill -9 "$host_pid"
wait "$host_pid" 2>/dev/null
kill "$pid"
check "without xenstore vbdisk still ends when told to" eventually test ! -e "/proc/$pid"
kill "$daemon_pid"
wait "$daemon_pid"
check_is "and so does vbdiskd" 0 $?
daemon_pid=
done_testing
