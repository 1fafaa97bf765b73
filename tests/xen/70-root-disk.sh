# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# The guest's root file system lives on our disk: it boots from it to a login prompt, twice.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

image=$DATA/root.img
cp /guest/root.img "$image"
guest_config rooted "lab.root=/dev/xvda" "$(disk "$image" xvda)"
step "first boot"
check "the guest comes up" guest_boot rooted
check "its init runs from our disk" guest_says rooted '^=root device=/dev/xvda boots=1 init=init' 60
check "it reaches a login prompt" guest_says rooted 'vbdisk-guest login:' 60
step "xl shutdown -w"
check "it shuts down" guest_shutdown rooted
step "second boot"
check "it comes up again" guest_boot rooted
check "what it wrote in the first boot is there" guest_says rooted '^=root device=/dev/xvda boots=2 ' 60
check "it reaches a login prompt again" guest_says rooted 'vbdisk-guest login:' 60
check "it shuts down again" guest_shutdown rooted
mkdir -p "$DATA/mnt"
check "dom0 finds its count of boots" bash -c "mount -o loop,ro '$image' '$DATA/mnt' && [ \"\$(cat '$DATA/mnt/root/boots')\" = 2 ] && umount '$DATA/mnt'"
