# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# xl save: the suspended guest's data is brought to stable storage before its image may be used elsewhere; then xl restore.
#
# Owns: its guest and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

image_make "$DATA/a.img" 64
step "xl create"
check "the guest comes up" guest_create sleeper "$(disk "$DATA/a.img" xvda)"
first=$(guest_id sleeper)
check "the guest writes" guest_run sleeper 90 "disk_fill /dev/xvda 8 before"
step "xl save"
check "xl save succeeds" timeout 120 xl save sleeper "$DATA/sleeper.save"
check "its vbdisk has noticed the suspension" matches "$(vbd_log "$first" xvda)" "guest suspended: everything written is on stable storage"
check "its vbdisk ends" wait_for 20 vbd_count_is 0
step "xl restore"
check "xl restore succeeds" timeout 120 xl restore "$DATA/sleeper.save"
check "the restored guest's disk is connected" wait_for 30 vbd_state_is 4 "$(guest_id sleeper)" xvda
step "data of before"
# The console of the restored domain is a new one; what it says is appended to the same log.
check "its data is there" guest_run sleeper 90 "disk_verify /dev/xvda 8 before"
check "it writes on" guest_run sleeper 90 "disk_fill /dev/xvda 8 after && disk_verify /dev/xvda 8 after"
check "the guest powers off" guest_poweroff sleeper
