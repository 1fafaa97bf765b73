#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints what one idle VBD costs on a real Xen host (in the emulated lab), beside one idle xenpv QEMU.
#
# Owns: nothing; the measuring is tests/xen/80-idle.sh, which also holds the limits. Trusts: tests/xen/run.
# Runs on: the build machine; boots the lab, a minute or two. Must not know: how the figures are taken.
exec "$(dirname "$0")/lab-report" 80-idle "$@"
