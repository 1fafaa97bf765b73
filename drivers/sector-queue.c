// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The queue of a disk of 512-byte blocks on a disk of larger ones.
 *
 * Owns: the queue below and a fixed number of bounce buffers.
 * Trusts / does not trust: requests passed request_validate(), so they are aligned to 512 bytes.
 * Runs on: the queue's thread, never blocks, but for create and destroy.
 * Must not know: what is below.
 *
 * A request whose range and memory suit the disk below goes straight down. Any other is bounced:
 * done in pieces through a buffer, and a write first reads the blocks of which it has a part only
 * (read, modify, write). Between that read and the write nobody else may write the block, or what
 * he wrote would be undone; not even somebody whose write covers all of it. So two writes that
 * touch a common block, one of them bounced, go one after the other. Since that is decided here,
 * without locks, there is one queue only.
 *
 *   submit -> waiting -> straight: below -> done
 *                     -> bounced:  (edges read below -> ) piece below -> ... -> done
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "container.h"
#include "drivers/iov.h"
#include "drivers/sector-queue.h"

#define NR_BOUNCES 16u
#define BOUNCE_BYTES ((size_t)SECTOR_QUEUE_MAX_BLOCK_BYTES)

enum bounce_phase {
	BOUNCE_HEAD, /* reading the first block of a write, of which there is a part only */
	BOUNCE_TAIL, /* reading the last one */
	BOUNCE_DATA, /* reading or writing the piece */
};

/* A buffer, and the request that uses it. */
struct bounce {
	struct request io; /* its I/O below */
	struct iovec iov;
	char *buffer;
	struct request *request; /* NULL: free */
	enum bounce_phase phase;
	uint64_t at_bytes;		 /* where the request's next byte is on the disk */
	uint64_t piece_bytes;		 /* how many of its bytes this piece has */
	uint64_t first_bytes, end_bytes; /* the piece, in whole blocks */
};

/* In request->driver_scratch; that of the disk below follows at LOWER_SCRATCH_AT. */
struct emulation_request {
	TAILQ_ENTRY(emulation_request) writing_link;
	uint64_t first_bytes, end_bytes; /* its range, in whole blocks */
	bool writes, bounced;
};

#define LOWER_SCRATCH_AT ((sizeof(struct emulation_request) + 15) & ~(size_t)15)

struct emulation_queue {
	struct disk_queue queue;
	struct disk_queue *lower;
	struct request_list waiting;		 /* for a buffer, or for another write; in order */
	TAILQ_HEAD(, emulation_request) writing; /* writes and discards below */
	struct request_list done;
	unsigned nr_done;
	bool submitted; /* since the last kick of the queue below */
	char *scratch;
	char *mapping; /* with the buffers, one after the other */
	size_t mapping_bytes;
	struct bounce bounces[NR_BOUNCES];
};

size_t sector_queue_request_size(const struct disk *lower)
{
	return LOWER_SCRATCH_AT + lower->request_size;
}

static struct emulation_queue *to_emulation(struct disk_queue *queue)
{
	return container_of(queue, struct emulation_queue, queue);
}

static const struct driver *lower_driver(const struct emulation_queue *emulation)
{
	return emulation->lower->disk->driver;
}

static const struct disk_limits *lower_limits(const struct emulation_queue *emulation)
{
	return &emulation->lower->disk->limits;
}

static uint64_t block_down(const struct emulation_queue *emulation, uint64_t at_bytes)
{
	return at_bytes & ~((uint64_t)lower_limits(emulation)->logical_block_bytes - 1);
}

static uint64_t block_up(const struct emulation_queue *emulation, uint64_t at_bytes)
{
	return block_down(emulation, at_bytes + lower_limits(emulation)->logical_block_bytes - 1);
}

/* ---- Create and destroy ---------------------------------------------------------------------- */

