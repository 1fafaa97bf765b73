/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The queue of a disk of 512-byte blocks on a disk of larger ones.
 *
 * Owns: the queue below and a fixed number of bounce buffers.
 * Trusts / does not trust: requests passed request_validate(), so they are aligned to 512 bytes.
 * Runs on: the queue's thread, never blocks, but for create and destroy.
 * Must not know: what is below.
 */
#ifndef VBDISK_SECTOR_QUEUE_H
#define VBDISK_SECTOR_QUEUE_H

#include "driver.h"

/* A buffer holds a block at least, and is a multiple of it: both are powers of two. So of the
 * alignment. */
#define SECTOR_QUEUE_MAX_BLOCK_BYTES (256u * 1024)

/* request_size of a disk whose queue this is, on disk @lower. */
size_t sector_queue_request_size(const struct disk *lower);

/* The functions of struct driver. @lower's blocks and memory alignment are at most
 * SECTOR_QUEUE_MAX_BLOCK_BYTES. No other queue of @disk may exist: who must wait for whom is
 * decided in here, without locks. */
int sector_queue_create(struct disk *disk, struct disk *lower, unsigned depth,
			struct disk_queue **queue_out, struct error *error);
void sector_queue_destroy(struct disk_queue *queue);
void sector_queue_submit(struct disk_queue *queue, struct request *request);
void sector_queue_kick(struct disk_queue *queue);
int sector_queue_poll_fd(struct disk_queue *queue);
unsigned sector_queue_reap(struct disk_queue *queue, struct request_list *done);

#endif
