# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Storage of 4096-byte sectors: a guest boots from a partition table of 512-byte sectors on it; and one that takes 4096.
#
# Owns: its guests, images and loop devices. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

image=$DATA/root.img
image_make "$image" 96
# A DOS partition table by hand: one partition of type 83h, 131072 sectors from sector 2048 on.
printf '\200\000\000\000\203\000\000\000\000\010\000\000\000\000\002\000' | dd of="$image" bs=1 seek=446 conv=notrunc 2>/dev/null
printf '\125\252' | dd of="$image" bs=1 seek=510 conv=notrunc 2>/dev/null
dd if=/guest/root.img of="$image" bs=1M seek=1 count=64 conv=notrunc 2>/dev/null
loop=$(losetup --find --show --sector-size 4096 --direct-io=on "$image")
check "the device has sectors of 4096 bytes" equal "$(cat "/sys/block/${loop#/dev/}/queue/logical_block_size")" 4096

guest_config rooted "lab.root=/dev/xvda1" "$(disk "$loop" xvda)"
for boot in 1 2; do
	step "boot $boot from the partition"
	check "boot $boot: the guest comes up" guest_boot rooted
	check "boot $boot: its root is the partition" guest_says rooted "^=root device=/dev/xvda1 boots=$boot " 60
	check "boot $boot: it reaches a login prompt" guest_says rooted 'vbdisk-guest login:' 60
	node=$(vbd_path "$(guest_id rooted)" xvda)
	check "boot $boot: 512 is offered" equal "$(xenstore-read "$node/sector-size")" 512
	check "boot $boot: 4096 is told" equal "$(xenstore-read "$node/physical-sector-size")" 4096
	check "boot $boot: it shuts down" guest_shutdown rooted
done
losetup -d "$loop"
mkdir -p "$DATA/mnt"
check "dom0 finds its count of boots" bash -c "mount -o loop,ro,offset=1048576 '$image' '$DATA/mnt' &&
	[ \"\$(cat '$DATA/mnt/root/boots')\" = 2 ] && umount '$DATA/mnt'"

step "native"
image_make "$DATA/native.img" 96
loop=$(losetup --find --show --sector-size 4096 --direct-io=on "$DATA/native.img")
check "vbdiskd starts" backend_restart sector=native
check "the guest comes up" guest_create native "$(disk "$loop" xvda)"
check "the guest sees 4096" equal "$(guest_run native 20 "cat /sys/block/xvda/queue/logical_block_size")" 4096
check "the guest sees the whole disk" equal "$(guest_run native 20 "cat /sys/block/xvda/size")" 196608
check "files are read back after a remount" guest_run native 120 "disk_files /dev/xvda 4096 && disk_check /dev/xvda"
check "the guest powers off" guest_poweroff native
check "its process ends" wait_for 15 vbd_count_is 0
losetup -d "$loop"
