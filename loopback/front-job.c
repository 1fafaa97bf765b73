// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs: a stream of reads, writes and flushes at a depth, and the check that data came back right.
 *
 *   next_op -> (conflict? wait) -> op_submit -> kick -> take answers -> op_finish
 *
 * Owns: the sequence of operations, the requests in flight and their data pages, what each block must
 *   hold.
 * Trusts / does not trust: a backend under test, in nothing.
 * Runs on: one thread; sleeps for events only.
 * Must not know: xenstore.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/clock.h"
#include "loopback/front-job.h"
#include "loopback/front-pattern.h"

/* An id is a count above the index of its operation, so that a late or doubled answer is seen. */
#define ID_INDEX_BITS 16

/* What a block must hold; only with verify. */
struct block {
	uint32_t generation; /* of the last write submitted; 0: never written */
	uint16_t nr_readers; /* in flight */
	bool writing;	     /* one in flight */
	bool unknown;	     /* a write failed: it may have happened or not */
};

struct op {
	bool in_flight;
	bool check; /* of the verify pass */
	uint8_t operation;
	uint8_t nr_segments;
	uint16_t idx;
	uint64_t block;
	uint64_t id;
	uint64_t submitted_ns;
	struct blkif_segment segments[BLKIF_MAX_SEGMENTS];
};

/* Which operation the sequence has next. */
struct next {
	bool valid;
	bool check;
	uint8_t operation;
	uint64_t block;
};

struct front_job {
	struct front_job_config config;
	uint64_t first_sector;
	uint64_t nr_blocks;
	unsigned sectors_per_block;
	unsigned pages_per_op;

	/* The sequence. */
	uint64_t random;
	uint64_t seq_block;
	unsigned writes_since_flush;
	uint64_t layout_random; /* apart, so that it does not change the sequence */

	struct block *blocks; /* nr_blocks; NULL without verify */
	struct op *ops;	      /* depth */
	uint16_t *free_ops;   /* stack of indices */
	unsigned nr_free;
	uint64_t nr_submitted; /* for ids, over the job's life */

	/* This run. */
	struct front_link *link;
	struct front_stats *stats;
	struct front_pages pages;
	uint64_t run_left; /* operations */
	uint64_t run_end_ns;
	bool checking; /* the verify pass */
	uint64_t check_block;
	uint64_t progress_ns; /* when something was last submitted to an idle ring, or answered */
	struct next next;
	bool failed; /* stop submitting, drain, return result */
	int result;
	struct error *error;
};

static const char *const job_names[FRONT_JOB_KINDS] = {
	[FRONT_JOB_SEQ_READ] = "seq-read",   [FRONT_JOB_SEQ_WRITE] = "seq-write",
	[FRONT_JOB_RAND_READ] = "rand-read", [FRONT_JOB_RAND_WRITE] = "rand-write",
	[FRONT_JOB_MIXED] = "mixed",	     [FRONT_JOB_FLUSH] = "flush",
};

const char *front_job_name(enum front_job_kind kind)
{
	return job_names[kind];
}

int front_job_kind_parse(const char *name, enum front_job_kind *kind_out)
{
	for (int kind = 0; kind < FRONT_JOB_KINDS; kind++) {
		if (strcmp(name, job_names[kind]))
			continue;
		*kind_out = (enum front_job_kind)kind;
		return 0;
	}
	return -EINVAL;
}

/* ---- Making ------------------------------------------------------------------------------------- */

