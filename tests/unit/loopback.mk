# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests of the loopback host.

dist_check_SCRIPTS += tests/unit/xenstore-tools.sh
TESTS += tests/unit/xenstore-tools.sh

if HAVE_CMOCKA
loopback_unit_tests = \
	tests/unit/test-loopback-hypervisor \
	tests/unit/test-loopback-toolstack \
	tests/unit/test-xenstored-tree \
	tests/unit/test-xenstored-wire
check_PROGRAMS += $(loopback_unit_tests)
TESTS += $(loopback_unit_tests)

loopback_unit_libs = \
	loopback/libloopback_host.a loopback/libloopback.a \
	xenstore/libxenstore_side.a backend/libbackend.a \
	$(XENSTORE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_loopback_hypervisor_SOURCES = \
	tests/unit/test-loopback-hypervisor.c tests/unit/test-loopback-host.h tests/unit/unit.h
tests_unit_test_loopback_hypervisor_LDADD = $(loopback_unit_libs)
tests_unit_test_loopback_toolstack_SOURCES = \
	tests/unit/test-loopback-toolstack.c tests/unit/test-loopback-host.h tests/unit/unit.h
tests_unit_test_loopback_toolstack_LDADD = $(loopback_unit_libs) -lpthread
tests_unit_test_xenstored_tree_SOURCES = tests/unit/test-xenstored-tree.c tests/unit/unit.h
tests_unit_test_xenstored_tree_LDADD = $(loopback_unit_libs)
tests_unit_test_xenstored_wire_SOURCES = \
	tests/unit/test-xenstored-wire.c tests/unit/test-loopback-host.h tests/unit/unit.h
tests_unit_test_xenstored_wire_LDADD = $(loopback_unit_libs)
endif