static int memory_take(struct emulation_queue *emulation, const struct disk *lower)
{
	size_t scratch_bytes = (lower->request_size + 15) & ~(size_t)15;
	size_t align_bytes = lower->limits.memory_align_bytes;
	char *mapping, *buffers;

	emulation->scratch = calloc(NR_BOUNCES, scratch_bytes ? scratch_bytes : 16);
	if (!emulation->scratch)
		return -ENOMEM;
	/* Pages appear as they are used, one by one: few disks have unaligned requests, and fewer
	 * large ones. */
	emulation->mapping_bytes = NR_BOUNCES * BOUNCE_BYTES + align_bytes;
	mapping = mmap(NULL, emulation->mapping_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapping == MAP_FAILED)
		return -errno;
	emulation->mapping = mapping;
	madvise(mapping, emulation->mapping_bytes, MADV_NOHUGEPAGE);
	buffers = mapping + (-(uintptr_t)mapping & (align_bytes - 1));
	for (unsigned i = 0; i < NR_BOUNCES; i++) {
		struct bounce *bounce = &emulation->bounces[i];

		bounce->buffer = buffers + i * BOUNCE_BYTES;
		bounce->io.driver_scratch = emulation->scratch + i * scratch_bytes;
	}
	return 0;
}

static void memory_free(struct emulation_queue *emulation)
{
	if (emulation->mapping)
		munmap(emulation->mapping, emulation->mapping_bytes);
	free(emulation->scratch);
}

int sector_queue_create(struct disk *disk, struct disk *lower, unsigned depth,
			struct disk_queue **queue_out, struct error *error)
{
	struct emulation_queue *emulation = calloc(1, sizeof(*emulation));
	int err;

	if (!emulation)
		return error_set(error, ENOMEM, "no memory for a queue of %u requests", depth);
	emulation->queue.disk = disk;
	TAILQ_INIT(&emulation->waiting);
	TAILQ_INIT(&emulation->writing);
	TAILQ_INIT(&emulation->done);
	err = memory_take(emulation, lower);
	if (err) {
		error_set(error, -err, "no memory for a queue of %u requests", depth);
		goto free_memory;
	}
	/* A request has one I/O below at a time. */
	err = lower->driver->queue_create(lower, depth, &emulation->lower, error);
	if (err)
		goto free_memory;
	*queue_out = &emulation->queue;
	return 0;

free_memory:
	memory_free(emulation);
	free(emulation);
	return err;
}

void sector_queue_destroy(struct disk_queue *queue)
{
	struct emulation_queue *emulation = to_emulation(queue);

	assert(TAILQ_EMPTY(&emulation->waiting) && TAILQ_EMPTY(&emulation->writing) &&
	       TAILQ_EMPTY(&emulation->done));
	lower_driver(emulation)->queue_destroy(emulation->lower);
	memory_free(emulation);
	free(emulation);
}

/* ---- Who has to wait ---------------------------------------------------------------------------- */

static bool bounce_needed(const struct emulation_queue *emulation, const struct request *request)
{
	const struct disk_limits *limits = lower_limits(emulation);
	uint64_t misfit = request->offset_bytes | request->len_bytes;
	uintptr_t memory = 0;

	for (unsigned i = 0; i < request->nr_iov; i++) {
		misfit |= request->iov[i].iov_len;
		memory |= (uintptr_t)request->iov[i].iov_base;
	}
	return misfit & (limits->logical_block_bytes - 1) ||
	       memory & (limits->memory_align_bytes - 1);
}

static bool must_not_meet(const struct emulation_request *a, const struct emulation_request *b)
{
	return a->writes && b->writes && (a->bounced || b->bounced) &&
	       a->first_bytes < b->end_bytes && b->first_bytes < a->end_bytes;
}

static struct bounce *bounce_find(struct emulation_queue *emulation)
{
	for (unsigned i = 0; i < NR_BOUNCES; i++)
		if (!emulation->bounces[i].request)
			return &emulation->bounces[i];
	return NULL;
}

/* May @request, one of those that wait, start now? Not past an earlier one which it must not meet. */
static bool may_start(struct emulation_queue *emulation, const struct request *request)
{
	const struct emulation_request *scratch = request->driver_scratch, *writing;
	const struct request *before;

	if (scratch->bounced && !bounce_find(emulation))
		return false;
	if (!scratch->writes)
		return true;
	TAILQ_FOREACH(writing, &emulation->writing, writing_link)
		if (must_not_meet(writing, scratch))
			return false;
	TAILQ_FOREACH(before, &emulation->waiting, link) {
		if (before == request)
			break;
		if (must_not_meet(before->driver_scratch, scratch))
			return false;
	}
	return true;
}

/* ---- Down --------------------------------------------------------------------------------------- */

