#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Persistent grants: only when asked for, bounded, and every page is given back.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start -o persistent=64
loopback domain-create 1
disk=$(image disk.img 64M)
attach 1 xvda "aio:$disk"
check_is "offered when asked for" 1 "$(be_key 1 51712 feature-persistent)"
front_start --domid 1 --vdev xvda --persistent --job mixed --size 16M --count 20000 --depth 32 --verify --flush-every 100 --linger 30
eventually grep -q "persistent grants" "$scratch/vbdiskd.log"
eventually be_state_is 1 51712 4
kill -TERM $front_pid
wait $front_pid
check_is "20000 requests with kept grants: verified" 0 $?
check "a frontend that does not know them is copied for" \
	front --domid 1 --vdev xvda --job mixed --size 16M --count 2000 --depth 32 --verify
check "segments within pages" \
	front --domid 1 --vdev xvda --persistent --job mixed --size 16M --count 2000 --depth 32 --unaligned --block-size 8K --verify
check "with indirect segments and two queues" \
	front --domid 1 --vdev xvda --persistent --queues 2 --indirect 32 --block-size 128K --size 32M --job mixed --count 1000 \
	--depth 64 --verify
check "reconnecting" \
	front --domid 1 --vdev xvda --persistent --job mixed --size 4M --count 200 --depth 16 --verify --reconnect 5
# G07: another page in each request, far more than are kept.
pid=$(vbd_pid 1 51712)
front_start --domid 1 --vdev xvda --persistent --job mixed --size 16M --count 100000 --depth 32 --data-pages 4000 --timeout 60
eventually be_state_is 1 51712 4
sleep 1
before=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status")
# What is mapped of this domain: at most 64 grants, and the page of the ring; what waits to be let go of comes on top.
mapped=$(loopback audit | grep -c "mapped" || true)
wait $front_pid
check_is "100000 requests, each with fresh pages" 0 $?
after=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status")
check_is "memory stays the same ($before, then $after KiB; $mapped lines of mapped grants)" yes \
	"$([ $((after - before)) -lt 1024 ] && echo yes || echo no)"
# The hypervisor refuses mappings for a while (G08): copied instead.
front_start --domid 1 --vdev xvda --persistent --job mixed --size 16M --runtime 4 --depth 32 --data-pages 2000 --allow-errors
eventually be_state_is 1 51712 4
loopback refuse-grant 1 200
wait $front_pid
check_is "grants that are refused for a while, mappings and copies: served on" 0 $?
loopback refuse-grant 1 0
check "and right again afterwards" \
	front --domid 1 --vdev xvda --persistent --job mixed --size 16M --count 2000 --depth 32 --verify
# Killed with mapped grants.
front_start --domid 1 --vdev xvda --persistent --job mixed --size 16M --runtime 30 --depth 32
eventually be_state_is 1 51712 4
kill -9 $front_pid
wait $front_pid 2>/dev/null
check "a new frontend after a killed one" \
	front --domid 1 --vdev xvda --persistent --job mixed --size 4M --count 500 --depth 32 --verify
loopback detach 1 xvda
check_audit "after kept grants"
daemon_restart
attach 1 xvda "aio:$disk"
check_is "not offered otherwise" 0 "$(be_key 1 51712 feature-persistent)"
check "a frontend that wants them is copied for" \
	front --domid 1 --vdev xvda --persistent --job mixed --size 4M --count 500 --depth 32 --verify
loopback detach 1 xvda

check_audit "at the end"
done_testing
