# SPDX-License-Identifier: GPL-2.0-or-later
# The real programs on the embedded host.

loopback_tests = \
	tests/loopback/faults.sh \
	tests/loopback/hostile.sh \
	tests/loopback/idle.sh \
	tests/loopback/lifecycle.sh \
	tests/loopback/reconnect.sh \
	tests/loopback/supervisor.sh \
	tests/loopback/unservable.sh
TESTS += $(loopback_tests)
dist_check_SCRIPTS += $(loopback_tests)
EXTRA_DIST += tests/loopback/lib.sh
