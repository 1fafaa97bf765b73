// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The data path of one queue: from a transport through the gate to a driver, and back.
 *
 *   fetch:     pop -> validate -> load (write data in) -> submit -> kick       to the driver
 *   complete:  reap -> store (read data out) -> respond -> flush               back to the guest
 *
 * Each arrow carries a whole batch: one grant copy, one submission to the kernel, one publication and at
 * most one notification, however many requests are in it.
 *
 * Owns: the order of the steps, what is in flight, and that each popped request is answered once.
 * Trusts / does not trust: the transport's requests are hostile until request_validate() passed them.
 * Runs on: the queue's thread; never blocks, takes no lock.
 * Must not know: rings, grants, xenstore, files.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "backend/dataplane.h"
#include "backend/request-validate.h"

/* Passes of one dataplane_run(). A guest that never lets the ring run dry must not keep the thread from
 * xenstore and signals. */
#define PASSES_PER_RUN 16

size_t dataplane_pool_size(const struct transport *transport, const struct disk *disk)
{
	return request_pool_size(transport->nr_slots, disk->request_size,
				 transport->ops->request_size);
}

void dataplane_init(struct dataplane *dataplane, struct transport *transport,
		    struct disk_queue *disk_queue, const struct disk_limits *offered,
		    void *pool_memory,
		    void (*trouble)(struct dataplane *dataplane, enum dataplane_trouble trouble,
				    int err))
{
	*dataplane = (struct dataplane){
		.transport = transport,
		.disk_queue = disk_queue,
		.limits = *offered,
		.trouble = trouble,
	};
	TAILQ_INIT(&dataplane->held);
	/* As many requests as the wire can have outstanding: the pool never runs dry under a guest that
	 * keeps to the protocol, and each needs its answer before its slot is free again. */
	request_pool_init(&dataplane->pool, pool_memory, transport->nr_slots,
			  disk_queue->disk->request_size, transport->ops->request_size);
}

/* ---- Flushes that fail -------------------------------------------------------------------------- */

/* On a wire where flush_error_is_deadly a failed flush is the end of all writing: no later write or flush
 * may succeed, or the guest would believe that what it wrote before is safe. */

/* An empty flush, whose error the guest must not see (transport.h): it is never answered. */
static void flush_hold(struct dataplane *dataplane, struct request *request)
{
	request->state = REQUEST_DONE;
	TAILQ_INSERT_TAIL(&dataplane->held, request, link);
}

/* The driver has finished a flush, be it alone or the one before a write. */
static void flush_judge(struct dataplane *dataplane, struct request *request)
{
	if (!dataplane->transport->ops->flush_error_is_deadly)
		return;
	if (dataplane->flush_failed) {
		/* The kernel tells of lost writes once; that this one found nothing proves nothing. */
		if (!request->status)
			request->status = -EIO;
	} else if (request->status) {
		dataplane->flush_failed = true;
		if (!dataplane->abandoned) /* else nobody waits for it */
			dataplane->trouble(dataplane, DATAPLANE_FLUSH_FAILED, request->status);
	}
}

/* ---- Towards the driver ------------------------------------------------------------------------ */

/* The gate. */
static int request_admit(const struct dataplane *dataplane, const struct request *request)
{
	if (request->status)
		return request->status;
	if (dataplane->flush_failed && request->op == REQUEST_WRITE)
		return -EIO;
	return request_validate(request, &dataplane->limits);
}

static void ring_break(struct dataplane *dataplane, int err)
{
	dataplane->stopped = true;
	dataplane->trouble(dataplane, DATAPLANE_RING_BROKEN, err);
}

/* Pop all there is: good requests into @batch, refused ones into @answers. */
static unsigned batch_pop(struct dataplane *dataplane, struct request_list *batch,
			  struct request_list *answers)
{
	struct transport *transport = dataplane->transport;
	unsigned nr_popped = 0;

