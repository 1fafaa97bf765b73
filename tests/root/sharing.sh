#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# One writer of a block device, by whatever node and whatever part of it somebody else has.
# Owns: its loop devices, nodes and mounts. Trusts: losetup, addpart, mknod. Runs on: root.
# Must not know: the driver's code.
set -euo pipefail
# shellcheck source=tests/root/lib.sh
. "${top_srcdir:-.}/tests/root/lib.sh"
need_root
plan 7

# refused NAME SPEC HOLDER-COMMAND: while the holder has it, a writer is refused, by name and with the cure.
refused()
{
	local status=0 message
	message=$(disk "file:$2" limits 2>&1) || status=$?
	is "$1: refused" 2 "$status"
	like "$1: said" "*$2: in use: *" "$message"
}

truncate -s 16M "$scratch/a.img"
loop_make "$scratch/a.img"
mknod "$scratch/node" b $((0x$(stat -c %t "$loop"))) $((0x$(stat -c %T "$loop")))
status=0
message=$(disk "file:$loop" run "! '$DISK_EXERCISE' file:$scratch/node limits 2>'$scratch/second'" 2>&1) || status=$?
is "another node of the same device: refused" 0 "$status${message:+ $message}"
like "another node of the same device: said" "*$scratch/node: in use: *" "$(cat "$scratch/second")"
ok "free again" disk "file:$scratch/node" limits

mkfs.ext4 -q -F "$loop"
mount_make "$loop" "$scratch/mnt"
refused "mounted" "$loop"
umount "$scratch/mnt"
mounts=()

truncate -s 16M "$scratch/b.img"
loop_make "$scratch/b.img"
if addpart "$loop" 1 2048 8192 2>"$scratch/why" && [ -b "${loop}p1" ]; then
	status=0
	message=$(disk "file:${loop}p1" run "! '$DISK_EXERCISE' file:$loop limits 2>'$scratch/second'" 2>&1) || status=$?
	is "a partition is in use, the disk is wanted: refused" 0 "$status${message:+ $message}"
	status=0
	message=$(disk "file:$loop" run "! '$DISK_EXERCISE' file:${loop}p1 limits 2>'$scratch/second'" 2>&1) || status=$?
	is "the disk is in use, a partition is wanted: refused" 0 "$status${message:+ $message}"
	delpart "$loop" 1
else
	skip 2 "partitions cannot be added here: $(tr '\n' ' ' <"$scratch/why")"
fi
