#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints what one idle VBD costs on a real Xen host (in the emulated lab), beside one idle xenpv QEMU.
#
# Owns: nothing; the measuring is tests/xen/80-idle.sh, which also holds the limits. Trusts: tests/xen/run.
# Runs on: the build machine; boots the lab, a minute or two. Must not know: how the figures are taken.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
status=0
"$here/../tests/xen/run" "$@" --only 80-idle --results "$results" >"$results.tap" || status=$?
if [ -s "$results/out/80-idle/report" ]; then
	cat "$results/out/80-idle/report"
	grep '^not ok' "$results.tap" >&2 || true
else
	cat "$results.tap" >&2
	echo "idle-footprint-lab: no figures, see above" >&2
	status=1
fi
rm -f "$results.tap"
exit $status
