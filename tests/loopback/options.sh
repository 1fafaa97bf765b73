#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Options: for all disks by -o, for one behind its target; paths with commas, colons and blanks.
#
# Owns: nothing. Trusts: lib.sh. Runs on: the loopback host. Must not know: the code.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

output=$("$top_builddir/vbdiskd" --vbdisk "$top_builddir/vbdisk" -o queues=99 2>&1)
check_is "a bad option: refused at start" 2 $?
check_like "a bad option: named" "queues cannot be \"99\"" "$output"

host_start
daemon_start -o queues=2 -o barrier=1
loopback domain-create 1
disk=$(image disk.img 8M)
attach 1 xvda "aio:$disk,queues=3,persistent=16"
check_is "what is behind the target wins" 3 "$(be_key 1 51712 multi-queue-max-queues)"
check_is "and holds" 1 "$(be_key 1 51712 feature-persistent)"
check_is "what is not said there is as for all" 1 "$(be_key 1 51712 feature-barrier)"
check "it serves" front --domid 1 --vdev xvda --queues 3 --persistent --job mixed --size 4M --count 500 --depth 32 --verify
attach 1 xvdb "aio:$(image other.img 8M)"
check_is "another disk has nothing of it" 2 "$(be_key 1 51728 multi-queue-max-queues)"
check "detach" loopback detach 1 xvdb
check "detach" loopback detach 1 xvda
for name in 'a,b.img' 'a:b.img' 'a b.img' 'a,discard=0,b.img'; do
	attach 1 xvda "aio:$(image "$name" 4M)"
	check "'$name' is served" front --domid 1 --vdev xvda --job mixed --size 1M --count 100 --verify
	check "detach" loopback detach 1 xvda
done
attach 1 xvda "aio:$(image 'a,discard=0' 4M),"
check_is "a path that ends like an option" 1 "$(be_key 1 51712 feature-discard)"
check "detach" loopback detach 1 xvda
loopback attach 1 xvda "aio:$disk,sector=9"
check "a bad option behind a target: closed" eventually be_state_is 1 51712 6
check_like "a bad option behind a target: said" "sector cannot be" "$(error_node 1 51712)"
check "detach" loopback detach 1 xvda
check_audit "at the end"
done_testing