static int range_fit(struct front_job *job, uint64_t nr_sectors512, struct error *error)
{
	const struct front_job_config *config = &job->config;
	uint64_t disk_bytes = nr_sectors512 * BLKIF_SECTOR_BYTES;
	uint64_t size_bytes = config->size_bytes;

	if (config->offset_bytes >= disk_bytes)
		return error_set(error, EINVAL, "--offset %llu lies beyond the disk's %llu bytes",
				 (unsigned long long)config->offset_bytes,
				 (unsigned long long)disk_bytes);
	if (!size_bytes)
		size_bytes = disk_bytes - config->offset_bytes;
	if (size_bytes > disk_bytes - config->offset_bytes)
		return error_set(error, EINVAL,
				 "--offset %llu and --size %llu reach beyond the disk's %llu bytes",
				 (unsigned long long)config->offset_bytes,
				 (unsigned long long)size_bytes, (unsigned long long)disk_bytes);
	job->nr_blocks = size_bytes / config->block_bytes;
	if (!job->nr_blocks)
		return error_set(
			error, EINVAL,
			"no block of %u bytes fits into a range of %llu bytes; give a smaller --block-size",
			config->block_bytes, (unsigned long long)size_bytes);
	job->first_sector = config->offset_bytes / BLKIF_SECTOR_BYTES;
	job->sectors_per_block = config->block_bytes / BLKIF_SECTOR_BYTES;
	job->pages_per_op = config->unaligned
				    ? BLKIF_MAX_SEGMENTS
				    : (config->block_bytes + XEN_PAGE_SIZE - 1) / XEN_PAGE_SIZE;
	return 0;
}

int front_job_create(const struct front_job_config *config, uint64_t nr_sectors512,
		     struct front_job **job_out, struct error *error)
{
	struct front_job *job = calloc(1, sizeof(*job));
	int err;

	if (!job)
		return error_set(error, ENOMEM, "out of memory");
	job->config = *config;
	job->random = config->seed;
	job->layout_random = ~config->seed;
	err = range_fit(job, nr_sectors512, error);
	if (err)
		goto destroy;
	job->ops = calloc(config->depth, sizeof(*job->ops));
	job->free_ops = calloc(config->depth, sizeof(*job->free_ops));
	if (config->verify || config->verify_only)
		job->blocks = calloc(job->nr_blocks, sizeof(*job->blocks));
	if (!job->ops || !job->free_ops ||
	    (!job->blocks && (config->verify || config->verify_only))) {
		err = error_set(error, ENOMEM,
				"out of memory for %llu blocks; verify a smaller range with --size",
				(unsigned long long)job->nr_blocks);
		goto destroy;
	}
	for (unsigned i = 0; i < config->depth; i++) {
		job->ops[i].idx = (uint16_t)i;
		job->free_ops[job->nr_free++] = (uint16_t)i;
	}
	*job_out = job;
	return 0;

destroy:
	front_job_destroy(job);
	return err;
}

void front_job_destroy(struct front_job *job)
{
	if (!job)
		return;
	free(job->blocks);
	free(job->free_ops);
	free(job->ops);
	free(job);
}

/* ---- The sequence ------------------------------------------------------------------------------- */

static uint64_t seq_block_next(struct front_job *job)
{
	uint64_t block = job->seq_block;

	job->seq_block = (block + 1) % job->nr_blocks;
	return block;
}

/* The next operation of the job proper; depends on nothing but the configuration and how often it was
 * called. */
static void sequence_next(struct front_job *job, struct next *next)
{
	const struct front_job_config *config = &job->config;

	*next = (struct next){.valid = true};
	if (config->kind == FRONT_JOB_FLUSH ||
	    (config->flush_every && job->writes_since_flush >= config->flush_every)) {
		job->writes_since_flush = 0;
		next->operation = BLKIF_FLUSH_DISKCACHE;
		return;
	}
	switch (config->kind) {
	case FRONT_JOB_SEQ_READ:
	case FRONT_JOB_SEQ_WRITE:
		next->block = seq_block_next(job);
		break;
	default:
		next->block = front_random(&job->random) % job->nr_blocks;
	}
	switch (config->kind) {
	case FRONT_JOB_SEQ_WRITE:
	case FRONT_JOB_RAND_WRITE:
		next->operation = BLKIF_WRITE;
		break;
	case FRONT_JOB_MIXED:
		next->operation = front_random(&job->random) % 100 < config->read_percent
					  ? BLKIF_READ
					  : BLKIF_WRITE;
		break;
	default:
		next->operation = BLKIF_READ;
	}
	if (next->operation == BLKIF_WRITE)
		job->writes_since_flush++;
}

static bool block_checkable(const struct block *block)
{
	return block->generation && !block->unknown;
}

