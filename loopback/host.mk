# SPDX-License-Identifier: GPL-2.0-or-later
# The embedded Xen host.

# What a program needs that runs on the host: a client of it.
noinst_LIBRARIES += loopback/libloopback.a
loopback_libloopback_a_SOURCES = \
	loopback/loopback-client.c loopback/loopback-protocol.h \
	loopback/xen-loopback.c

# The host itself, and the toolstack's part.
noinst_LIBRARIES += loopback/libloopback_host.a
loopback_libloopback_host_a_SOURCES = \
	loopback/host.c loopback/host.h \
	loopback/hypervisor.c loopback/hypervisor.h loopback/hypervisor-internal.h \
	loopback/hypervisor-grants.c loopback/hypervisor-ports.c \
	loopback/toolstack.c loopback/toolstack.h \
	loopback/xenstored-serve.c loopback/xenstored-internal.h \
	loopback/xenstored-transaction.c loopback/xenstored-transaction.h \
	loopback/xenstored-tree.c loopback/xenstored-tree.h \
	loopback/xenstored-watch.c \
	loopback/xenstored-wire.c loopback/xenstored-wire.h

bin_PROGRAMS += vbdisk-loopback
vbdisk_loopback_SOURCES = loopback/vbdisk-loopback.c
vbdisk_loopback_LDADD = \
	loopback/libloopback_host.a loopback/libloopback.a \
	xenstore/libxenstore_side.a backend/libbackend.a \
	$(XENSTORE_LIBS)
