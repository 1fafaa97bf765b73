#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs one test file in dom0, in a process of its own so that a time limit can end it.
#
# Owns: nothing. Trusts: the test. Runs on: dom0. Must not know: the other tests.
. /job/tests/lib.sh
mkdir -p "$DATA"
# The status of a test's last command means nothing, its reports count; but a file that does not parse reports nothing.
bash -n "$1" || exit 1
set -x
# shellcheck disable=SC1090
. "$1"
exit 0
