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

rows="r01 r02 r04 r05 r06 r07 r08 r09 r10 r11 r12 r17 grants"
for protocol in x86_64-abi x86_32-abi; do
	for row in $rows; do
		output=$(front --domid 1 --vdev xvda --protocol $protocol --hostile "$row" --timeout 60 2>&1)
		status=$?
		while read -r line; do
			case $line in
			"ok "*) ok "$protocol $row: ${line#ok * - }" ;;
			"not ok "*) not_ok "$protocol $row: ${line#not ok * - }" ;;
			esac
		done <<<"$output"
		check_is "$protocol $row: vbdisk-front is satisfied" 0 $status
		[ $status -eq 0 ] || sed 's/^/# /' <<<"$output"
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
check_audit "at the end"
done_testing
