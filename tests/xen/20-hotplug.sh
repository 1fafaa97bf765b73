# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# A second disk comes and goes while the guest runs, several times at one place.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 600

image_make "$DATA/a.img" 32
image_make "$DATA/b.img" 32

step "xl create"
check "the guest comes up" guest_create hot "$(disk "$DATA/a.img" xvda)"
id=$(guest_id hot)

for round in 1 2 3; do
	step "attach, round $round"
	check "round $round: xl block-attach succeeds" xl block-attach hot "$(disk "$DATA/b.img" xvdb)"
	check "round $round: the backend connects" wait_for 20 vbd_state_is 4 "$id" xvdb
	check "round $round: the guest sees the disk" guest_run hot 20 "n=0; until [ -b /dev/xvdb ]; do n=\$((n+1)); [ \$n -lt 100 ] || exit 1; sleep 0.1; done"
	check "round $round: two vbdisk processes" equal "$(vbd_count)" 2
	if [ $round = 1 ]; then
		step "guest: write the second disk"
		check "the guest writes the second disk" guest_run hot 90 "disk_fill /dev/xvdb 16 hot"
	fi
	step "guest: verify, round $round"
	check "round $round: the data is there" guest_run hot 90 "disk_verify /dev/xvdb 16 hot"
	step "detach, round $round"
	check "round $round: xl block-detach succeeds" xl block-detach hot xvdb
	check "round $round: its process ends" wait_for 10 vbd_count_is 1
	check "round $round: its nodes are gone" not xenstore-exists "$(vbd_path "$id" xvdb)"
	check "round $round: the guest lost the disk" guest_run hot 20 "sleep 1; [ ! -b /dev/xvdb ]"
done

step "first disk untouched"
check "the first disk still works" guest_run hot 60 "disk_fill /dev/xvda 4 one && disk_verify /dev/xvda 4 one"
check "the guest powers off" guest_poweroff hot
