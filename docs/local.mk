# SPDX-License-Identifier: GPL-2.0-or-later
# Manual pages; each program brings its own line, except these two.

dist_man_MANS += docs/man/vbdisk.8 docs/man/vbdiskd.8
EXTRA_DIST += docs/xenstore-nodes.md
