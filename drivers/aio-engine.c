// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The AIO engine: a disk_queue on an open file, over Linux native AIO.
 *
 * Owns: per queue one file description, one AIO context, one eventfd, and a helper thread once one is
 *   needed.
 * Trusts / does not trust: the file is open with O_DIRECT and its disk's limits are true. The kernel's
 *   answers may be short, late, or errors.
 * Runs on: the queue's thread; only create and destroy may block.
 * Must not know: paths, locks, what the file is.
 *
 * Where a request is:
 *
 *   submit() -> pending -> kick(): io_submit() -> in the kernel -> reap(): event -> finished -> @done
 *                  ^                                                  |
 *                  +---- the rest of a short transfer ----------------+
 *
 * A FLUSH which the kernel's AIO cannot do, and every DISCARD, goes to the helper thread instead.
 *
 * Each queue opens the file once more: Linux tells of a lost write once per open file description
 * (errseq_t), and the flushes of every queue have to hear of it.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "backend/log.h"
#include "container.h"
#include "drivers/aio-engine.h"
#include "drivers/aio-helper.h"
#include "drivers/aio-setup.h"
#include "drivers/iov.h"

/* Tries without any progress before a short transfer is an error. */
#define MAX_STUCK_TRIES 3

/* Waiting for room which no completion will announce: 1 2 4 ... 64 100 100 ... ms, about 30 s. */
#define BACKOFF_FIRST_MS 1u
#define BACKOFF_DOUBLINGS 7u
#define BACKOFF_MAX_MS 100u
#define BACKOFF_MAX_TRIES 300u

#define EVENTS_PER_CALL 32

struct aio_queue {
	struct disk_queue queue;
	int fd;
	int event_fd;
	unsigned depth;
	uint32_t align_bytes; /* where a transfer may be cut */
	io_context_t context;
	struct aio_ring *ring;	   /* NULL: io_getevents() */
	struct aio_helper *helper; /* NULL: not needed so far */
	bool no_fdsync;
	bool no_discard; /* it was tried, and the storage cannot */

	struct request_list pending; /* to be given to the kernel, in order */
	struct request_list finished;
	unsigned nr_finished;
	unsigned nr_in_kernel;
	unsigned nr_in_helper;
	unsigned nr_backoffs; /* since the kernel took anything */
	bool backing_off;     /* the helper's wake-up is awaited */

	struct log_limit log_limit;
	struct iocb *batch[]; /* depth of them */
};

/* In request->driver_scratch. */
struct aio_request {
	struct iocb iocb;
	uint64_t offset_bytes;
	uint64_t left_bytes;
	unsigned nr_stuck_tries;
};

static struct aio_queue *to_aio(struct disk_queue *queue)
{
	return container_of(queue, struct aio_queue, queue);
}

size_t aio_request_size(void)
{
	return sizeof(struct aio_request);
}

/* ---- Create and destroy ------------------------------------------------------------------------ */

int aio_queue_create(struct disk *disk, int fd, unsigned depth, struct disk_queue **queue_out,
		     struct error *error)
{
	const struct disk_limits *limits = &disk->limits;
	struct aio_queue *aio;
	int ret;

	assert(depth > 0);
	aio = calloc(1, sizeof(*aio) + depth * sizeof(aio->batch[0]));
	if (!aio)
		return error_set(error, ENOMEM, "no memory for a queue of %u requests", depth);
	aio->queue.disk = disk;
	aio->depth = depth;
	/* Cut there, both the offset and the address of the rest are as aligned as at first. */
	aio->align_bytes = limits->logical_block_bytes > limits->memory_align_bytes
				   ? limits->logical_block_bytes
				   : limits->memory_align_bytes;
	TAILQ_INIT(&aio->pending);
	TAILQ_INIT(&aio->finished);
	aio->fd = aio_description_open(fd);
	if (aio->fd < 0) {
		ret = error_set(error, -aio->fd,
				"cannot open the disk once more for a queue (/proc/self/fd: %s)",
				strerror(-aio->fd));
		goto err_free;
	}
	/* Every completion adds 1, and nobody reads: with EPOLLET each addition is a new edge. The
	 * counter stops at 2^64 - 2, which takes 58 000 years at ten million requests per second. */
	aio->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (aio->event_fd < 0) {
		ret = error_set(error, errno, "cannot create an eventfd (%s)", strerror(errno));
		goto err_close_file;
	}
	ret = aio_context_create(depth, &aio->context, error);
	if (ret)
		goto err_close;
	aio->ring = aio_ring_find(aio->context);
	*queue_out = &aio->queue;
	return 0;

err_close:
	close(aio->event_fd);
err_close_file:
	close(aio->fd);
err_free:
	free(aio);
	return ret;
}

