#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Write barriers: nothing overtakes one, and one overtakes nothing (faults.md R13).
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start -o barrier=1
loopback domain-create 1
disk=$(image disk.img 16M)
attach 1 xvda "aio:$disk"
check_is "offered when asked for" 1 "$(be_key 1 51712 feature-barrier)"
check "barriers in a verified load; vbdisk-front checks the order of all answers" \
	front --domid 1 --vdev xvda --job mixed --size 8M --count 3000 --depth 32 --verify --barrier-every 5
check "on two queues: each has its own order" \
	front --domid 1 --vdev xvda --queues 2 --job mixed --size 8M --count 3000 --depth 64 --verify --barrier-every 5
check "nothing but barriers, alone in the ring" \
	front --domid 1 --vdev xvda --job seq-write --size 4K --count 100 --depth 1 --barrier-every 1
loopback detach 1 xvda
# Writes that finish in another order than they came in, and late.
attach 1 xvda "fault:op=write,delay-ms=10,reorder=6:file:$disk"
check "with slow, reordered writes" \
	front --domid 1 --vdev xvda --job rand-write --size 8M --count 400 --depth 16 --verify --barrier-every 9
loopback detach 1 xvda
# The flush of a barrier fails: held like any failed flush.
attach 1 xvda "fault:op=flush,error-at=1:file:$disk"
front --domid 1 --vdev xvda --job rand-write --size 1M --count 10 --barrier-every 3 --timeout 2 >"$scratch/front.out" 2>&1
check_is "a barrier whose flush fails is not answered" 4 $?
check_like "and the person is told" "flush .* failed" "$(error_node 1 51712)"
loopback detach 1 xvda
daemon_restart
attach 1 xvda "aio:$disk"
check_is "not offered otherwise" 0 "$(be_key 1 51712 feature-barrier)"
output=$(front --domid 1 --vdev xvda --job rand-write --size 1M --count 20 --barrier-every 4 --allow-errors --json)
check_like "unsupported then, not an error" '"errors": {"error": 0, "eopnotsupp": [1-9]' "$output"
loopback detach 1 xvda

check_audit "at the end"
done_testing
