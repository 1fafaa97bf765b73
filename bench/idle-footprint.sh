#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints what one idle VBD costs on the loopback host: memory, descriptors, AIO slots, wake-ups, time until it is ready.
#
# Owns: nothing. Trusts: tests/loopback/lib.sh. Runs on: any Linux machine; run it in the build folder. Must not know: the code.
# The same on a real Xen host, beside QEMU's figures: bench/idle-footprint-lab.sh.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/../tests/loopback/lib.sh"

rounds=${1:-21}
host_start
daemon_start
loopback domain-create 1
disk=$(image disk.img 64M)
aio_before=$(cat /proc/sys/fs/aio-nr)

# From the moment the daemon has started the process to the moment it offers the disk, by the log's time stamps.
for _ in $(seq "$rounds"); do
	: >"$scratch/vbdiskd.log"
	loopback attach 1 xvda "aio:$disk"
	loopback wait 1 xvda --backend-state 2
	awk '{ split($1, t, /[T:]/); s = t[2] * 3600 + t[3] * 60 + t[4] }
		/started process/ { began = s } /serving/ { printf "%d\n", (s - began) * 1000 + 0.5 }' "$scratch/vbdiskd.log"
	loopback detach 1 xvda
done | sort -n >"$scratch/ready-ms"

loopback attach 1 xvda "aio:$disk"
loopback wait 1 xvda --backend-state 2
front_start --domid 1 --vdev xvda --job mixed --size 8M --count 4000 --depth 32 --block-size 44K --linger 60
eventually be_state_is 1 51712 4
sleep 2
pid=$(vbd_pid 1 51712)
switches() { cat /proc/"$1"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'; }
before=$(switches "$pid")
sleep 5
awk '/^Pss:/ { pss = $2 } /^Private_/ { private += $2 } END {
	print "memory, after 4000 requests of up to 44 KiB at depth 32: Pss " pss " KiB, private " private " KiB" }' "/proc/$pid/smaps_rollup"
echo "descriptors:          $(find "/proc/$pid/fd" -mindepth 1 | wc -l)"
echo "AIO slots:            $(($(cat /proc/sys/fs/aio-nr) - aio_before)) (ring of one page)"
echo "wake-ups in 5 s idle: $(($(switches "$pid") - before))"
echo "ready after start:    median $(sed -n "$(((rounds + 1) / 2))p" "$scratch/ready-ms") ms," \
	"worst $(tail -n 1 "$scratch/ready-ms") ms, of $rounds"
kill $front_pid