/* The next operation of the verify pass: each block whose contents are known. */
static void check_next(struct front_job *job, struct next *next)
{
	while (job->check_block < job->nr_blocks &&
	       !block_checkable(&job->blocks[job->check_block]))
		job->check_block++;
	*next = (struct next){
		.valid = job->check_block < job->nr_blocks,
		.check = true,
		.operation = BLKIF_READ,
		.block = job->check_block,
	};
	if (next->valid)
		job->check_block++;
}

static bool run_over(const struct front_job *job)
{
	/* Asked to stop, a job still checks what it did: success means verified. */
	return job->failed || (!job->checking && (job->link->stop || !job->run_left ||
						  clock_now_ns() >= job->run_end_ns));
}

/* Have job->next filled if there is anything left to do. */
static bool next_op(struct front_job *job)
{
	if (run_over(job))
		return false;
	if (job->next.valid)
		return true;
	if (job->checking) {
		check_next(job, &job->next);
	} else {
		sequence_next(job, &job->next);
	}
	return job->next.valid;
}

static bool next_conflicts(const struct front_job *job)
{
	const struct block *block;

	if (!job->blocks || job->next.operation == BLKIF_FLUSH_DISKCACHE)
		return false;
	block = &job->blocks[job->next.block];
	return block->writing || (job->next.operation == BLKIF_WRITE && block->nr_readers);
}

/* ---- Data --------------------------------------------------------------------------------------- */

static uint64_t block_sector(const struct front_job *job, uint64_t block)
{
	return job->first_sector + block * job->sectors_per_block;
}

/* Cut a block into segments: page by page, or at random places (so that segments begin and end within
 * pages), in as many as are allowed. */
static void op_layout(struct front_job *job, struct op *op)
{
	unsigned left = job->sectors_per_block, first_page = op->idx * job->pages_per_op;

	op->nr_segments = 0;
	while (left) {
		unsigned nr = left < BLKIF_SECTORS_PER_PAGE ? left : BLKIF_SECTORS_PER_PAGE;
		unsigned first = 0, least;

		if (job->config.unaligned) {
			unsigned room_after = (BLKIF_MAX_SEGMENTS - op->nr_segments - 1u) *
					      BLKIF_SECTORS_PER_PAGE;

			least = left > room_after ? left - room_after : 1;
			nr = least +
			     (unsigned)(front_random(&job->layout_random) % (nr - least + 1));
			first = (unsigned)(front_random(&job->layout_random) %
					   (BLKIF_SECTORS_PER_PAGE - nr + 1));
		}
		op->segments[op->nr_segments] = (struct blkif_segment){
			.gref = job->pages.grefs[first_page + op->nr_segments],
			.first_sector = (uint8_t)first,
			.last_sector = (uint8_t)(first + nr - 1),
		};
		op->nr_segments++;
		left -= nr;
	}
}

/* Call @visit for each sector of the operation's block, in order; stops at the first non-zero. */
static int op_each_sector(struct front_job *job, const struct op *op,
			  int (*visit)(struct front_job *job, const struct op *op, unsigned idx,
				       uint8_t *data))
{
	unsigned idx = 0;

	for (unsigned i = 0; i < op->nr_segments; i++) {
		const struct blkif_segment *segment = &op->segments[i];
		uint8_t *page =
			job->pages.addr + (size_t)(op->idx * job->pages_per_op + i) * XEN_PAGE_SIZE;

		for (unsigned s = segment->first_sector; s <= segment->last_sector; s++) {
			int ret = visit(job, op, idx++, page + s * BLKIF_SECTOR_BYTES);

			if (ret)
				return ret;
		}
	}
	return 0;
}

static struct front_tag sector_tag(const struct front_job *job, const struct op *op, unsigned idx)
{
	return (struct front_tag){
		.sector = block_sector(job, op->block) + idx,
		.generation = job->blocks[op->block].generation,
		.seed = job->config.seed,
	};
}

static int sector_fill(struct front_job *job, const struct op *op, unsigned idx, uint8_t *data)
{
	struct front_tag tag = sector_tag(job, op, idx);

	front_pattern_fill(data, &tag);
	return 0;
}

