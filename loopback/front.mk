# SPDX-License-Identifier: GPL-2.0-or-later
# vbdisk-front.

noinst_LIBRARIES += loopback/libfront.a
loopback_libfront_a_SOURCES = \
	loopback/front-connect.c loopback/front-connect.h \
	loopback/front-hostile.c loopback/front-hostile.h \
	loopback/front-job.c loopback/front-job.h \
	loopback/front-link.c loopback/front-link.h \
	loopback/front-options.c loopback/front-options.h \
	loopback/front-pattern.c loopback/front-pattern.h \
	loopback/front-report.c loopback/front-report.h \
	loopback/front-ring.c loopback/front-ring.h

front_ldadd = loopback/libfront.a loopback/libloopback.a xenstore/libxenstore_side.a \
	backend/libbackend.a $(XENSTORE_LIBS) $(XENGNTTAB_LIBS) $(XENEVTCHN_LIBS)

bin_PROGRAMS += vbdisk-front
vbdisk_front_SOURCES = loopback/vbdisk-front.c
vbdisk_front_LDADD = $(front_ldadd)
vbdisk_front_LDFLAGS = $(AM_LDFLAGS) -pthread # a hostile row races with a second thread
