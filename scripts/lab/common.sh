# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What every part of the Xen lab shares: messages, the cache and its pieces, the releases.
#
# Owns: the cache folder's layout, the lock, stamps. Trusts: the local file system.
# Runs on: the build machine, sourced by bash with errexit. Must not know: what a piece contains.

lab_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=$(cd "$lab_dir/../.." && pwd)
lab_start=$SECONDS

# Exit statuses of scripts/xen-lab; a job's own status (0 to 119) is passed through.
# shellcheck disable=SC2034
readonly LAB_HUNG=120 LAB_NOT_BUILT=121 LAB_USAGE=122

say() {
	printf '[%4ds] %s\n' $((SECONDS - lab_start)) "$*" >&2
}

die() { # STATUS MESSAGE...
	local status=$1
	shift
	say "xen-lab: $*"
	exit "$status"
}

# Choose the Debian release; everything it needs is cached under $release_cache.
release_select() { # 12|13
	case $1 in
	12) codename=bookworm package_libaio=libaio1 ;;
	13) codename=trixie package_libaio=libaio1t64 ;;
	*) die $LAB_USAGE "unknown Debian release '$1': 12 and 13 are supported" ;;
	esac
	release=$1
	cache_root=${VBDISK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vbdisk}
	release_cache=$cache_root/lab-$release
	# shellcheck disable=SC2034
	{
		# Unpacked into dom0's root with all they depend on. The last three are what vbdisk's programs link to.
		packages_dom0="bash dash hostname login bsdutils bsdextrautils coreutils util-linux mount kmod
			busybox-static xen-utils-common xenstore-utils qemu-system-xen strace e2fsprogs iproute2
			procps psmisc grep sed mawk findutils $package_libaio libjson-c5 libsystemd0"
		# Kernel modules, copied with those they depend on, for dom0, its initrd, and the guests.
		modules_dom0="xen-gntdev xen-gntalloc xen-evtchn xen-privcmd xenfs xen-blkback xen-blkfront
			dm-mod dm-delay dm-flakey null_blk loop scsi_debug sd_mod 9p 9pnet_virtio virtio_pci
			virtio_blk ext4 crc32c_generic"
		modules_dom0_initrd="virtio_pci virtio_blk ext4 crc32c_generic"
		modules_guest="xen-blkfront ext4 crc32c_generic"
		# Where release 13's copy of vbdisk is compiled (its shared libraries differ from release 12's).
		packages_buildroot="bash dash coreutils sed grep gawk gcc libc6-dev make autoconf automake pkg-config
			libxen-dev libaio-dev libjson-c-dev libsystemd-dev"
	}
}

# One lab builds one release's cache at a time; the others wait and then find the pieces done.
cache_lock() {
	mkdir -p "$release_cache"
	exec {cache_lock_fd}>"$release_cache/lock"
	if ! flock -n "$cache_lock_fd"; then
		say "waiting for another process that builds $release_cache"
		flock "$cache_lock_fd"
	fi
	# What an interrupted build left behind; nobody else can be writing them while the lock is held.
	rm -rf "$release_cache"/*.new "$release_cache"/*.old
}

cache_unlock() {
	exec {cache_lock_fd}>&-
}

hash_of() { # STRING... with files given as @PATH: one hash over all
	local part
	for part in "$@"; do
		case $part in
		@*) cat "${part#@}" ;;
		*) printf '%s\0' "$part" ;;
		esac
	done | sha256sum | cut -d' ' -f1
}

piece_stamp() { # NAME: the stamp of a finished piece, empty when there is none
	cat "$release_cache/$1/stamp" 2>/dev/null || true
}

# Make $release_cache/NAME by BUILDER (called with an empty folder) unless the finished one has this STAMP.
# It is built beside its place and renamed when complete, so an interrupted build is never taken for a finished one.
piece() { # NAME STAMP BUILDER
	local name=$1 stamp=$2 builder=$3 new=$release_cache/$1.new started=$SECONDS
	[ "$(piece_stamp "$name")" != "$stamp" ] || return 0
	say "$name: building (release $release)"
	rm -rf "$new"
	mkdir -p "$new"
	"$builder" "$new"
	printf '%s\n' "$stamp" >"$new/stamp"
	if [ -e "$release_cache/$name" ]; then
		mv "$release_cache/$name" "$release_cache/$name.old"
	fi
	mv "$new" "$release_cache/$name"
	rm -rf "$release_cache/$name.old"
	say "$name: ready after $((SECONDS - started)) s"
}

# Run a command with its output in a log; on failure show the log's end and stop.
logged() { # WHAT COMMAND...
	local what=$1 log=$release_cache/log
	shift
	if ! "$@" >"$log" 2>&1; then
		tail -n 15 "$log" >&2
		die $LAB_NOT_BUILT "$what failed; the whole output is in $log"
	fi
}

tool_need() { # COMMAND PACKAGE
	PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ||
		die $LAB_NOT_BUILT "'$1' is missing: install the Debian package $2 (or run scripts/install-deps lab)"
}
