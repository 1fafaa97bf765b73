# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests of the storage drivers.

if HAVE_CMOCKA
driver_tests = \
	tests/unit/test-aio-engine \
	tests/unit/test-driver-conformance \
	tests/unit/test-driver-discard \
	tests/unit/test-driver-fault \
	tests/unit/test-driver-file \
	tests/unit/test-driver-params \
	tests/unit/test-sector-emulation

check_PROGRAMS += $(driver_tests)
TESTS += $(driver_tests)

driver_harness = tests/unit/driver-harness.c tests/unit/driver-harness.h tests/unit/unit.h
driver_test_libs = drivers/libdrivers.a backend/libbackend.a $(AIO_LIBS) $(CMOCKA_LIBS) -lpthread

tests_unit_test_aio_engine_SOURCES = tests/unit/test-aio-engine.c $(driver_harness)
tests_unit_test_aio_engine_LDADD = $(driver_test_libs)
tests_unit_test_aio_engine_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=io_setup -Wl,--wrap=io_submit \
	-Wl,--wrap=io_getevents -Wl,--wrap=fdatasync -Wl,--wrap=nanosleep -Wl,--wrap=pthread_create

tests_unit_test_driver_conformance_SOURCES = tests/unit/test-driver-conformance.c $(driver_harness)
tests_unit_test_driver_conformance_LDADD = $(driver_test_libs)

tests_unit_test_driver_discard_SOURCES = tests/unit/test-driver-discard.c $(driver_harness)
tests_unit_test_driver_discard_LDADD = $(driver_test_libs)
tests_unit_test_driver_discard_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fallocate -Wl,--wrap=fstat \
	-Wl,--wrap=fstatvfs -Wl,--wrap=io_submit -Wl,--wrap=ioctl -Wl,--wrap=fopen \
	-Wl,--wrap=pthread_create

tests_unit_test_driver_fault_SOURCES = tests/unit/test-driver-fault.c $(driver_harness)
tests_unit_test_driver_fault_LDADD = $(driver_test_libs)

tests_unit_test_driver_file_SOURCES = tests/unit/test-driver-file.c $(driver_harness)
tests_unit_test_driver_file_LDADD = $(driver_test_libs)
tests_unit_test_driver_file_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=nanosleep -Wl,--wrap=statx \
	-Wl,--wrap=fstat -Wl,--wrap=open -Wl,--wrap=fdatasync

tests_unit_test_sector_emulation_SOURCES = tests/unit/test-sector-emulation.c $(driver_harness)
tests_unit_test_sector_emulation_LDADD = $(driver_test_libs)
tests_unit_test_driver_params_SOURCES = tests/unit/test-driver-params.c tests/unit/unit.h
tests_unit_test_driver_params_LDADD = $(driver_test_libs)
endif