	while (!dataplane->stopped) {
		struct request *request = request_pool_get(&dataplane->pool);
		int ret;

		if (!request)
			break;
		request->state = REQUEST_DECODED;
		ret = transport->ops->pop(transport, request);
		if (ret != 1) {
			request_pool_put(&dataplane->pool, request);
			if (ret < 0)
				ring_break(dataplane, ret);
			break;
		}
		nr_popped++;
		if (!request->status && request->op == REQUEST_FLUSH && dataplane->flush_failed) {
			flush_hold(dataplane, request);
			continue;
		}
		request->status = request_admit(dataplane, request);
		if (request->status) {
			dataplane->stats.nr_refused++;
			request->state = REQUEST_DONE;
			TAILQ_INSERT_TAIL(answers, request, link);
		} else {
			TAILQ_INSERT_TAIL(batch, request, link);
		}
	}
	return nr_popped;
}

static void request_submit(struct dataplane *dataplane, struct request *request)
{
	const struct driver *driver = dataplane->disk_queue->disk->driver;

	/* The first half of a write with a flush before it; request_finish() does the second. */
	if (request->flags & REQUEST_PREFLUSH)
		request->op = REQUEST_FLUSH;
	request->state = REQUEST_QUEUED;
	dataplane->nr_in_flight++;
	driver->submit(dataplane->disk_queue, request);
}

/* Fetch and submit one batch. Requests that need no driver are appended to @answers. Returns how many
 * requests were popped. */
static unsigned batch_fetch(struct dataplane *dataplane, struct request_list *answers)
{
	struct disk_queue *disk_queue = dataplane->disk_queue;
	struct request_list batch = TAILQ_HEAD_INITIALIZER(batch);
	unsigned nr_popped = batch_pop(dataplane, &batch, answers);
	struct request *request;

	if (TAILQ_EMPTY(&batch))
		return nr_popped;
	dataplane->transport->ops->load(dataplane->transport, &batch);
	while ((request = TAILQ_FIRST(&batch))) {
		TAILQ_REMOVE(&batch, request, link);
		if (request->status) { /* its data could not be had */
			dataplane->stats.nr_failed++;
			request->state = REQUEST_DONE;
			TAILQ_INSERT_TAIL(answers, request, link);
		} else {
			request_submit(dataplane, request);
		}
	}
	disk_queue->disk->driver->kick(disk_queue);
	dataplane->stats.nr_batches++;
	return nr_popped;
}

/* ---- Back to the guest ------------------------------------------------------------------------- */

static void request_count(struct dataplane *dataplane, const struct request *request)
{
	struct dataplane_stats *stats = &dataplane->stats;

	switch (request->op) {
	case REQUEST_READ:
		stats->nr_reads++;
		stats->read_bytes += request->status ? 0 : request->len_bytes;
		break;
	case REQUEST_WRITE:
		stats->nr_writes++;
		stats->written_bytes += request->status ? 0 : request->len_bytes;
		break;
	case REQUEST_FLUSH:
		stats->nr_flushes++;
		break;
	case REQUEST_DISCARD:
		stats->nr_discards++;
		break;
	case REQUEST_OPS:
		break;
	}
	if (!request->status)
		return;
	stats->nr_failed++;
	log_limited(&dataplane->io_log, LOG_LEVEL_ERROR,
		    "%s of %llu bytes at byte %llu failed: %s; the guest is told",
		    request->op == REQUEST_READ	   ? "read"
		    : request->op == REQUEST_WRITE ? "write"
						   : "flush",
		    (unsigned long long)request->len_bytes,
		    (unsigned long long)request->offset_bytes, strerror(-request->status));
}

/* The driver is through with @request: on to its second half, or to the answers. Returns true if it
 * was submitted again. */
