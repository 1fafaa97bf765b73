#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Requests of more than 11 segments.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
disk=$(image disk.img 64M)
attach 1 xvda "aio:$disk"
check_is "offered" 256 "$(be_key 1 51712 feature-max-indirect-segments)"
for protocol in x86_64-abi x86_32-abi arm-abi; do
	check "$protocol: 128 KiB in 32 segments, verified" \
		front --domid 1 --vdev xvda --protocol $protocol --indirect 32 --block-size 128K --size 32M --job mixed \
		--count 1000 --depth 32 --verify
done
check "1 MiB in 256 segments, verified" \
	front --domid 1 --vdev xvda --indirect 256 --block-size 1M --size 64M --job mixed --count 200 --depth 16 --verify
check "segments that begin and end within pages, verified" \
	front --domid 1 --vdev xvda --indirect 64 --block-size 100K --unaligned --size 32M --job mixed --count 500 \
	--depth 16 --verify
check "direct requests and indirect ones together" \
	front --domid 1 --vdev xvda --indirect 32 --block-size 8K --size 32M --job mixed --count 1000 --depth 32 --verify
check "1 MiB requests on two queues" \
	front --domid 1 --vdev xvda --queues 2 --indirect 256 --block-size 1M --size 64M --job mixed --count 200 --depth 32 --verify
loopback detach 1 xvda

# More data than there is memory for: it waits, and all of it is served. 512 slots of 1 MiB, 32 MiB of memory.
daemon_restart -o indirect=256
attach 1 xvda "aio:$disk"
check "more than fits into memory, verified" \
	front --domid 1 --vdev xvda --ring-page-order 4 --indirect 256 --block-size 1M --size 64M --job mixed --count 300 \
	--depth 64 --verify
pid=$(vbd_pid 1 51712)
# Of its own: on this host the guest's pages are mapped, too.
peak=$(awk '/RssAnon/ { print $2 }' "/proc/$pid/status")
check_is "memory stays within its bound (48 MiB: 32 of data, the rest is everything else; has $peak KiB)" yes \
	"$([ "$peak" -lt 49152 ] && echo yes || echo no)"
loopback detach 1 xvda

# The offer is bounded by the grants that a guest can have: 32768 / (rings * slots).
daemon_restart
attach 1 xvda "aio:$disk"
front_start --domid 1 --vdev xvda --queues 2 --ring-page-order 4 --linger 20
eventually be_state_is 1 51712 4
check_is "less for a guest with many slots" 32 "$(be_key 1 51712 feature-max-indirect-segments)"
kill -TERM $front_pid
wait $front_pid
loopback detach 1 xvda

daemon_restart -o indirect=64
attach 1 xvda "aio:$disk"
front_start --domid 1 --vdev xvda --queues 2 --ring-page-order 4 --linger 20
eventually be_state_is 1 51712 4
check_is "unless the administrator says so" 64 "$(be_key 1 51712 feature-max-indirect-segments)"
kill -TERM $front_pid
wait $front_pid
output=$(front --domid 1 --vdev xvda --indirect 65 --block-size 128K --job seq-read --count 1 2>&1)
check_like "more than is offered" "offers 64" "$output"
loopback detach 1 xvda

daemon_restart -o indirect=0
attach 1 xvda "aio:$disk"
check_is "not offered" 0 "$(be_key 1 51712 feature-max-indirect-segments)"
check "44 KiB then, verified" \
	front --domid 1 --vdev xvda --block-size 44K --size 32M --job mixed --count 500 --depth 32 --verify
loopback detach 1 xvda

# Errors of storage are the request's.
daemon_restart
attach 1 xvda "fault:op=write,error-every=5:file:$disk"
output=$(front --domid 1 --vdev xvda --indirect 32 --block-size 128K --size 32M --job rand-write --count 50 --allow-errors --json)
check_like "each 5th write fails, no other" '"writes": 50,.*"error": 10,' "$output"
loopback detach 1 xvda

check_audit "at the end"
done_testing
