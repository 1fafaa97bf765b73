#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# An idle, connected VBD makes no wake-up; nor does vbdiskd.
#
# Owns: nothing. Trusts: lib.sh, /proc. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
disk=$(image disk.img 16M)
loopback attach 1 xvda "aio:$disk"
loopback wait 1 xvda --backend-state 2
front_start --domid 1 --vdev xvda --job rand-read --size 1M --count 100 --depth 4 --linger 60
eventually be_state_is 1 51712 4
sleep 1
pid=$(vbd_pid 1 51712)

# Each time a thread was scheduled away counts; one that sleeps throughout adds nothing.
switches() { cat /proc/"$1"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'; }
vbdisk_before=$(switches "$pid") vbdiskd_before=$(switches "$daemon_pid")
sleep 10
# But for its look at the size of the image, every 4 seconds; a thread that is woken is scheduled away once more.
woken=$(($(switches "$pid") - vbdisk_before))
check "vbdisk has woken for nothing else in 10 s ($woken times)" test "$woken" -le 3
check_is "vbdiskd has not woken in 10 s" "$vbdiskd_before" "$(switches "$daemon_pid")"
kill $front_pid
wait $front_pid 2>/dev/null
check "detach" loopback detach 1 xvda

# Several queues, and nothing to look at.
daemon_restart -o queues=2 -o resize-poll=0
attach 1 xvda "aio:$disk"
front_start --domid 1 --vdev xvda --queues 2 --job rand-read --size 1M --count 100 --depth 4 --linger 60
eventually be_state_is 1 51712 4
sleep 1
pid=$(vbd_pid 1 51712)
vbdisk_before=$(switches "$pid")
sleep 5
check_is "two queues and resize-poll=0: vbdisk has not woken in 5 s" "$vbdisk_before" "$(switches "$pid")"
kill $front_pid
wait $front_pid 2>/dev/null
check "detach" loopback detach 1 xvda
check_audit "at the end"
done_testing
