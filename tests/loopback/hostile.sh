#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The hostile guest: every row of the table, in every layout, against the real programs.
#
# Owns: nothing. Trusts: lib.sh; vbdisk-front asserts the answers. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
loopback domain-create 2
disk=$(image disk.img 64M) # 131072 sectors
other=$(image other.img 4M)
loopback attach 1 xvda "aio:$disk"
loopback attach 2 xvda "aio:$other"
loopback wait 1 xvda --backend-state 2
loopback wait 2 xvda --backend-state 2
vbdisk=$(vbd_pid 1 51712)

rows="r01 r02 r03 r04 r05 r06 r07 r08 r09 r10 r11 r12 r13 r16 r17 r18 r19 r20 r21 r22 r23 r24 g12 g14 flush-data grants"
# hostile LABEL ROW [OPTION]...: each line of vbdisk-front's TAP is one of ours.
hostile() {
	local label=$1 row=$2 output status line
	shift 2
	output=$(front --domid 1 --vdev xvda --hostile "$row" --timeout 60 "$@" 2>&1)
	status=$?
	while read -r line; do
		case $line in
		"ok "*"# SKIP "*) ;; # something else is offered here than this row is about; another run has it
		"ok "*) ok "$label $row: ${line#ok * - }" ;;
		"not ok "*) not_ok "$label $row: ${line#not ok * - }" ;;
		esac
	done <<<"$output"
	check_is "$label $row: vbdisk-front is satisfied" 0 $status
	[ $status -eq 0 ] || sed 's/^/# /' <<<"$output"
}

for protocol in x86_64-abi x86_32-abi; do
	for row in $rows; do
		hostile $protocol "$row" --protocol $protocol
		check "$protocol $row: another guest is served" \
			front --domid 2 --vdev xvda --job rand-read --size 1M --count 10 --timeout 10
	done
done
check_is "one process has stood it all" "$vbdisk" "$(vbd_pid 1 51712)"
check_is "the image has kept its size" 67108864 "$(stat -c %s "$disk")"
check_like "bad requests are logged" "bad request" "$(cat "$scratch/vbdiskd.log")"
lines=$(wc -l <"$scratch/vbdiskd.log")
check "the log was not flooded ($lines lines)" test "$lines" -lt 600
check "detach" loopback detach 1 xvda
loopback attach 1 xvda "aio:$disk" --mode r
loopback wait 1 xvda --backend-state 2
after=$(sha256sum <"$disk")
check "R14: a read-only disk" front --domid 1 --vdev xvda --hostile r14
check_is "R14: nothing was written" "$after" "$(sha256sum <"$disk")"
check "detach" loopback detach 1 xvda
check "detach" loopback detach 2 xvda
check_audit "a writable and a read-only disk"

# What is offered only when it is asked for, or is not by default.
daemon_restart -o barrier=1 -o persistent=64 -o sector=native -o indirect=0
attach 1 xvda "aio:$disk"
for row in r12 r13 grants; do
	hostile "other features" "$row" --persistent
done
check "detach" loopback detach 1 xvda
attach 1 xvda "memory:size=16M,block=4096"
for row in r23 r24 r25; do
	hostile "sectors of 4096" "$row"
done
check "detach" loopback detach 1 xvda
daemon_restart -o discard=0
attach 1 xvda "aio:$disk"
hostile "no discard" r12
check "detach" loopback detach 1 xvda

# G14, G12 on storage that is slow: 30 requests are pending when the ring is left.
attach 1 xvda "fault:delay-ms=300:file:$disk"
hostile "slow storage" g14
hostile "slow storage" g12
# G13: the domain is destroyed with requests in flight; its grants go at once, the storage may take its time.
front_start --domid 1 --vdev xvda --job rand-read --size 16M --runtime 20 --depth 32
eventually be_state_is 1 51712 4
sleep 0.3
kill -9 $front_pid
wait $front_pid 2>/dev/null
check "G13: destroyed with requests in flight" loopback domain-destroy 1
check_audit "at the end"
done_testing
