#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The disk grows under a connected guest, and shrinks only when a person says so (faults.md X18).
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start -o resize-poll=1
loopback domain-create 1
disk=$(image disk.img 8M)
sectors_are() { be_key_is 1 51712 sectors "$1"; }
attach 1 xvda "aio:$disk"
front_start --domid 1 --vdev xvda --job mixed --size 8M --runtime 4 --depth 32 --verify --expect-grow 20 --json
eventually be_state_is 1 51712 4
truncate -s 24M "$disk"
check "the new size is told within seconds" eventually sectors_are 49152
wait $front_pid
check_is "what is new is written and verified in the same connection, while the job goes on" 0 $?
check_like "the frontend was told once" '"resizes": 1,' "$(cat "$scratch/front.out")"
# Several queues: all of them know the new bounds before the guest does.
front_start --domid 1 --vdev xvda --queues 2 --job mixed --size 8M --runtime 3 --depth 64 --expect-grow 20
eventually be_state_is 1 51712 4
truncate -s 32M "$disk"
wait $front_pid
check_is "on two queues" 0 $?
# Smaller: only by order. The guest is not told of what a mistake did.
front_start --domid 1 --vdev xvda --linger 30
eventually be_state_is 1 51712 4
truncate -s 16M "$disk"
check "a smaller image is told to the person" eventually grep -q "has shrunk to 32768 sectors" "$scratch/vbdiskd.log"
check "and not to the guest" sectors_are 65536
kill -HUP "$(vbd_pid 1 51712)"
check "SIGHUP makes the guest see it" eventually sectors_are 32768
kill -TERM $front_pid
wait $front_pid
# Not connected: the next connection has the size of its time.
truncate -s 20M "$disk"
check "found at the next connection" front --domid 1 --vdev xvda --job seq-write --offset 16M --size 4M --verify
check "told" sectors_are 40960
truncate -s 20972132 "$disk"
kill -HUP "$(vbd_pid 1 51712)"
check "a size that is no whole sector is rounded down" eventually sectors_are 40961
loopback detach 1 xvda

truncate -s 20972032 "$disk"
daemon_restart -o resize-poll=0
attach 1 xvda "aio:$disk"
front_start --domid 1 --vdev xvda --linger 30
eventually be_state_is 1 51712 4
truncate -s 40M "$disk"
sleep 2
check "without polling nothing happens by itself" sectors_are 40961
kill -HUP "$(vbd_pid 1 51712)"
check "but by SIGHUP" eventually sectors_are 81920
kill -TERM $front_pid
wait $front_pid
loopback detach 1 xvda

check_audit "at the end"
done_testing
