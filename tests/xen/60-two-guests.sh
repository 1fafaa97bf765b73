# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Two guests with two disks each, all busy at once; then one VBD's process is killed.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 720

for image in a1 a2 b1 b2; do
	image_make "$DATA/$image.img" 64
done

step "xl create of two guests"
check "guest a comes up" guest_create a "$(disk "$DATA/a1.img" xvda)" "$(disk "$DATA/a2.img" xvdb)"
check "guest b comes up" guest_create b "$(disk "$DATA/b1.img" xvda)" "$(disk "$DATA/b2.img" xvdb)"
a=$(guest_id a)
b=$(guest_id b)
check "four vbdisk processes" equal "$(vbd_count)" 4

step "all four disks at once"
all='for d in a b; do (disk_fill /dev/xvd$d 16 SEED$d && disk_verify /dev/xvd$d 16 SEED$d && echo good $d) & done; wait'
guest_send a "${all//SEED/one}"
number_a=$command_number
guest_send b "${all//SEED/two}"
number_b=$command_number
said_a=$(guest_result a "$number_a" 150)
said_b=$(guest_result b "$number_b" 150)
check "guest a verified both disks" equal "$(grep -c '^good' <<<"$said_a")" 2
check "guest b verified both disks" equal "$(grep -c '^good' <<<"$said_b")" 2

step "kill one VBD's process"
victim=$(vbd_pid "$a" xvdb)
others=$(for vbd in "$a xvda" "$b xvda" "$b xvdb"; do
	# shellcheck disable=SC2086
	vbd_pid $vbd
done)
kill -KILL "$victim"
check "vbdiskd says that the process died and which VBD it served" wait_for 10 grep -qE "$a/$(vbd_number xvdb).*(died|killed|signal|exit|ended)" "$VBDISKD_LOG"
sleep 1
others_now=$(for vbd in "$a xvda" "$b xvda" "$b xvdb"; do
	# shellcheck disable=SC2086
	vbd_pid $vbd
done)
check "the other three processes are the same" equal "$others_now" "$others"
check "vbdiskd runs on" vbdiskd_alive

step "the other three VBDs go on"
check "guest a's other disk goes on" guest_run a 90 "disk_verify /dev/xvda 16 onea && disk_fill /dev/xvda 4 more && disk_verify /dev/xvda 4 more"
check "guest b's disks go on" guest_run b 120 "disk_verify /dev/xvda 16 twoa && disk_verify /dev/xvdb 16 twob"

step "both guests end"
check "guest b powers off" guest_poweroff b
check "guest a can be destroyed" timeout 60 xl destroy a
