/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The data path of one queue: from a transport through the gate to a driver, and back.
 *
 * Owns: the order of the steps, what is in flight, and the rule that every request that was popped is
 *   answered exactly once (the one exception is dataplane_trouble's FLUSH_FAILED).
 * Trusts / does not trust: the transport's requests are hostile until request_validate() passed them.
 * Runs on: the queue's thread; never blocks, takes no lock.
 * Must not know: rings, grants, xenstore, files.
 */
#ifndef VBDISK_DATAPLANE_H
#define VBDISK_DATAPLANE_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/log.h"
#include "backend/request-pool.h"
#include "driver.h"
#include "transport.h"

enum dataplane_trouble {
	DATAPLANE_RING_BROKEN,	/* the guest broke the ring: nothing is fetched from it any more */
	DATAPLANE_FLUSH_FAILED, /* a flush failed on a wire where flush_error_is_deadly: it and every
				 * later flush, write and discard is held: none is answered any more, so
				 * that the guest cannot take lost data for safe data; reads go on */
};

/* Plain counters, written by the queue's thread. */
struct dataplane_stats {
	uint64_t nr_reads, nr_writes, nr_flushes, nr_discards; /* answered, failed ones included */
	uint64_t read_bytes, written_bytes;		       /* of those that succeeded */
	uint64_t nr_refused; /* bad requests, never shown to the driver */
	uint64_t nr_failed;  /* errors of storage or of grants */
	uint64_t nr_batches; /* passes that found requests */
};

struct dataplane {
	struct transport *transport;
	struct disk_queue *disk_queue;
	struct request_pool pool;

	unsigned nr_in_flight;	   /* with the driver */
	struct request *barrier;   /* fetched, and not ended: nothing is fetched behind it */
	bool starved;		   /* the last fetch ended for want of a request or of memory */
	struct disk_limits limits; /* what the guest is offered; the size may change */
	struct request_list
		held;	/* failed flushes that must not be answered, and what came after */
	bool stopped;	/* fetch nothing more */
	bool abandoned; /* answer nothing more either: the guest's end is gone */
	bool flush_failed;

	/* Called at most once for each kind of trouble, from inside dataplane_run(). */
	void (*trouble)(struct dataplane *dataplane, enum dataplane_trouble trouble, int err);

	struct log_limit io_log;
	struct dataplane_stats stats;
};

/* Join @transport (may be disconnected later) and @disk_queue over a pool in @pool_memory, which has
 * dataplane_pool_size() bytes. @offered are the disk's limits, less what the guest is not offered
 * (copied). Everything stays the caller's. */
void dataplane_init(struct dataplane *dataplane, struct transport *transport,
		    struct disk_queue *disk_queue, const struct disk_limits *offered,
		    void *pool_memory,
		    void (*trouble)(struct dataplane *dataplane, enum dataplane_trouble trouble,
				    int err));

size_t dataplane_pool_size(const struct transport *transport, const struct disk *disk);

/* Do all there is to do now, in both directions. True: there is more; call again soon (the budget of
 * one call is used up, so that other events get their turn). False: wait for the transport's or the
 * disk queue's descriptor. */
bool dataplane_run(struct dataplane *dataplane);

/* The disk has another size now: requests fetched from now on are checked against it. */
void dataplane_resize(struct dataplane *dataplane, uint64_t size_bytes);

/* Fetch nothing more. In flight requests are still finished and answered. */
void dataplane_stop(struct dataplane *dataplane);

/* Stop, and never touch the transport again; what is in flight is finished unanswered. */
void dataplane_abandon(struct dataplane *dataplane);

/* A flush of this disk has failed before: as if it had failed here (DATAPLANE_FLUSH_FAILED). */
void dataplane_distrust(struct dataplane *dataplane);

/* True when nothing is in flight, nor waits for what is. Held requests do not count. */
bool dataplane_idle(const struct dataplane *dataplane);

#endif
