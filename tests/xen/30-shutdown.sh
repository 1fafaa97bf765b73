# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# xl shutdown -w of a guest whose disk is in use.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 360

image_make "$DATA/a.img" 64
step "xl create"
check "the guest comes up" guest_create down "$(disk "$DATA/a.img" xvda)"
step "guest: mounted file system"
check "the guest mounts a file system" guest_run down 60 "mkfs.ext4 -q -F /dev/xvda && mount /dev/xvda /mnt && dd if=/dev/urandom of=/mnt/data bs=65536 count=64 && sync"
step "xl shutdown -w"
check "xl shutdown -w succeeds" timeout 90 xl shutdown -w down
check "the domain is gone" wait_for 20 guest_gone down
check "its vbdisk process ends" wait_for 10 vbd_count_is 0
