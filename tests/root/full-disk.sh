#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The file driver on a file system that runs full, on one with 4096-byte sectors, and on a read-only
# one.
# Owns: its loop devices and mounts. Trusts: mkfs.ext4. Runs on: root. Must not know: the driver's code.
set -euo pipefail
# shellcheck source=tests/root/lib.sh
. "${top_srcdir:-.}/tests/root/lib.sh"
need_root
command -v mkfs.ext4 >/dev/null || all_skip "needs mkfs.ext4"
plan 14

truncate -s 64M "$scratch/small.img"
mkfs.ext4 -q -F "$scratch/small.img"
loop_make "$scratch/small.img"
mount_make "$loop" "$scratch/small" 2>"$scratch/why" ||
	all_skip "mount does not work here: $(tr '\n' ' ' <"$scratch/why")"

# An image sixteen times larger than what holds it; 20 MiB of ballast to free later.
truncate -s 1G "$scratch/small/disk.img"
dd if=/dev/zero of="$scratch/small/ballast" bs=1M count=20 status=none
sync -f "$scratch/small"
disk "file:$scratch/small/disk.img" \
	write 0 128M 5 verify 5 flush \
	run "rm '$scratch/small/ballast' && sync -f '$scratch/small'" \
	write 96M 8M 5 verify 5 flush >"$scratch/report" || true
mapfile -t lines <"$scratch/report"
like "writes fail with ENOSPC" "write ok=* failed=* wrong=0 status=-28" "${lines[0]-}"
nr_ok=${lines[0]#*ok=}
nr_ok=${nr_ok%% *}
nr_failed=${lines[0]#*failed=}
nr_failed=${nr_failed%% *}
ok "some had room" test "$nr_ok" -gt 100
is "each is answered" 2048 "$((nr_ok + nr_failed))"
is "what was acknowledged is there" "verify ok=$nr_ok failed=0 wrong=0 status=0" "${lines[1]-}"
is "flush works on a full file system" "flush status=0" "${lines[2]-}"
is "after space was freed, writes work again" "write ok=128 failed=0 wrong=0 status=0" "${lines[3]-}"
is "and nothing was lost" "verify ok=$((nr_ok + 128)) failed=0 wrong=0 status=0" "${lines[4]-}"
is "flushed" "flush status=0" "${lines[5]-}"

mount -o remount,ro "$scratch/small"
status=0
message=$(disk "file:$scratch/small/disk.img" limits 2>&1) || status=$?
is "a read-only file system is not opened for writing" 2 "$status"
like "and the cure is named" "*disk.img: is read-only storage*access=ro*" "$message"
like "read-only it is served" "limits size=1073741824 * write=0 *" \
	"$(disk -r "file:$scratch/small/disk.img" limits)"

truncate -s 64M "$scratch/four.img"
if loop_make --sector-size 4096 "$scratch/four.img" 2>"$scratch/why" && mkfs.ext4 -q -F "$loop" &&
	mount_make "$loop" "$scratch/four" 2>>"$scratch/why"; then
	truncate -s $((1048576 + 512)) "$scratch/four/odd.img"
	truncate -s 1M "$scratch/four/even.img"
	like "an image on 4096-byte sectors" "limits size=1048576 logical=4096 physical=4096 *" \
		"$(disk "file:$scratch/four/even.img" limits)"
	ok "write, flush, verify there" disk "aio:$scratch/four/even.img" write 0 1M 7 flush verify 7
	like "an odd size is refused there" "*1049088 bytes*multiple of 4096*truncate -s 1052672 *" \
		"$(disk "file:$scratch/four/odd.img" limits 2>&1 || true)"
else
	skip 3 "no file system on 4096-byte sectors: $(tr '\n' ' ' <"$scratch/why")"
fi
