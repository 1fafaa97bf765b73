# SPDX-License-Identifier: GPL-2.0-or-later
# The data path and the processes.

noinst_LIBRARIES += backend/libbackend.a
backend_libbackend_a_SOURCES = \
	backend/blkif-abi.c backend/blkif-abi.h \
	backend/clock.c backend/clock.h \
	backend/event-loop.c backend/event-loop.h \
	backend/log.c backend/log.h
