// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The data path of one queue: from a transport through the gate to a driver, and back.
 *
 *   fetch:     pop -> resolve -> validate -> load (write data in) -> submit -> kick    to the driver
 *   complete:  reap -> store (read data out) -> respond -> flush                   back to the guest
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

/* On a wire where flush_error_is_deadly a failed flush is the end of all writing: were any later write,
 * flush or discard answered, the guest would believe that what it wrote before is safe. And the error itself
 * must not be seen (transport.h). So all these are held: never answered, never given to the driver. */
static void request_hold(struct dataplane *dataplane, struct request *request)
{
	request->state = REQUEST_DONE;
	TAILQ_INSERT_TAIL(&dataplane->held, request, link);
}

/* The driver has finished a flush, be it alone or a part of a write. */
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

static void ring_break(struct dataplane *dataplane, int err)
{
	dataplane->stopped = true;
	dataplane->trouble(dataplane, DATAPLANE_RING_BROKEN, err);
}

static void request_answer(struct request *request, struct request_list *answers)
{
	request->state = REQUEST_DONE;
	TAILQ_INSERT_TAIL(answers, request, link);
}

/* Pop all there is, up to a barrier: what is well-formed into @batch, the rest into @answers. Returns how
 * many requests were popped. */
static unsigned batch_pop(struct dataplane *dataplane, struct request_list *batch,
			  struct request_list *answers)
{
	struct transport *transport = dataplane->transport;
	unsigned nr_popped = 0;

	dataplane->starved = false;
	while (!dataplane->stopped && !dataplane->barrier) {
		struct request *request = request_pool_get(&dataplane->pool);
		int ret;

		if (!request) {
			dataplane->starved = true;
			break;
		}
		request->state = REQUEST_DECODED;
		ret = transport->ops->pop(transport, request);
		if (ret != 1) {
			request_pool_put(&dataplane->pool, request);
			dataplane->starved = ret == -EAGAIN;
			if (ret < 0 && ret != -EAGAIN)
				ring_break(dataplane, ret);
			break;
		}
		nr_popped++;
		if (request->status) {
			dataplane->stats.nr_refused++;
			request_answer(request, answers);
			continue;
		}
		TAILQ_INSERT_TAIL(batch, request, link);
		if (request->flags & REQUEST_BARRIER)
			dataplane->barrier = request;
	}
	return nr_popped;
}

/* The gate. What passes stays in @batch. */
static void batch_admit(struct dataplane *dataplane, struct request_list *batch,
			struct request_list *answers)
{
	struct request *request, *next;

	for (request = TAILQ_FIRST(batch); request; request = next) {
		next = TAILQ_NEXT(request, link);
		if (!request->status)
			request->status = request_validate(request, &dataplane->limits);
		if (request->status) {
			dataplane->stats.nr_refused++;
			TAILQ_REMOVE(batch, request, link);
			request_answer(request, answers);
		} else if (dataplane->flush_failed && request->op != REQUEST_READ) {
			TAILQ_REMOVE(batch, request, link);
			request_hold(dataplane, request);
		} else if (request->op == REQUEST_DISCARD &&
			   !request_round(request, &dataplane->limits)) {
			dataplane->stats.nr_discards++;
			TAILQ_REMOVE(batch, request, link);
			request_answer(request, answers);
		} else {
			continue;
		}
		if (request == dataplane->barrier)
			dataplane->barrier = NULL;
	}
}

static void request_submit(struct dataplane *dataplane, struct request *request)
{
	const struct driver *driver = dataplane->disk_queue->disk->driver;

	/* The first part of a write with a flush before it; request_advance() turns to the next. */
	if (request->flags & REQUEST_PREFLUSH)
		request->op = REQUEST_FLUSH;
	request->state = REQUEST_QUEUED;
	dataplane->nr_in_flight++;
	driver->submit(dataplane->disk_queue, request);
}

/* Give @batch, whose data is here, to the driver; a barrier waits for barrier_submit(). */
static void batch_submit(struct dataplane *dataplane, struct request_list *batch,
			 struct request_list *answers)
{
	struct disk_queue *disk_queue = dataplane->disk_queue;
	struct request *request;

	while ((request = TAILQ_FIRST(batch))) {
		TAILQ_REMOVE(batch, request, link);
		if (request->status) { /* its data could not be had */
			dataplane->stats.nr_failed++;
			if (request == dataplane->barrier)
				dataplane->barrier = NULL;
			request_answer(request, answers);
		} else if (request != dataplane->barrier) {
			request_submit(dataplane, request);
		}
	}
	disk_queue->disk->driver->kick(disk_queue);
	dataplane->stats.nr_batches++;
}

/* Fetch and submit one batch. Requests that need no driver are appended to @answers. Returns how many
 * requests were popped. */
