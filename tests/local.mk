# SPDX-License-Identifier: GPL-2.0-or-later
# The tests, by rung.

include tests/unit/backend.mk
include tests/unit/drivers.mk
include tests/unit/loopback.mk
include tests/unit/dm.mk
include tests/stress/local.mk
include tests/fuzz/local.mk
include tests/loopback/local.mk
include tests/root/local.mk
include tests/xen/local.mk
