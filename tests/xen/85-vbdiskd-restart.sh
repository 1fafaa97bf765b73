# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# vbdiskd is killed and started again while a guest works on its disk.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

image_make "$DATA/a.img" 64
image_make "$DATA/b.img" 32
step "xl create"
check "the guest comes up" guest_create steady "$(disk "$DATA/a.img" xvda)"
id=$(guest_id steady)
pid=$(vbd_pid "$id" xvda)

step "guest: I/O across the restart"
guest_send steady "n=0; while [ \$n -lt 6 ]; do disk_fill /dev/xvda 4 r\$n && disk_verify /dev/xvda 4 r\$n || exit 1; n=\$((n+1)); done; sleep 1; echo rounds \$n"
number=$command_number
sleep 1
kill -KILL "$(vbdiskd_pid)"
sleep 2
check "the VBD's process lives on without vbdiskd" equal "$(vbd_pid "$id" xvda)" "$pid"
step "vbdiskd starts again"
check "vbdiskd starts again" backend_start
sleep 2
check "the VBD is still served by the same process, once" equal "$(vbd_pid "$id" xvda)" "$pid"
check "no second process was started" equal "$(vbd_count)" 1
check "the guest's I/O went on" matches "$(guest_result steady "$number" 120)" '^rounds 6$'

step "new work for the new vbdiskd"
check "a disk can be attached" xl block-attach steady "$(disk "$DATA/b.img" xvdb)"
check "it connects" wait_for 20 vbd_state_is 4 "$id" xvdb
check "it can be detached" xl block-detach steady xvdb
step "a planned restart"
check "vbdiskd ends on SIGTERM" backend_stop
check "the VBD's process lives on after SIGTERM" equal "$(vbd_pid "$id" xvda)" "$pid"
check "vbdiskd starts a third time" backend_start
check "the disk works" guest_run steady 60 "disk_verify /dev/xvda 4 r5"
check "the guest powers off" guest_poweroff steady
check "the process of before the restarts ends" wait_for 15 vbd_count_is 0
