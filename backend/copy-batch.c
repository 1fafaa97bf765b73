// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Grant copies for many requests in as few calls as possible.
 *
 * Owns: the pieces of the copy being put together, and what a failed piece does to its request.
 * Trusts / does not trust: grants are a guest's: any piece may fail, and takes its own request with it only.
 * Runs on: the queue's thread. copy_batch_run() makes hypercalls, which do not sleep.
 * Must not know: rings, what the data is.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/copy-batch.h"

int copy_batch_init(struct copy_batch *batch, struct xen_host *host, uint32_t domid,
		    unsigned nr_max)
{
	*batch = (struct copy_batch){.host = host, .domid = domid, .nr_max = nr_max};
	batch->pieces = calloc(nr_max, sizeof(*batch->pieces));
	batch->owners = calloc(nr_max, sizeof(struct request *));
	if (!batch->pieces || !batch->owners || host->ops->copy_reserve(host, nr_max)) {
		copy_batch_destroy(batch);
		return -ENOMEM;
	}
	return 0;
}

void copy_batch_destroy(struct copy_batch *batch)
{
	free(batch->pieces);
	free(batch->owners);
}

void copy_batch_begin(struct copy_batch *batch, enum xen_copy_direction direction)
{
	batch->direction = direction;
	batch->nr = 0;
}

void copy_batch_add(struct copy_batch *batch, struct request *request, void *local, uint32_t gref,
		    uint16_t offset_bytes, uint16_t len_bytes)
{
	if (batch->nr == batch->nr_max)
		copy_batch_run(batch);
	batch->owners[batch->nr] = request;
	batch->pieces[batch->nr++] = (struct xen_copy){
		.local = local,
		.gref = gref,
		.offset_bytes = offset_bytes,
		.len_bytes = len_bytes,
		.status = -EIO, /* what a piece says that nobody touched */
	};
}

/* A request is good only if each of its pieces was copied. */
static void piece_judge(struct copy_batch *batch, const struct xen_copy *piece,
			struct request *request)
{
	if (!piece->status || request->status)
		return;
	request->status = -EFAULT;
	log_limited(&batch->log, LOG_LEVEL_WARNING,
		    "cannot reach the guest's memory: grant %u of a request: %s", piece->gref,
		    strerror(abs(piece->status)));
}

void copy_batch_run(struct copy_batch *batch)
{
	if (!batch->nr)
		return;
	/* The call's own failure shows in each piece's status. */
	batch->host->ops->copy(batch->host, batch->domid, batch->direction, batch->pieces,
			       batch->nr);
	for (unsigned i = 0; i < batch->nr; i++)
		piece_judge(batch, &batch->pieces[i], batch->owners[i]);
	batch->nr = 0;
}
