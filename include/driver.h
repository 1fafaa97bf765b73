/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The driver interface: what storage code offers to the data path.
 *
 * Owns: struct driver (code), struct disk (an opened instance), struct disk_queue (one submission
 *   context of a disk).
 * Trusts / does not trust: a driver gets only requests that passed request_validate(): in range,
 *   aligned to logical_block_bytes, WRITE only if can_write, FLUSH only if can_flush, DISCARD only if
 *   can_discard and cut to whole granules. Parameters come from an administrator and are checked by
 *   open().
 * Runs on: open(), close(), sync() and refresh() on the main thread, may block. Everything of a queue
 *   on that queue's thread, never blocks, one queue at a time per thread but several queues on several
 *   threads; queues share nothing, so they need no locks.
 * Must not know: guests, rings, xenstore.
 *
 * Call order:  open -> queue_create* -> (submit* kick reap)* -> queue_destroy* -> close
 *
 * Completions are queued, never recursive: submit() may finish a request at once (an error, a driver
 * without I/O), but hands it over only in the next reap(). The data path calls reap() after every
 * kick() and whenever poll_fd was signalled.
 */
#ifndef VBDISK_DRIVER_H
#define VBDISK_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"
#include "request.h"

/* open() flags */
#define DISK_OPEN_WRITABLE                                                                         \
	(1u << 0)		   /* without it the storage is opened read-only at the OS level */
#define DISK_OPEN_SHARED (1u << 1) /* take no lock: the administrator vouches for other users */
/* disk_open() only: logical and memory blocks of 512 bytes, emulated where the storage has larger ones */
#define DISK_OPEN_SECTOR_512 (1u << 2)

struct disk_limits {
	uint64_t size_bytes;	       /* > 0, a multiple of 512 and of logical_block_bytes */
	uint32_t logical_block_bytes;  /* power of two >= 512: granularity of offset and length */
	uint32_t physical_block_bytes; /* multiple of logical_block_bytes; advice for the guest */
	uint32_t memory_align_bytes;   /* power of two: alignment of each iov base */
	bool can_write;
	bool can_flush; /* FLUSH keeps its promise; false: the feature is not advertised */
	bool can_discard;
	bool can_secure_discard;
	/* With can_discard: a DISCARD that frees something covers whole granules. Granule n begins at byte
	 * discard_alignment_bytes + n * discard_granularity_bytes. Both are multiples of
	 * logical_block_bytes; the alignment is less than the granularity, which need be no power of two. */
	uint32_t discard_granularity_bytes;
	uint32_t discard_alignment_bytes;
};

struct driver;

struct disk {
	const struct driver *driver;
	struct disk_limits limits;
	size_t request_size; /* bytes of request->driver_scratch this disk needs */
	unsigned max_queues; /* 0: any number */
	dev_t device;	     /* the block device it is on, as a whole; 0: none */
};

struct disk_queue {
	struct disk *disk;
};

struct driver {
	const char *name;	 /* as in "name:params" */
	const char *description; /* one line */
	const char *params_help; /* one line per parameter, for --help and the manual */

	/* Open the storage named by @params (the text after "name:"), and fill *@disk_out, owned by the
	 * caller until close(). Returns 0 or -errno with @error filled: missing storage, wrong kind, in
	 * use, no O_DIRECT, ... are all refused here; nothing is silently downgraded. May block. */
	int (*open)(const char *params, unsigned flags, struct disk **disk_out,
		    struct error *error);

	/* Release everything open() took. All queues are destroyed already. May block. */
	void (*close)(struct disk *disk);

	/* Bring every write completed so far to stable storage, on whatever queue it was. 0 or -errno.
	 * Blocks as long as the storage takes: only for moments when no guest waits. */
	int (*sync)(struct disk *disk);

	/* Look at the storage's size again: *@size_bytes_out, a multiple of logical_block_bytes, at least
	 * one. disk->limits stay as they were at open(); whoever offers the disk decides what to do about a
	 * change. 0 or -errno. May block briefly. */
	int (*refresh)(struct disk *disk, uint64_t *size_bytes_out);

	/* Create a queue which holds at most @depth requests at a time. Returns 0 or -errno with @error
	 * filled. All memory is taken here. May block briefly. */
	int (*queue_create)(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
			    struct error *error);

	/* Free the queue. The caller has reaped everything it submitted. May block briefly. */
	void (*queue_destroy)(struct disk_queue *queue);

	/* Take @request in every case; its status says how it went. Never blocks. */
	void (*submit)(struct disk_queue *queue, struct request *request);

	/* End of a batch: whatever was submitted is given to the kernel now, in one system call where
	 * possible. Never blocks. */
	void (*kick)(struct disk_queue *queue);

	/* A descriptor which the loop watches edge-triggered (EPOLLIN | EPOLLET): a new edge for every
	 * completion that appears while nobody calls into the queue. -1 if reap() after kick() always
	 * finds everything. Owned by the queue. */
	int (*poll_fd)(struct disk_queue *queue);

	/* Append every finished request, status set, to @done; returns how many. Never blocks. Kicks by
	 * itself what it has to submit again (the rest of a short transfer, requests the kernel had no
	 * room for). */
	unsigned (*reap)(struct disk_queue *queue, struct request_list *done);
};

/* The driver named @name, or NULL. */
const struct driver *driver_find(const char *name);

/* Every driver compiled in; ends with NULL. */
extern const struct driver *const driver_table[];

/* Open a disk from "name:params", as xenstore's `params` node spells it: split at the first colon;
 * "aio" is the toolstack's word for a raw image and means driver "file". 0 or -errno with @error
 * filled (unknown format, empty target, or what the driver said). May block. */
int disk_open(const char *spec, unsigned flags, struct disk **disk_out, struct error *error);

#endif
