# SPDX-License-Identifier: GPL-2.0-or-later
# Fuzz targets, linked with a replayer of their corpora: each finding stays found. Their heads say how to
# fuzz with them.

fuzz_targets = tests/fuzz/fuzz-blkif-decode tests/fuzz/fuzz-xenbus-address

check_PROGRAMS += $(fuzz_targets)
TESTS += $(fuzz_targets)
EXTRA_DIST += tests/fuzz/corpus

tests_fuzz_fuzz_blkif_decode_SOURCES = tests/fuzz/fuzz-blkif-decode.c tests/fuzz/replay.c
tests_fuzz_fuzz_blkif_decode_CPPFLAGS = $(AM_CPPFLAGS) -DREPLAY_CORPUS='"blkif-decode"'
tests_fuzz_fuzz_blkif_decode_LDADD = backend/libbackend.a

tests_fuzz_fuzz_xenbus_address_SOURCES = tests/fuzz/fuzz-xenbus-address.c tests/fuzz/replay.c \
	tests/unit/fake-xenstore.c tests/unit/fake-xenstore.h
tests_fuzz_fuzz_xenbus_address_CPPFLAGS = $(AM_CPPFLAGS) -DREPLAY_CORPUS='"xenbus-address"'
tests_fuzz_fuzz_xenbus_address_LDADD = xenstore/libxenstore_side.a
