/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What an AIO queue asks the kernel for when it begins.
 *
 * Owns: what is said when the kernel refuses; which completion rings may be read directly.
 * Trusts / does not trust: the kernel may have no slots, no AIO, or a ring of another layout.
 * Runs on: the thread that creates the queue; may block briefly.
 * Must not know: requests.
 */
#ifndef VBDISK_AIO_SETUP_H
#define VBDISK_AIO_SETUP_H

#include <libaio.h>

#include "error.h"

/* The completion ring, which io_setup() maps at the address it returns as the context. Linux
 * fs/aio.c, struct aio_ring and aio_read_events_ring(): it is ABI since 2.5, and libaio and fio read
 * it the same way. The kernel advances tail after it has written the event; whoever consumes advances
 * head, and the kernel finds room by looking at it (user_refill_reqs_available(), since 3.19). Both
 * run from 0 to nr - 1. */
struct aio_ring {
	unsigned id;
	unsigned nr;
	unsigned head;
	unsigned tail;
	unsigned magic;
	unsigned compat_features;
	unsigned incompat_features;
	unsigned header_length;
	struct io_event events[];
};

/* A context with room for @depth requests. 0 or -errno with @error. */
int aio_context_create(unsigned depth, io_context_t *context_out, struct error *error);

/* The ring of @context, which may be read directly if it is the one we know; NULL: only the system call
 * works. */
struct aio_ring *aio_ring_find(io_context_t context);

/* The same file under another description; the one of @fd keeps the lock. A descriptor or -errno. */
int aio_description_open(int fd);

#endif
