# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154
# vbdisk-front in dom0, through gntalloc, against a vbdisk: both ends in user space, a real hypervisor between them.
#
# Owns: its disk. Trusts: lib.sh, vbdisk-front's verdict on the data. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 400

if ! command -v vbdisk-front >/dev/null; then
	skip "vbdisk-front on the hypervisor" "vbdisk-front is not installed"
	exit 0
fi

front() { # ARGUMENT...
	timeout 120 vbdisk-front --vdev=xvdz "$@"
}

image=$DATA/front.img
image_make "$image" 16
# dom0's own blkfront would be faster.
rmmod xen-blkfront
step "attach"
check "xl block-attach 0 succeeds" xl block-attach 0 "$(disk "$image" xvdz)"
check "the backend waits for a frontend" wait_for 20 vbd_state_is 2 0 xvdz

step "write and verify"
check "sequential writes verify" front --job=seq-write --depth=16 --block-size=44K --size=8M --verify
check "mixed random requests with unaligned segments verify" front --job=mixed --depth=32 --block-size=8K --count=600 --unaligned --flush-every=64 --verify
check "what was written is there after a reconnect" bash -c "timeout 120 vbdisk-front --vdev=xvdz --job=seq-write --depth=8 --block-size=16K --size=2M --seed=7 --verify &&
	timeout 120 vbdisk-front --vdev=xvdz --job=seq-write --depth=8 --block-size=16K --size=2M --seed=7 --verify-only"
for abi in x86_32-abi x86_64-abi; do
	check "a $abi ring of two pages verifies" front --protocol=$abi --ring-page-order=1 --job=rand-write --depth=64 --block-size=4K --count=400 --verify
done
step "twenty connects and disconnects"
check "twenty rounds of connect, I/O, disconnect" front --reconnect=20 --job=seq-write --block-size=4K --count=8 --verify

step "detach"
check "xl block-detach 0 succeeds" xl block-detach 0 xvdz
check "its process ends" wait_for 10 vbd_count_is 0
modprobe xen-blkfront
