// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A queue: one ring's data path with its descriptors in an event loop.
 *
 * Owns: a dataplane, the transport and the disk queue it joins, the pool's memory, and when the
 *   data path runs.
 * Trusts / does not trust: nothing comes from the guest here.
 * Runs on: created and destroyed on the main thread, which may block briefly; served on one thread,
 *   never blocks.
 * Must not know: xenstore, the kind of transport or driver.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "backend/clock.h"
#include "backend/queue.h"
#include "container.h"

struct queue {
	struct dataplane dataplane;
	struct loop *loop;
	struct transport *transport;
	struct disk_queue *disk_queue;
	void *pool_memory;
	struct queue_events events;

	struct loop_watch transport_watch;
	struct loop_watch disk_watch;
	struct loop_timer again; /* the data path has more to do, or an event is due */
	struct loop_timer tidy;	 /* the transport keeps memory of the guest's */
	bool draining;		 /* drained() is wanted */
	bool quiescing;		 /* quiet() is wanted */
};

static const struct driver *queue_driver(const struct queue *queue)
{
	return queue->disk_queue->disk->driver;
}

static bool idle_is_awaited(const struct queue *queue)
{
	return (queue->draining || queue->quiescing) && dataplane_idle(&queue->dataplane);
}

static void queue_run(struct queue *queue)
{
	bool more = dataplane_run(&queue->dataplane);

	if (more || idle_is_awaited(queue))
		loop_timer_start(queue->loop, &queue->again, 0);
	if (queue->transport->untidy && !queue->tidy.active)
		loop_timer_start(queue->loop, &queue->tidy, TRANSPORT_TIDY_MS * NSEC_PER_MSEC);
}

static void queue_tidy(struct loop_timer *timer)
{
	struct queue *queue = container_of(timer, struct queue, tidy);

	queue->transport->untidy = queue->transport->ops->tidy(queue->transport);
	if (queue->transport->untidy)
		loop_timer_start(queue->loop, &queue->tidy, TRANSPORT_TIDY_MS * NSEC_PER_MSEC);
}

static void queue_again(struct loop_timer *timer)
{
	struct queue *queue = container_of(timer, struct queue, again);
	bool idle = dataplane_idle(&queue->dataplane);

	if (idle && queue->quiescing) {
		queue->quiescing = false;
		queue->events.quiet(queue->events.arg);
	}
	if (idle && queue->draining) {
		queue->draining = false;
		queue->events.drained(queue->events.arg); /* may free the queue */
		return;
	}
	/* Also after quiet(): a pass may be due, and no event will come for what it would find. */
	queue_run(queue);
}

static void transport_ready(struct loop_watch *watch, uint32_t events)
{
	struct queue *queue = container_of(watch, struct queue, transport_watch);

	(void)events;
	queue->transport->ops->acknowledge(queue->transport);
	queue_run(queue);
}

static void disk_ready(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	queue_run(container_of(watch, struct queue, disk_watch));
}

static void queue_trouble(struct dataplane *dataplane, enum dataplane_trouble trouble, int err)
{
	struct queue *queue = container_of(dataplane, struct queue, dataplane);

	/* Events of a broken ring are left unread and masked, so that they cost nothing. */
	if (trouble == DATAPLANE_RING_BROKEN)
		loop_unwatch(queue->loop, &queue->transport_watch);
	queue->events.trouble(queue->events.arg, trouble, err);
}

int queue_create(struct transport *transport, struct disk *disk, const struct disk_limits *offered,
		 const struct queue_events *events, struct queue **queue_out, struct error *error)
{
	struct queue *queue = calloc(1, sizeof(*queue));
	int err;

	if (!queue) {
		err = error_set(error, ENOMEM, "out of memory");
		goto free_transport;
	}
	queue->transport = transport;
	queue->events = *events;
	queue->again.expired = queue_again;
	queue->tidy.expired = queue_tidy;
	err = disk->driver->queue_create(disk, transport->nr_slots, &queue->disk_queue, error);
	if (err)
		goto free_queue;
	queue->pool_memory = calloc(1, dataplane_pool_size(transport, disk));
	if (!queue->pool_memory) {
		err = error_set(error, ENOMEM, "out of memory");
		goto destroy_disk_queue;
	}
	dataplane_init(&queue->dataplane, transport, queue->disk_queue, offered, queue->pool_memory,
		       queue_trouble);
	*queue_out = queue;
	return 0;

destroy_disk_queue:
	queue_driver(queue)->queue_destroy(queue->disk_queue);
free_queue:
	free(queue);
free_transport:
	transport->ops->free(transport);
	return err;
}

int queue_start(struct queue *queue, struct loop *loop, struct error *error)
{
	struct transport *transport = queue->transport;
	int err;

	queue->loop = loop;
	queue->transport_watch.fd = transport->ops->poll_fd(transport);
	queue->transport_watch.ready = transport_ready;
	err = loop_watch(loop, &queue->transport_watch, EPOLLIN);
	if (err)
		return error_set(error, -err, "cannot watch the event channel: %s", strerror(-err));
	queue->disk_watch.fd = queue_driver(queue)->poll_fd(queue->disk_queue);
	queue->disk_watch.ready = disk_ready;
	if (queue->disk_watch.fd >= 0) {
		err = loop_watch(loop, &queue->disk_watch, EPOLLIN | EPOLLET);
		if (err)
			return error_set(error, -err, "cannot watch the disk: %s", strerror(-err));
	}
	/* Requests may be there already, and the first pass asks for the events of the next ones. */
	loop_timer_start(loop, &queue->again, 0);
	return 0;
}

void queue_distrust(struct queue *queue)
{
	dataplane_distrust(&queue->dataplane);
}

void queue_resize(struct queue *queue, uint64_t size_bytes)
{
	dataplane_resize(&queue->dataplane, size_bytes);
}

static void queue_drain(struct queue *queue)
{
	queue->draining = true;
	loop_timer_start(queue->loop, &queue->again, 0);
}

void queue_stop(struct queue *queue)
{
	dataplane_stop(&queue->dataplane);
	loop_unwatch(queue->loop, &queue->transport_watch);
	queue_drain(queue);
}

void queue_quiesce(struct queue *queue)
{
	queue->quiescing = true;
	loop_timer_start(queue->loop, &queue->again, 0);
}

void queue_abandon(struct queue *queue)
{
	dataplane_abandon(&queue->dataplane);
	loop_unwatch(queue->loop, &queue->transport_watch);
	loop_timer_stop(&queue->tidy);
	queue->transport->untidy = false;
	queue->transport->ops->disconnect(queue->transport);
	queue_drain(queue);
}

void queue_destroy(struct queue *queue)
{
	assert(dataplane_idle(&queue->dataplane));
	loop_timer_stop(&queue->again);
	loop_timer_stop(&queue->tidy);
	loop_unwatch(queue->loop, &queue->transport_watch);
	loop_unwatch(queue->loop, &queue->disk_watch);
	queue_driver(queue)->queue_destroy(queue->disk_queue);
	queue->transport->ops->free(queue->transport);
	free(queue->pool_memory);
	free(queue);
}

const struct dataplane_stats *queue_stats(const struct queue *queue)
{
	return &queue->dataplane.stats;
}
