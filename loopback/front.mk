# SPDX-License-Identifier: GPL-2.0-or-later
# vbdisk-front.

noinst_LIBRARIES += loopback/libfront.a
loopback_libfront_a_SOURCES = \
	loopback/front-connect.c loopback/front-connect.h \
	loopback/front-hostile.c loopback/front-hostile.h loopback/front-hostile-internal.h \
	loopback/front-hostile-connect.c \
	loopback/front-hostile-grants.c \
	loopback/front-hostile-ring.c \
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

front_tests = \
	tests/unit/test-front-job \
	tests/unit/test-front-options \
	tests/unit/test-front-pattern \
	tests/unit/test-front-ring

tests_unit_test_front_job_SOURCES = tests/unit/test-front-job.c tests/unit/unit.h
tests_unit_test_front_job_LDADD = $(front_ldadd) $(CMOCKA_LIBS)
tests_unit_test_front_options_SOURCES = tests/unit/test-front-options.c tests/unit/unit.h
tests_unit_test_front_options_LDADD = $(front_ldadd) $(CMOCKA_LIBS)
tests_unit_test_front_options_LDFLAGS = $(AM_LDFLAGS) -pthread # --hostile is checked against the rows
tests_unit_test_front_pattern_SOURCES = tests/unit/test-front-pattern.c tests/unit/unit.h
tests_unit_test_front_pattern_LDADD = loopback/libfront.a $(CMOCKA_LIBS)
tests_unit_test_front_ring_SOURCES = tests/unit/test-front-ring.c tests/unit/unit.h
tests_unit_test_front_ring_LDADD = loopback/libfront.a backend/libbackend.a $(CMOCKA_LIBS)

if HAVE_CMOCKA
check_PROGRAMS += $(front_tests)
TESTS += $(front_tests)
endif

dist_man_MANS += docs/man/vbdisk-front.1
