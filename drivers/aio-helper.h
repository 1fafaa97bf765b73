/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The helper thread of an AIO queue: what the kernel's AIO cannot do. fdatasync() where there is no
 * FDSYNC, or again where it could not be begun; discards; and a wake-up after a delay when the
 * kernel had no room and no completion will come to say that it has.
 *
 * Owns: one thread; requests between aio_helper_submit() and aio_helper_collect().
 * Trusts / does not trust: the file was checked at open; fdatasync() may fail like any storage.
 * Runs on: functions on the queue's thread, never block, but for create and destroy. The thread blocks
 *   in the system calls.
 * Must not know: libaio, offsets, data.
 */
#ifndef VBDISK_AIO_HELPER_H
#define VBDISK_AIO_HELPER_H

#include <stdbool.h>

#include "request.h"

struct aio_helper;

/* Start a helper for file @fd, which writes to eventfd @wake_fd when there is something to collect.
 * Both stay the caller's. 0 or -errno. May block briefly. */
int aio_helper_create(int fd, int wake_fd, struct aio_helper **helper_out);

/* End the thread, and wait for it. The caller has collected everything. */
void aio_helper_destroy(struct aio_helper *helper);

/* Take FLUSH or DISCARD @request. fdatasync() starts after this call, so it covers what was written
 * before. A discard is done in pieces, and flushes have their turn between them. */
void aio_helper_submit(struct aio_helper *helper, struct request *request);

/* Signal wake_fd once, @delay_ms from now. Another call replaces the one before. */
void aio_helper_wake_after(struct aio_helper *helper, unsigned delay_ms);

/* Append requests that are done, status set, to @finished and add their number to *@nr_finished.
 * Returns true if the delay of aio_helper_wake_after() is over, once. */
bool aio_helper_collect(struct aio_helper *helper, struct request_list *finished,
			unsigned *nr_finished);

#endif
