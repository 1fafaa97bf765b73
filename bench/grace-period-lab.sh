#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints how long a grace period of dom0's kernel takes, idle and while a guest works on its disk.
#
# Owns: nothing; the measuring is bench/grace-period-dom0.sh. Trusts: tests/xen/run.
# Runs on: the build machine; boots the lab, a few minutes. Must not know: how the figures are taken.
exec "$(dirname "$0")/lab-report" grace-period-dom0 "$@"