void aio_queue_destroy(struct disk_queue *queue)
{
	struct aio_queue *aio = to_aio(queue);

	assert(!aio->nr_in_kernel && !aio->nr_in_helper);
	assert(TAILQ_EMPTY(&aio->pending) && TAILQ_EMPTY(&aio->finished));
	if (aio->helper)
		aio_helper_destroy(aio->helper);
	io_destroy(aio->context);
	close(aio->event_fd);
	close(aio->fd);
	free(aio);
}

int aio_queue_poll_fd(struct disk_queue *queue)
{
	return to_aio(queue)->event_fd;
}

/* ---- Into the kernel --------------------------------------------------------------------------- */

static void request_finish(struct aio_queue *aio, struct request *request, int status)
{
	request->status = status;
	TAILQ_INSERT_TAIL(&aio->finished, request, link);
	aio->nr_finished++;
}

static void request_enqueue(struct aio_queue *aio, struct request *request)
{
	struct aio_request *scratch = request->driver_scratch;
	struct iocb *iocb = &scratch->iocb;
	long long offset_bytes = (long long)scratch->offset_bytes;
	const struct iovec *iov = request->iov;

	switch (request->op) {
	case REQUEST_READ:
		if (request->nr_iov == 1)
			io_prep_pread(iocb, aio->fd, iov->iov_base, iov->iov_len, offset_bytes);
		else
			io_prep_preadv(iocb, aio->fd, iov, (int)request->nr_iov, offset_bytes);
		break;
	case REQUEST_WRITE:
		if (request->nr_iov == 1)
			io_prep_pwrite(iocb, aio->fd, iov->iov_base, iov->iov_len, offset_bytes);
		else
			io_prep_pwritev(iocb, aio->fd, iov, (int)request->nr_iov, offset_bytes);
		break;
	case REQUEST_FLUSH:
		io_prep_fdsync(iocb, aio->fd);
		break;
	case REQUEST_DISCARD: /* the helper's */
	case REQUEST_OPS:
		assert(false);
	}
	iocb->data = request;
	io_set_eventfd(iocb, aio->event_fd);
	TAILQ_INSERT_TAIL(&aio->pending, request, link);
}

static int helper_need(struct aio_queue *aio)
{
	if (aio->helper)
		return 0;
	return aio_helper_create(aio->fd, aio->event_fd, &aio->helper);
}

static void submit_to_helper(struct aio_queue *aio, struct request *request)
{
	int ret = helper_need(aio);

	if (ret) {
		log_limited(&aio->log_limit, LOG_LEVEL_ERROR,
			    "cannot start the thread that flushes and discards (%s)",
			    strerror(-ret));
		request_finish(aio, request, ret);
		return;
	}
	aio->nr_in_helper++;
	aio_helper_submit(aio->helper, request);
}

void aio_queue_submit(struct disk_queue *queue, struct request *request)
{
	struct aio_request *scratch = request->driver_scratch;
	struct aio_queue *aio = to_aio(queue);

	if (request->op == REQUEST_DISCARD && aio->no_discard) {
		request_finish(aio, request, -EOPNOTSUPP);
		return;
	}
	if (request->op == REQUEST_DISCARD || (request->op == REQUEST_FLUSH && aio->no_fdsync)) {
		submit_to_helper(aio, request);
		return;
	}
	scratch->offset_bytes = request->offset_bytes;
	scratch->left_bytes = request->len_bytes;
	scratch->nr_stuck_tries = 0;
	request_enqueue(aio, request);
}

