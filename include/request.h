/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The request: one read, write, flush or discard on its way from a transport to a driver and back.
 *
 * Owns: the definition of struct request, its states, and who may touch it in which state.
 * Trusts / does not trust: fields are filled by a decoder from guest bytes and count as hostile until
 *   request_validate() has passed them.
 * Runs on: the thread of the queue the request belongs to; nothing here blocks.
 * Must not know: sectors, rings, descriptors, grants; bytes only.
 *
 * Life of a request. Its owner is the only one who may touch it.
 *
 *   FREE     pool         nobody has it
 *   DECODED  data path    a transport's pop() filled op, flags, offset_bytes, len_bytes, iov; or set
 *                         status, if what the guest wrote cannot be a request
 *   QUEUED   driver       submit() took it; the driver answers every request exactly once
 *   DONE     data path    status is final; the transport's respond() is next, then FREE
 */
#ifndef VBDISK_REQUEST_H
#define VBDISK_REQUEST_H

#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

enum request_op {
	REQUEST_READ,	 /* storage -> iov */
	REQUEST_WRITE,	 /* iov -> storage */
	REQUEST_FLUSH,	 /* all writes completed before this was submitted are on stable storage */
	REQUEST_DISCARD, /* the range's content is no longer wanted; it has no iov */
	REQUEST_OPS,	 /* how many there are */
};

/* Flags which the data path resolves; a driver never sees them.
 * PREFLUSH: a WRITE that must not start before a flush is done (blkif FLUSH_DISKCACHE with segments):
 *   FLUSH, then WRITE.
 * FUA: a WRITE that is answered only when its data is on stable storage: WRITE, then FLUSH.
 * BARRIER: starts only when everything fetched before from this queue has ended; nothing later is
 *   fetched before it has ended itself. */
#define REQUEST_PREFLUSH (1u << 0)
#define REQUEST_FUA (1u << 1)
#define REQUEST_BARRIER (1u << 2)
/* A flag for the driver: DISCARD must make the old content unreadable. The gate takes it away where the
 * disk has no can_secure_discard. */
#define REQUEST_SECURE (1u << 3)

enum request_state {
	REQUEST_FREE,
	REQUEST_DECODED,
	REQUEST_QUEUED,
	REQUEST_DONE,
};

struct request {
	enum request_op op;
	enum request_state state;
	unsigned flags;
	int status;	       /* 0, or -errno; final once DONE */
	uint64_t offset_bytes; /* first byte on the disk */
	uint64_t len_bytes;    /* total of iov (of the range, for a DISCARD); a FLUSH has none */

	/* Local memory of the data. The driver may consume the array (advance bases, shrink lengths)
	 * while it owns the request; nobody reads it afterwards. Memory stays valid until respond(). */
	struct iovec *iov;
	unsigned nr_iov;

	unsigned pool_idx; /* its place in the pool; fixed: names memory set aside at connect */

	TAILQ_ENTRY(request) link; /* for whoever owns the request in its present state */

	void *driver_scratch; /* disk->request_size bytes, 16-byte aligned, for the driver alone */
	void *transport_scratch; /* transport_ops.request_size bytes, 16-byte aligned, likewise */
};

TAILQ_HEAD(request_list, request);

#endif
