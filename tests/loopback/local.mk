# SPDX-License-Identifier: GPL-2.0-or-later
# The real programs on the embedded host.

loopback_tests = \
	tests/loopback/barrier.sh \
	tests/loopback/discard.sh \
	tests/loopback/faults.sh \
	tests/loopback/flush-policy.sh \
	tests/loopback/hostile.sh \
	tests/loopback/idle.sh \
	tests/loopback/indirect.sh \
	tests/loopback/lifecycle.sh \
	tests/loopback/multiqueue.sh \
	tests/loopback/options.sh \
	tests/loopback/persistent.sh \
	tests/loopback/reconnect.sh \
	tests/loopback/resize.sh \
	tests/loopback/sectors.sh \
	tests/loopback/supervisor.sh \
	tests/loopback/unservable.sh
TESTS += $(loopback_tests)
dist_check_SCRIPTS += $(loopback_tests)
EXTRA_DIST += tests/loopback/lib.sh tests/loopback/lsan.supp
