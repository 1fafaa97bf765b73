#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The job of tests/xen/run in dom0: starts vbdiskd, runs the selected tests one after the other, audits after each.
#
# Owns: vbdiskd, the results file. Trusts: the tests. Runs on: dom0. Must not know: what a test does.
. /job/tests/lib.sh

backend_start || {
	fail "vbdiskd starts" "it does not; its log: $(tail -n 3 "$VBDISKD_LOG")"
	exit 1
}
audit_baseline

while read -r name; do
	file=/job/tests/$name.sh
	limit=$(sed -n 's/^# limit_s: //p' "$file")
	TEST=$name
	export TEST
	rm -f "$STEP_FILE"
	mkdir -p "$OUT/$name"
	started=$SECONDS
	progress "$name: starts"
	failures=$(grep -c '^not ok' "$TAP")
	timeout -k 5 "$limit" bash /job/tests/dom0-one.sh "$file" >"$OUT/$name/log" 2>&1 </dev/null
	status=$?
	case $status in
	0) ;;
	124 | 137) fail "ends in time" "still in step '$(cat "$STEP_FILE" 2>/dev/null)' after $limit s" ;;
	*) fail "runs to its end" "status $status in step '$(cat "$STEP_FILE" 2>/dev/null)'; $(tail -n 1 "$OUT/$name/log")" ;;
	esac
	[ "$(grep -c '^not ok' "$TAP")" = "$failures" ] || evidence_keep "$name"
	test_cleanup
	audit || {
		evidence_keep "$name-audit"
		audit_force
	}
	progress "$name: over after $((SECONDS - started)) s"
done </job/tests/selected

echo yes >"$OUT/complete"
