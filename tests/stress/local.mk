# SPDX-License-Identifier: GPL-2.0-or-later
# Threads against each other, for longer than a unit test. Without arguments they take a few seconds.

check_PROGRAMS += tests/stress/ring-stress
TESTS += tests/stress/ring-stress

tests_stress_ring_stress_SOURCES = tests/stress/ring-stress.c
tests_stress_ring_stress_LDADD = loopback/libfront.a backend/libbackend.a
tests_stress_ring_stress_LDFLAGS = $(AM_LDFLAGS) -pthread

# The same, and unit tests of the wire, for other processors in emulation; it wants compilers for them, so make check
# leaves it out.
dist_check_SCRIPTS += tests/stress/cross
EXTRA_DIST += tests/stress/cmocka.h
