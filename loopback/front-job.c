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
	uint8_t queue;
	uint16_t nr_segments;
	uint16_t idx;
	unsigned turn;	     /* how often it had data */
	unsigned first_page; /* of its data, in the job's pages */
	uint64_t block;
	uint64_t id;
	uint64_t submitted_ns;
	struct blkif_segment *segments; /* max_segments of them */
};

/* Which operation the sequence has next. */
struct next {
	bool valid;
	bool check;
	uint8_t operation;
	bool has_data;
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
	unsigned writes_since_flush, writes_since_barrier, writes_since_discard;
	bool barrier_has_data;
	uint64_t layout_random; /* apart, so that it does not change the sequence */

	struct block *blocks; /* nr_blocks; NULL without verify */
	struct op *ops;	      /* depth */
	struct blkif_segment *segments;
	uint16_t *free_ops; /* stack of indices */
	unsigned nr_free;
	uint64_t nr_submitted; /* for ids, over the job's life */

	/* This run. */
	struct front_link *link;
	struct front_stats *stats;
	struct front_pages pages, tables; /* data; a page of segments for each operation */
	unsigned nr_turns;		  /* sets of pages that each operation has */
	uint64_t run_left;		  /* operations */
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
	[FRONT_JOB_DISCARD] = "discard",
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
				    ? config->max_segments
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
	job->segments =
		calloc((size_t)config->depth * config->max_segments, sizeof(*job->segments));
	if (config->verify || config->verify_only)
		job->blocks = calloc(job->nr_blocks, sizeof(*job->blocks));
	if (!job->ops || !job->free_ops || !job->segments ||
	    (!job->blocks && (config->verify || config->verify_only))) {
		err = error_set(error, ENOMEM,
				"out of memory for %llu blocks; verify a smaller range with --size",
				(unsigned long long)job->nr_blocks);
		goto destroy;
	}
	for (unsigned i = 0; i < config->depth; i++) {
		job->ops[i].idx = (uint16_t)i;
		job->ops[i].segments = job->segments + (size_t)i * config->max_segments;
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
	free(job->segments);
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
	if (config->barrier_every && job->writes_since_barrier >= config->barrier_every) {
		job->writes_since_barrier = 0;
		next->operation = BLKIF_WRITE_BARRIER;
		next->has_data = job->barrier_has_data;
		job->barrier_has_data = !job->barrier_has_data;
	} else if (config->discard_every && job->writes_since_discard >= config->discard_every) {
		job->writes_since_discard = 0;
		next->operation = BLKIF_DISCARD;
	}
	if (next->operation == BLKIF_WRITE_BARRIER && !next->has_data)
		return;
	switch (config->kind) {
	case FRONT_JOB_SEQ_READ:
	case FRONT_JOB_SEQ_WRITE:
	case FRONT_JOB_DISCARD:
		next->block = seq_block_next(job);
		break;
	default:
		next->block = front_random(&job->random) % job->nr_blocks;
	}
	if (next->operation)
		return;
	next->has_data = true;
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
	case FRONT_JOB_DISCARD:
		next->operation = BLKIF_DISCARD;
		next->has_data = false;
		break;
	default:
		next->operation = BLKIF_READ;
	}
	if (next->operation == BLKIF_WRITE) {
		job->writes_since_flush++;
		job->writes_since_barrier++;
		job->writes_since_discard++;
	}
}

