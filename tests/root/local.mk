# SPDX-License-Identifier: GPL-2.0-or-later
# Tests on real devices; they need root and loop devices, and say so when they skip.

root_tests = tests/root/discard.sh tests/root/full-disk.sh tests/root/large-sectors.sh \
	tests/root/loop-device.sh tests/root/sharing.sh

check_PROGRAMS += tests/root/disk-exercise
dist_check_SCRIPTS += $(root_tests)
EXTRA_DIST += tests/root/lib.sh
TESTS += $(root_tests)

tests_root_disk_exercise_SOURCES = tests/root/disk-exercise.c
tests_root_disk_exercise_LDADD = drivers/libdrivers.a backend/libbackend.a $(AIO_LIBS) -lpthread
