# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# How long a grace period of dom0's kernel takes, idle and under the load of a guest's disk; beside it a request's time.
#
# Owns: its guest and image. Trusts: tests/xen/lib.sh. Runs on: dom0, by tests/xen/run --script.
# Must not know: what a grace period would be waited for.
# limit_s: 900

report=$OUT/$TEST/report
mkdir -p "$OUT/$TEST"
GUEST_MEMORY=384 GUEST_VCPUS=2
image_make "$DATA/a.img" 128

step "idle"
check "the guest comes up" guest_create load "$(disk "$DATA/a.img" xvda)"
sleep 5
idle=$(/guest/grace-period)
check "a figure, idle" matches "$idle" '^median'

step "a request's time"
one=$(guest_run load 60 "disk-work bench /dev/xvda write rand 4 1 5")
check "a figure, one request" matches "$one" 'IOPS=[0-9]+'

step "under load"
check "the guest works" guest_run load 20 "(disk-work bench /dev/xvda write rand 4 16 40 >/tmp/load 2>&1) & sleep 2"
busy=$(/guest/grace-period)
check "a figure, under load" matches "$busy" '^median'
check "the guest was still at work" guest_run load 20 "pidof disk-work"
said=$(guest_run load 120 "while pidof disk-work >/dev/null; do sleep 0.5; done; cat /tmp/load")
check "the load went well" matches "$said" 'IOPS=[0-9]+'
check "the guest powers off" guest_poweroff load

{
	echo "dom0: Linux $(uname -r), $(nproc) CPUs"
	echo "grace period, the guest idle:            $idle"
	echo "grace period, 16 writes of 4 KiB at once: $busy"
	echo "for comparison, one write of 4 KiB at a time: $(awk -F= '{ printf "%.0f us each", 1e6 / $NF }' <<<"$one"); 16 at once: ${said##*IOPS=} requests/s"
} >"$report"
sed 's/^/# /' "$report" >>"$TAP"