/* What was there before must not pass for what is read. */
static int sector_spoil(struct front_job *job, const struct op *op, unsigned idx, uint8_t *data)
{
	(void)job;
	(void)op;
	(void)idx;
	memset(data, 0xdb, 16);
	return 0;
}

static void job_fail(struct front_job *job, int result)
{
	job->failed = true;
	if (!job->result)
		job->result = result;
}

/* After a run that was cut short, a place may hold any of its writes so far, or none. */
static bool finding_tolerated(const struct front_job *job, enum front_finding finding)
{
	return job->config.any_generation &&
	       (finding == FRONT_STALE || finding == FRONT_LOST || finding == FRONT_FOREIGN ||
		finding == FRONT_OTHER_SEED);
}

static int sector_check(struct front_job *job, const struct op *op, unsigned idx, uint8_t *data)
{
	struct front_tag expected = sector_tag(job, op, idx), seen;
	enum front_finding finding = front_pattern_check(data, &expected, &seen);
	char text[256];

	job->stats->nr_sectors_verified++;
	if (finding == FRONT_GOOD || finding_tolerated(job, finding))
		return 0;
	if (!job->failed) {
		front_pattern_describe(finding, &expected, &seen, text, sizeof(text));
		/* Good sectors before a bad one in one request: only part of its write took place. */
		error_set(job->error, EILSEQ, "wrong data in %s%s", text,
			  idx ? " (torn write: sectors before it in the same request are right)"
			      : "");
	}
	job_fail(job, -EILSEQ);
	return 1;
}

/* ---- One operation ------------------------------------------------------------------------------ */

static void op_submit(struct front_job *job)
{
	const struct front_link *link = job->link;
	struct op *op = &job->ops[job->free_ops[--job->nr_free]];
	struct block *block = NULL;
	struct front_request request;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	op->in_flight = true;
	op->check = job->next.check;
	op->operation = job->next.operation;
	op->block = job->next.block;
	op->nr_segments = 0;
	op->id = job->nr_submitted++ << ID_INDEX_BITS | op->idx;
	job->next.valid = false;
	if (op->operation != BLKIF_FLUSH_DISKCACHE) {
		block = job->blocks ? &job->blocks[op->block] : NULL;
		op_layout(job, op);
	}
	if (op->operation == BLKIF_WRITE) {
		if (block) {
			block->generation++;
			block->writing = true;
		}
		/* Without verify pages_fill()'s data does: filling would be part of what we measure. */
		if (block)
			op_each_sector(job, op, sector_fill);
	} else if (block) {
		block->nr_readers++;
		op_each_sector(job, op, sector_spoil);
	}
	if (!op->check)
		job->run_left--;
	request = (struct front_request){
		.operation = op->operation,
		.nr_segments = op->nr_segments,
		.id = op->id,
		.sector = op->nr_segments ? block_sector(job, op->block) : 0,
	};
	memcpy(request.segments, op->segments, sizeof(request.segments));
	front_request_encode(link->ring.abi, &request, slot);
	op->submitted_ns = clock_now_ns();
	if (job->nr_free + 1 == job->config.depth)
		job->progress_ns = op->submitted_ns;
	front_ring_put(&job->link->ring, slot);
}

static void status_count(struct front_job *job, const struct op *op, int16_t status)
{
	struct front_stats *stats = job->stats;

	if (status == BLKIF_STATUS_ERROR)
		stats->nr_errors++;
	else if (status == BLKIF_STATUS_EOPNOTSUPP)
		stats->nr_unsupported++;
	else if (status != BLKIF_STATUS_OKAY)
		stats->nr_other_status++;
	if (status == BLKIF_STATUS_OKAY || job->config.allow_errors || job->result)
		return;
	/* The run goes on, to see how many there are; the first one is told. */
	job->result = error_set(
		job->error, EIO, "%s of sector %llu (%u bytes) was answered %s (%d)",
		front_operation_name(op->operation),
		(unsigned long long)block_sector(job, op->block),
		op->nr_segments ? job->config.block_bytes : 0, front_status_name(status), status);
}

