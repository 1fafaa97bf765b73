# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# access=ro: the guest reads, cannot write, and vbdisk holds the image read-only.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 360

image=$DATA/ro.img
image_make "$image" 32
mkfs.ext4 -q -F "$image"
mkdir -p "$DATA/mnt"
mount -o loop "$image" "$DATA/mnt"
mkdir "$DATA/mnt/tree"
cp /usr/bin/[a-h]* "$DATA/mnt/tree/"
(cd "$DATA/mnt/tree" && find . -type f | sort | xargs sha256sum) >"$DATA/mnt/sums"
sums="sums $(grep -c . "$DATA/mnt/sums") files $(sha256sum <"$DATA/mnt/sums" | cut -d' ' -f1)"
umount "$DATA/mnt"
before=$(sha256sum <"$image")

step "xl create"
check "the guest comes up" guest_create reader "$(disk "$image" xvda ro)"
id=$(guest_id reader)
check "the backend connects" equal "$(vbd_state "$id" xvda)" 4
pid=$(vbd_pid "$id" xvda)
flags=$(find "/proc/$pid/fd" -lname "$image" -printf '%f\n' | while read -r fd; do sed -n 's/^flags:[^0-9]*//p' "/proc/$pid/fdinfo/$fd"; done)
# The access mode is the lowest octal digit: 0 is O_RDONLY.
check "vbdisk opened the image once, read-only" matches "$flags" '^0*[0-7]*[04]$'
check "xenstore says read-only" equal "$(($(xenstore-read "$(vbd_path "$id" xvda)/info") & 4))" 4

step "guest: read, mount, try to write"
check "the guest reads the files through a read-only mount" equal "$(guest_run reader 90 "disk_check /dev/xvda" | tail -n 1)" "$sums"
check "the guest's kernel knows the disk is read-only" guest_run reader 20 '[ "$(cat /sys/block/xvda/ro)" = 1 ]'
check "a write is refused" guest_run reader 20 '! dd if=/dev/zero of=/dev/xvda bs=4096 count=1 oflag=direct 2>/dev/null'
check "a writable mount is refused" guest_run reader 20 '! mount -t ext4 -o rw /dev/xvda /mnt 2>/dev/null || grep " /mnt ext4 ro" /proc/mounts'
check "the guest powers off" guest_poweroff reader
check "the image is unchanged" equal "$(sha256sum <"$image")" "$before"