static bool request_finish(struct dataplane *dataplane, struct request *request,
			   struct request_list *answers)
{
	assert(request->state == REQUEST_QUEUED);
	dataplane->nr_in_flight--;
	/* "Unsupported" is a promise about the disk, made before anything was submitted. From a driver it
	 * is an error like any other, or the guest would switch the feature off for good. */
	if (request->status == -EOPNOTSUPP)
		request->status = -EIO;
	if (request->op == REQUEST_FLUSH)
		flush_judge(dataplane, request);
	if (request->flags & REQUEST_PREFLUSH) {
		request->flags &= ~REQUEST_PREFLUSH;
		request->op = REQUEST_WRITE;
		if (!request->status && !dataplane->abandoned) {
			request_submit(dataplane, request);
			return true;
		}
	}
	if (!dataplane->abandoned)
		request_count(dataplane, request);
	request->state = REQUEST_DONE;
	if (request->op == REQUEST_FLUSH && request->status &&
	    dataplane->transport->ops->flush_error_is_deadly)
		flush_hold(dataplane, request);
	else
		TAILQ_INSERT_TAIL(answers, request, link);
	return false;
}

/* Take what the driver has finished into @answers. Returns how many requests it had. */
static unsigned batch_reap(struct dataplane *dataplane, struct request_list *answers)
{
	struct disk_queue *disk_queue = dataplane->disk_queue;
	const struct driver *driver = disk_queue->disk->driver;
	struct request_list done = TAILQ_HEAD_INITIALIZER(done);
	unsigned nr_done = driver->reap(disk_queue, &done);
	bool submitted = false;
	struct request *request;

	while ((request = TAILQ_FIRST(&done))) {
		TAILQ_REMOVE(&done, request, link);
		submitted |= request_finish(dataplane, request, answers);
	}
	if (submitted)
		driver->kick(disk_queue);
	return nr_done;
}

/* Give @answers to the guest, and the requests back to the pool. */
static void batch_answer(struct dataplane *dataplane, struct request_list *answers)
{
	struct transport *transport = dataplane->transport;
	struct request *request;

	if (TAILQ_EMPTY(answers))
		return;
	if (!dataplane->abandoned)
		transport->ops->store(transport, answers);
	while ((request = TAILQ_FIRST(answers))) {
		TAILQ_REMOVE(answers, request, link);
		if (!dataplane->abandoned)
			transport->ops->respond(transport, request);
		request_pool_put(&dataplane->pool, request);
	}
	if (!dataplane->abandoned)
		transport->ops->flush(transport);
}

/* ---- The pass ---------------------------------------------------------------------------------- */

bool dataplane_run(struct dataplane *dataplane)
{
	struct transport *transport = dataplane->transport;

	for (unsigned pass = 0; pass < PASSES_PER_RUN; pass++) {
		struct request_list answers = TAILQ_HEAD_INITIALIZER(answers);
		unsigned nr_moved = batch_fetch(dataplane, &answers);

		nr_moved += batch_reap(dataplane, &answers);
		batch_answer(dataplane, &answers);
		if (nr_moved)
			continue;
		/* Nothing moved. Ask for the next event, and look once more: a request may have come just
		 * before the guest could see that we ask. With no request free there is nothing to ask for:
		 * the next completion comes by here. */
		if (dataplane->stopped || !dataplane->pool.nr_free ||
		    !transport->ops->arm(transport))
			return false;
	}
	return true;
}

void dataplane_resize(struct dataplane *dataplane, uint64_t size_bytes)
{
	dataplane->limits.size_bytes = size_bytes;
}

void dataplane_stop(struct dataplane *dataplane)
{
	dataplane->stopped = true;
}

void dataplane_abandon(struct dataplane *dataplane)
{
	dataplane->stopped = true;
	dataplane->abandoned = true;
}

void dataplane_distrust(struct dataplane *dataplane)
{
	if (dataplane->transport->ops->flush_error_is_deadly)
		dataplane->flush_failed = true;
}

bool dataplane_idle(const struct dataplane *dataplane)
{
	return !dataplane->nr_in_flight;
}
