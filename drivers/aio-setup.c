// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What an AIO queue asks the kernel for when it begins.
 *
 * Owns: what is said when the kernel refuses; which completion rings may be read directly.
 * Trusts / does not trust: the kernel may have no slots, no AIO, or a ring of another layout.
 * Runs on: the thread that creates the queue; may block briefly.
 * Must not know: requests.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/log.h"
#include "drivers/aio-setup.h"

#define SETUP_TRIES 5
#define SETUP_WAIT_MS 20

#define RING_MAGIC 0xa10a10a1u /* fs/aio.c AIO_RING_MAGIC */
#define RING_INCOMPAT_KNOWN 0u /* fs/aio.c AIO_RING_INCOMPAT_FEATURES; a set bit: not this layout */

static long sysctl_read(const char *path)
{
	FILE *file = fopen(path, "re");
	long value = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

/* libaio returns -errno and leaves errno alone. */
int aio_context_create(unsigned depth, io_context_t *context_out, struct error *error)
{
	const struct timespec wait = {.tv_nsec = SETUP_WAIT_MS * 1000000L};
	int ret;

	for (int tries = 0; tries < SETUP_TRIES; tries++) {
		ret = io_setup((int)depth, context_out);
		if (ret != -EAGAIN)
			break;
		/* A process that just died gives its slots back a moment later. */
		nanosleep(&wait, NULL);
	}
	switch (ret) {
	case 0:
		return 0;
	case -EAGAIN:
		return error_set(
			error, EAGAIN,
			"the host has no AIO slots left for this disk: %u asked, "
			"fs.aio-nr=%ld of fs.aio-max-nr=%ld in use; raise the limit (sysctl -w "
			"fs.aio-max-nr=1048576)",
			depth, sysctl_read("/proc/sys/fs/aio-nr"),
			sysctl_read("/proc/sys/fs/aio-max-nr"));
	case -ENOSYS:
	case -EPERM:
		return error_set(
			error, -ret,
			"this kernel or sandbox has no native AIO (io_setup: %s); use a kernel "
			"with CONFIG_AIO, or allow the io_* system calls",
			strerror(-ret));
	default:
		return error_set(error, -ret, "cannot set up AIO for %u requests (io_setup: %s)",
				 depth, strerror(-ret));
	}
}

struct aio_ring *aio_ring_find(io_context_t context)
{
	struct aio_ring *ring = (struct aio_ring *)context;

	if (ring->magic != RING_MAGIC || ring->incompat_features != RING_INCOMPAT_KNOWN ||
	    ring->header_length != sizeof(*ring)) {
		log_info("the AIO completion ring of this kernel is unknown: "
			 "io_getevents() is used");
		return NULL;
	}
	return ring;
}

int aio_description_open(int fd)
{
	int flags = fcntl(fd, F_GETFL), again;
	char path[32];

	if (flags < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	flags = (flags & (O_ACCMODE | O_DIRECT | O_NONBLOCK)) | O_CLOEXEC | O_NOCTTY;
	do {
		again = open(path, flags);
	} while (again < 0 && errno == EINTR);
	return again < 0 ? -errno : again;
}
