# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# xl reboot: the toolstack destroys and creates the guest; both generations of its disk are served.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 480

image_make "$DATA/a.img" 64
step "xl create"
check "the guest comes up" guest_create again "$(disk "$DATA/a.img" xvda)"
first=$(guest_id again)
check "the guest writes" guest_run again 90 "disk_fill /dev/xvda 8 before"
step "xl reboot"
check "xl reboot succeeds" xl reboot again
check "the guest comes up a second time" guest_says again '^=guest ready .*disks=xvda$' 120 2
second=$(guest_id again)
check "it is a new domain" test "$first" != "$second"
check "only the new domain's disk is served" wait_for 10 vbd_count_is 1
step "data of the first boot"
check "the data of the first boot is there" guest_run again 90 "disk_verify /dev/xvda 8 before"
check "the guest powers off" guest_poweroff again
