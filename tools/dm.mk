# SPDX-License-Identifier: GPL-2.0-or-later
# vbdisk-dm.

noinst_LIBRARIES += tools/libtools.a
tools_libtools_a_SOURCES = \
	tools/dm-args.c tools/dm-args.h \
	tools/qmp.c tools/qmp.h

libexec_PROGRAMS += vbdisk-dm
vbdisk_dm_SOURCES = tools/vbdisk-dm.c
vbdisk_dm_CPPFLAGS = $(AM_CPPFLAGS) -DLIBEXECDIR='"$(libexecdir)"'
vbdisk_dm_LDADD = \
	tools/libtools.a \
	xenstore/libxenstore_side.a \
	backend/libbackend.a \
	$(XENSTORE_LIBS) $(JSON_LIBS)

dist_man_MANS += docs/man/vbdisk-dm.8
