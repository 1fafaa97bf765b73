# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
# What the tests in dom0 share: reporting, guests, images, looking at vbdisk, and the audit after each test.
#
# Owns: the TAP file, guests' configurations, /data/TEST. Trusts: xl and xenstore. Runs on: dom0.
# Must not know: any single test.

OUT=/job/out
TAP=$OUT/results.tap
STEP_FILE=/run/step
VBDISKD_LOG=$OUT/vbdiskd.log
TEST=${TEST:-setup}
DATA=/data/$TEST
touch "$TAP"

# --- reporting

progress() {
	echo "$*" >>"$PROGRESS"
}

step() { # NAME: what the test does next; a time limit's message names it
	echo "$*" >"$STEP_FILE"
	echo "step $TEST: $*" >>"$PROGRESS"
}

pass() { # NAME
	echo "ok - $TEST: $1" >>"$TAP"
	progress "ok - $TEST: $1"
}

fail() { # NAME REASON
	{
		echo "not ok - $TEST: $1"
		printf '%s\n' "$2" | sed 's/^/# /'
	} >>"$TAP"
	progress "not ok - $TEST: $1: $(printf '%s' "$2" | head -n 1)"
}

skip() { # NAME REASON
	echo "ok - $TEST: $1 # SKIP $2" >>"$TAP"
	progress "skipped - $TEST: $1: $2"
}

check() { # NAME COMMAND...: passes when the command does; its output explains a failure
	local name=$1 said status
	shift
	said=$("$@" 2>&1)
	status=$?
	if [ $status = 0 ]; then
		pass "$name"
	else
		fail "$name" "'$*' ended with status $status: $(printf '%s' "$said" | grep -v '^+' | tail -n 8)"
	fi
	return $status
}

equal() { # HAVE WANT
	[ "$1" = "$2" ] || {
		echo "have '$1', want '$2'"
		return 1
	}
}

matches() { # TEXT EXTENDED_REGEX
	grep -qE -- "$2" <<<"$1" || {
		echo "'$1' does not match '$2'"
		return 1
	}
}

wait_for() { # SECONDS COMMAND...
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || {
			echo "not within its time: $*"
			return 1
		}
		sleep 0.2
	done
}

not() {
	! "$@"
}

# --- guests

disk() { # IMAGE VDEV [MODE]: xl's words for a disk that vbdisk serves
	echo "format=raw,vdev=$2,access=${3:-rw},backendtype=qdisk,target=$1"
}

image_make() { # PATH MIB
	mkdir -p "$(dirname "$1")"
	truncate -s "$2M" "$1"
}

guest_log() { # NAME
	echo "/var/log/xen/console/guest-$1.log"
}

# With GUEST_MEMORY (MiB) and GUEST_VCPUS a test chooses another size.
guest_config() { # NAME KERNEL_ARGUMENTS DISK...
	local name=$1 arguments=$2 disks='' spec
	shift 2
	for spec in "$@"; do
		disks="$disks'$spec', "
	done
	cat >"/run/$name.cfg" <<C
name = "$name"
type = "pv"
kernel = "/guest/vmlinux"
ramdisk = "/guest/initrd.cpio"
extra = "console=hvc0 quiet mitigations=off $arguments"
memory = ${GUEST_MEMORY:-192}
vcpus = ${GUEST_VCPUS:-1}
on_poweroff = "destroy"
on_reboot = "restart"
on_crash = "destroy"
device_model_version = "qemu-xen"
device_model_override = "${DEVICE_MODEL-/usr/libexec/vbdisk-dm}"
disk = [ $disks ]
C
	# Without a program of ours libxl takes the QEMU it was built for.
	[ -n "${DEVICE_MODEL-default}" ] || sed -i '/^device_model/d' "/run/$name.cfg"
}

guest_create() { # NAME DISK...: returns when the guest waits for commands
	local name=$1
	shift
	guest_config "$name" "" "$@"
	guest_boot "$name"
}

guest_boot() { # NAME, configured before
	rm -f "$(guest_log "$1")"
	xl create "/run/$1.cfg" || {
		echo "xl create $1: status $?"
		return 1
	}
	guest_says "$1" '^=guest ready' 90
}

