#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Sectors of 512 bytes on a device of 4096 (4Kn), which the kernel itself refuses.
# Owns: its loop device. Trusts: losetup. Runs on: root. Must not know: how it is done.
set -euo pipefail
# shellcheck source=tests/root/lib.sh
. "${top_srcdir:-.}/tests/root/lib.sh"
need_root

truncate -s 16M "$scratch/a.img"
loop_make --sector-size 4096 "$scratch/a.img" 2>"$scratch/why" ||
	all_skip "no 4096-byte loop device: $(tr '\n' ' ' <"$scratch/why")"
plan 8

like "limits" "limits size=16777216 logical=512 physical=4096 memory=512 write=1 flush=1" \
	"$(disk -s "file:$loop" limits)"
like "without being asked, they are the device's" "limits size=16777216 logical=4096 *" \
	"$(disk "file:$loop" limits)"
ok "aligned: write, flush, verify" disk -s "file:$loop" write 0 16M 7 flush verify 7
# 64 KiB each, from byte 512 of a block on, 32 in flight: each shares blocks with its neighbours.
ok "unaligned: write, flush, verify" disk -s "file:$loop" write 512 16776704 8 write 0 512 8 flush verify 8
disk "file:$loop" write 0 16M 8 flush >/dev/null
expected=$(sha256sum <"$scratch/a.img")
disk -s "file:$loop" write 0 16M 9 flush write 512 16776704 8 write 0 512 8 flush >/dev/null
is "byte for byte as if written in whole blocks" "$expected" "$(sha256sum <"$scratch/a.img")"
dd if="$scratch/a.img" of="$scratch/before" bs=512 status=none
is "one sector" "write ok=1 failed=0 wrong=0 status=0
flush status=0" "$(disk -s "file:$loop" write 5120 512 1 flush)"
is "and nothing beside it is changed" "10" \
	"$(cmp -l "$scratch/before" "$scratch/a.img" | awk '{ print int(($1 - 1) / 512) }' | sort -u)"
is "unaligned reads" "read ok=256 failed=0 wrong=0 status=0" "$(disk -r -s "file:$loop" read 512 16776704)"
