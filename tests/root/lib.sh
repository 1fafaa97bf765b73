# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What the tests on real devices share: TAP, loop devices, and taking everything down again.
# Owns: a scratch directory, the loop devices and mounts made here. Trusts: the tests.
# Runs on: the test's shell, as root. Must not know: what is tested.
#
# A test sources this, calls need_root, plan N, then ok/is for each case.

DISK_EXERCISE=${top_builddir:-.}/tests/root/disk-exercise
nr_cases=0
scratch=
loops=()
mounts=()

# all_skip REASON: the whole test cannot run.
all_skip()
{
	echo "1..0 # SKIP $1"
	exit 0
}

need_root()
{
	[ "$(id -u)" = 0 ] || all_skip "needs root (loop devices)"
	command -v losetup >/dev/null || all_skip "needs losetup"
	scratch=$(mktemp -d "${PWD}/root-test.XXXXXX")
	trap scratch_remove EXIT
	truncate -s 1M "$scratch/probe"
	local device
	device=$(losetup --find --show "$scratch/probe" 2>"$scratch/why") ||
		all_skip "losetup does not work here: $(tr '\n' ' ' <"$scratch/why")"
	losetup --detach "$device"
}

scratch_remove()
{
	local status=$? i
	for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do
		umount "${mounts[i]}" || status=1
	done
	for ((i = ${#loops[@]} - 1; i >= 0; i--)); do
		losetup --detach "${loops[i]}" || status=1
	done
	rm -rf "$scratch"
	exit "$status"
}

plan()
{
	echo "1..$1"
}

# ok NAME COMMAND...: the command succeeds.
ok()
{
	local name=$1
	shift
	nr_cases=$((nr_cases + 1))
	if "$@" >"$scratch/out" 2>&1; then
		echo "ok $nr_cases - $name"
	else
		echo "not ok $nr_cases - $name"
		sed 's/^/# /' "$scratch/out"
	fi
}

# is NAME EXPECTED GOT
is()
{
	nr_cases=$((nr_cases + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $nr_cases - $1"
	else
		echo "not ok $nr_cases - $1"
		printf '# expected: %s\n# got:      %s\n' "$2" "$3"
	fi
}

# like NAME PATTERN GOT: GOT matches the shell pattern.
like()
{
	nr_cases=$((nr_cases + 1))
	# shellcheck disable=SC2053 # a pattern is meant
	if [[ $3 == $2 ]]; then
		echo "ok $nr_cases - $1"
	else
		echo "not ok $nr_cases - $1"
		printf '# pattern: %s\n# got:     %s\n' "$2" "$3"
	fi
}

# skip NR REASON
skip()
{
	local i
	for ((i = 0; i < $1; i++)); do
		nr_cases=$((nr_cases + 1))
		echo "ok $nr_cases # SKIP $2"
	done
}

# loop_make LOSETUP-OPTIONS... IMAGE: sets $loop.
loop_make()
{
	loop=$(losetup --find --show "$@")
	loops+=("$loop")
}

# mount_make DEVICE DIRECTORY
mount_make()
{
	mkdir -p "$2"
	mount "$1" "$2"
	mounts+=("$2")
}

disk()
{
	"$DISK_EXERCISE" "$@"
}