/* io_submit() reports an error only about the first iocb of those it was given: nobody else fails. */
static void first_pending_fail(struct aio_queue *aio, int status)
{
	struct request *request = TAILQ_FIRST(&aio->pending);

	TAILQ_REMOVE(&aio->pending, request, link);
	if (request->op == REQUEST_FLUSH && status == -EINVAL) {
		/* AIO has no FDSYNC before Linux 4.18, nor for a file without an fsync method. The
		 * first FLUSH is the probe; fdatasync() was tried at open. */
		if (!aio->no_fdsync)
			log_info("AIO cannot flush this file: a thread does");
		aio->no_fdsync = true;
		submit_to_helper(aio, request);
		return;
	}
	request_finish(aio, request, status);
}

/* The kernel takes nothing now. If something is in flight, its completion brings us back here. If
 * not, we have no slots in use and the kernel is short of memory: the helper wakes us after a while.
 * An eventfd written here would wake us at once, again and again; a timerfd would need a second
 * descriptor behind poll_fd, and so cost every completion something. After half a minute requests
 * fail: storage that never answers is worse than an error. Returns false if one was given up, and
 * the next may be tried. */
static bool room_await(struct aio_queue *aio)
{
	unsigned delay_ms = BACKOFF_MAX_MS;

	if (aio->nr_in_kernel)
		return true;
	if (aio->nr_backoffs < BACKOFF_MAX_TRIES && !helper_need(aio)) {
		if (aio->nr_backoffs < BACKOFF_DOUBLINGS)
			delay_ms = BACKOFF_FIRST_MS << aio->nr_backoffs;
		aio->nr_backoffs++;
		aio->backing_off = true;
		aio_helper_wake_after(aio->helper, delay_ms);
		return true;
	}
	log_limited(&aio->log_limit, LOG_LEVEL_ERROR,
		    "the kernel takes no AIO request although none is in flight: giving one up");
	first_pending_fail(aio, -EAGAIN);
	return false;
}

static int batch_submit(struct aio_queue *aio)
{
	struct request *request;
	unsigned nr = 0;

	TAILQ_FOREACH(request, &aio->pending, link) {
		struct aio_request *scratch = request->driver_scratch;

		aio->batch[nr++] = &scratch->iocb;
		if (nr == aio->depth)
			break;
	}
	return io_submit(aio->context, nr, aio->batch);
}

/* Every turn moves at least one request on, or ends the loop. */
static void pending_submit(struct aio_queue *aio)
{
	while (!TAILQ_EMPTY(&aio->pending)) {
		int ret = batch_submit(aio);

		if (ret == 0 || ret == -EAGAIN || ret == -EINTR) {
			if (room_await(aio))
				return;
			continue;
		}
		if (ret < 0) {
			first_pending_fail(aio, ret);
			continue;
		}
		aio->nr_in_kernel += (unsigned)ret;
		aio->nr_backoffs = 0;
		while (ret--)
			TAILQ_REMOVE(&aio->pending, TAILQ_FIRST(&aio->pending), link);
	}
}

void aio_queue_kick(struct disk_queue *queue)
{
	struct aio_queue *aio = to_aio(queue);

	if (!aio->backing_off)
		pending_submit(aio);
}

/* ---- Out of the kernel ------------------------------------------------------------------------- */

/* A transfer moved @moved_bytes, less than asked: ask for the rest. A write may end short at a full
 * file system, and the rest then says ENOSPC; a read at the end of a file which shrank under us, and
 * the rest then moves nothing. */
static void transfer_continue(struct aio_queue *aio, struct request *request, uint64_t moved_bytes)
{
	struct aio_request *scratch = request->driver_scratch;
	/* The rest must start aligned; what lies before that in its block is moved again. */
	uint64_t step_bytes = moved_bytes & ~((uint64_t)aio->align_bytes - 1);

	if (step_bytes) {
		iov_advance(request, step_bytes);
		scratch->offset_bytes += step_bytes;
		scratch->left_bytes -= step_bytes;
		scratch->nr_stuck_tries = 0;
	} else if (++scratch->nr_stuck_tries > MAX_STUCK_TRIES) {
		request_finish(aio, request, -EIO);
		return;
	}
	request_enqueue(aio, request);
}

