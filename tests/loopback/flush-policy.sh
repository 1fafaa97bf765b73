#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A flush that fails: held, or the disk is closed; never an error to an empty flush (xen-contract.md 4.3).
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
disk=$(image disk.img 16M)
attach 1 xvda "fault:op=flush,error-at=3:file:$disk"
output=$(front --domid 1 --vdev xvda --job flush --count 3 --timeout 2 2>&1)
check_is "the third flush fails: no answer" 4 $?
check_like "and two before it were answered" "1 requests in flight, the oldest is the FLUSH" "$output"
check_like "the alarm names the disk and the cure" "flush of .*disk.img failed: .*detach and attach" "$(error_node 1 51712)"
check "reads go on, also for the next frontend" front --domid 1 --vdev xvda --job rand-read --size 1M --count 100
front --domid 1 --vdev xvda --job rand-write --size 1M --count 1 --timeout 2 >"$scratch/front.out" 2>&1
check_is "a later write is not answered" 4 $?
front --domid 1 --vdev xvda --job discard --size 1M --count 1 --timeout 2 >"$scratch/front.out" 2>&1
check_is "nor a discard" 4 $?
front --domid 1 --vdev xvda --job flush --count 1 --timeout 2 >"$scratch/front.out" 2>&1
check_is "nor a flush" 4 $?
check "it can be detached" loopback detach 1 xvda
attach 1 xvda "aio:$disk"
check "and attached again" front --domid 1 --vdev xvda --job mixed --size 1M --count 100 --verify --flush-every 10
loopback detach 1 xvda
# Several queues: the failure of one is everybody's.
attach 1 xvda "fault:op=flush,error-every=1:file:$disk"
front --domid 1 --vdev xvda --queues 2 --job rand-write --size 1M --count 200 --depth 8 --flush-every 20 --timeout 2 >"$scratch/front.out" 2>&1
check_is "two queues: held" 4 $?
loopback detach 1 xvda
check_audit "after held disks"

daemon_restart -o flush-failure=fail
attach 1 xvda "fault:op=flush,error-at=1:file:$disk"
front_start --domid 1 --vdev xvda --job flush --count 1 --timeout 5
check "flush-failure=fail: the disk is closed under the guest" eventually be_state_is 1 51712 5
wait $front_pid
check_is "and the flush is not answered" 4 $?
check_like "the reason" "flush of .*disk.img failed: .*the disk is closed" "$(error_node 1 51712)"
output=$(front --domid 1 --vdev xvda --job rand-read --count 1 --timeout 5 2>&1)
check_is "it is not connected again" 3 $?
check "it can be detached" loopback detach 1 xvda

check_audit "at the end"
done_testing