static unsigned batch_fetch(struct dataplane *dataplane, struct request_list *answers)
{
	struct transport *transport = dataplane->transport;
	struct request_list batch = TAILQ_HEAD_INITIALIZER(batch);
	unsigned nr_popped = batch_pop(dataplane, &batch, answers);

	if (TAILQ_EMPTY(&batch))
		return nr_popped;
	transport->ops->resolve(transport, &batch);
	batch_admit(dataplane, &batch, answers);
	if (TAILQ_EMPTY(&batch))
		return nr_popped;
	transport->ops->load(transport, &batch);
	batch_submit(dataplane, &batch, answers);
	return nr_popped;
}

/* A barrier that waits has its turn when all that was fetched before it has ended. */
static void barrier_submit(struct dataplane *dataplane)
{
	struct disk_queue *disk_queue = dataplane->disk_queue;
	struct request *barrier = dataplane->barrier;

	if (!barrier || barrier->state != REQUEST_DECODED || dataplane->nr_in_flight)
		return;
	request_submit(dataplane, barrier);
	disk_queue->disk->driver->kick(disk_queue);
}

/* ---- Back to the guest ------------------------------------------------------------------------- */

static void request_count(struct dataplane *dataplane, const struct request *request)
{
	static const char *const names[REQUEST_OPS] = {
		[REQUEST_READ] = "read",
		[REQUEST_WRITE] = "write",
		[REQUEST_FLUSH] = "flush",
		[REQUEST_DISCARD] = "discard",
	};
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
		    names[request->op], (unsigned long long)request->len_bytes,
		    (unsigned long long)request->offset_bytes, strerror(-request->status));
}

/* A write with flushes before and after it: from the part that is done to the next. False: that was the
 * last, and the request is the write again that it was. */
static bool request_advance(struct request *request)
{
	if (request->flags & REQUEST_PREFLUSH) {
		request->flags &= ~REQUEST_PREFLUSH;
		request->op = REQUEST_WRITE;
		return true;
	}
	if (!(request->flags & REQUEST_FUA))
		return false;
	if (request->op == REQUEST_WRITE) {
		request->op = REQUEST_FLUSH;
		return true;
	}
	request->flags &= ~REQUEST_FUA;
	request->op = REQUEST_WRITE;
	return false;
}

/* The driver is through with @request: on to its next part, or to the answers. Returns true if it was
 * submitted again. */
static bool request_finish(struct dataplane *dataplane, struct request *request,
			   struct request_list *answers)
{
	bool was_flush = request->op == REQUEST_FLUSH, goes_on;

	assert(request->state == REQUEST_QUEUED);
	dataplane->nr_in_flight--;
	/* "Unsupported" is a promise about the disk, made before anything was submitted. From a driver it
	 * is an error like any other, or the guest would switch the feature off for good. For discards,
	 * which storage may refuse where it took others, that is just right. */
	if (request->status == -EOPNOTSUPP && request->op != REQUEST_DISCARD)
		request->status = -EIO;
	if (was_flush)
		flush_judge(dataplane, request);
	goes_on = request_advance(request);
	if (goes_on && !request->status && !dataplane->abandoned) {
		request_submit(dataplane, request);
		return true;
	}
	if (goes_on)
		request->op = REQUEST_WRITE;
	if (request == dataplane->barrier)
		dataplane->barrier = NULL;
	if (!dataplane->abandoned)
		request_count(dataplane, request);
	if (was_flush && request->status && dataplane->transport->ops->flush_error_is_deadly)
		request_hold(dataplane, request);
	else
		request_answer(request, answers);
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

		barrier_submit(dataplane);
		nr_moved += batch_reap(dataplane, &answers);
		batch_answer(dataplane, &answers);
		if (nr_moved)
			continue;
		/* Nothing moved. Ask for the next event, and look once more: a request may have come just
		 * before the guest could see that we ask. With a barrier in the way, or no room for another
		 * request, there is nothing to ask for: the next completion comes by here. */
		if (dataplane->stopped || dataplane->barrier || dataplane->starved ||
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
	struct request *barrier = dataplane->barrier;

	dataplane->stopped = true;
	dataplane->abandoned = true;
	/* One that was not submitted yet never will be. */
	if (barrier && barrier->state == REQUEST_DECODED) {
		dataplane->barrier = NULL;
		request_pool_put(&dataplane->pool, barrier);
	}
}

void dataplane_distrust(struct dataplane *dataplane)
{
	if (dataplane->transport->ops->flush_error_is_deadly)
		dataplane->flush_failed = true;
}

bool dataplane_idle(const struct dataplane *dataplane)
{
	return !dataplane->nr_in_flight && !dataplane->barrier;
}
