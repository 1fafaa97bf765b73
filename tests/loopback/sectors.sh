#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Storage of 4096-byte blocks: sectors of 512 bytes by read, modify and write, or honest 4096 (faults.md R23-R25, S01).
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
attach 1 xvda "memory:size=16M,block=4096"
check_is "512 is offered" 512 "$(be_key 1 51712 sector-size)"
check_is "the storage's block is told" 4096 "$(be_key 1 51712 physical-sector-size)"
check_is "sectors are 512 bytes" 32768 "$(be_key 1 51712 sectors)"
check_is "one queue, so that writes of a block's parts have an order" 1 "$(be_key 1 51712 multi-queue-max-queues)"
check "single sectors, verified" front --domid 1 --vdev xvda --job mixed --block-size 512 --size 1M --count 4000 --depth 32 --verify
check "3584 bytes, verified" front --domid 1 --vdev xvda --job mixed --block-size 3584 --size 4M --count 2000 --depth 32 --verify
check "segments within pages, verified" \
	front --domid 1 --vdev xvda --job mixed --block-size 20K --unaligned --size 8M --count 1000 --depth 32 --verify
check "1 MiB from an odd sector, verified" \
	front --domid 1 --vdev xvda --job mixed --indirect 256 --block-size 1044992 --offset 512 --size 15M --count 60 --depth 16 --verify
check "discards and flushes among them, verified" \
	front --domid 1 --vdev xvda --job mixed --block-size 1536 --size 1M --count 3000 --depth 32 --verify --discard-every 9 --flush-every 30
loopback detach 1 xvda
attach 1 xvda "fault:delay-ms=2,reorder=5:memory:size=16M,block=4096"
check "slow and reordered, verified" \
	front --domid 1 --vdev xvda --job mixed --block-size 512 --size 64K --count 1000 --depth 32 --verify
loopback detach 1 xvda

daemon_restart -o sector=native -o queues=2
attach 1 xvda "memory:size=1G,block=4096"
check_is "native: 4096 is offered" 4096 "$(be_key 1 51712 sector-size)"
check_is "native: sectors are 512 bytes all the same" 2097152 "$(be_key 1 51712 sectors)"
check_is "native: as many queues as ever" 2 "$(be_key 1 51712 multi-queue-max-queues)"
check "native: whole blocks, verified" \
	front --domid 1 --vdev xvda --queues 2 --job mixed --block-size 8K --size 16M --count 1000 --depth 32 --verify
output=$(front --domid 1 --vdev xvda --job rand-write --block-size 512 --size 1M --count 64 --allow-errors --json)
check_like "native: parts of blocks are errors" '"error": 64,' "$output"
loopback detach 1 xvda

check_audit "at the end"
done_testing