/* A flush that could not even be begun is tried again, with pauses, where one may wait. */
static void flush_finish(struct aio_queue *aio, struct request *request, int status)
{
	if (status == -EINTR || status == -EAGAIN || status == -ENOMEM || status == -ENOBUFS)
		submit_to_helper(aio, request);
	else
		request_finish(aio, request, status);
}

static void event_handle(struct aio_queue *aio, const struct io_event *event)
{
	struct request *request = event->data;
	long result = (long)event->res;
	struct aio_request *scratch;

	if (!request) {
		log_limited(&aio->log_limit, LOG_LEVEL_ERROR,
			    "AIO completed something that was never submitted; ignored");
		return;
	}
	scratch = request->driver_scratch;
	aio->nr_in_kernel--;
	if (request->op == REQUEST_FLUSH)
		flush_finish(aio, request, result < 0 ? (int)result : 0);
	else if (result == -EINTR) /* fs/aio.c answers so for a transfer it would have to restart */
		transfer_continue(aio, request, 0);
	else if (result < 0)
		request_finish(aio, request, (int)result);
	else if ((uint64_t)result == scratch->left_bytes)
		request_finish(aio, request, 0);
	else if (result == 0 || (uint64_t)result > scratch->left_bytes)
		request_finish(aio, request, -EIO);
	else
		transfer_continue(aio, request, (uint64_t)result);
}

static unsigned ring_reap(struct aio_queue *aio)
{
	struct aio_ring *ring = aio->ring;
	unsigned head = ring->head; /* nobody else writes it */
	unsigned nr_events = 0;

	/* The acquire pairs with the smp_wmb() before the tail in aio_complete(); the release lets the
	 * kernel overwrite only what we have read. Bounded: nothing is submitted in here. */
	while (head != __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) {
		event_handle(aio, &ring->events[head]);
		head = head + 1 < ring->nr ? head + 1 : 0;
		nr_events++;
	}
	if (nr_events)
		__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
	return nr_events;
}

static unsigned getevents_reap(struct aio_queue *aio)
{
	struct io_event events[EVENTS_PER_CALL];
	struct timespec now = {0, 0};
	unsigned nr_events = 0;
	int ret;

	do {
		ret = io_getevents(aio->context, 0, EVENTS_PER_CALL, events, &now);
		for (int i = 0; i < ret; i++)
			event_handle(aio, &events[i]);
		nr_events += ret > 0 ? (unsigned)ret : 0;
	} while (ret == EVENTS_PER_CALL || ret == -EINTR);
	if (ret < 0)
		log_limited(&aio->log_limit, LOG_LEVEL_ERROR,
			    "cannot fetch AIO completions (io_getevents: %s)", strerror(-ret));
	return nr_events;
}

/* Returns true if the kernel may have room again. */
static bool helper_reap(struct aio_queue *aio)
{
	struct request_list collected = TAILQ_HEAD_INITIALIZER(collected);
	struct request *request;
	unsigned nr = 0;
	bool retry = aio_helper_collect(aio->helper, &collected, &nr);

	TAILQ_FOREACH(request, &collected, link) {
		if (request->op != REQUEST_DISCARD || request->status != -EOPNOTSUPP ||
		    request->flags & REQUEST_SECURE || aio->no_discard)
			continue;
		log_info("the storage cannot discard after all: the guest is told so");
		aio->no_discard = true;
	}
	aio->nr_in_helper -= nr;
	aio->nr_finished += nr;
	TAILQ_CONCAT(&aio->finished, &collected, link);
	return retry;
}

unsigned aio_queue_reap(struct disk_queue *queue, struct request_list *done)
{
	struct aio_queue *aio = to_aio(queue);
	unsigned nr_events = 0, nr_done;
	bool retry = false;

	if (aio->nr_in_kernel)
		nr_events = aio->ring ? ring_reap(aio) : getevents_reap(aio);
	if (aio->helper)
		retry = helper_reap(aio);
	/* Rests of short transfers, and what the kernel had no room for. Without an event there is
	 * nothing to hope for, and a caller which polls would make this a hot loop. */
	if (nr_events || retry) {
		aio->backing_off = false;
		pending_submit(aio);
	}
	TAILQ_CONCAT(done, &aio->finished, link);
	nr_done = aio->nr_finished;
	aio->nr_finished = 0;
	return nr_done;
}
