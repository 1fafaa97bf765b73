# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# xl destroy in the middle of heavy writes, several times.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

image_make "$DATA/a.img" 64
for round in 1 2; do
	step "xl create, round $round"
	check "round $round: the guest comes up" guest_create crash "$(disk "$DATA/a.img" xvda)"
	step "destroy under load, round $round"
	guest_send crash "disk_hammer /dev/xvda; sleep 600"
	pid=$(vbd_pid "$(guest_id crash)" xvda)
	before=$(awk '/^write_bytes/ { print $2 }' "/proc/$pid/io")
	sleep 3
	after=$(awk '/^write_bytes/ { print $2 }' "/proc/$pid/io")
	check "round $round: the guest writes heavily" test "$((after - before))" -ge $((1 << 20))
	check "round $round: xl destroy succeeds" timeout 60 xl destroy crash
	check "round $round: the vbdisk process ends" wait_for 15 vbd_count_is 0
	check "round $round: no zombie domain" equal "$(domains)" ""
done
