# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# 20 000 verified requests with persistent grants, and as many with grant copy; dom0's kernel has nothing to complain.
#
# Owns: its guests and images. Trusts: lib.sh; its audit looks for mapped grants and complaints of the kernel.
# Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 1200

image_make "$DATA/a.img" 128
GUEST_MEMORY=512 GUEST_VCPUS=2
mapped_before=$(grants_mapped)

work() { # NAME
	local said
	said=$(guest_run "$1" 500 "disk-work check /dev/xvda 0 128 4 20000 5")
	check "$1: 20 000 requests are verified" equal "$?" 0
	check "$1: they are of all kinds" matches "$said" 'reads=[0-9]{4,} writes=[0-9]{4,} flushes=[0-9]{2,} discards=[0-9]{2,} failures=0$'
	echo "# $1: $said" >>"$TAP"
}

probes=on
said=$(probes_start) || probes="the kernel takes no probe: $said"

for way in persistent copy; do
	step "$way"
	if [ $way = persistent ]; then
		check "$way: vbdiskd starts" backend_restart persistent=1024
		offered=1
	else
		check "$way: vbdiskd starts" backend_restart
		offered=0
	fi
	check "$way: the guest comes up" guest_create $way "$(disk "$DATA/a.img" xvda)"
	id=$(guest_id $way)
	copies=$(probe_hits copy)
	check "$way: feature-persistent is $offered" equal "$(vbd_node "$id" xvda feature-persistent)" $offered
	work $way
	mapped=$(($(grants_mapped) - mapped_before))
	copies=$(($(probe_hits copy) - copies))
	# In any case mapped are the pages of console and xenstore, and two queues of one ring page; beside them what is kept.
	if [ $way = persistent ]; then
		check "$way: grants are kept mapped ($mapped)" test $mapped -gt 64
	else
		check "$way: only the rings are mapped ($mapped)" test $mapped -le 4
	fi
	if [ "$probes" = on ]; then
		echo "# $way: $copies calls of the kernel's grant copy" >>"$TAP"
		[ $way = persistent ] || check "$way: the probes count ($copies grant copies)" test $copies -ge 10000
	fi
	check "$way: the guest powers off" guest_poweroff $way
	check "$way: its process ends" wait_for 15 vbd_count_is 0
	if [ "$probes" = on ]; then
		check "$way: no unmap was deferred" equal "$(probe_hits deferred_unmap)" 0
	else
		skip "$way: no unmap was deferred" "$probes"
	fi
done
[ "$probes" != on ] || probes_stop
