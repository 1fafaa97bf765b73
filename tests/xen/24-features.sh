# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# A guest that uses two queues, rings of 16 pages, indirect requests, flushes and discards, on a disk that grows.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 900

image=$DATA/a.img
report=$OUT/$TEST/report
image_make "$image" 256
# Two queues of 512 slots: without this option no more than 32 segments are offered to such a guest.
check "vbdiskd starts with an option" backend_restart indirect=64

step "xl create"
# With less memory blkfront finds no room for its 2 x 512 requests of 64 pages, and hangs.
GUEST_MEMORY=800 GUEST_VCPUS=2
guest_config feat "blkfront.max_ring_page_order=4 blkfront.max_queues=2 blkfront.max_indirect_segments=64" \
	"$(disk "$image" xvda)"
check "the guest comes up" guest_boot feat
id=$(guest_id feat)
check "the backend is connected" equal "$(vbd_state "$id" xvda)" 4

# Names and meaning: xen/include/public/io/blkif.h; what Linux writes: drivers/block/xen-blkfront.c, talk_to_blkback().
step "what both ends negotiated"
check "we offer two queues" equal "$(vbd_node "$id" xvda multi-queue-max-queues)" 2
check "we offer rings of 16 pages" equal "$(vbd_node "$id" xvda max-ring-page-order)" 4
check "we offer 64 indirect segments" equal "$(vbd_node "$id" xvda feature-max-indirect-segments)" 64
check "we offer discard" equal "$(vbd_node "$id" xvda feature-discard)" 1
check "we offer flush" equal "$(vbd_node "$id" xvda feature-flush-cache)" 1
check "the guest uses two queues" equal "$(frontend_node "$id" xvda multi-queue-num-queues)" 2
check "the guest uses rings of 16 pages" equal "$(frontend_node "$id" xvda ring-page-order)" 4
check "the second queue has its own sixteenth page" matches "$(frontend_node "$id" xvda queue-1/ring-ref15)" '^[0-9]+$'
check "the guest has two hardware queues" equal "$(guest_run feat 20 'ls /sys/block/xvda/mq | wc -l')" 2
check "a request of the guest has 64 segments" equal "$(guest_run feat 20 'cat /sys/block/xvda/queue/max_segments')" 64
check "a request of the guest has 256 KiB" equal "$(guest_run feat 20 'cat /sys/block/xvda/queue/max_hw_sectors_kb')" 256

# Field 5 of stat (Documentation/block/stat.rst): writes completed. Without indirect requests these would be 3 each.
writes='awk "{ print \$5 }" /sys/block/xvda/stat'
said=$(guest_run feat 60 "a=\$($writes); dd if=/dev/zero of=/dev/xvda bs=131072 count=40 oflag=direct 2>/dev/null; b=\$($writes); echo \$((b - a))")
check "40 writes of 128 KiB are 40 requests" equal "$said" 40

step "guest: mixed load with flushes and discards, verified"
raw=$(guest_run feat 300 "disk-work check /dev/xvda 0 256 4 8000 1")
check "mixed load on the disk is verified" equal "$?" 0
check "it read, wrote, flushed and discarded" matches "$raw" 'reads=[0-9]{4,} writes=[0-9]{4,} flushes=[0-9]{2,} discards=[0-9]{2,} failures=0$'

step "guest: discard of the whole disk"
check "the guest writes 64 MiB" guest_run feat 120 "disk_fill /dev/xvda 64 full"
before_kib=$(du -k "$image" | cut -f1)
check "the image has them" test "$before_kib" -ge 65536
check "the guest discards the disk" guest_run feat 120 "blkdiscard /dev/xvda"
after_kib=$(du -k "$image" | cut -f1)
check "the image gave its blocks back ($before_kib KiB before, $after_kib KiB after)" test "$after_kib" -le 1024

step "guest: file system"
check "files on ext4 are read back" guest_run feat 180 "disk_files /dev/xvda 8192"
check "the guest mounts with discard" guest_run feat 30 "mount -t ext4 -o discard /dev/xvda /mnt && truncate -s 64M /mnt/work"
fs=$(guest_run feat 300 "disk-work check /mnt/work 0 64 4 4000 2")
check "mixed load on ext4 is verified" equal "$?" 0

step "the image grows while the guest writes"
check "the guest begins to write" guest_run feat 30 "(disk-work check /mnt/work 0 64 2 12000 3; echo status \$?) >/tmp/load 2>&1 & sleep 2"
truncate -s 384M "$image"
grown_at=$(date +%s.%N)
# 384 MiB in sectors of 512 bytes; we look at the image every four seconds (resize-poll).
check "the guest sees the new size" guest_run feat 30 "n=0; until [ \$(disk_sectors xvda) = 786432 ]; do n=\$((n+1)); [ \$n -lt 100 ] || exit 1; sleep 0.2; done"
grow_s=$(awk -v a="$grown_at" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
check "within 10 s ($grow_s s)" awk -v s="$grow_s" 'BEGIN { exit !(s <= 10) }'
check "it was still writing then" guest_run feat 20 "pidof disk-work"
new=$(guest_run feat 200 "disk-work check /dev/xvda 256 128 2 2000 4")
check "the new part is written and read back" equal "$?" 0
load=$(guest_run feat 300 "while pidof disk-work >/dev/null; do sleep 0.5; done; cat /tmp/load")
check "the load ran on and is verified" matches "$load" 'failures=0'
check "it ended well" matches "$load" 'status 0'
check "the guest unmounts" guest_run feat 60 "rm /mnt/work && umount /mnt"
check "the files are what they were" guest_run feat 120 "disk_check /dev/xvda"

step "power off"
check "the guest powers off" guest_poweroff feat
check "its vbdisk process ends" wait_for 15 vbd_count_is 0
check "dom0 finds the file system in order" e2fsck -fn "$image"
{
	echo "disk:  $raw"
	echo "ext4:  $fs"
	echo "grown: seen after $grow_s s; $new"
} >"$report"
sed 's/^/# /' "$report" >>"$TAP"
