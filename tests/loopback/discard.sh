#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Discards: offered as the storage has them, inward only, and blocks come back.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
disk=$(image disk.img 64M)
attach 1 xvda "aio:$disk"
check_is "offered" 1 "$(be_key 1 51712 feature-discard)"
granularity=$(be_key 1 51712 discard-granularity)
check_like "granularity" "^[0-9]+$" "$granularity"
check_is "alignment" 0 "$(be_key 1 51712 discard-alignment)"
check "fill the disk" front --domid 1 --vdev xvda --job seq-write --block-size 44K --depth 16
full=$(du -k "$disk" | cut -f1)
check "discard half of it" front --domid 1 --vdev xvda --job discard --block-size 1M --indirect 256 --size 32M --depth 8
half=$(du -k "$disk" | cut -f1)
check_is "the image has given half of its blocks back ($full KiB, then $half)" yes \
	"$([ "$half" -le $((full - 30000)) ] && echo yes || echo no)"
check "size of the image is the same" test "$(stat -c %s "$disk")" = $((64 << 20))
check "writes, discards and reads together, verified" \
	front --domid 1 --vdev xvda --job mixed --size 16M --count 4000 --depth 32 --verify --discard-every 7 --flush-every 50
check "on several queues, verified" \
	front --domid 1 --vdev xvda --queues 2 --job mixed --size 16M --count 4000 --depth 64 --verify --discard-every 7
# Edges that are no whole granule are left alone (faults.md R25).
check "write a pattern" front --domid 1 --vdev xvda --job seq-write --size 1M --depth 8 --verify
check "discards smaller than a granule" front --domid 1 --vdev xvda --job discard --block-size 512 --size 1M --depth 8
check "change nothing" front --domid 1 --vdev xvda --job seq-write --size 1M --depth 8 --verify-only
loopback detach 1 xvda

# Read-only: not offered. (discard-enable=0 is the toolstack's way to forbid it.)
attach 1 xvda "aio:$disk" --mode r
check_is "not on a read-only disk" 0 "$(be_key 1 51712 feature-discard)"
loopback detach 1 xvda
daemon_restart -o discard=0
attach 1 xvda "aio:$disk"
check_is "not when the administrator says so" 0 "$(be_key 1 51712 feature-discard)"
output=$(front --domid 1 --vdev xvda --job discard --size 1M --count 4 --allow-errors --json)
check_like "it is unsupported then" '"eopnotsupp": 4,' "$output"
loopback detach 1 xvda

# Storage that refuses after all: the guest hears "unsupported", and everything else goes on (faults.md S21, S24).
daemon_restart
attach 1 xvda "fault:op=discard,error-at=2,errno=EOPNOTSUPP:fault:op=discard,error-at=1:file:$disk"
output=$(front --domid 1 --vdev xvda --job discard --size 1M --count 3 --allow-errors --json)
check_like "an error and an unsupported one" '"error": 1, "eopnotsupp": 1,' "$output"
check "and the disk is served on" front --domid 1 --vdev xvda --job mixed --size 1M --count 100 --verify
loopback detach 1 xvda

# A late hole must not swallow a newer write: the answer comes when the hole is there (faults.md S23).
attach 1 xvda "fault:op=discard,delay-ms=5:file:$disk"
check "slow discards and writes of the same blocks, verified" \
	front --domid 1 --vdev xvda --job mixed --size 256K --count 3000 --depth 32 --read-percent 20 --verify --discard-every 3
loopback detach 1 xvda

check_audit "at the end"
done_testing
