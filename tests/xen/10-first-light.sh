# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# A guest makes a file system on a disk that vbdisk serves; its files are found again from dom0.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

image=$DATA/first.img
report=$OUT/$TEST/report
image_make "$image" 96

step "xl create"
started=$(date +%s.%N)
guest_config first "" "$(disk "$image" xvda)"
rm -f "$(guest_log first)"
check "xl create succeeds" xl create /run/first.cfg
created=$(date +%s.%N)
check "the guest comes up with its disk" guest_says first '^=guest ready .*disks=xvda$' 90
ready=$(date +%s.%N)
id=$(guest_id first)
pid=$(vbd_pid "$id" xvda)
program=$(readlink "/proc/$pid/exe")
check "one vbdisk process serves the disk" matches "$pid" '^[0-9]+$'
qemus=$(qemu_count)
check "no QEMU runs in dom0" equal "$qemus" 0
check "the backend is connected" equal "$(vbd_state "$id" xvda)" 4

step "guest: file system, files, remount, checksums"
guest_sums=$(guest_run first 120 "disk_files /dev/xvda 4096 && disk_check /dev/xvda")
check "the guest reads back what it wrote after a remount" equal "$?" 0
guest_sums=$(tail -n 1 <<<"$guest_sums")

step "guest: power off"
check "the guest powers off" guest_poweroff first
check "its vbdisk process ends" wait_for 15 vbd_count_is 0

step "dom0: checksums through a loop mount"
mkdir -p "$DATA/mnt"
check "dom0 mounts the image" mount -o loop,ro "$image" "$DATA/mnt"
check "dom0 finds every file as the guest wrote it" bash -c "cd '$DATA/mnt/tree' && sha256sum --quiet -c ../sums"
dom0_sums="sums $(grep -c . "$DATA/mnt/sums") files $(sha256sum <"$DATA/mnt/sums" | cut -d' ' -f1)"
check "guest and dom0 agree on the list of checksums" equal "$dom0_sums" "$guest_sums"
umount "$DATA/mnt"

{
	xl info | awk -F' *: ' '/^xen_version/ { x = $2 } /^release/ { r = $2 } END { print "host:      Xen " x ", dom0 Linux " r }'
	tr -d '\r' <"$(guest_log first)" | sed -n 's/^=guest up linux=\([^ ]*\).*/guest:     PV guest, Linux \1 with its own xen-blkfront/p' | head -n 1
	awk -v a="$started" -v b="$created" -v c="$ready" 'BEGIN { printf "times:     xl create %.1f s; guest ready to use the disk %.1f s after the start\n", b - a, c - a }'
	echo "served by: process ${pid:-(none)} of dom0 (${program:-no vbdisk}); QEMU processes in dom0: $qemus"
	echo "in guest:  ${guest_sums/sums/checksums of}"
	echo "in dom0:   ${dom0_sums/sums/checksums of} (loop mount of the image, after the guest was gone)"
} >"$report"
