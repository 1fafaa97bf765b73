/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The transport interface: what a wire (blkif ring, virtqueue) offers to the data path.
 *
 * Owns: struct transport and its operations.
 * Trusts / does not trust: a transport faces guest-writable memory; what it hands out is private copy,
 *   data in pages that both ends agreed to keep mapped excepted.
 * Runs on: the queue's thread. Nothing here blocks.
 * Must not know: disks, drivers, xenstore.
 *
 * One pass of the data path calls, in this order:
 *   pop* -> resolve(batch) -> load(batch) -> (driver) -> store(batch) -> respond* -> flush -> arm
 * Making one (attaching it to a guest) is each transport's own function, since each needs other facts.
 */
#ifndef VBDISK_TRANSPORT_H
#define VBDISK_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "request.h"

struct transport;

struct transport_ops {
	const char *name;

	size_t request_size; /* bytes of request->transport_scratch */

	/* Descriptor (level-triggered) that is readable when the guest has notified. */
	int (*poll_fd)(struct transport *transport);

	/* Take the notification that made poll_fd readable, so that the next one shows. */
	void (*acknowledge)(struct transport *transport);

	/* Take the next request off the wire: copy its entry once, decode the copy, and fill @request.
	 * 1: filled; if what the guest wrote is no valid request, request->status is set already (-EINVAL,
	 * or -EOPNOTSUPP for an unknown operation) and the request goes straight to respond().
	 * 0: nothing there. -EAGAIN: nothing can be taken before a request that is out now has gone through
	 * respond() (its memory is needed); nothing was popped. Other -errno: the ring itself is broken;
	 * never call pop again. */
	int (*pop)(struct transport *transport, struct request *request);

	/* Finish decoding what entries only point to (blkif's indirect segments), in one grant operation
	 * for the whole batch. @batch holds the requests popped since the last call whose status is 0; one
	 * that turns out to be none gets its status here. pop() has set op, flags and offset_bytes of every
	 * request; len_bytes and iov may be missing until this call. */
	void (*resolve)(struct transport *transport, struct request_list *batch);

	/* Bring the data of the WRITEs in @batch into their iov. A request whose data cannot be had gets
	 * status -EFAULT and stays in @batch. One grant operation for the whole batch. */
	void (*load)(struct transport *transport, struct request_list *batch);

	/* Bring the data of the READs in @batch whose status is 0 to the guest; failures set -EFAULT. */
	void (*store)(struct transport *transport, struct request_list *batch);

	/* Write the answer for @request, not yet visible to the guest. 0 OKAY, -EOPNOTSUPP unsupported,
	 * else an error. */
	void (*respond)(struct transport *transport, struct request *request);

	/* Publish all answers written since the last flush; notify the guest if it asked for it. */
	void (*flush)(struct transport *transport);

	/* Ask to be notified of the next request. True if one came meanwhile: do not sleep. */
	bool (*arm)(struct transport *transport);

	/* Let go of memory of the guest's that was not used lately; true if there is still some, so that
	 * another call is wanted in TRANSPORT_TIDY_MS. NULL: this transport keeps none. */
	bool (*tidy)(struct transport *transport);

	/* Let go of the guest's memory and port at once, whatever is in flight: nothing of the guest is
	 * touched any more, and nothing but free() may be called. Buffers that a driver still uses stay
	 * valid until free(). The one exception: pages of the guest that a driver works on directly (blkif's
	 * persistent grants) are let go of by free(), so that the domain of a dead guest stays until the
	 * storage has answered. Those that no I/O uses go at once, after a wait of less than 0.1 s.
	 * Idempotent. */
	void (*disconnect)(struct transport *transport);

	/* Disconnect and free; nothing is in flight any more. */
	void (*free)(struct transport *transport);

	/* An empty FLUSH answered with an error makes this wire's guests stop flushing for ever and
	 * believe all is well (Linux blkfront, blkif_interrupt()); such an answer is never given. */
	bool flush_error_is_deadly;
};

struct transport {
	const struct transport_ops *ops;
	unsigned nr_slots; /* requests the wire can have outstanding */
	bool untidy;	   /* tidy() is wanted: set by the transport, read after each pass */
};

#define TRANSPORT_TIDY_MS 1000

#endif
