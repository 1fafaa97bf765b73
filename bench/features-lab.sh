#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints what a guest gets from vbdisk (with and without indirect requests, persistent grants), blkback and QEMU.
#
# Owns: nothing; the measuring is bench/features-dom0.sh. Trusts: tests/xen/run.
# Runs on: the build machine; boots the lab, about ten minutes. Must not know: how the figures are taken.
exec "$(dirname "$0")/lab-report" features-dom0 "$@"
