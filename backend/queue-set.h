/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The queues of one connected VBD, on their worker threads, seen from the main thread.
 *
 * Owns: the queues, the workers, and the messages between them and the main thread.
 * Trusts / does not trust: nothing comes from the guest here.
 * Runs on: the main thread; create and destroy may block briefly, nothing else does. The events of
 *   several queues become one here.
 * Must not know: xenstore, the kind of transport or driver.
 *
 * Queue i is served by worker i modulo the number of workers; with no workers all queues are served by
 * the main thread's loop. Queues share nothing on their data path, so no lock is ever taken there; the
 * main thread talks to them by messages (loop_post()).
 */
#ifndef VBDISK_QUEUE_SET_H
#define VBDISK_QUEUE_SET_H

#include "backend/queue.h"

struct queue_set;

/* All on the main thread, from its loop. */
struct queue_set_events {
	/* A queue's data path is in trouble (dataplane.h). After FLUSH_FAILED all other queues are told to
	 * distrust the disk, too. */
	void (*trouble)(void *arg, enum dataplane_trouble trouble, int err);
	/* After queue_set_stop() or queue_set_abandon(): nothing is in flight on any queue. Once;
	 * queue_set_destroy() is allowed inside. */
	void (*drained)(void *arg);
	/* After queue_set_quiesce(): each queue had a moment with nothing in flight since. */
	void (*quiet)(void *arg);
	/* After queue_set_resize(): every queue checks requests against the new size. */
	void (*resized)(void *arg);
	void *arg;
};

/* Join each of the @nr transports (taken over in every case, failure included) with a queue of @disk (the
 * caller's), offering @offered, and serve them with @nr_workers threads (0: by @loop, the main thread's,
 * whose mailbox is open). 0 with *@set_out; -errno with @error. */
int queue_set_create(struct loop *loop, unsigned nr_workers, struct transport **transports,
		     unsigned nr, struct disk *disk, const struct disk_limits *offered,
		     const struct queue_set_events *events, struct queue_set **set_out,
		     struct error *error);

/* A flush of the disk has failed before, on a connection before this one. */
void queue_set_distrust(struct queue_set *set);

/* The disk has another size now. Not again before resized(). */
void queue_set_resize(struct queue_set *set, uint64_t size_bytes);

/* As queue_stop(), queue_quiesce() and queue_abandon(), for all queues. */
void queue_set_stop(struct queue_set *set);
void queue_set_quiesce(struct queue_set *set);
void queue_set_abandon(struct queue_set *set);

/* How many queues still have requests in flight, after stop or abandon. */
unsigned queue_set_nr_undrained(const struct queue_set *set);

/* The sum over all queues; after drained() only, since the workers count. */
struct dataplane_stats queue_set_stats(const struct queue_set *set);

/* Free everything, after drained(). Ends the workers. */
void queue_set_destroy(struct queue_set *set);

#endif