static void op_count(struct front_job *job, const struct op *op, int16_t status)
{
	struct front_stats *stats = job->stats;

	status_count(job, op, status);
	if (op->check) {
		stats->nr_checks++;
		return;
	}
	front_latency_add(stats, job->progress_ns - op->submitted_ns);
	if (op->operation == BLKIF_READ)
		stats->nr_reads++;
	else if (op->operation == BLKIF_WRITE)
		stats->nr_writes++;
	else
		stats->nr_flushes++;
	if (!status && op->nr_segments)
		stats->bytes += job->config.block_bytes;
}

static void op_finish(struct front_job *job, struct op *op, int16_t status)
{
	struct block *block = job->blocks && op->nr_segments ? &job->blocks[op->block] : NULL;

	op_count(job, op, status);
	if (block && op->operation == BLKIF_READ) {
		block->nr_readers--;
		if (!status && block_checkable(block))
			op_each_sector(job, op, sector_check);
	} else if (block) {
		block->writing = false;
		/* A later write that succeeds makes it known again. */
		block->unknown = status != BLKIF_STATUS_OKAY;
	}
	op->in_flight = false;
	job->free_ops[job->nr_free++] = op->idx;
}

static int answer_take(struct front_job *job, const struct front_response *response)
{
	uint64_t idx = response->id & ((1u << ID_INDEX_BITS) - 1);
	struct op *op = idx < job->config.depth ? &job->ops[idx] : NULL;

	if (!op || !op->in_flight || op->id != response->id)
		return error_set(
			job->error, EPROTO,
			"answer with id %#llx, operation %u, status %d: no request with this id is in flight",
			(unsigned long long)response->id, response->operation, response->status);
	if (response->operation != op->operation)
		return error_set(job->error, EPROTO,
				 "answer to the %s of sector %llu names operation %u instead of %u",
				 front_operation_name(op->operation),
				 (unsigned long long)block_sector(job, op->block),
				 response->operation, op->operation);
	op_finish(job, op, response->status);
	return 0;
}

/* ---- The run ------------------------------------------------------------------------------------ */

static unsigned nr_in_flight(const struct front_job *job)
{
	return job->config.depth - job->nr_free;
}

static int timeout_report(struct front_job *job)
{
	const struct front_ring *ring = &job->link->ring;
	const struct op *oldest = NULL;

	for (unsigned i = 0; i < job->config.depth; i++)
		if (job->ops[i].in_flight && (!oldest || job->ops[i].id < oldest->id))
			oldest = &job->ops[i];
	return error_set(
		job->error, ETIMEDOUT,
		"waited %llu s for an answer: %u requests in flight, the oldest is the %s of sector %llu (id %#llx); ring: req_prod %u, rsp_prod %u, rsp_cons %u",
		(unsigned long long)(job->config.timeout_ns / NSEC_PER_SEC), nr_in_flight(job),
		front_operation_name(oldest ? oldest->operation : 0),
		oldest ? (unsigned long long)block_sector(job, oldest->block) : 0ull,
		oldest ? (unsigned long long)oldest->id : 0ull, ring->req_prod,
		front_ring_peek(ring, FRONT_OFF_RSP_PROD), ring->rsp_cons);
}

static int answers_take(struct front_job *job, unsigned *nr_taken)
{
	struct front_response response;
	int ret;

	*nr_taken = 0;
	while ((ret = front_ring_take(&job->link->ring, &response)) == 1) {
		if (!*nr_taken)
			job->progress_ns = clock_now_ns();
		(*nr_taken)++;
		ret = answer_take(job, &response);
		if (ret)
			return ret;
	}
	if (ret < 0)
		return error_set(
			job->error, -ret,
			"the backend's rsp_prod %u claims more answers than there are requests (%u published, %u answered)",
			front_ring_peek(&job->link->ring, FRONT_OFF_RSP_PROD),
			job->link->ring.req_prod, job->link->ring.rsp_cons);
	return 0;
}