static void lower_submit(struct emulation_queue *emulation, struct request *request)
{
	lower_driver(emulation)->submit(emulation->lower, request);
	emulation->submitted = true;
}

static void straight_start(struct emulation_queue *emulation, struct request *request)
{
	request->driver_scratch = (char *)request->driver_scratch + LOWER_SCRATCH_AT;
	lower_submit(emulation, request);
}

static void bounce_submit(struct emulation_queue *emulation, struct bounce *bounce,
			  enum bounce_phase phase, enum request_op op, uint64_t offset_bytes,
			  uint64_t len_bytes)
{
	struct request *io = &bounce->io;

	bounce->phase = phase;
	bounce->iov =
		(struct iovec){bounce->buffer + (offset_bytes - bounce->first_bytes), len_bytes};
	io->op = op;
	io->state = REQUEST_QUEUED;
	io->status = 0;
	io->offset_bytes = offset_bytes;
	io->len_bytes = len_bytes;
	io->iov = &bounce->iov;
	io->nr_iov = 1;
	lower_submit(emulation, io);
}

static void data_write(struct emulation_queue *emulation, struct bounce *bounce)
{
	iov_gather(bounce->request, bounce->at_bytes - bounce->request->offset_bytes,
		   bounce->buffer + (bounce->at_bytes - bounce->first_bytes), bounce->piece_bytes);
	bounce_submit(emulation, bounce, BOUNCE_DATA, REQUEST_WRITE, bounce->first_bytes,
		      bounce->end_bytes - bounce->first_bytes);
}

/* The last block, if the piece has a part of it only and it was not read as the first one. */
static void tail_read_or_write(struct emulation_queue *emulation, struct bounce *bounce)
{
	uint32_t block_bytes = lower_limits(emulation)->logical_block_bytes;
	uint64_t tail_bytes = bounce->end_bytes - block_bytes;
	bool head_read = bounce->at_bytes > bounce->first_bytes;

	if (bounce->at_bytes + bounce->piece_bytes == bounce->end_bytes ||
	    (head_read && tail_bytes == bounce->first_bytes))
		data_write(emulation, bounce);
	else
		bounce_submit(emulation, bounce, BOUNCE_TAIL, REQUEST_READ, tail_bytes,
			      block_bytes);
}

static void piece_start(struct emulation_queue *emulation, struct bounce *bounce)
{
	const struct request *request = bounce->request;
	const struct emulation_request *scratch = request->driver_scratch;
	uint64_t request_end_bytes = request->offset_bytes + request->len_bytes;
	uint64_t piece_end_bytes = request_end_bytes;

	bounce->first_bytes = block_down(emulation, bounce->at_bytes);
	bounce->end_bytes = scratch->end_bytes;
	if (bounce->end_bytes - bounce->first_bytes > BOUNCE_BYTES) {
		bounce->end_bytes = bounce->first_bytes + BOUNCE_BYTES;
		piece_end_bytes = bounce->end_bytes;
	}
	bounce->piece_bytes = piece_end_bytes - bounce->at_bytes;
	if (request->op == REQUEST_READ)
		bounce_submit(emulation, bounce, BOUNCE_DATA, REQUEST_READ, bounce->first_bytes,
			      bounce->end_bytes - bounce->first_bytes);
	else if (bounce->at_bytes > bounce->first_bytes)
		bounce_submit(emulation, bounce, BOUNCE_HEAD, REQUEST_READ, bounce->first_bytes,
			      lower_limits(emulation)->logical_block_bytes);
	else
		tail_read_or_write(emulation, bounce);
}

static void request_start(struct emulation_queue *emulation, struct request *request)
{
	struct emulation_request *scratch = request->driver_scratch;
	struct bounce *bounce;

	TAILQ_REMOVE(&emulation->waiting, request, link);
	if (scratch->writes)
		TAILQ_INSERT_TAIL(&emulation->writing, scratch, writing_link);
	if (!scratch->bounced) {
		straight_start(emulation, request);
		return;
	}
	bounce = bounce_find(emulation);
	bounce->request = request;
	bounce->at_bytes = request->offset_bytes;
	piece_start(emulation, bounce);
}

