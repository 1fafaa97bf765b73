// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The queue of drivers which finish every request inside submit(): it only keeps what is finished
 * until the next reap().
 *
 * Owns: the list of finished requests of one queue.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: the queue's thread; never blocks.
 * Must not know: what the requests did.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "container.h"
#include "drivers/inline-queue.h"

struct inline_queue {
	struct disk_queue queue;
	struct request_list finished;
	unsigned nr_finished;
};

static struct inline_queue *to_inline(struct disk_queue *queue)
{
	return container_of(queue, struct inline_queue, queue);
}

int inline_disk_sync(struct disk *disk)
{
	(void)disk;
	return 0;
}

int inline_disk_refresh(struct disk *disk, uint64_t *size_bytes_out)
{
	*size_bytes_out = disk->limits.size_bytes;
	return 0;
}

int inline_queue_create(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
			struct error *error)
{
	struct inline_queue *inline_queue = calloc(1, sizeof(*inline_queue));

	(void)depth;
	if (!inline_queue)
		return error_set(error, ENOMEM, "%s: no memory for a queue", disk->driver->name);
	inline_queue->queue.disk = disk;
	TAILQ_INIT(&inline_queue->finished);
	*queue_out = &inline_queue->queue;
	return 0;
}

void inline_queue_destroy(struct disk_queue *queue)
{
	struct inline_queue *inline_queue = to_inline(queue);

	assert(TAILQ_EMPTY(&inline_queue->finished));
	free(inline_queue);
}

void inline_queue_kick(struct disk_queue *queue)
{
	(void)queue;
}

int inline_queue_poll_fd(struct disk_queue *queue)
{
	(void)queue;
	return -1;
}

unsigned inline_queue_reap(struct disk_queue *queue, struct request_list *done)
{
	struct inline_queue *inline_queue = to_inline(queue);
	unsigned nr_finished = inline_queue->nr_finished;

	TAILQ_CONCAT(done, &inline_queue->finished, link);
	inline_queue->nr_finished = 0;
	return nr_finished;
}

void inline_queue_finish(struct disk_queue *queue, struct request *request, int status)
{
	struct inline_queue *inline_queue = to_inline(queue);

	request->status = status;
	TAILQ_INSERT_TAIL(&inline_queue->finished, request, link);
	inline_queue->nr_finished++;
}