guest_says() { # NAME REGEX SECONDS [TIMES]
	local log times=${4:-1} until=$((SECONDS + $3))
	log=$(guest_log "$1")
	until [ "$(tr -d '\r' <"$log" 2>/dev/null | grep -cE -- "$2")" -ge "$times" ]; do
		[ $SECONDS -lt $until ] || {
			echo "guest $1 did not say '$2' within $3 s; its last lines:"
			tail -n 5 "$log" 2>/dev/null
			return 1
		}
		sleep 0.3
	done
}

guest_id() { # NAME
	xl domid "$1" 2>/dev/null
}

guest_gone() { # NAME
	not xl domid "$1"
}

guest_send() { # NAME COMMAND: start a command in the guest; sets command_number
	local tty
	command_number=$(($(cat /run/command-number 2>/dev/null || echo 0) + 1))
	echo "$command_number" >/run/command-number
	wc -l <"$(guest_log "$1")" >"/run/command-$command_number.from"
	tty=$(xenstore-read "/local/domain/$(guest_id "$1")/console/tty")
	printf '%s %s\n' "$command_number" "$2" >"$tty"
}

guest_result() { # NAME NUMBER SECONDS: wait for a started command, print its output, return its status
	local log from
	log=$(guest_log "$1")
	guest_says "$1" "^=$2 [0-9]+$" "$3" || return 124
	from=$(($(cat "/run/command-$2.from") + 1))
	tr -d '\r' <"$log" | tail -n "+$from" | sed "/^=$2 /,\$d" | grep -v '^=' || true
	return "$(tr -d '\r' <"$log" | sed -n "s/^=$2 //p" | head -n 1)"
}

guest_run() { # NAME SECONDS COMMAND
	local command_number
	guest_send "$1" "$3"
	guest_result "$1" "$command_number" "$2"
}

# `xl shutdown -w` returns when the guest has stopped; the domain is destroyed a little later.
guest_shutdown() { # NAME
	timeout 90 xl shutdown -w "$1" && wait_for 30 guest_gone "$1"
}

guest_poweroff() { # NAME
	guest_send "$1" "/sbin/poweroff"
	wait_for 60 guest_gone "$1"
}

# --- vbdisk

backend_start() { # [OPTION...]: NAME=VALUE as `vbdisk -o` takes them
	local fds option arguments=()
	for option in "$@"; do
		arguments+=(-o "$option")
	done
	vbdiskd "${arguments[@]}" </dev/null >>"$VBDISKD_LOG" 2>&1 &
	echo $! >/run/vbdiskd.test.pid
	echo "$*" >/run/vbdiskd.test.options
	disown
	wait_for 20 test -n "$(vbdiskd_pid)" || return 1
	# It is ready when it holds its watches: its descriptors have come to rest.
	for _ in $(seq 50); do
		fds=$(vbdiskd_fds)
		sleep 0.3
		[ "$fds" != "$(vbdiskd_fds)" ] || [ "$fds" -lt 4 ] || break
	done
	vbdiskd_alive
}

vbdiskd_pid() {
	cat /run/vbdiskd.test.pid 2>/dev/null
}

# VBDs that are attached from now on are served in another way; the test's cleanup takes the options back.
# shellcheck disable=SC2120 # the tests pass arguments
backend_restart() { # [OPTION...]
	backend_stop && backend_start "$@"
}

backend_stop() {
	kill -TERM "$(vbdiskd_pid)"
	wait_for 10 not vbdiskd_alive
}

vbdiskd_alive() {
	kill -0 "$(vbdiskd_pid)" 2>/dev/null
}

vbdiskd_fds() {
	find "/proc/$(vbdiskd_pid)/fd" -mindepth 1 2>/dev/null | wc -l
}

vbd_number() { # VDEV: xvda -> 51712; beyond xvdp Xen numbers disks in another way
	local index
	index=$(($(printf '%d' "'${1#xvd}") - 97))
	if [ $index -lt 16 ]; then
		echo $(((202 << 8) + index * 16))
	else
		echo $(((1 << 28) + (index << 8)))
	fi
}

vbd_path() { # DOMID VDEV [KIND]
	echo "/local/domain/0/backend/${3:-qdisk}/$1/$(vbd_number "$2")"
}

vbd_state() { # DOMID VDEV [KIND]
	xenstore-read "$(vbd_path "$@")/state" 2>/dev/null
}

vbd_state_is() { # STATE DOMID VDEV [KIND]
	local state=$1
	shift
	[ "$(vbd_state "$@")" = "$state" ]
}