void sector_queue_submit(struct disk_queue *queue, struct request *request)
{
	struct emulation_queue *emulation = to_emulation(queue);
	struct emulation_request *scratch = request->driver_scratch;

	*scratch = (struct emulation_request){0};
	if (request->op == REQUEST_FLUSH) { /* of what has completed, below as here */
		straight_start(emulation, request);
		return;
	}
	scratch->writes = request->op != REQUEST_READ;
	scratch->bounced = request->op != REQUEST_DISCARD && bounce_needed(emulation, request);
	scratch->first_bytes = block_down(emulation, request->offset_bytes);
	scratch->end_bytes = block_up(emulation, request->offset_bytes + request->len_bytes);
	TAILQ_INSERT_TAIL(&emulation->waiting, request, link);
	if (may_start(emulation, request))
		request_start(emulation, request);
}

void sector_queue_kick(struct disk_queue *queue)
{
	struct emulation_queue *emulation = to_emulation(queue);

	emulation->submitted = false;
	lower_driver(emulation)->kick(emulation->lower);
}

int sector_queue_poll_fd(struct disk_queue *queue)
{
	struct emulation_queue *emulation = to_emulation(queue);

	return lower_driver(emulation)->poll_fd(emulation->lower);
}

/* ---- Up ----------------------------------------------------------------------------------------- */

static void request_finish(struct emulation_queue *emulation, struct request *request, int status)
{
	struct emulation_request *scratch = request->driver_scratch;

	if (scratch->writes)
		TAILQ_REMOVE(&emulation->writing, scratch, writing_link);
	request->status = status;
	TAILQ_INSERT_TAIL(&emulation->done, request, link);
	emulation->nr_done++;
}

static void bounce_finish(struct emulation_queue *emulation, struct bounce *bounce, int status)
{
	struct request *request = bounce->request;

	bounce->request = NULL;
	request_finish(emulation, request, status);
}

/* An I/O of @bounce has ended: on to the next one. */
static void bounce_advance(struct emulation_queue *emulation, struct bounce *bounce)
{
	struct request *request = bounce->request;

	if (bounce->io.status) {
		bounce_finish(emulation, bounce, bounce->io.status);
		return;
	}
	switch (bounce->phase) {
	case BOUNCE_HEAD:
		tail_read_or_write(emulation, bounce);
		return;
	case BOUNCE_TAIL:
		data_write(emulation, bounce);
		return;
	case BOUNCE_DATA:
		break;
	}
	if (request->op == REQUEST_READ)
		iov_scatter(request, bounce->at_bytes - request->offset_bytes,
			    bounce->buffer + (bounce->at_bytes - bounce->first_bytes),
			    bounce->piece_bytes);
	bounce->at_bytes += bounce->piece_bytes;
	if (bounce->at_bytes < request->offset_bytes + request->len_bytes)
		piece_start(emulation, bounce);
	else
		bounce_finish(emulation, bounce, 0);
}

static void lower_finished(struct emulation_queue *emulation, struct request *request)
{
	for (unsigned i = 0; i < NR_BOUNCES; i++) {
		if (request == &emulation->bounces[i].io) {
			bounce_advance(emulation, &emulation->bounces[i]);
			return;
		}
	}
	request->driver_scratch = (char *)request->driver_scratch - LOWER_SCRATCH_AT;
	request_finish(emulation, request, request->status);
}

static void waiting_start(struct emulation_queue *emulation)
{
	struct request *request, *next;

	for (request = TAILQ_FIRST(&emulation->waiting); request; request = next) {
		next = TAILQ_NEXT(request, link);
		if (may_start(emulation, request))
			request_start(emulation, request);
	}
}

unsigned sector_queue_reap(struct disk_queue *queue, struct request_list *done)
{
	struct emulation_queue *emulation = to_emulation(queue);
	const struct driver *driver = lower_driver(emulation);
	unsigned nr_done;

	/* Again after each kick: a disk below may finish at once, and announce nothing. */
	do {
		struct request_list finished = TAILQ_HEAD_INITIALIZER(finished);
		struct request *request;

		if (emulation->submitted)
			sector_queue_kick(queue);
		driver->reap(emulation->lower, &finished);
		while ((request = TAILQ_FIRST(&finished))) {
			TAILQ_REMOVE(&finished, request, link);
			lower_finished(emulation, request);
		}
		waiting_start(emulation);
	} while (emulation->submitted);
	TAILQ_CONCAT(done, &emulation->done, link);
	nr_done = emulation->nr_done;
	emulation->nr_done = 0;
	return nr_done;
}