static int event_wait(struct front_job *job)
{
	int err;

	if (front_ring_arm(&job->link->ring))
		return 0;
	if (job->link->peer_gone)
		return error_set(job->error, ENOTCONN,
				 "the backend left with %u requests in flight", nr_in_flight(job));
	err = front_link_wait(job->link, job->progress_ns + job->config.timeout_ns);
	if (err == -ETIMEDOUT)
		return timeout_report(job);
	return err ? error_set(job->error, -err, "cannot wait for events: %s", strerror(-err)) : 0;
}

/* Keep the ring full until there is nothing left to submit and all is answered. */
static int phase_run(struct front_job *job)
{
	for (;;) {
		unsigned nr_taken;
		int err;

		while (job->nr_free && next_op(job) && !next_conflicts(job))
			op_submit(job);
		err = front_link_kick(job->link);
		if (err)
			return error_set(job->error, -err, "cannot notify the backend: %s",
					 strerror(-err));
		if (!nr_in_flight(job))
			return 0;
		err = answers_take(job, &nr_taken);
		if (!err && !nr_taken)
			err = event_wait(job);
		if (err)
			return err;
	}
}

/* Work out what a run with this configuration has left, without doing it. */
static void sequence_replay(struct front_job *job)
{
	struct next next;

	for (; job->run_left; job->run_left--) {
		sequence_next(job, &next);
		if (next.operation == BLKIF_WRITE)
			job->blocks[next.block].generation++;
	}
}

static uint64_t run_count(const struct front_job *job)
{
	const struct front_job_config *config = &job->config;

	if (config->count)
		return config->count;
	if (config->runtime_ns)
		return UINT64_MAX;
	return config->kind == FRONT_JOB_FLUSH ? 1 : job->nr_blocks;
}

/* The verify pass. An operation that waited for its turn when time was up keeps it for the next run. */
static int blocks_check(struct front_job *job)
{
	struct next waiting = job->next;
	int err;

	job->checking = true;
	job->check_block = 0;
	job->next.valid = false;
	err = phase_run(job);
	job->next = waiting;
	return err;
}

/* Something that is not all zeroes, which some storage would treat in its own way; not this seed's, so
 * that no check takes it for its own. */
static void pages_fill(struct front_job *job)
{
	for (unsigned i = 0; i < job->pages.nr * BLKIF_SECTORS_PER_PAGE; i++) {
		struct front_tag tag = {.sector = i, .seed = ~job->config.seed};

		front_pattern_fill(job->pages.addr + (size_t)i * BLKIF_SECTOR_BYTES, &tag);
	}
}

static void ops_reset(struct front_job *job)
{
	/* An earlier run may have ended with requests in flight, on a connection that is gone. */
	job->nr_free = 0;
	for (unsigned i = 0; i < job->config.depth; i++) {
		job->ops[i].in_flight = false;
		job->free_ops[job->nr_free++] = (uint16_t)i;
	}
}

int front_job_run(struct front_job *job, struct front_link *link, struct front_stats *stats,
		  struct error *error)
{
	uint64_t start_ns;
	int err, revoke_err;

	job->link = link;
	job->stats = stats;
	job->error = error;
	job->failed = false;
	job->result = 0;
	job->checking = false;
	job->run_left = run_count(job);
	ops_reset(job);
	err = front_pages_share(link, job->config.depth * job->pages_per_op, true, &job->pages,
				error);
	if (err)
		return err;
	if (!job->blocks)
		pages_fill(job);
	start_ns = clock_now_ns();
	job->run_end_ns = job->config.runtime_ns ? start_ns + job->config.runtime_ns : UINT64_MAX;
	if (job->config.verify_only) {
		sequence_replay(job);
	} else {
		err = phase_run(job);
		stats->elapsed_ns += clock_now_ns() - start_ns;
	}
	if (!err && job->blocks && !job->failed)
		err = blocks_check(job);
	if (!err)
		err = job->result;
	revoke_err = front_pages_revoke(link, &job->pages);
	if (revoke_err && !err)
		err = error_set(error, -revoke_err, "cannot revoke the data pages: %s",
				strerror(-revoke_err));
	return err;
}
