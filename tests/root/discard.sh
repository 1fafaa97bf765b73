#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Discards on a loop device, on a partition of it that begins within a granule, on a file; and storage
# that grows.
# Owns: its loop devices. Trusts: losetup, addpart. Runs on: root. Must not know: the driver's code.
set -euo pipefail
# shellcheck source=tests/root/lib.sh
. "${top_srcdir:-.}/tests/root/lib.sh"
need_root
plan 14

# blocks FILE: how many are allocated.
blocks()
{
	sync "$1"
	stat -c %b "$1"
}

# exercise NAME TARGET IMAGE: write 16M, discard 4M of it; the rest stays.
exercise()
{
	local before
	disk "file:$2" write 0 16M 7 flush >/dev/null
	before=$(blocks "$3")
	dd if="$2" bs=1M status=none iflag=direct >"$scratch/expected"
	dd if=/dev/zero of="$scratch/expected" bs=1M seek=1 count=4 conv=notrunc status=none
	is "$1: a discard" "discard status=0
flush status=0" "$(disk "file:$2" discard 1M 4M flush)"
	ok "$1: the range is zeroes, the rest is as it was" \
		bash -c "dd if='$2' bs=1M status=none iflag=direct | cmp - '$scratch/expected'"
	ok "$1: space is freed" test "$(blocks "$3")" -le $((before - 4 * 2048 + 64))
}

truncate -s 16M "$scratch/a.img"
is "a file is offered in the file system's blocks" \
	"discards can=1 secure=0 granularity=$(stat -f -c %S "$scratch") alignment=0" \
	"$(disk "file:$scratch/a.img" discards)"
exercise "file" "$scratch/a.img" "$scratch/a.img"
is "read-only: not offered" "discards can=0 secure=0 granularity=0 alignment=0" \
	"$(disk -r "file:$scratch/a.img" discards)"

loop_make "$scratch/a.img"
granularity=$(<"/sys/block/${loop#/dev/}/queue/discard_granularity")
if [ "$(<"/sys/block/${loop#/dev/}/queue/discard_max_bytes")" != 0 ]; then
	is "a device is offered as the kernel says" \
		"discards can=1 secure=0 granularity=$granularity alignment=0" "$(disk "file:$loop" discards)"
	exercise "device" "$loop" "$scratch/a.img"
else
	skip 4 "this loop device cannot discard"
fi
is "read-only device: not offered" "discards can=0 secure=0 granularity=0 alignment=0" \
	"$(disk -r "file:$loop" discards)"

# Sector 63, where partitions began for decades, is byte 3584 of a granule of 4096: the next one begins
# 512 bytes later.
truncate -s 32M "$scratch/b.img"
loop_make "$scratch/b.img"
if addpart "$loop" 1 63 32768 2>"$scratch/why" && [ -b "${loop}p1" ] &&
	[ "$(<"/sys/block/${loop#/dev/}/queue/discard_granularity")" = 4096 ]; then
	is "a partition has its own alignment" "discards can=1 secure=0 granularity=4096 alignment=512" \
		"$(disk "file:${loop}p1" discards)"
	disk "file:${loop}p1" write 0 1M 7 flush >/dev/null
	before=$(blocks "$scratch/b.img")
	is "a granule there" "discard status=0
flush status=0" "$(disk "file:${loop}p1" discard 512 4096 flush)"
	is "is a block of the disk: 8 sectors come free" $((before - 8)) "$(blocks "$scratch/b.img")"
	delpart "$loop" 1
else
	skip 3 "no partition with granules of 4096 bytes on a loop device"
fi

truncate -s 16M "$scratch/c.img"
loop_make "$scratch/c.img"
is "a device that grows" "refresh status=0 size=16777216
refresh status=0 size=25165824" \
	"$(disk "file:$loop" refresh run "truncate -s 24M '$scratch/c.img' && losetup --set-capacity $loop" refresh)"
