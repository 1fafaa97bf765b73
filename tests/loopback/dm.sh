#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# vbdisk-dm against the loopback host's xenstore, seen through Debian's xenstore tools.
# Owns: a loopback host and a device model in a scratch directory. Trusts: the test's environment.
# Runs on: the test; waits, with limits. Must not know: QMP (tests/unit/test-dm-process talks that).
set -euo pipefail

host=${top_builddir:-.}/vbdisk-loopback
dm=${top_builddir:-.}/vbdisk-dm

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

[ -x "$host" ] || skip_all "vbdisk-loopback is not built here"
for tool in xenstore-read xenstore-write xenstore-exists; do
	command -v "$tool" >/dev/null || skip_all "$tool is missing: install xenstore-utils"
done

dir=$(mktemp -d /tmp/vbdisk-dm-loopback-XXXXXX)
pids=
cleanup() {
	for pid in $pids; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	rm -rf "$dir"
}
trap cleanup EXIT

nr=0
ok() { # ok DESCRIPTION COMMAND...: the command decides
	nr=$((nr + 1))
	description=$1
	shift
	if "$@" >"$dir/ok.out" 2>&1; then
		echo "ok $nr - $description"
	else
		echo "not ok $nr - $description"
		sed 's/^/# /' "$dir/ok.out" "$dir"/*.err
	fi
}

wait_for() { # wait_for COMMAND...: until it succeeds, 10 s at most
	tries=0
	until "$@" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || return 1
		sleep 0.05
	done
}

dm_start() { # dm_start N: as libxl starts it for domain N; its pid in $dm_pid
	"$dm" -xen-domid "$1" -no-shutdown \
		-chardev "socket,id=libxl-cmd,path=$dir/qmp-libxl-$1,server=on,wait=off" \
		-mon chardev=libxl-cmd,mode=control \
		-chardev "socket,id=libxenstat-cmd,path=$dir/qmp-libxenstat-$1,server=on,wait=off" \
		-mon chardev=libxenstat-cmd,mode=control \
		-nodefaults -no-user-config -xen-attach -name "guest$1" -vnc none -display none \
		-nographic -machine xenpv -m 256 >"$dir/dm$1.out" 2>"$dir/dm$1.err" &
	dm_pid=$!
	pids="$pids $dm_pid"
}

state_is() { # state_is N VALUE
	[ "$(xenstore-read "/local/domain/0/device-model/$1/state")" = "$2" ]
}

ended_with() { # ended_with PID STATUS
	status=0
	wait "$1" || status=$?
	[ "$status" -eq "$2" ]
}

gone() {
	! [ -e "$1" ]
}

"$host" run --dir "$dir" >"$dir/host.out" 2>"$dir/host.err" &
pids=$!
export XENSTORED_PATH="$dir/xenstored"

echo "1..9"
ok "the loopback host is up" wait_for xenstore-exists /

dm_start 7
ok "state becomes running" wait_for state_is 7 running
ok "libxl's socket is there" test -S "$dir/qmp-libxl-7"
ok "xentop's socket is there" test -S "$dir/qmp-libxenstat-7"
kill -HUP "$dm_pid"
ok "SIGHUP ends it" ended_with "$dm_pid" 0
ok "its sockets are gone" gone "$dir/qmp-libxl-7"

# A guest with a display needs QEMU.
printf '#!/bin/sh\necho "$*"\nexit 42\n' >"$dir/qemu"
chmod 755 "$dir/qemu"
export VBDISK_DM_QEMU="$dir/qemu"
xenstore-write /local/domain/0/backend/vfb/8/0/state 1
dm_start 8
ok "a guest with a vfb gets QEMU" ended_with "$dm_pid" 42
ok "with the same command line" grep -q -- "^-xen-domid 8 .* -machine xenpv -m 256\$" "$dir/dm8.out"
ok "and the reason is logged" grep -q "backend/vfb/8" "$dir/dm8.err"
