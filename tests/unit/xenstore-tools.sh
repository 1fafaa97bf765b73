#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Debian's xenstore tools, unchanged, against the loopback host's xenstore server; and the commands of
# vbdisk-loopback with their exit statuses.
# Owns: a host in a temporary directory. Trusts: nothing. Must not know: the server's inside.
set -euo pipefail

program=${top_builddir:-.}/vbdisk-loopback

for tool in xenstore-ls xenstore-read xenstore-write xenstore-watch xenstore-rm xenstore-chmod xenstore-list \
	xenstore-exists; do
	if ! command -v "$tool" >/dev/null; then
		echo "1..0 # SKIP $tool is missing: install xenstore-utils"
		exit 0
	fi
done

dir=$(mktemp -d)
host=
watcher=
cleanup() {
	[ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
	[ -z "$host" ] || kill "$host" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT

nr=0
failed=0
# check NAME COMMAND...: one test, passed if the command succeeds.
check() {
	local name=$1
	shift
	nr=$((nr + 1))
	if "$@"; then
		echo "ok $nr - $name"
	else
		echo "not ok $nr - $name"
		failed=1
	fi
}
# same EXPECTED COMMAND...: the command's output is this.
same() {
	local expected=$1 got
	shift
	got=$("$@" 2>&1) || true
	[ "$got" = "$expected" ] || {
		printf '# expected: %s\n# got: %s\n' "$expected" "$got"
		return 1
	}
}
# status EXPECTED COMMAND...: the command ends with this exit status.
status() {
	local expected=$1 got=0
	shift
	"$@" >"$dir/output" 2>&1 || got=$?
	[ "$got" -eq "$expected" ] || {
		printf '# exit status %s, not %s: %s\n' "$got" "$expected" "$(cat "$dir/output")"
		return 1
	}
}
guest() {
	XENSTORED_PATH=$dir/host/xenstored-1 "$@"
}
loopback() {
	"$program" --dir "$dir/host" "$@"
}

mkfifo "$dir/ready"
"$program" run --dir "$dir/host" >"$dir/ready" &
host=$!
read -r word <"$dir/ready"
check "run says ready" [ "$word" = ready ]
check "a second host in one directory is refused" status 1 loopback run
export XENSTORED_PATH=$dir/host/xenstored

check "domain-create" status 0 loopback domain-create 1
check "domain-create of one that exists fails" status 1 loopback domain-create 1
check "xenstore-write and xenstore-read" same "some value" \
	sh -c 'xenstore-write /t/a/b "some value" && xenstore-read /t/a/b'
check "xenstore-write of several" same "1 2" \
	sh -c 'xenstore-write /t/x 1 /t/y 2 && echo $(xenstore-read /t/x /t/y)'
check "xenstore-list" same "a x y" sh -c 'echo $(xenstore-list /t)'
check "xenstore-exists" xenstore-exists /t/a
check "xenstore-exists: no" status 1 xenstore-exists /t/none
check "xenstore-ls" same 'b = "some value"' xenstore-ls /t/a
check "xenstore-ls -f -p" same '/t/a/b = "some value"   (n0)' xenstore-ls -f -p /t/a
check "xenstore-chmod" same 'b = "some value"' \
	sh -c 'xenstore-chmod /t/a n0 r1 && xenstore-chmod -r /t/a n0 b1 && xenstore-ls /t/a'
check "xenstore-ls -p shows it" same '/t/a/b = "some value"   (n0,b1)' xenstore-ls -f -p /t/a
check "a guest may what it may" guest xenstore-write /t/a/b mine
check "and may not what it may not" status 1 guest xenstore-write /t/x mine
check "a guest's relative path" same 1 guest xenstore-read domid
check "xenstore-rm" same "" sh -c 'xenstore-rm /t && xenstore-ls /t 2>/dev/null'

xenstore-watch -n 3 /w >"$dir/watched" &
watcher=$!
# Its first event says that the watch is there.
for _ in $(seq 100); do
	[ ! -s "$dir/watched" ] || break
	sleep 0.05
done
check "xenstore-write while watched" xenstore-write /w/one 1
check "xenstore-rm while watched" xenstore-rm /w
check "xenstore-watch ends" wait "$watcher"
watcher=
check "xenstore-watch saw it all" same "/w /w/one /w" sh -c "echo \$(cat '$dir/watched')"

# More names than one message holds.
for i in $(seq 1000 1400); do
	printf '/big/child-number-%s\n%s\n' "$i" "$i"
done | xargs -d '\n' xenstore-write
check "xenstore-list of 401 names" same 401 sh -c 'xenstore-list /big | wc -l'

check "attach" status 0 loopback attach 1 xvda aio:/dev/null --mode r
check "attach wrote the mode" same r xenstore-read /local/domain/0/backend/qdisk/1/51712/mode
check "wait for a state that is there" status 0 loopback wait 1 xvda --backend-state 1
check "wait times out with status 3" status 3 loopback wait 1 51712 --backend-state 4 --timeout 0.1
check "detach times out with status 3" status 3 loopback detach 1 xvda --timeout 0.1
check "detach by force" status 0 loopback detach 1 xvda --timeout 0.1 --force
check "detach of none fails" status 1 loopback detach 1 xvda
check "usage errors have status 2" status 2 loopback attach 1 nonsense aio:/dev/null
check "an unknown command, too" status 2 loopback frobnicate
check "an unknown option, too" status 2 loopback audit --frobnicate
check "--help" status 0 loopback --help
check "domain-state" same running loopback domain-state 1
check "domain-suspend" status 0 loopback domain-suspend 1
check "domain-state suspended" same suspended loopback domain-state 1
check "domain-destroy" status 0 loopback domain-destroy 1 --grace 0
check "domain-state dead" same dead loopback domain-state 1
check "audit is clean" status 0 loopback audit --json --expect-clean
xenstore-watch /w >/dev/null &
watcher=$!
for _ in $(seq 100); do
	loopback audit --json | grep -q '"watches":0,"transactions":0,"nodes"' || break
	sleep 0.05
done
check "audit finds a watcher" status 1 loopback audit --expect-clean
check "audit can look away" status 0 loopback audit --expect-clean --ignore-pid "$watcher"
kill "$watcher"
wait "$watcher" || true
watcher=
check "audit is clean again" status 0 loopback audit --expect-clean
check "stop" status 0 loopback stop
check "the host ends with status 0" wait "$host"
host=
check "no socket is left" same "" ls "$dir/host"
check "no host: status 1" status 1 loopback audit
echo "1..$nr"
exit "$failed"
