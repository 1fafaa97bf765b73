# SPDX-License-Identifier: GPL-2.0-or-later
# vbdisk-dm: its command line, its QMP, and the program as libxl meets it.

if HAVE_CMOCKA
dm_unit_tests = \
	tests/unit/test-dm-args \
	tests/unit/test-dm-process \
	tests/unit/test-dm-qmp
check_PROGRAMS += $(dm_unit_tests)
TESTS += $(dm_unit_tests)

tests_unit_test_dm_args_SOURCES = tests/unit/test-dm-args.c tests/unit/unit.h
tests_unit_test_dm_args_LDADD = tools/libtools.a $(CMOCKA_LIBS)

# Runs the program; links nothing of it.
tests_unit_test_dm_process_SOURCES = tests/unit/test-dm-process.c tests/unit/unit.h
tests_unit_test_dm_process_LDADD = $(CMOCKA_LIBS)

tests_unit_test_dm_qmp_SOURCES = tests/unit/test-dm-qmp.c tests/unit/unit.h
tests_unit_test_dm_qmp_LDADD = tools/libtools.a $(JSON_LIBS) $(CMOCKA_LIBS)
endif

# The same against the loopback host.
dist_check_SCRIPTS += tests/loopback/dm.sh
TESTS += tests/loopback/dm.sh