vbd_node() { # DOMID VDEV NODE: of our directory
	xenstore-read "$(vbd_path "$1" "$2")/$3" 2>/dev/null
}

frontend_node() { # DOMID VDEV NODE
	xenstore-read "/local/domain/$1/device/vbd/$(vbd_number "$2")/$3" 2>/dev/null
}

# Make a Closed frontend begin again: its driver is unloaded, and the guest takes a new directory for a new device.
# (A Linux whose blkfront was unbound does not begin by itself: it leaves the state at 6, with blkback just the same.)
frontend_renew() { # NAME DOMID VDEV
	local dir key keys=() number
	number=$(vbd_number "$3")
	dir=/local/domain/$2/device/vbd/$number
	for key in backend backend-id virtual-device device-type protocol trusted; do
		keys+=("$dir/$key" "$(xenstore-read "$dir/$key")")
	done
	xenstore-rm "$dir"
	guest_run "$1" 30 "n=0; while [ -e /sys/bus/xen/devices/vbd-$number ]; do n=\$((n+1)); [ \$n -lt 100 ] || exit 1; sleep 0.1; done" || return 1
	xenstore-write "$dir" "" "${keys[@]}" "$dir/state" 1 && xenstore-chmod -r "$dir" "n$2" r0
}

# The process that serves a VBD is the vbdisk which names its backend path in its arguments.
vbd_pid() { # DOMID VDEV [KIND]
	local pid path
	path=backend/${3:-qdisk}/$1/$(vbd_number "$2")
	for pid in $(pgrep -x vbdisk); do
		if tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qE "(^|/)$path\$"; then
			echo "$pid"
		fi
	done
}

vbd_count() {
	pgrep -c -x vbdisk || true
}

vbd_count_is() {
	[ "$(vbd_count)" = "$1" ]
}

vbd_log() { # DOMID VDEV: what was logged about a VBD
	grep -F "$1/$(vbd_number "$2")" "$VBDISKD_LOG"
}

vbd_error() { # DOMID VDEV [KIND]
	xenstore-read "/local/domain/0/error/backend/${3:-qdisk}/$1/$(vbd_number "$2")/error" 2>/dev/null
}

qemu_count() {
	pgrep -c -f 'qemu-system-[^ ]* .*-xen-domid' || true
}

# --- audit

domains() { # all but dom0, zombies included
	xl list | tail -n +3
}

event_ports() { # bound event channels of dom0
	"$(echo /usr/lib/xen-[0-9]*/bin/lsevtchn)" 0 2>/dev/null | grep -c 'Interdomain' || true
}

grants_mapped() { # grants of dom0 and of guests that somebody has mapped
	xl dmesg -c >/dev/null
	xl debug-keys g
	sleep 0.3
	xl dmesg | tee "/run/grants" | grep -cE '^\(XEN\) +\[0x[0-9a-f]+\] +[0-9]+ 0x' || true
}

leftover_nodes() {
	local top
	for top in backend/qdisk backend/vbd3 error/backend/qdisk error/backend/vbd3; do
		xenstore-ls -f "/local/domain/0/$top" 2>/dev/null
	done | grep -vE '^/local/domain/0/(error/)?backend/[a-z0-9]+(/[0-9]+)? = ""$' || true
}

# Deferred unmaps: the kernel found a page of a grant mapping still in use. One can leave the guest's disk dead.
# The second probe is hit by every grant copy and shows that such probes count at all.
probes_start() { # prints why not
	local trace=/sys/kernel/tracing
	mountpoint -q $trace || mount -t tracefs tracefs $trace || return 1
	{
		echo 'p:vbdisk/deferred_unmap gnttab_unmap_work' >$trace/kprobe_events &&
			echo 'p:vbdisk/copy gnttab_batch_copy' >>$trace/kprobe_events &&
			echo 1 >$trace/events/vbdisk/enable
	} 2>&1
}

probe_hits() { # NAME
	awk -v name="$1" '$1 == name || $1 == "vbdisk/" name { print $2 }' /sys/kernel/tracing/kprobe_profile
}

probes_stop() {
	echo 0 >/sys/kernel/tracing/events/vbdisk/enable
	echo >/sys/kernel/tracing/kprobe_events
}

kernel_complaints() {
	dmesg | grep -cE 'BUG:|WARNING:|Oops|Call Trace|blocked for more than' || true
}

