# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests of the storage drivers.

if HAVE_CMOCKA
driver_tests = \
	tests/unit/test-driver-conformance

check_PROGRAMS += $(driver_tests)
TESTS += $(driver_tests)

driver_harness = tests/unit/driver-harness.c tests/unit/driver-harness.h tests/unit/unit.h
driver_test_libs = drivers/libdrivers.a backend/libbackend.a $(AIO_LIBS) $(CMOCKA_LIBS) -lpthread

tests_unit_test_driver_conformance_SOURCES = tests/unit/test-driver-conformance.c $(driver_harness)
tests_unit_test_driver_conformance_LDADD = $(driver_test_libs)
endif
