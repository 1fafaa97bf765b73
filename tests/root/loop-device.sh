#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The file driver on block devices: loop devices of 512 and 4096 byte sectors, read-only ones, and
# partitions' stand-ins of odd sizes.
# Owns: its loop devices. Trusts: losetup. Runs on: root. Must not know: the driver's code.
set -euo pipefail
# shellcheck source=tests/root/lib.sh
. "${top_srcdir:-.}/tests/root/lib.sh"
need_root
plan 19

truncate -s 16M "$scratch/a.img"
loop_make "$scratch/a.img"
like "limits of a loop device" "limits size=16777216 logical=512 physical=* write=1 flush=1" \
	"$(disk "file:$loop" limits)"
like "a name without a slash is in /dev" "limits size=16777216 *" "$(disk "file:${loop#/dev/}" limits)"
ok "write, flush, verify" disk "aio:$loop" write 0 16M 7 flush verify 7
is "written in full" "write ok=256 failed=0 wrong=0 status=0" "$(disk "aio:$loop" write 0 16M 8)"
# The same bytes by another path: the image under the device, through the page cache.
disk "aio:$loop" write 0 16M 9 flush >/dev/null
is "the image holds what the device was given" \
	"$(dd if="$loop" iflag=direct bs=1M status=none | sha256sum)" "$(sha256sum <"$scratch/a.img")"
ok "what was dirty in the page cache is read back" bash -c "
	dd if=/dev/urandom of='$scratch/r' bs=1M count=1 status=none
	dd if='$scratch/r' of=$loop conv=notrunc status=none
	'$DISK_EXERCISE' file:$loop read 0 1M >/dev/null
	dd if=$loop iflag=direct bs=1M count=1 status=none | cmp - '$scratch/r'"

# Two openers of one device.
status=0
message=$(disk "file:$loop" run "! '$DISK_EXERCISE' file:$loop limits 2>'$scratch/second'" 2>&1) || status=$?
is "a second writer is refused" 0 "$status${message:+ $message}"
like "with the device's name and the cure" "*$loop: in use: *fuser -v $loop*" "$(cat "$scratch/second")"
ok "two readers are welcome" disk -r "file:$loop" run "'$DISK_EXERCISE' -r file:$loop limits"

truncate -s 16M "$scratch/b.img"
if loop_make --sector-size 4096 "$scratch/b.img" 2>"$scratch/why"; then
	like "limits of a 4096-byte sector device" "limits size=16777216 logical=4096 physical=4096 *" \
		"$(disk "file:$loop" limits)"
	ok "write, flush, verify on 4096" disk "aio:$loop" write 0 16M 7 flush verify 7
	is "one sector of 512 is refused by the kernel, and nothing else" \
		"write ok=0 failed=1 wrong=0 status=-22
write ok=1 failed=0 wrong=0 status=0" "$(disk "aio:$loop" write 512 512 1 write 4096 4096 1)"
else
	skip 3 "no 4096-byte loop device: $(tr '\n' ' ' <"$scratch/why")"
fi

loop_make --read-only "$scratch/a.img"
status=0
message=$(disk "file:$loop" limits 2>&1) || status=$?
is "a read-only device is not opened for writing" 2 "$status"
like "and the cure is named" "*$loop: is read-only storage*access=ro*" "$message"
like "read-only it is served" "limits size=16777216 * write=0 *" "$(disk -r "file:$loop" limits)"
is "reads work" "read ok=256 failed=0 wrong=0 status=0" "$(disk -r "file:$loop" read 0 16M)"
is "writes fail" "write ok=0 failed=1 wrong=0 status=-9" "$(disk -r "file:$loop" write 0 64K 1)"

# A loop device without a backing file has no size.
loop=$(losetup --find)
status=0
message=$(disk -r "file:$loop" limits 2>&1) || status=$?
is "a device of size 0 is refused" 2 "$status"
like "and named" "*$loop: *" "$message"
