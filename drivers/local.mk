# SPDX-License-Identifier: GPL-2.0-or-later
# Storage.

noinst_LIBRARIES += drivers/libdrivers.a
drivers_libdrivers_a_SOURCES = \
	drivers/aio-engine.c drivers/aio-engine.h \
	drivers/aio-helper.c drivers/aio-helper.h \
	drivers/aio-setup.c drivers/aio-setup.h \
	drivers/dio-limits.c drivers/dio-limits.h \
	drivers/discard.c drivers/discard.h \
	drivers/driver.c \
	drivers/drivers.h \
	drivers/fault.c \
	drivers/file.c \
	drivers/file-lock.c drivers/file-lock.h \
	drivers/inline-queue.c drivers/inline-queue.h \
	drivers/iov.c drivers/iov.h \
	drivers/memory.c \
	drivers/null.c \
	drivers/params.c drivers/params.h \
	drivers/path-format.h \
	drivers/sector-emulation.c drivers/sector-emulation.h \
	drivers/sector-queue.c drivers/sector-queue.h
