# SPDX-License-Identifier: GPL-2.0-or-later
# Manual pages; vbdisk-dm and vbdisk-front bring their own line.

dist_man_MANS += docs/man/vbdisk-loopback.1 docs/man/vbdisk.8 docs/man/vbdiskd.8
EXTRA_DIST += docs/xenstore-nodes.md
EXTRA_DIST += docs/footprint.md docs/features.md docs/faults.md docs/performance.md docs/storage.md
