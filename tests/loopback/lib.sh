# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the loopback tests share: a host of their own, the daemon on it, and TAP.
#
# Owns: a scratch folder with the host, the images and the logs, and every process started here.
# Trusts: the built programs in $top_builddir (make check sets it; by hand: the current folder). Runs on: any Linux machine, without privileges.
# Must not know: what is tested.
#
# A test sources this, calls host_start, tests with ok/not_ok or check, and ends with done_testing.
set -uo pipefail

: "${top_builddir:=$PWD}"
: "${top_srcdir:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
export top_srcdir
export LSAN_OPTIONS="suppressions=$top_srcdir/tests/loopback/lsan.supp:print_suppressions=0"

# Direct I/O needs a real file system below the images; the build folder's will do.
scratch=$(mktemp -d "$top_builddir/loopback-test.XXXXXX")
host=$scratch/host
run_dir=$scratch/run
mkdir -p "$host" "$run_dir"
export XENSTORED_PATH=$host/xenstored
host_pid=
daemon_pid=
test_nr=0
failures=0

ok() {
	test_nr=$((test_nr + 1))
	echo "ok $test_nr - $1"
}

not_ok() {
	test_nr=$((test_nr + 1))
	failures=$((failures + 1))
	echo "not ok $test_nr - $1"
	[ $# -lt 2 ] || printf '%s\n' "${@:2}" | sed 's/^/# /'
}

# skip NAME REASON
skip() {
	test_nr=$((test_nr + 1))
	echo "ok $test_nr - $1 # SKIP $2"
}

# check NAME COMMAND...: the command succeeds.
check() {
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		ok "$name"
	else
		not_ok "$name" "status $? of: $*" "$output"
	fi
}

# check_is NAME EXPECTED ACTUAL
check_is() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "expected: $2" "found:    $3"
	fi
}

# check_like NAME EXTENDED-REGULAR-EXPRESSION TEXT
check_like() {
	if grep -qE -- "$2" <<<"$3"; then
		ok "$1"
	else
		not_ok "$1" "expected to match: $2" "found: $3"
	fi
}

# Wait until a command succeeds, at most 20 s (sanitizers and a busy machine are slow).
eventually() {
	local deadline=$((SECONDS + 20))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.02
	done
}

loopback() {
	local command=$1
	shift
	"$top_builddir/vbdisk-loopback" "$command" --dir "$host" "$@"
}

front() { "$top_builddir/vbdisk-front" --loopback "$host" "$@"; }

# The same in the background; front_pid is the program's own (not a subshell's, so that a kill reaches it).
front_start() {
	"$top_builddir/vbdisk-front" --loopback "$host" "$@" >"$scratch/front.out" 2>&1 &
	front_pid=$!
}

host_start() {
	"$top_builddir/vbdisk-loopback" run --dir "$host" >"$scratch/host.out" 2>"$scratch/host.log" &
	host_pid=$!
	eventually grep -q ready "$scratch/host.out" || {
		echo "Bail out! the loopback host did not start: $(cat "$scratch/host.log")"
		exit 1
	}
}

daemon_start() { # [-o NAME=VALUE]...
	"$top_builddir/vbdiskd" --vbdisk "$top_builddir/vbdisk" --loopback "$host" --run-dir "$run_dir" "$@" \
		2>>"$scratch/vbdiskd.log" &
	daemon_pid=$!
	eventually grep -q "vbdiskd\[$daemon_pid\].*ready" "$scratch/vbdiskd.log" || {
		echo "Bail out! vbdiskd did not start: $(cat "$scratch/vbdiskd.log")"
		exit 1
	}
}

daemon_stop() {
	kill "$daemon_pid" && wait "$daemon_pid"
	daemon_pid=
}

# Another vbdiskd, whose VBDs get other options. Nothing is attached.
daemon_restart() { # [-o NAME=VALUE]...
	daemon_stop
	daemon_start "$@"
}

attach() { # DOMID VDEV PARAMS [OPTION]...: and wait until it is offered
	loopback attach "$@" && loopback wait "$1" "$2" --backend-state 2
}

be_key() { # DOMID DEVID KEY
	store_read "/local/domain/0/backend/qdisk/$1/$2/$3"
}

be_key_is() { # DOMID DEVID KEY VALUE
	[ "$(be_key "$1" "$2" "$3")" = "$4" ]
}

# image NAME SIZE: a sparse raw image in the scratch folder; prints its path.
image() {
	truncate -s "$2" "$scratch/$1"
	echo "$scratch/$1"
}

# The process that serves DOMID DEVID, from its run file's lock.
vbd_pid() {
	local file=$run_dir/qdisk-$1-$2 inode
	inode=$(stat -c %i "$file" 2>/dev/null) || return 1
	awk -v inode="$inode" '$6 ~ ":" inode "$" { print $5; found = 1 } END { exit !found }' /proc/locks
}

vbd_gone() { ! vbd_pid "$1" "$2"; }

be_state() { store_read "/local/domain/0/backend/qdisk/$1/$2/state"; }

be_state_is() { [ "$(be_state "$1" "$2")" = "$3" ]; }

error_node() { store_read "/local/domain/0/error/backend/qdisk/$1/$2/error"; }

# Without xenstore-utils the host's own reader would do, but the real tool is the better witness.
store_read() { xenstore-read "$1" 2>/dev/null; }

need() {
	command -v "$1" >/dev/null && return
	echo "1..0 # SKIP $1 is not installed"
	exit 0
}

# Nothing is left: no grant, port or watch beyond the host's and the daemon's own, no process of a VBD, no run file.
audit_clean() {
	local ignore=()
	[ -z "$daemon_pid" ] || ignore=(--ignore-pid "$daemon_pid")
	loopback audit --expect-clean "${ignore[@]}" &&
		! pgrep -f -- "/vbdisk --run-dir $run_dir" &&
		[ -z "$(find "$run_dir" -name '*-*-*')" ]
}

check_audit() {
	if eventually audit_clean; then
		ok "audit: $1"
	else
		not_ok "audit: $1" "$(audit_clean 2>&1)" "run files: $(ls "$run_dir")"
	fi
}

cleanup() {
	local pid
	[ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null
	for pid in $(pgrep -f -- "--loopback $host" 2>/dev/null); do
		kill -9 "$pid" 2>/dev/null
	done
	[ -z "$host_pid" ] || kill "$host_pid" 2>/dev/null
	wait 2>/dev/null
	if [ $failures -gt 0 ]; then
		sed 's/^/# vbdiskd.log: /' "$scratch/vbdiskd.log" 2>/dev/null | tail -n 60
		sed 's/^/# host.log: /' "$scratch/host.log" 2>/dev/null | tail -n 20
	fi
	rm -rf "$scratch"
}
trap cleanup EXIT

done_testing() {
	echo "1..$test_nr"
	[ $failures -eq 0 ]
	exit
}

need xenstore-read
