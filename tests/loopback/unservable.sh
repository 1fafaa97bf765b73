#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Disks that cannot be served: each is closed at once, and the reason, with the path and the cure, is in the log and in
# xenstore.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

host_start
daemon_start
loopback domain-create 1

no_error_node() { ! error_node "$1" "$2"; }

# refused NAME PARAMS MODE PATTERN: closed, with an error node and a log line that match, and nothing left.
refused() {
	local name=$1 params=$2 mode=$3 pattern=$4
	: >"$scratch/vbdiskd.log"
	loopback attach 1 xvdb "$params" --mode "$mode"
	check "$name: closed" loopback wait 1 xvdb --backend-state 6
	check_like "$name: the error node says why" "$pattern" "$(error_node 1 51728)"
	check_like "$name: the log says why" "vbd 1/51728: .*$pattern" "$(cat "$scratch/vbdiskd.log")"
	check "$name: its process is gone" eventually vbd_gone 1 51728
	check "$name: detached" loopback detach 1 xvdb
	check "$name: and the error node went with it" eventually no_error_node 1 51728
}

good=$(image good.img 1M)
empty=$(image empty.img 0)
odd=$(image odd.img 1000)
mkdir "$scratch/folder"
mkfifo "$scratch/fifo"
ln -s loop "$scratch/loop"
readonly_file=$(image readonly.img 1M)
chmod 444 "$readonly_file"

refused "missing file" "aio:$scratch/missing.img" w "$scratch/missing.img"
refused "directory" "aio:$scratch/folder" w "$scratch/folder.*director"
refused "FIFO" "aio:$scratch/fifo" w "$scratch/fifo"
refused "link to itself" "aio:$scratch/loop" w "$scratch/loop"
refused "empty file" "aio:$empty" w "$empty.*empty"
refused "size not a multiple of 512" "aio:$odd" w "$odd.*512"
refused "no such format" "qcow2:$good" w "qcow2"
refused "no target" "aio:" w "."
if [ "$(id -u)" != 0 ]; then
	refused "no permission to write" "aio:$readonly_file" w "$readonly_file.*(ermission|access)"
else
	skip "no permission to write" "root may write everything"
fi

# Nodes made by hand, incomplete: refused as well, and not tried again and again.
: >"$scratch/vbdiskd.log"
incomplete=/local/domain/0/backend/qdisk/1/51744
xenstore-write $incomplete/frontend /local/domain/1/device/vbd/51744 $incomplete/frontend-id 1 $incomplete/online 1 \
	$incomplete/params "aio:$good" $incomplete/state 1
check "no mode node: closed" eventually be_state_is 1 51744 6
check_like "no mode node: the error node names it" "51744/mode" "$(error_node 1 51744)"
check_is "no mode node: one process was started for it" 1 "$(grep -c 'vbd 1/51744: started' "$scratch/vbdiskd.log")"
xenstore-rm $incomplete

# A frontend that is another domain's, or none at all.
for frontend in /local/domain/0/device/vbd/51744 /local/domain/11/device/vbd/51744 "$(printf '/%0300d' 1)"; do
	xenstore-write $incomplete/frontend "$frontend" $incomplete/frontend-id 1 $incomplete/online 1 \
		$incomplete/params "aio:$good" $incomplete/mode w $incomplete/state 1
	check "frontend ${frontend:0:20}...: closed" eventually be_state_is 1 51744 6
	check_like "frontend ${frontend:0:20}...: the error node names the key" "51744/frontend" "$(error_node 1 51744)"
	xenstore-rm $incomplete
	eventually vbd_gone 1 51744
done

# Locked by another VBD.
loopback attach 1 xvda "aio:$good"
loopback wait 1 xvda --backend-state 2
refused "locked by another VBD" "aio:$good" w "$good.*qdisk-1-51712"
refused "locked by a writer, wanted read-only" "aio:$good" r "$good"
check "the first VBD is untouched" front --domid 1 --vdev xvda --job mixed --size 1M --count 100 --verify
check "detach the first" loopback detach 1 xvda
loopback attach 1 xvda "aio:$good" --mode r
loopback attach 1 xvdb "aio:$good" --mode r
check "two readers of one image: first" loopback wait 1 xvda --backend-state 2
check "two readers of one image: second" loopback wait 1 xvdb --backend-state 2
check "detach" loopback detach 1 xvda
check "detach" loopback detach 1 xvdb
check_audit "at the end"
done_testing