audit_baseline() {
	{
		echo "base_ports=$(event_ports)"
		echo "base_grants=$(grants_mapped)"
		echo "base_fds=$(vbdiskd_fds)"
		echo "base_complaints=$(kernel_complaints)"
	} >/run/baseline
	progress "baseline: $(tr '\n' ' ' </run/baseline)"
}

audit_once() { # prints what is left, nothing when clean
	local base_ports=0 base_grants=0 base_fds=0 base_complaints=0 found
	# shellcheck disable=SC1091
	. /run/baseline
	found=$(domains)
	[ -z "$found" ] || echo "domain left: $found"
	found=$(pgrep -x vbdisk)
	[ -z "$found" ] || echo "vbdisk processes left: $(pgrep -ax vbdisk)"
	found=$(pgrep -x vbdisk-dm)
	[ -z "$found" ] || echo "vbdisk-dm processes left: $found"
	[ "$(qemu_count)" = 0 ] || echo "QEMU left: $(pgrep -f 'qemu-system-[^ ]* .*-xen-domid')"
	found=$(leftover_nodes)
	[ -z "$found" ] || printf 'node left: %s\n' "$found"
	found=$(find /run/vbdisk -mindepth 1 ! -name 'vbdiskd*' 2>/dev/null)
	[ -z "$found" ] || echo "run files left: $found"
	vbdiskd_alive || echo "vbdiskd is not running"
	found=$(vbdiskd_fds)
	[ "$found" = "$base_fds" ] || echo "vbdiskd has $found descriptors, had $base_fds"
	found=$(event_ports)
	[ "$found" -le "$base_ports" ] || echo "dom0 has $found event channels bound, had $base_ports"
	found=$(grants_mapped)
	[ "$found" -le "$base_grants" ] || echo "$found grants are mapped, $base_grants were"
	found=$(kernel_complaints)
	[ "$found" -le "$base_complaints" ] || echo "dom0's kernel complained: $(dmesg | grep -E 'BUG:|WARNING:|Oops' | tail -n 1)"
}

audit() {
	local left until=$((SECONDS + 20))
	step "audit"
	while :; do
		left=$(audit_once)
		if [ -z "$left" ] || [ $SECONDS -ge $until ]; then
			break
		fi
		sleep 0.5
	done
	if [ -n "$left" ]; then
		fail "audit: nothing is left behind" "$left"
		return 1
	fi
	pass "audit: nothing is left behind"
}

# What a test may leave on purpose: its guests and disks of dom0's, and its images.
test_cleanup() {
	local id vdev
	for id in $(domains | awk '{ print $2 }'); do
		timeout 60 xl destroy "$id"
	done
	for vdev in $(xenstore-list /local/domain/0/device/vbd 2>/dev/null); do
		timeout 60 xl block-detach 0 "$vdev"
	done
	# shellcheck disable=SC2119 # no option: the default
	[ -z "$(cat /run/vbdiskd.test.options)" ] || backend_restart
	findmnt -rno TARGET -R /data | grep -v '^/data$' | xargs -r umount
	rm -rf "/data/$TEST"
} >>"$OUT/cleanup.log" 2>&1

# After a failed audit: bring the host back, so that the next test is not judged by this one's remains.
audit_force() {
	progress "cleaning by force"
	pkill -KILL -x vbdisk
	pkill -KILL -x vbdisk-dm
	pkill -KILL -f 'qemu-system-[^ ]* .*-xen-domid'
	kill -KILL "$(vbdiskd_pid)" 2>/dev/null
	sleep 1
	for top in backend/qdisk backend/vbd3 error/backend device/vbd; do
		xenstore-rm "/local/domain/0/$top" 2>/dev/null
	done
	backend_start
	audit_baseline
}

evidence_keep() { # NAME
	local folder=$OUT/$1
	mkdir -p "$folder"
	cp "$VBDISKD_LOG" "$folder/vbdiskd.log"
	xenstore-ls -fp >"$folder/xenstore" 2>&1
	dmesg >"$folder/dmesg"
	xl dmesg >"$folder/xl-dmesg" 2>&1
	cp /run/grants "$folder/grants" 2>/dev/null
	xl list >"$folder/xl-list" 2>&1
	ps axwwo pid,ppid,stat,wchan:20,args >"$folder/ps" 2>&1
	cp -r /var/log/xen "$folder/xen-log"
}
