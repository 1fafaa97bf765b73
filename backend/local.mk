# SPDX-License-Identifier: GPL-2.0-or-later
# The data path and the processes.

noinst_LIBRARIES += backend/libbackend.a
backend_libbackend_a_CPPFLAGS = $(AM_CPPFLAGS) -DRUNSTATEDIR='"$(runstatedir)"'
backend_libbackend_a_SOURCES = \
	backend/blkif-abi.c backend/blkif-abi.h \
	backend/blkif-data.c backend/blkif-data.h \
	backend/blkif-decode.c backend/blkif-decode.h \
	backend/blkif-ring.c backend/blkif-ring.h \
	backend/child.c backend/child.h \
	backend/clock.c backend/clock.h \
	backend/copy-batch.c backend/copy-batch.h \
	backend/data-memory.c backend/data-memory.h \
	backend/dataplane.c backend/dataplane.h \
	backend/event-loop.c backend/event-loop.h \
	backend/exit-status.h \
	backend/grace.c backend/grace.h \
	backend/grant-cache.c backend/grant-cache.h \
	backend/log.c backend/log.h \
	backend/queue.c backend/queue.h \
	backend/queue-set.c backend/queue-set.h \
	backend/request-pool.c backend/request-pool.h \
	backend/request-validate.c backend/request-validate.h \
	backend/rings.c backend/rings.h \
	backend/run-file.c backend/run-file.h \
	backend/supervisor.c backend/supervisor.h \
	backend/supervisor-rules.c backend/supervisor-rules.h \
	backend/thread.c backend/thread.h \
	backend/transport-blkif.c backend/transport-blkif.h \
	backend/vbd.c backend/vbd.h \
	backend/vbd-options.c backend/vbd-options.h \
	backend/worker.c backend/worker.h \
	backend/xen-domains.c \
	backend/xen-hypervisor.c

sbin_PROGRAMS += vbdisk vbdiskd
vbdisk_CPPFLAGS = $(AM_CPPFLAGS) -DRUNSTATEDIR='"$(runstatedir)"'
vbdisk_SOURCES = backend/vbdisk.c
vbdisk_LDADD = backend/libbackend.a drivers/libdrivers.a xenstore/libxenstore_side.a \
	loopback/libloopback.a backend/libbackend.a \
	$(XENSTORE_LIBS) $(XENGNTTAB_LIBS) $(XENEVTCHN_LIBS) $(AIO_LIBS) -lpthread

vbdiskd_CPPFLAGS = $(AM_CPPFLAGS) -DRUNSTATEDIR='"$(runstatedir)"' -DSBINDIR='"$(sbindir)"'
vbdiskd_SOURCES = backend/vbdiskd.c
vbdiskd_LDADD = backend/libbackend.a drivers/libdrivers.a xenstore/libxenstore_side.a loopback/libloopback.a \
	backend/libbackend.a $(XENSTORE_LIBS) $(XENCTRL_LIBS) $(SYSTEMD_LIBS)
