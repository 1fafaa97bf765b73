# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# xl block-attach 0: dom0's own blkfront on a disk that vbdisk serves.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 360

image=$DATA/own.img
image_make "$image" 32

step "xl block-attach 0"
check "xl block-attach 0 succeeds without any preparation" xl block-attach 0 "$(disk "$image" xvdz)"
check "the backend connects" wait_for 20 vbd_state_is 4 0 xvdz
check "dom0 has the disk" wait_for 20 test -b /dev/xvdz

step "write and read"
check "dom0 makes a file system and copies files" bash -c "set -e
	mkfs.ext4 -q -F /dev/xvdz
	mkdir -p '$DATA/mnt'
	mount /dev/xvdz '$DATA/mnt'
	cp /usr/bin/[a-m]* '$DATA/mnt/'
	(cd '$DATA/mnt' && find . -type f | sort | xargs sha256sum) >'$DATA/sums'
	umount '$DATA/mnt'"
check "dom0 reads them back through the disk" bash -c "set -e
	blockdev --flushbufs /dev/xvdz
	mount -o ro /dev/xvdz '$DATA/mnt'
	(cd '$DATA/mnt' && sha256sum --quiet -c '$DATA/sums')
	umount '$DATA/mnt'"

step "xl block-detach 0"
check "xl block-detach 0 succeeds" xl block-detach 0 xvdz
check "its process ends" wait_for 10 vbd_count_is 0
check "the image holds the same files" bash -c "set -e
	mount -o loop,ro '$image' '$DATA/mnt'
	(cd '$DATA/mnt' && sha256sum --quiet -c '$DATA/sums')
	umount '$DATA/mnt'"
