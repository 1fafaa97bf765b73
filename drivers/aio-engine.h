/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The AIO engine: a disk_queue on an open file, over Linux native AIO. Drivers with a file descriptor
 * put these functions into their struct driver.
 *
 * Owns: per queue one AIO context, one eventfd, and a helper thread once one is needed.
 * Trusts / does not trust: the file is open with O_DIRECT and its disk's limits are true. The kernel's
 *   answers may be short, late, or errors.
 * Runs on: the queue's thread; only create and destroy may block. (io_submit() itself can wait inside
 *   the kernel: block allocation, a full device queue. That is the storage's doing.)
 * Must not know: paths, locks, what the file is.
 */
#ifndef VBDISK_AIO_ENGINE_H
#define VBDISK_AIO_ENGINE_H

#include "driver.h"

/* What the engine needs of request->driver_scratch, for disk->request_size. */
size_t aio_request_size(void);

/* Create a queue of @disk on @fd, which stays the caller's and open until destroy. Charges exactly
 * @depth to the host's fs.aio-nr. 0 or -errno with @error filled (no AIO slots left, no AIO at all, no
 * memory). May block up to 100 ms for slots which another process is just giving back. */
int aio_queue_create(struct disk *disk, int fd, unsigned depth, struct disk_queue **queue_out,
		     struct error *error);

/* Operations of struct driver; see there. */
void aio_queue_destroy(struct disk_queue *queue);
void aio_queue_submit(struct disk_queue *queue, struct request *request);
void aio_queue_kick(struct disk_queue *queue);
int aio_queue_poll_fd(struct disk_queue *queue);
unsigned aio_queue_reap(struct disk_queue *queue, struct request_list *done);

#endif
