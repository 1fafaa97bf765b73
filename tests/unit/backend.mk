# SPDX-License-Identifier: GPL-2.0-or-later
# Unit tests of backend/ and xenstore/.

unit_libs = backend/libbackend.a xenstore/libxenstore_side.a $(CMOCKA_LIBS) -lpthread
unit_wire = tests/unit/wire-x86_32.c tests/unit/wire-x86_64.c tests/unit/wire.h tests/unit/wire-impl.h
unit_guest = tests/unit/blkif-guest.c tests/unit/blkif-guest.h \
	tests/unit/fake-xen.c tests/unit/fake-xen.h $(unit_wire)
unit_fake_grace = tests/unit/fake-grace.c tests/unit/fake-grace.h
unit_fake_grace_wraps = -Wl,--wrap=grace_request -Wl,--wrap=grace_over -Wl,--wrap=grace_wait
unit_mock_path = tests/unit/mock-path.c tests/unit/mock-path.h

EXTRA_DIST += tests/vectors/blkif-requests.txt tests/vectors/blkif-responses.txt

unit_backend_tests = \
	tests/unit/test-blkif-abi \
	tests/unit/test-blkif-decode \
	tests/unit/test-blkif-indirect \
	tests/unit/test-blkif-persistent \
	tests/unit/test-blkif-ring \
	tests/unit/test-child \
	tests/unit/test-data-memory \
	tests/unit/test-dataplane \
	tests/unit/test-event-loop \
	tests/unit/test-grace \
	tests/unit/test-grant-cache \
	tests/unit/test-log-limit \
	tests/unit/test-queue \
	tests/unit/test-queue-set \
	tests/unit/test-request-validate \
	tests/unit/test-run-file \
	tests/unit/test-supervisor-rules \
	tests/unit/test-transport-blkif \
	tests/unit/test-vbd \
	tests/unit/test-vbd-nodes \
	tests/unit/test-vbd-options \
	tests/unit/test-xenbus-state

tests_unit_test_blkif_abi_SOURCES = tests/unit/test-blkif-abi.c tests/unit/unit.h $(unit_wire)
tests_unit_test_blkif_abi_LDADD = $(unit_libs)
tests_unit_test_blkif_decode_SOURCES = tests/unit/test-blkif-decode.c \
	tests/unit/vectors.c tests/unit/vectors.h
tests_unit_test_blkif_decode_LDADD = $(unit_libs)
tests_unit_test_blkif_indirect_SOURCES = tests/unit/test-blkif-indirect.c $(unit_guest)
tests_unit_test_blkif_indirect_LDADD = $(unit_libs)
tests_unit_test_blkif_persistent_SOURCES = tests/unit/test-blkif-persistent.c $(unit_guest) $(unit_fake_grace)
tests_unit_test_blkif_persistent_LDADD = $(unit_libs)
tests_unit_test_blkif_persistent_LDFLAGS = $(AM_LDFLAGS) $(unit_fake_grace_wraps)
tests_unit_test_blkif_ring_SOURCES = tests/unit/test-blkif-ring.c $(unit_wire)
tests_unit_test_blkif_ring_LDADD = $(unit_libs)
tests_unit_test_child_SOURCES = tests/unit/test-child.c
tests_unit_test_child_LDADD = $(unit_libs)
tests_unit_test_data_memory_SOURCES = tests/unit/test-data-memory.c
tests_unit_test_data_memory_LDADD = $(unit_libs)
tests_unit_test_dataplane_SOURCES = tests/unit/test-dataplane.c $(unit_mock_path)
tests_unit_test_dataplane_LDADD = $(unit_libs)
tests_unit_test_grace_SOURCES = tests/unit/test-grace.c
tests_unit_test_grace_LDADD = $(unit_libs)
tests_unit_test_grace_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syscall -Wl,--wrap=pthread_create
tests_unit_test_grant_cache_SOURCES = tests/unit/test-grant-cache.c $(unit_fake_grace) \
	tests/unit/fake-xen.c tests/unit/fake-xen.h
tests_unit_test_grant_cache_LDADD = $(unit_libs)
tests_unit_test_grant_cache_LDFLAGS = $(AM_LDFLAGS) $(unit_fake_grace_wraps)
tests_unit_test_request_validate_SOURCES = tests/unit/test-request-validate.c
tests_unit_test_request_validate_LDADD = $(unit_libs)
tests_unit_test_event_loop_SOURCES = tests/unit/test-event-loop.c
tests_unit_test_event_loop_LDADD = $(unit_libs)
tests_unit_test_log_limit_SOURCES = tests/unit/test-log-limit.c
tests_unit_test_log_limit_LDADD = $(unit_libs)
tests_unit_test_queue_set_SOURCES = tests/unit/test-queue-set.c $(unit_mock_path)
tests_unit_test_queue_set_LDADD = $(unit_libs) -lpthread
tests_unit_test_vbd_options_SOURCES = tests/unit/test-vbd-options.c
tests_unit_test_vbd_options_LDADD = $(unit_libs) drivers/libdrivers.a
tests_unit_test_queue_SOURCES = tests/unit/test-queue.c $(unit_mock_path)
tests_unit_test_queue_LDADD = $(unit_libs)
tests_unit_test_run_file_SOURCES = tests/unit/test-run-file.c
tests_unit_test_run_file_LDADD = $(unit_libs)
tests_unit_test_supervisor_rules_SOURCES = tests/unit/test-supervisor-rules.c
tests_unit_test_supervisor_rules_LDADD = $(unit_libs)
tests_unit_test_transport_blkif_SOURCES = tests/unit/test-transport-blkif.c $(unit_guest)
tests_unit_test_transport_blkif_LDADD = $(unit_libs)
tests_unit_test_vbd_SOURCES = tests/unit/test-vbd.c \
	tests/unit/fake-xen.c tests/unit/fake-xen.h \
	tests/unit/fake-xenstore.c tests/unit/fake-xenstore.h $(unit_wire)
tests_unit_test_vbd_LDADD = $(unit_libs) drivers/libdrivers.a
tests_unit_test_vbd_nodes_SOURCES = tests/unit/test-vbd-nodes.c \
	tests/unit/fake-xenstore.c tests/unit/fake-xenstore.h
tests_unit_test_vbd_nodes_LDADD = $(unit_libs)
tests_unit_test_xenbus_state_SOURCES = tests/unit/test-xenbus-state.c
tests_unit_test_xenbus_state_LDADD = $(unit_libs)

if HAVE_CMOCKA
check_PROGRAMS += $(unit_backend_tests)
TESTS += $(unit_backend_tests)
endif
