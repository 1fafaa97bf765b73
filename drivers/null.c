// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Driver "null": a disk of zeros which forgets what is written, to measure everything above it.
 *
 * Owns: nothing.
 * Trusts / does not trust: requests passed request_validate(); parameters are checked.
 * Runs on: open and close on the main thread, the rest on the queue's; never blocks.
 * Must not know: guests, rings, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/drivers.h"
#include "drivers/inline-queue.h"
#include "drivers/params.h"

static int null_open(const char *params, unsigned flags, struct disk **disk_out,
		     struct error *error)
{
	struct disk_limits limits;
	struct disk *disk;
	int ret = params_limits("null", params, flags, &limits, error);

	if (ret)
		return ret;
	disk = calloc(1, sizeof(*disk));
	if (!disk)
		return error_set(error, ENOMEM, "null: no memory");
	disk->driver = &null_driver;
	disk->limits = limits;
	*disk_out = disk;
	return 0;
}

static void null_close(struct disk *disk)
{
	free(disk);
}

static void null_submit(struct disk_queue *queue, struct request *request)
{
	if (request->op == REQUEST_READ)
		for (unsigned i = 0; i < request->nr_iov; i++)
			memset(request->iov[i].iov_base, 0, request->iov[i].iov_len);
	inline_queue_finish(queue, request, 0);
}

const struct driver null_driver = {
	.name = "null",
	.description = "reads zeros, forgets what is written; for measurements",
	.params_help = PARAMS_LIMITS_HELP,
	.open = null_open,
	.close = null_close,
	.sync = inline_disk_sync,
	.refresh = inline_disk_refresh,
	.queue_create = inline_queue_create,
	.queue_destroy = inline_queue_destroy,
	.submit = null_submit,
	.kick = inline_queue_kick,
	.poll_fd = inline_queue_poll_fd,
	.reap = inline_queue_reap,
};
