# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# The guest unloads its disk driver and loads it again, three times; each time it connects anew to the same process.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

image_make "$DATA/a.img" 64

step "xl create"
GUEST_MEMORY=384 GUEST_VCPUS=2
check "the guest comes up" guest_create again "$(disk "$DATA/a.img" xvda)"
id=$(guest_id again)
pid=$(vbd_pid "$id" xvda)
check "the guest writes the disk" guest_run again 90 "disk_fill /dev/xvda 16 kept"

for round in 1 2 3; do
	step "reload, round $round"
	check "round $round: the driver goes" guest_run again 60 "disk_driver_unload"
	check "round $round: the backend closes" wait_for 20 vbd_state_is 6 "$id" xvda
	check "round $round: the frontend begins again" frontend_renew again "$id" xvda
	check "round $round: the backend offers the disk again" wait_for 20 vbd_state_is 2 "$id" xvda
	check "round $round: the driver comes" guest_run again 60 "disk_driver_load && disk_appears /dev/xvda"
	check "round $round: the backend is connected" wait_for 20 vbd_state_is 4 "$id" xvda
	check "round $round: the same process serves it" equal "$(vbd_pid "$id" xvda)" "$pid"
	check "round $round: it was connected $((round + 1)) times" \
		equal "$(vbd_log "$id" xvda | grep -c ' connected: ')" $((round + 1))
	# Of a connection the driver says one line that names the disk and its features.
	check "round $round: the guest connected $((round + 1)) times" \
		equal "$(guest_run again 20 "dmesg | grep -c 'blkfront: xvda: '")" $((round + 1))
	step "verify, round $round"
	check "round $round: the data is there" guest_run again 90 "disk_verify /dev/xvda 16 kept"
	check "round $round: the disk can be worked on" guest_run again 120 "disk-work check /dev/xvda 16 48 2 400 $round"
done
check "the guest powers off" guest_poweroff again
