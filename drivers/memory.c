// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Driver "memory": a disk in this process's memory, which takes pages as they are written and loses
 * everything at close.
 *
 * Owns: one anonymous mapping per disk. Queues share it without locks: as on a real disk, what
 *   overlapping requests in flight leave behind is anybody's guess.
 * Trusts / does not trust: requests passed request_validate(); parameters are checked.
 * Runs on: open and close on the main thread, the rest on the queue's; never blocks.
 * Must not know: guests, rings, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "container.h"
#include "drivers/drivers.h"
#include "drivers/inline-queue.h"
#include "drivers/params.h"

struct memory_disk {
	struct disk disk;
	char *data;
};

static int memory_open(const char *params, unsigned flags, struct disk **disk_out,
		       struct error *error)
{
	struct memory_disk *memory;
	struct disk_limits limits;
	int ret = params_limits("memory", params, flags, &limits, error);

	if (ret)
		return ret;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return error_set(error, ENOMEM, "memory: no memory");
	memory->data = mmap(NULL, limits.size_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory->data == MAP_FAILED) {
		ret = error_set(error, ENOMEM,
				"memory: cannot map %llu bytes (%s); ask for a smaller size",
				(unsigned long long)limits.size_bytes, strerror(errno));
		free(memory);
		return ret;
	}
	memory->disk.driver = &memory_driver;
	memory->disk.limits = limits;
	*disk_out = &memory->disk;
	return 0;
}

static void memory_close(struct disk *disk)
{
	struct memory_disk *memory = container_of(disk, struct memory_disk, disk);

	munmap(memory->data, disk->limits.size_bytes);
	free(memory);
}

/* Pages that lie wholly within are given back, and read as zeroes afterwards. A page may be larger
 * than a granule, and madvise() rounds up: what is beside the range must stay. */
static void range_clear(char *at, size_t len)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t head_bytes = -(uintptr_t)at & (page_bytes - 1), whole_bytes;

	if (head_bytes > len)
		head_bytes = len;
	whole_bytes = (len - head_bytes) & ~(page_bytes - 1);
	memset(at, 0, head_bytes);
	if (whole_bytes && madvise(at + head_bytes, whole_bytes, MADV_DONTNEED))
		memset(at + head_bytes, 0, whole_bytes);
	memset(at + head_bytes + whole_bytes, 0, len - head_bytes - whole_bytes);
}

static void memory_submit(struct disk_queue *queue, struct request *request)
{
	struct memory_disk *memory = container_of(queue->disk, struct memory_disk, disk);
	char *at = memory->data + request->offset_bytes;

	if (request->op == REQUEST_DISCARD)
		range_clear(at, request->len_bytes);
	for (unsigned i = 0; i < request->nr_iov; i++) {
		const struct iovec *iov = &request->iov[i];

		if (request->op == REQUEST_READ)
			memcpy(iov->iov_base, at, iov->iov_len);
		else
			memcpy(at, iov->iov_base, iov->iov_len);
		at += iov->iov_len;
	}
	inline_queue_finish(queue, request, 0);
}

const struct driver memory_driver = {
	.name = "memory",
	.description =
		"a disk in memory, empty at open, lost at close; for tests and scratch disks",
	.params_help = PARAMS_LIMITS_HELP,
	.open = memory_open,
	.close = memory_close,
	.sync = inline_disk_sync,
	.refresh = inline_disk_refresh,
	.queue_create = inline_queue_create,
	.queue_destroy = inline_queue_destroy,
	.submit = memory_submit,
	.kick = inline_queue_kick,
	.poll_fd = inline_queue_poll_fd,
	.reap = inline_queue_reap,
};
