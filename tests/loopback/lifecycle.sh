#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A VBD's life through the real programs: attach, connect, I/O, detach; in every layout and spelling of the ring.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
disk=$(image disk.img 64M)

loopback attach 1 xvda "aio:$disk"
check "the backend reaches InitWait" loopback wait 1 xvda --backend-state 2
check_is "sectors are 512 bytes" 131072 "$(store_read /local/domain/0/backend/qdisk/1/51712/sectors)"
check_is "flush is offered" 1 "$(store_read /local/domain/0/backend/qdisk/1/51712/feature-flush-cache)"
check_is "rings of up to 16 pages are offered" 4 \
	"$(store_read /local/domain/0/backend/qdisk/1/51712/max-ring-page-order)"
check_is "persistent grants are not offered" 0 \
	"$(store_read /local/domain/0/backend/qdisk/1/51712/feature-persistent)"
check_is "info: a plain disk" 0 "$(store_read /local/domain/0/backend/qdisk/1/51712/info)"

for protocol in x86_64-abi x86_32-abi arm-abi; do
	check "$protocol: write and verify" front --domid 1 --vdev xvda --protocol $protocol --job seq-write \
		--block-size 44K --size 16M --depth 16 --verify --flush-every 10
	check "$protocol: random requests, verified" front --domid 1 --vdev xvda --protocol $protocol --job mixed \
		--block-size 4K --size 16M --count 2000 --depth 32 --verify
done
check "no protocol node: the x86_32 layout" front --domid 1 --vdev xvda --protocol none --job rand-write \
	--size 4M --count 200 --verify
for order in 0 1 2 3 4; do
	check "a ring of $((1 << order)) pages" front --domid 1 --vdev xvda --ring-page-order $order --job mixed \
		--block-size 8K --size 16M --count 1500 --depth 300 --verify
done

# The toolstack takes the disk while nobody uses it, and puts it back: the next generation of the same path.
for round in 1 2 3; do
	check "detach, round $round" loopback detach 1 xvda
	check "attach again, round $round" loopback attach 1 xvda "aio:$disk"
done
check "the next generation is served" loopback wait 1 xvda --backend-state 2
check "its I/O works" front --domid 1 --vdev xvda --job mixed --size 4M --count 200 --verify
check "detach" loopback detach 1 xvda
check_audit "after detach"

# Destroyed while it writes.
loopback attach 1 xvda "aio:$disk"
loopback wait 1 xvda --backend-state 2
front_start --domid 1 --vdev xvda --job rand-write --size 32M --runtime 20 --depth 32
eventually be_state_is 1 51712 4
check "destroy in the middle of writes" loopback domain-destroy 1
kill -9 $front_pid 2>/dev/null
wait $front_pid 2>/dev/null
check "its process is gone" eventually vbd_gone 1 51712
check_audit "after destroy"

# The kinds are independent, and read-only disks are opened read-only.
loopback domain-create 2
loopback attach 2 xvda "aio:$disk" --kind vbd3 --mode r
check "kind vbd3 is served" loopback wait 2 xvda --backend-state 2
check_is "info: read-only" 4 "$(store_read /local/domain/0/backend/vbd3/2/51712/info)"
pid=$(pgrep -f -- "vbd3/2/51712")
flags=$(for fd in /proc/"$pid"/fd/*; do
	[ "$(readlink "$fd")" != "$disk" ] || sed -n 's/^flags:[[:space:]]*//p' "/proc/$pid/fdinfo/${fd##*/}"
done)
# O_ACCMODE are the two lowest bits (fcntl.h); 0 is O_RDONLY.
check_is "the image is opened O_RDONLY" 0 $((0$flags & 3))
check "detach vbd3" loopback detach 2 xvda
check_audit "at the end"
done_testing
