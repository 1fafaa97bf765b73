# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# The same loads on five disks that five backends serve, in turns; medians and their ratios.
#
# Owns: its guests and images. Trusts: tests/xen/lib.sh. Runs on: dom0, by tests/xen/run --script.
# Must not know: how a backend works.
# limit_s: 3000

rounds=3
seconds=3
image_mib=128
GUEST_MEMORY=448 GUEST_VCPUS=2
figures=$OUT/$TEST/figures
mkdir -p "$OUT/$TEST"

# Guest `ours` has four disks, one for each way; QEMU serves a guest of its own, since it would take all disks.
ways=(indirect plain persistent blkback qdisk)
declare -A guests=([indirect]=ours [plain]=ours [persistent]=ours [blkback]=ours [qdisk]=qemu)
declare -A disks=([indirect]=xvda [plain]=xvdb [persistent]=xvdc [blkback]=xvdd [qdisk]=xvda)
declare -A titles=([indirect]="vbdisk" [plain]="vbdisk, indirect=0" [persistent]="vbdisk, persistent=1024"
	[blkback]="blkback on a loop device" [qdisk]="QEMU's qdisk")
loads=("read seq 128 4" "write seq 128 4" "read rand 4 1" "read rand 4 16" "write rand 4 1" "write rand 4 16")

bench_attach() { # WAY OPTION...
	local way=$1
	shift
	check "vbdiskd starts for $way" backend_restart "$@"
	check "$way is attached" xl block-attach ours "$(disk "$DATA/$way.img" "${disks[$way]}")"
	check "$way is connected" wait_for 30 vbd_state_is 4 "$(guest_id ours)" "${disks[$way]}"
}

bench_figure() { # WAY LOAD: MiB/s and requests/s
	local said
	said=$(guest_run "${guests[$1]}" 120 "disk-work bench /dev/${disks[$1]} $2 $seconds")
	sed -n 's|^bench MiB/s=\([0-9.]*\) IOPS=\([0-9]*\).*|\1 \2|p' <<<"$said"
}

median() { # numbers on standard input
	sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print 0 }'
}

table() {
	local load way value base
	printf '%-26s' "median of $rounds rounds"
	for load in "${loads[@]}"; do
		printf '  %20s' "$load"
	done
	echo
	for way in "${ways[@]}"; do
		printf '%-26s' "${titles[$way]}"
		for load in "${loads[@]}"; do
			value=$(awk -F'|' -v w="$way" -v l="$load" '$1 == w && $2 == l { print l ~ / seq / ? $3 : $4 }' "$figures" | median)
			base=$(awk -F'|' -v w=qdisk -v l="$load" '$1 == w && $2 == l { print l ~ / seq / ? $3 : $4 }' "$figures" | median)
			printf '  %20s' "$(awk -v v="$value" -v b="$base" 'BEGIN { printf "%.1f (%.2f)", v, b ? v / b : 0 }')"
		done
		echo
	done
	echo "seq: MiB/s; rand: requests/s; in parentheses: divided by QEMU's. Load: direction, order, KiB, depth."
}

step "images"
for way in "${ways[@]}"; do
	dd if=/dev/zero of="$DATA/$way.img" bs=1M count=$image_mib oflag=direct 2>/dev/null
done

step "QEMU's guest"
check "vbdiskd ends" backend_stop
DEVICE_MODEL='' check "the guest of QEMU comes up" guest_create qemu "$(disk "$DATA/qdisk.img" xvda)"
check "QEMU serves it" equal "$(qemu_count)" 1

step "the guest of the others"
check "vbdiskd starts" backend_start
check "the guest of vbdisk comes up" guest_create ours "$(disk "$DATA/indirect.img" xvda)"
bench_attach plain indirect=0
bench_attach persistent persistent=1024
modprobe xen-blkback
loop=$(losetup --find --show --direct-io=on "$DATA/blkback.img")
check "blkback is attached" xl block-attach ours "format=raw,vdev=xvdd,access=rw,backendtype=phy,target=$loop"
check "blkback is connected" wait_for 30 vbd_state_is 4 "$(guest_id ours)" xvdd vbd
check "the guest has its disks" guest_run ours 60 "disk_appears /dev/xvdb && disk_appears /dev/xvdc && disk_appears /dev/xvdd"

for round in $(seq $rounds); do
	for load in "${loads[@]}"; do
		for way in "${ways[@]}"; do
			step "round $round: $load: $way"
			echo "$way|$load|$(bench_figure "$way" "$load" | tr ' ' '|')" >>"$figures"
		done
	done
done

step "the end"
table >"$OUT/$TEST/report"
sed 's/^/# /' "$OUT/$TEST/report" >>"$TAP"
check "every load gave a figure" not grep -q '|$' "$figures"
check "the guest of vbdisk powers off" guest_poweroff ours
check "the guest of QEMU powers off" guest_poweroff qemu
losetup -d "$loop"