/* Operations that change a block. */
static bool op_writes(uint8_t operation, bool has_data)
{
	return operation == BLKIF_WRITE || operation == BLKIF_DISCARD ||
	       (operation == BLKIF_WRITE_BARRIER && has_data);
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
		.has_data = true,
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
	bool writes = op_writes(job->next.operation, job->next.has_data);

	if (!job->blocks || (!writes && !job->next.has_data))
		return false;
	block = &job->blocks[job->next.block];
	return block->writing || (writes && block->nr_readers);
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
	unsigned left = job->sectors_per_block;

	op->nr_segments = 0;
	op->first_page =
		(op->idx + op->turn % job->nr_turns * job->config.depth) * job->pages_per_op;
	op->turn++;
	while (left) {
		unsigned nr = left < BLKIF_SECTORS_PER_PAGE ? left : BLKIF_SECTORS_PER_PAGE;
		unsigned first = 0, least;

		if (job->config.unaligned) {
			unsigned room_after = (job->config.max_segments - op->nr_segments - 1u) *
					      BLKIF_SECTORS_PER_PAGE;

			least = left > room_after ? left - room_after : 1;
			nr = least +
			     (unsigned)(front_random(&job->layout_random) % (nr - least + 1));
			first = (unsigned)(front_random(&job->layout_random) %
					   (BLKIF_SECTORS_PER_PAGE - nr + 1));
		}
		op->segments[op->nr_segments] = (struct blkif_segment){
			.gref = job->pages.grefs[op->first_page + op->nr_segments],
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
		uint8_t *page = job->pages.addr + (size_t)(op->first_page + i) * XEN_PAGE_SIZE;

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

/* The next queue in turn whose ring has room; there is one, since no more are in flight than all hold. */
static unsigned queue_choose(const struct front_job *job)
{
	const struct front_link *link = job->link;
	unsigned queue = (unsigned)(job->nr_submitted % link->nr_queues);

	while (!front_ring_nr_free(&link->queues[queue].ring))
		queue = (queue + 1) % link->nr_queues;
	return queue;
}

/* As a slot of the ring; the segments of a large one in its page of the tables. */
static void op_encode(struct front_job *job, const struct op *op, uint8_t *slot)
{
	const struct blkif_abi *abi = job->link->queues[op->queue].ring.abi;
	uint64_t sector = block_sector(job, op->block);
	struct front_request request;

	if (op->operation == BLKIF_DISCARD) {
		front_discard_encode(abi, op->id, 0, sector, job->sectors_per_block, slot);
		return;
	}
	if (op->nr_segments > BLKIF_MAX_SEGMENTS) {
		uint8_t *table = job->tables.addr + (size_t)op->idx * XEN_PAGE_SIZE;

		for (unsigned i = 0; i < op->nr_segments; i++)
			front_table_encode(table, i, op->segments[i]);
		front_indirect_encode(abi, op->id, op->operation, op->nr_segments, sector,
				      job->tables.grefs[op->idx], slot);
		return;
	}
	request = (struct front_request){
		.operation = op->operation,
		.nr_segments = (uint8_t)op->nr_segments,
		.id = op->id,
		.sector = op->nr_segments ? sector : 0,
	};
	memcpy(request.segments, op->segments, op->nr_segments * sizeof(*op->segments));
	front_request_encode(abi, &request, slot);
}

/* Mark the block, and prepare the memory: with verify only, since filling would be a part of what is
 * measured (pages_fill()'s data does then). */
static void op_prepare(struct front_job *job, struct op *op)
{
	struct block *block = &job->blocks[op->block];

	if (op_writes(op->operation, op->nr_segments)) {
		block->generation++;
		block->writing = true;
		op_each_sector(job, op, sector_fill);
	} else {
		block->nr_readers++;
		op_each_sector(job, op, sector_spoil);
	}
}

static void op_submit(struct front_job *job)
{
	struct op *op = &job->ops[job->free_ops[--job->nr_free]];
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	op->in_flight = true;
	op->check = job->next.check;
	op->operation = job->next.operation;
	op->block = job->next.block;
	op->nr_segments = 0;
	op->queue = (uint8_t)queue_choose(job);
	op->id = job->nr_submitted++ << ID_INDEX_BITS | op->idx;
	job->next.valid = false;
	if (job->next.has_data)
		op_layout(job, op);
	if (job->blocks && (op->nr_segments || op->operation == BLKIF_DISCARD))
		op_prepare(job, op);
	if (!op->check)
		job->run_left--;
	op_encode(job, op, slot);
	op->submitted_ns = clock_now_ns();
	if (job->nr_free + 1 == job->config.depth)
		job->progress_ns = op->submitted_ns;
	front_ring_put(&job->link->queues[op->queue].ring, slot);
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
	else if (op->operation == BLKIF_FLUSH_DISKCACHE)
		stats->nr_flushes++;
	else if (op->operation == BLKIF_WRITE_BARRIER)
		stats->nr_barriers++;
	else if (op->operation == BLKIF_DISCARD)
		stats->nr_discards++;
	else
		stats->nr_writes++;
	if (!status && op->nr_segments)
		stats->bytes += job->config.block_bytes;
}

static void op_finish(struct front_job *job, struct op *op, int16_t status)
{
	bool touches = op->nr_segments || op->operation == BLKIF_DISCARD;
	struct block *block = job->blocks && touches ? &job->blocks[op->block] : NULL;

	op_count(job, op, status);
	if (block && op->operation == BLKIF_READ) {
		block->nr_readers--;
		if (!status && block_checkable(block))
			op_each_sector(job, op, sector_check);
	} else if (block) {
		block->writing = false;
		/* A later write that succeeds makes it known again. */
		block->unknown = status != BLKIF_STATUS_OKAY || op->operation == BLKIF_DISCARD;
	}
	op->in_flight = false;
	job->free_ops[job->nr_free++] = op->idx;
}

/* Nothing overtakes a barrier on its ring, and it overtakes nothing (xen-contract.md §4.2). */
static int order_check(struct front_job *job, const struct op *op)
{
	for (unsigned i = 0; job->config.barrier_every && i < job->config.depth; i++) {
		const struct op *other = &job->ops[i];

		if (!other->in_flight || other->queue != op->queue || other->id >= op->id)
			continue;
		if (op->operation == BLKIF_WRITE_BARRIER || other->operation == BLKIF_WRITE_BARRIER)
			return error_set(
				job->error, EPROTO,
				"the %s with id %#llx was answered before the earlier %s with id %#llx",
				front_operation_name(op->operation), (unsigned long long)op->id,
				front_operation_name(other->operation),
				(unsigned long long)other->id);
	}
	return 0;
}

static int answer_take(struct front_job *job, unsigned queue, const struct front_response *response)
{
	uint64_t idx = response->id & ((1u << ID_INDEX_BITS) - 1);
	struct op *op = idx < job->config.depth ? &job->ops[idx] : NULL;

	int err;

	if (!op || !op->in_flight || op->id != response->id || op->queue != queue)
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
	err = order_check(job, op);
	if (!err)
		op_finish(job, op, response->status);
	return err;
}

/* ---- The run ------------------------------------------------------------------------------------ */

static unsigned nr_in_flight(const struct front_job *job)
{
	return job->config.depth - job->nr_free;
}

static int timeout_report(struct front_job *job)
{
	const struct front_ring *ring;
	const struct op *oldest = NULL;

	for (unsigned i = 0; i < job->config.depth; i++)
		if (job->ops[i].in_flight && (!oldest || job->ops[i].id < oldest->id))
			oldest = &job->ops[i];
	ring = &job->link->queues[oldest ? oldest->queue : 0].ring;
	return error_set(
		job->error, ETIMEDOUT,
		"waited %llu s for an answer: %u requests in flight, the oldest is the %s of sector %llu (id %#llx); ring: req_prod %u, rsp_prod %u, rsp_cons %u",
		(unsigned long long)(job->config.timeout_ns / NSEC_PER_SEC), nr_in_flight(job),
		front_operation_name(oldest ? oldest->operation : 0),
		oldest ? (unsigned long long)block_sector(job, oldest->block) : 0ull,
		oldest ? (unsigned long long)oldest->id : 0ull, ring->req_prod,
		front_ring_peek(ring, FRONT_OFF_RSP_PROD), ring->rsp_cons);
}

static int ring_answers_take(struct front_job *job, unsigned queue, unsigned *nr_taken)
{
	struct front_ring *ring = &job->link->queues[queue].ring;
	struct front_response response;
	int ret;

	while ((ret = front_ring_take(ring, &response)) == 1) {
		if (!*nr_taken)
			job->progress_ns = clock_now_ns();
		(*nr_taken)++;
		ret = answer_take(job, queue, &response);
		if (ret)
			return ret;
	}
	if (ret < 0)
		return error_set(
			job->error, -ret,
			"the backend's rsp_prod %u claims more answers than there are requests (%u published, %u answered)",
			front_ring_peek(ring, FRONT_OFF_RSP_PROD), ring->req_prod, ring->rsp_cons);
	return 0;
}

static int answers_take(struct front_job *job, unsigned *nr_taken)
{
	int err = 0;

	*nr_taken = 0;
	for (unsigned i = 0; !err && i < job->link->nr_queues; i++)
		err = ring_answers_take(job, i, nr_taken);
	return err;
}

static int event_wait(struct front_job *job)
{
	int err;

	for (unsigned i = 0; i < job->link->nr_queues; i++)
		if (front_ring_arm(&job->link->queues[i].ring))
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
		if (op_writes(next.operation, next.has_data)) {
			job->blocks[next.block].generation++;
			job->blocks[next.block].unknown = next.operation == BLKIF_DISCARD;
		}
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

static int pages_take(struct front_job *job)
{
	unsigned nr = job->config.depth * job->pages_per_op;
	int err;

	job->nr_turns = job->config.nr_pages > nr ? job->config.nr_pages / nr : 1;
	err = front_pages_share(job->link, nr * job->nr_turns, true, &job->pages, job->error);
	if (err || job->config.max_segments <= BLKIF_MAX_SEGMENTS)
		return err;
	err = front_pages_share(job->link, job->config.depth, false, &job->tables, job->error);
	if (err)
		front_pages_revoke(job->link, &job->pages);
	return err;
}

static int pages_give_back(struct front_job *job)
{
	int err = front_pages_revoke(job->link, &job->pages);
	int tables_err = front_pages_revoke(job->link, &job->tables);

	return err ? err : tables_err;
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
	err = pages_take(job);
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
	revoke_err = pages_give_back(job);
	if (revoke_err && !err)
		err = error_set(error, -revoke_err, "cannot revoke the data pages: %s",
				strerror(-revoke_err));
	return err;
}
