/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A queue: one ring's data path with its descriptors in an event loop.
 *
 * Owns: a dataplane, the transport and the disk queue it joins, the pool's memory, and when the
 *   data path runs.
 * Trusts / does not trust: nothing comes from the guest here.
 * Runs on: created and destroyed on the main thread, which may block briefly; served on one thread,
 *   never blocks.
 * Must not know: xenstore, the kind of transport or driver.
 */
#ifndef VBDISK_QUEUE_H
#define VBDISK_QUEUE_H

#include "backend/dataplane.h"
#include "backend/event-loop.h"

struct queue;

struct queue_events {
	/* The data path is in trouble (dataplane.h); for the person, and for xenstore. */
	void (*trouble)(void *arg, enum dataplane_trouble trouble, int err);
	/* After queue_stop() or queue_abandon(): nothing is in flight any more. Called once, from the
	 * loop; queue_destroy() is allowed inside. */
	void (*drained)(void *arg);
	/* After queue_quiesce(): nothing is in flight at this moment. Called once for each. */
	void (*quiet)(void *arg);
	void *arg;
};

/* Join @transport (taken over in every case, failure included) with a new queue of @disk (the
 * caller's); @offered are the disk's limits, less what the guest is not offered. 0 with *@queue_out;
 * -errno with @error. */
int queue_create(struct transport *transport, struct disk *disk, const struct disk_limits *offered,
		 const struct queue_events *events, struct queue **queue_out, struct error *error);

/* Begin to serve in @loop, which the queue belongs to from now on until queue_destroy(): everything else
 * is called, and every event comes, on that loop's thread. 0 or -errno with @error. */
int queue_start(struct queue *queue, struct loop *loop, struct error *error);

/* A flush of the disk has failed before, on an earlier queue: refuse writes and hold flushes from the
 * start. */
void queue_distrust(struct queue *queue);

/* The disk has another size now. */
void queue_resize(struct queue *queue, uint64_t size_bytes);

/* Fetch no more requests; answer those in flight; then drained(). */
void queue_stop(struct queue *queue);

/* Go on serving, and call quiet() as soon as nothing is in flight. */
void queue_quiesce(struct queue *queue);

/* Let go of the guest's memory and port now; let what is in flight end unanswered; then drained(). */
void queue_abandon(struct queue *queue);

/* Free everything. Nothing is in flight: drained() was called, or queue_start() never was. */
void queue_destroy(struct queue *queue);

const struct dataplane_stats *queue_stats(const struct queue *queue);

#endif
