# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# backendtype=tap (kind vbd3, Xen 4.19 and later): no device model at all, libxl waits for vbdisk.
#
# Owns: its guest, images and hotplug script. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

if [ "$LAB_RELEASE" -lt 13 ]; then
	skip "backendtype=tap" "Xen 4.17 of Debian 12 does not know it; runs with --release 13"
	exit 0
fi

image_make "$DATA/a.img" 64
image_make "$DATA/b.img" 32
# libxl insists on a script; vbdisk needs nothing from it.
printf '#!/bin/sh\nexit 0\n' >/etc/xen/scripts/block-nothing
chmod 755 /etc/xen/scripts/block-nothing

tap() { # IMAGE VDEV
	echo "format=raw,vdev=$2,access=rw,backendtype=tap,script=block-nothing,target=$1"
}

step "xl create"
check "the guest comes up" guest_create tapped "$(tap "$DATA/a.img" xvda)"
id=$(guest_id tapped)
check "the backend of kind vbd3 is connected" equal "$(vbd_state "$id" xvda vbd3)" 4
check "one vbdisk process serves it" matches "$(vbd_pid "$id" xvda vbd3)" '^[0-9]+$'
check "no device model runs" equal "$(pgrep -c -x vbdisk-dm || true) $(qemu_count)" "0 0"
check "the guest writes and verifies" guest_run tapped 90 "disk_fill /dev/xvda 8 tap && disk_verify /dev/xvda 8 tap"
step "attach and detach"
check "xl block-attach succeeds" xl block-attach tapped "$(tap "$DATA/b.img" xvdb)"
check "the second backend connects" wait_for 20 vbd_state_is 4 "$id" xvdb vbd3
check "the guest writes the second disk" guest_run tapped 90 "disk_fill /dev/xvdb 4 two && disk_verify /dev/xvdb 4 two"
check "xl block-detach succeeds" xl block-detach tapped xvdb
check "its process ends" wait_for 10 vbd_count_is 1
step "destroy under load"
guest_send tapped "disk_hammer /dev/xvda; sleep 600"
sleep 2
check "xl destroy succeeds" timeout 60 xl destroy tapped
check "its process ends after the destroy" wait_for 15 vbd_count_is 0
step "a disk that cannot be served"
check "the guest comes up again" guest_create tapped "$(tap "$DATA/a.img" xvda)"
check "libxl tells that the attach of a missing file failed" not xl block-attach tapped "$(tap "$DATA/missing.img" xvdb)"
xl block-detach tapped xvdb
check "the guest powers off" guest_poweroff tapped
rm -f /etc/xen/scripts/block-nothing
