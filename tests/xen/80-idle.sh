# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# What an idle connected VBD costs: memory, descriptors, wake-ups; beside it, one idle xenpv QEMU.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 600

report=$OUT/$TEST/report
image_make "$DATA/a.img" 64

footprint() { # PID: Pss, private memory in KiB, descriptors, threads
	awk '/^Pss:/ { pss = $2 } /^Private_(Clean|Dirty):/ { private += $2 } END { printf "%d %d ", pss, private }' "/proc/$1/smaps_rollup"
	echo "$(find "/proc/$1/fd" -mindepth 1 | wc -l) $(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)"
}

wakeups() { # PID: thread and context switches, a line for each thread
	awk '/^Pid:/ { pid = $2 } /ctxt_switches/ { n[pid] += $2 } END { for (pid in n) print pid, n[pid] }' "/proc/$1"/task/*/status
}

wakeups_in() { # PID SECONDS: of the threads that live through these seconds
	wakeups "$1" >/run/wakeups
	sleep "$2"
	wakeups "$1" | awk 'NR == FNR { before[$1] = $2; next } $1 in before { n += $2 - before[$1] } END { print n + 0 }' /run/wakeups -
}

step "an idle VBD of vbdisk"
check "the guest comes up" guest_create quiet "$(disk "$DATA/a.img" xvda)"
check "the guest uses the disk once" guest_run quiet 60 "disk_fill /dev/xvda 8 idle && disk_verify /dev/xvda 8 idle"
sleep 3
pid=$(vbd_pid "$(guest_id quiet)" xvda)
read -r pss private fds threads < <(footprint "$pid")
check "one idle vbdisk has at most 3 MiB (Pss $pss KiB)" test "${pss:-9999}" -gt 0 -a "${pss:-9999}" -le 3072
check "one idle vbdisk has at most 20 descriptors ($fds)" test "${fds:-99}" -gt 0 -a "${fds:-99}" -le 20
step "ten idle seconds"
woken=$(wakeups_in "$pid" 10)
# It looks at the size of the image every 4 seconds; each look is one switch away.
check "no wake-up for anything else in 10 idle seconds ($woken)" test "${woken:-99}" -le 3
daemon_woken=$(wakeups_in "$(vbdiskd_pid)" 10)
read -r daemon_pss daemon_private daemon_fds daemon_threads < <(footprint "$(vbdiskd_pid)")
dm_pid=$(pgrep -o -x vbdisk-dm)
read -r dm_pss dm_private dm_fds dm_threads < <(footprint "$dm_pid")
dm_woken=$(wakeups_in "$dm_pid" 10)
check "the guest powers off" guest_poweroff quiet

step "an idle xenpv QEMU"
mkdir -p "$OUT/$TEST"
{
	echo "process              Pss KiB  private KiB  descriptors  threads  wake-ups in 10 s"
	printf '%-20s %7s  %11s  %11s  %7s  %16s\n' "vbdisk (one VBD)" "$pss" "$private" "$fds" "$threads" "$woken" \
		"vbdiskd" "$daemon_pss" "$daemon_private" "$daemon_fds" "$daemon_threads" "$daemon_woken" \
		"vbdisk-dm" "$dm_pss" "$dm_private" "$dm_fds" "$dm_threads" "$dm_woken"
} >"$report"
# QEMU serves the disk only when nobody is faster.
check "vbdiskd ends" backend_stop
DEVICE_MODEL=''
if guest_create heavy "$(disk "$DATA/a.img" xvda)" && guest_run heavy 60 "disk_verify /dev/xvda 8 idle"; then
	sleep 3
	pid=$(pgrep -o -f 'qemu-system-[^ ]* .*-xen-domid')
	read -r pss private fds threads < <(footprint "$pid")
	printf '%-20s %7s  %11s  %11s  %7s  %16s\n' "QEMU -machine xenpv" "$pss" "$private" "$fds" "$threads" "$(wakeups_in "$pid" 10)" >>"$report"
	pass "an idle xenpv QEMU for comparison (Pss $pss KiB, $fds descriptors)"
	guest_poweroff heavy
else
	fail "an idle xenpv QEMU for comparison" "its guest did not come up: $(tail -n 3 /var/log/xen/qemu-dm-heavy.log)"
fi
check "vbdiskd starts again" backend_start
sed 's/^/# /' "$report" >>"$TAP"
