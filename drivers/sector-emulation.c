// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A disk of 512-byte blocks on a disk of larger ones (4Kn); its queue is in sector-queue.c.
 *
 * Owns: the disk below.
 * Trusts / does not trust: the limits of the disk below are true.
 * Runs on: the main thread; may block as the disk below does.
 * Must not know: what is below.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "container.h"
#include "drivers/sector-emulation.h"
#include "drivers/sector-queue.h"

#define SECTOR_BYTES 512u

struct emulation_disk {
	struct disk disk;
	struct disk *lower;
};

static void emulation_close(struct disk *disk)
{
	struct emulation_disk *emulation = container_of(disk, struct emulation_disk, disk);

	emulation->lower->driver->close(emulation->lower);
	free(emulation);
}

static int emulation_sync(struct disk *disk)
{
	struct disk *lower = container_of(disk, struct emulation_disk, disk)->lower;

	return lower->driver->sync(lower);
}

static int emulation_refresh(struct disk *disk, uint64_t *size_bytes_out)
{
	struct disk *lower = container_of(disk, struct emulation_disk, disk)->lower;

	return lower->driver->refresh(lower, size_bytes_out);
}

static int emulation_queue_create(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
				  struct error *error)
{
	struct disk *lower = container_of(disk, struct emulation_disk, disk)->lower;

	return sector_queue_create(disk, lower, depth, queue_out, error);
}

static const struct driver sector_emulation_driver = {
	.name = "sector-emulation",
	.close = emulation_close,
	.sync = emulation_sync,
	.refresh = emulation_refresh,
	.queue_create = emulation_queue_create,
	.queue_destroy = sector_queue_destroy,
	.submit = sector_queue_submit,
	.kick = sector_queue_kick,
	.poll_fd = sector_queue_poll_fd,
	.reap = sector_queue_reap,
};

int sector_emulation_open(struct disk *lower, struct disk **disk_out, struct error *error)
{
	struct emulation_disk *emulation = calloc(1, sizeof(*emulation));
	int ret;

	if (lower->limits.logical_block_bytes > SECTOR_QUEUE_MAX_BLOCK_BYTES ||
	    lower->limits.memory_align_bytes > SECTOR_QUEUE_MAX_BLOCK_BYTES) {
		ret = error_set(error, EOPNOTSUPP,
				"blocks of %u bytes, aligned to %u, are too large to offer sectors "
				"of 512 bytes",
				lower->limits.logical_block_bytes,
				lower->limits.memory_align_bytes);
		goto err_free;
	}
	if (!emulation) {
		ret = error_set(error, ENOMEM, "no memory");
		goto err_free;
	}
	emulation->lower = lower;
	emulation->disk = (struct disk){
		.driver = &sector_emulation_driver,
		.limits = lower->limits,
		.request_size = sector_queue_request_size(lower),
		.max_queues = 1,
		.device = lower->device,
	};
	emulation->disk.limits.logical_block_bytes = SECTOR_BYTES;
	emulation->disk.limits.memory_align_bytes = SECTOR_BYTES;
	*disk_out = &emulation->disk;
	return 0;

err_free:
	free(emulation);
	lower->driver->close(lower);
	return ret;
}
