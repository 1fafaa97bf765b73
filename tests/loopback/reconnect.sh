#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# 500 rounds of connect, I/O, disconnect on one process: nothing grows.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1
disk=$(image disk.img 4M)
loopback attach 1 xvda "aio:$disk"
loopback wait 1 xvda --backend-state 2
pid=$(vbd_pid 1 51712)

sanitized() { grep -qE '__(asan|tsan)_init' "$top_builddir/vbdisk"; }
fds() { find "/proc/$pid/fd" -mindepth 1 | wc -l; }
mappings() { wc -l <"/proc/$pid/maps"; }
private_kb() { awk '/^Private_(Clean|Dirty):/ { n += $2 } END { print n }' "/proc/$pid/smaps_rollup"; }
aio_contexts() { grep -c "\[aio\]" "/proc/$pid/maps"; }

check "a first 20 rounds warm it up" front --domid 1 --vdev xvda --reconnect 20 --job mixed --size 1M --count 8
eventually be_state_is 1 51712 6
fds_before=$(fds) mappings_before=$(mappings) memory_before=$(private_kb) aio_before=$(aio_contexts)
check "500 rounds" front --domid 1 --vdev xvda --reconnect 500 --job mixed --size 1M --count 8 --timeout 300
eventually be_state_is 1 51712 6
check_is "the same process" "$pid" "$(vbd_pid 1 51712)"
check_is "as many descriptors as before" "$fds_before" "$(fds)"
if sanitized; then
	skip "as many mappings as before" "the sanitizers map memory for each thread"
else
	check_is "as many mappings as before" "$mappings_before" "$(mappings)"
fi
check_is "as many AIO contexts as before" "$aio_before" "$(aio_contexts)"
growth=$(($(private_kb) - memory_before))
if sanitized; then
	skip "private memory has not grown" "the sanitizers keep memory of their own"
else
	check "private memory has grown by less than 128 KiB ($growth)" test $growth -lt 128
fi
check "at most 16 descriptors ($(fds))" test "$(fds)" -le 16
# G03: each tenth ring cannot be mapped; what could is let go of again.
for round in $(seq 10); do
	loopback refuse-grant 1 1
	front --domid 1 --vdev xvda --job mixed --size 1M --count 8 --timeout 20 >"$scratch/front.out" 2>&1
	status=$?
	loopback refuse-grant 1 0
	[ $status -eq 3 ] || not_ok "round $round: a refused ring refuses the connection" "status $status"
	front --domid 1 --vdev xvda --reconnect 9 --job mixed --size 1M --count 8 --timeout 60 >"$scratch/front.out" 2>&1 ||
		not_ok "round $round: nine rounds after it" "$(cat "$scratch/front.out")"
done
ok "a hundred rounds, of which each tenth is refused"
check_is "as many descriptors as ever" "$fds_before" "$(fds)"
sanitized || check_is "as many mappings as ever" "$mappings_before" "$(mappings)"
check "detach" loopback detach 1 xvda
check_audit "at the end"
done_testing
