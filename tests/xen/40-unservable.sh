# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Disks that cannot be served: the log and xenstore say why, and the guest boots without them.
#
# Owns: its guests and images. Trusts: lib.sh. Runs on: dom0, by dom0-one.sh. Must not know: other tests.
# limit_s: 600

image_make "$DATA/good.img" 32
image_make "$DATA/locked.img" 32
image_make "$DATA/immutable.img" 32
image_make "$DATA/odd.img" 1
mkdir -p "$DATA/folder.img"
: >"$DATA/empty.img"
truncate -s +100 "$DATA/odd.img"
chattr +i "$DATA/immutable.img"

step "attach the image that will be locked"
check "another VBD has the image" xl block-attach 0 "$(disk "$DATA/locked.img" xvdz)"
check "and is connected" wait_for 20 vbd_state_is 4 0 xvdz

step "xl create with six disks that cannot be served"
started=$SECONDS
check "xl create succeeds, as libxl has it, and the guest comes up" guest_create sad \
	"$(disk "$DATA/good.img" xvda)" "$(disk "$DATA/missing.img" xvdb)" "$(disk "$DATA/folder.img" xvdc)" \
	"$(disk "$DATA/immutable.img" xvdd)" "$(disk "$DATA/empty.img" xvde)" "$(disk "$DATA/odd.img" xvdf)" \
	"$(disk "$DATA/locked.img" xvdg)"
check "the guest did not wait for them" test $((SECONDS - started)) -le 60
check "the guest has the good disk only" guest_says sad '^=guest ready .*disks=xvda$' 5
id=$(guest_id sad)

refused() { # VDEV NAME WHY_REGEX
	local node
	step "$2 ($1)"
	check "$2: the VBD is closed" wait_for 15 vbd_state_is 6 "$id" "$1"
	check "$2: the log names the path and the reason" matches "$(vbd_log "$id" "$1")" "$4.*($3)"
	node=$(vbd_error "$id" "$1")
	check "$2: the error node names the path and the reason" matches "$node" "$4.*($3)"
	check "$2: no process is left" equal "$(vbd_pid "$id" "$1")" ""
}
refused xvdb "missing file" "[Nn]o such file|not exist|missing" missing.img
refused xvdc "directory" "directory|regular file" folder.img
refused xvdd "no permission" "permi|Permi" immutable.img
refused xvde "empty file" "empty|size" empty.img
refused xvdf "odd size" "512" odd.img
refused xvdg "locked by another VBD" "lock|use" locked.img

step "the good disk works"
check "the good disk works" guest_run sad 60 "disk_fill /dev/xvda 4 good && disk_verify /dev/xvda 4 good"
check "the guest powers off" guest_poweroff sad
chattr -i "$DATA/immutable.img"
check "dom0's disk is detached" xl block-detach 0 xvdz

step "an attach that fails can be repeated"
check "the guest comes up again" guest_create sad "$(disk "$DATA/good.img" xvda)"
xl block-attach sad "$(disk "$DATA/later.img" xvdb)"
id=$(guest_id sad)
check "the attach of a missing file closes the VBD" wait_for 15 vbd_state_is 6 "$id" xvdb
check "it can be detached" xl block-detach sad xvdb
image_make "$DATA/later.img" 16
check "it can be attached once the file is there" xl block-attach sad "$(disk "$DATA/later.img" xvdb)"
check "and connects" wait_for 20 vbd_state_is 4 "$id" xvdb
check "the guest powers off at last" guest_poweroff sad
