/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Grant copies for many requests in as few calls as possible.
 *
 * Owns: the pieces of the copy being put together, and what a failed piece does to its request.
 * Trusts / does not trust: grants are a guest's: any piece may fail, and takes its own request with it only.
 * Runs on: the queue's thread. copy_batch_run() makes hypercalls, which do not sleep.
 * Must not know: rings, what the data is.
 */
#ifndef VBDISK_COPY_BATCH_H
#define VBDISK_COPY_BATCH_H

#include "backend/log.h"
#include "request.h"
#include "xen-ops.h"

struct copy_batch {
	struct xen_host *host;
	uint32_t domid;
	enum xen_copy_direction direction;
	unsigned nr, nr_max;
	struct xen_copy *pieces; /* nr_max */
	struct request **owners; /* nr_max: whose piece it is */
	struct log_limit log;
};

/* Calls of at most @nr_max pieces; the host (the caller's) is told so. 0 or -ENOMEM. */
int copy_batch_init(struct copy_batch *batch, struct xen_host *host, uint32_t domid,
		    unsigned nr_max);
void copy_batch_destroy(struct copy_batch *batch);

/* Add what is to be copied, in one direction, then run. add() runs by itself when there is no room. A
 * request one of whose pieces cannot be copied has status -EFAULT afterwards. @offset_bytes is that in the
 * granted page, and @local's in its own. */
void copy_batch_begin(struct copy_batch *batch, enum xen_copy_direction direction);
void copy_batch_add(struct copy_batch *batch, struct request *request, void *local, uint32_t gref,
		    uint16_t offset_bytes, uint16_t len_bytes);
void copy_batch_run(struct copy_batch *batch);

#endif
