/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The queue of drivers which finish every request inside submit(): it only keeps what is finished
 * until the next reap().
 *
 * Owns: the list of finished requests of one queue.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: the queue's thread; never blocks.
 * Must not know: what the requests did.
 */
#ifndef VBDISK_INLINE_QUEUE_H
#define VBDISK_INLINE_QUEUE_H

#include "driver.h"

/* There is no storage to bring anything to. Returns 0. */
int inline_disk_sync(struct disk *disk);

/* Nor one that could change its size. Returns 0. */
int inline_disk_refresh(struct disk *disk, uint64_t *size_bytes_out);

/* The driver's operations of the same names; depth does not matter. */
int inline_queue_create(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
			struct error *error);
void inline_queue_destroy(struct disk_queue *queue);
void inline_queue_kick(struct disk_queue *queue);
int inline_queue_poll_fd(struct disk_queue *queue);
unsigned inline_queue_reap(struct disk_queue *queue, struct request_list *done);

/* Keep @request, finished with @status (0 or -errno), for the next reap. */
void inline_queue_finish(struct disk_queue *queue, struct request *request, int status);

#endif
