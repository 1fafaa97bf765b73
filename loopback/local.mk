# SPDX-License-Identifier: GPL-2.0-or-later
# The embedded Xen host, and the frontend in user space.

include loopback/host.mk
include loopback/front.mk
