// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The data path between a mock transport and a mock driver.
 *
 * Owns: nothing. Trusts: the contracts in include/transport.h, driver.h, request.h and dataplane.h; what a
 *   flush failure may and may not do to a Linux guest: xen-blkfront's blkif_interrupt() (an ERROR to a
 *   FLUSH_DISKCACHE without segments is taken for "flush unsupported", reported as success, and flushing
 *   is given up for good; an ERROR to one with segments gives up flushing, too).
 * Runs on: the test. Must not know: rings, files.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "backend/dataplane.h"
#include "tests/unit/mock-path.h"
#include "tests/unit/unit.h"

struct path {
	struct dataplane dataplane;
	struct mock_journal journal;
	struct mock_wire wire;
	struct mock_disk disk;
	void *pool_memory;
	unsigned nr_broken, nr_flush_failed;
	int trouble_err;
};

static struct path *path; /* of the test that runs */

static void trouble_note(struct dataplane *dataplane, enum dataplane_trouble trouble, int err)
{
	assert_ptr_equal(dataplane, &path->dataplane);
	if (trouble == DATAPLANE_RING_BROKEN)
		path->nr_broken++;
	else
		path->nr_flush_failed++;
	path->trouble_err = err;
}

static void path_connect(unsigned nr_slots)
{
	mock_wire_init(&path->wire, &path->journal, nr_slots);
	mock_disk_init(&path->disk, &path->journal);
	path->pool_memory = calloc(1, dataplane_pool_size(&path->wire.transport, &path->disk.disk));
	assert_non_null(path->pool_memory);
	dataplane_init(&path->dataplane, &path->wire.transport, &path->disk.queue,
		       &path->disk.disk.limits, path->pool_memory, trouble_note);
}

static int set_up(void **state)
{
	static struct path memory;

	(void)state;
	memset(&memory, 0, sizeof(memory));
	path = &memory;
	path_connect(32);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(path->pool_memory);
	return 0;
}

static bool run(void)
{
	return dataplane_run(&path->dataplane);
}

static unsigned add(enum request_op op)
{
	return mock_wire_add(&path->wire, op, 0);
}

static unsigned add_preflush(void)
{
	return mock_wire_add(&path->wire, REQUEST_WRITE, REQUEST_PREFLUSH);
}

static void journal_expect(const char *text)
{
	if (strcmp(path->journal.text, text))
		fail_msg("happened: %s\n should be: %s", path->journal.text, text);
	path->journal.text[0] = '\0';
}

static void answer_expect(unsigned id, int status)
{
	if (path->wire.nr_answers[id - 1] != 1)
		fail_msg("request %u has %u answers", id, path->wire.nr_answers[id - 1]);
	if (path->wire.answers[id - 1] != status)
		fail_msg("request %u was answered %d, should be %d", id, path->wire.answers[id - 1],
			 status);
}

static void unanswered_expect(unsigned id)
{
	assert_int_equal(path->wire.nr_answers[id - 1], 0);
}

static unsigned nr_held(void)
{
	struct request *request;
	unsigned nr = 0;

	TAILQ_FOREACH(request, &path->dataplane.held, link)
		nr++;
	return nr;
}

/* Nothing in flight, nothing lost: the pool has all but the held ones, and all is published. */
static void balance_expect(void)
{
	assert_true(dataplane_idle(&path->dataplane));
	assert_int_equal(path->dataplane.pool.nr_free + nr_held(), path->wire.transport.nr_slots);
	assert_int_equal(path->wire.nr_answered + nr_held(), path->wire.nr_popped);
	assert_int_equal(path->wire.nr_unpublished, 0);
}

/* ---- The straight path -------------------------------------------------------------------------- */

/* dataplane.h: a batch is one load, one kick, one store, one flush; arm comes last, when nothing moves. */
static void a_batch_is_one_of_each(void **state)
{
	(void)state;
	add(REQUEST_READ);
	add(REQUEST_WRITE);
	add(REQUEST_FLUSH);
	assert_false(run());
	journal_expect("pop1 pop2 pop3 pop0 load submit1R submit2W submit3F kick pop0 arm ");
	for (unsigned id = 3; id; id--)
		mock_disk_finish(&path->disk, id, 0);
	assert_false(run());
	/* In the order of completion, published at once. */
	journal_expect("pop0 reap store respond3 respond2 respond1 flush pop0 arm ");
	for (unsigned id = 1; id <= 3; id++)
		answer_expect(id, 0);
	balance_expect();
	assert_int_equal(path->dataplane.stats.nr_reads, 1);
	assert_int_equal(path->dataplane.stats.nr_writes, 1);
	assert_int_equal(path->dataplane.stats.nr_flushes, 1);
	assert_int_equal(path->dataplane.stats.read_bytes, 4096);
	assert_int_equal(path->dataplane.stats.written_bytes, 4096);
	assert_int_equal(path->dataplane.stats.nr_batches, 1);
}

/* A driver that finishes inside submit() is reaped in the same pass. */
static void at_once(void **state)
{
	(void)state;
	path->disk.at_once = true;
	add(REQUEST_READ);
	add(REQUEST_WRITE);
	assert_false(run());
	journal_expect(
		"pop1 pop2 pop0 load submit1R submit2W kick reap store respond1 respond2 flush "
		"pop0 arm ");
	balance_expect();
}

static void nothing_to_do(void **state)
{
	(void)state;
	assert_false(run());
	journal_expect("pop0 arm ");
	assert_false(run());
	journal_expect("pop0 arm ");
	balance_expect();
}

/* Errors of storage and of grants reach the one request they belong to. */
static void errors_are_each_ones_own(void **state)
{
	unsigned read_bad, write_unloadable, read_unstorable, good;

	(void)state;
	read_bad = add(REQUEST_READ);
	write_unloadable = add(REQUEST_WRITE);
	path->wire.requests[write_unloadable - 1].load_status = -EFAULT;
	read_unstorable = add(REQUEST_READ);
	path->wire.requests[read_unstorable - 1].store_status = -EFAULT;
	good = add(REQUEST_WRITE);
	assert_false(run());
	/* A write whose data could not be had is answered without the driver. */
	answer_expect(write_unloadable, -EFAULT);
	assert_false(mock_disk_has(&path->disk, write_unloadable));
	mock_disk_finish(&path->disk, read_bad, -EIO);
	mock_disk_finish(&path->disk, read_unstorable, 0);
	mock_disk_finish(&path->disk, good, 0);
	assert_false(run());
	answer_expect(read_bad, -EIO);
	answer_expect(read_unstorable, -EFAULT);
	answer_expect(good, 0);
	balance_expect();
	assert_int_equal(path->disk.nr_submitted, 3);
	assert_int_equal(path->dataplane.stats.written_bytes, 4096);
}

/* What the decoder or the gate refuses is answered in the same pass, and no driver sees it. */
static void refused_requests(void **state)
{
	unsigned malformed, unknown, outside;

	(void)state;
	malformed = add(REQUEST_READ);
	path->wire.requests[malformed - 1].status = -EINVAL;
	unknown = add(REQUEST_READ);
	path->wire.requests[unknown - 1].status = -EOPNOTSUPP;
	outside = add(REQUEST_WRITE);
	path->wire.requests[outside - 1].offset_bytes = 1024 * 4096;
	assert_false(run());
	journal_expect("pop1 pop2 pop3 pop0 store respond1 respond2 respond3 flush pop0 arm ");
	answer_expect(malformed, -EINVAL);
	answer_expect(unknown, -EOPNOTSUPP);
	answer_expect(outside, -ERANGE);
	balance_expect();
	assert_int_equal(path->dataplane.stats.nr_refused, 3);
	assert_int_equal(path->disk.nr_submitted, 0);
}

/* A storage error that happens to be EOPNOTSUPP must not look like a feature that is not there (R12,
 * xen-contract.md §4.3): the guest would switch it off for good. */
static void driver_cannot_say_unsupported(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		add(i ? REQUEST_WRITE : REQUEST_READ);
	add_preflush();
	path->wire.ops.flush_error_is_deadly = false;
	add(REQUEST_FLUSH);
	path->disk.at_once = true;
	path->disk.at_once_status = -EOPNOTSUPP;
	assert_false(run());
	for (unsigned id = 1; id <= 4; id++)
		answer_expect(id, -EIO);
	balance_expect();
}

static void read_only_disk(void **state)
{
	(void)state;
	path->dataplane.limits.can_write = false;
	add(REQUEST_WRITE);
	add(REQUEST_READ);
	path->disk.at_once = true;
	assert_false(run());
	answer_expect(1, -EROFS);
	answer_expect(2, 0);
	assert_int_equal(path->disk.nr_submitted, 1);
}

/* A feature that was not offered is unsupported; that answer is never held. */
static void flush_not_offered(void **state)
{
	(void)state;
	path->dataplane.limits.can_flush = false;
	add(REQUEST_FLUSH);
	add_preflush();
	assert_false(run());
	answer_expect(1, -EOPNOTSUPP);
	answer_expect(2, -EOPNOTSUPP);
	assert_int_equal(path->nr_flush_failed, 0);
	balance_expect();
}

/* ---- A write with a flush before it ------------------------------------------------------------- */

static void preflush_in_order(void **state)
{
	(void)state;
	add_preflush();
	assert_false(run());
	journal_expect("pop1 pop0 load submit1F kick pop0 arm ");
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	/* The flush is done: now the write, with its own kick. Nothing is answered yet. */
	journal_expect("pop0 reap submit1W kick pop0 arm ");
	unanswered_expect(1);
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	answer_expect(1, 0);
	balance_expect();
	assert_int_equal(path->dataplane.stats.nr_writes, 1);
	assert_int_equal(path->dataplane.stats.nr_flushes, 0);
	assert_int_equal(path->dataplane.stats.written_bytes, 4096);
}

static void preflush_at_once(void **state)
{
	(void)state;
	path->disk.at_once = true;
	add_preflush();
	add(REQUEST_READ);
	assert_false(run());
	answer_expect(1, 0);
	answer_expect(2, 0);
	assert_int_equal(path->disk.nr_submitted, 3);
	balance_expect();
}

static void preflush_fails(void **state)
{
	(void)state;
	add_preflush();
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -EIO);
	assert_false(run());
	unanswered_expect(1);
	assert_int_equal(path->disk.nr_submitted, 1); /* the write never was */
	balance_expect();
}

static void preflush_write_fails(void **state)
{
	(void)state;
	add_preflush();
	assert_false(run());
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -ENOSPC);
	assert_false(run());
	answer_expect(1, -ENOSPC);
	assert_int_equal(path->nr_flush_failed, 0);
	balance_expect();
}

/* ---- A write that is on stable storage when it is answered -------------------------------------- */

static void fua_in_order(void **state)
{
	(void)state;
	mock_wire_add(&path->wire, REQUEST_WRITE, REQUEST_FUA);
	assert_false(run());
	journal_expect("pop1 pop0 load submit1W kick pop0 arm ");
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	journal_expect("pop0 reap submit1F kick pop0 arm ");
	unanswered_expect(1);
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	answer_expect(1, 0);
	assert_int_equal(path->dataplane.stats.nr_writes, 1);
	balance_expect();
}

/* Its data may be lost: held like a flush. A write that fails is an error, and needs no flush. */
static void fua_fails(void **state)
{
	(void)state;
	mock_wire_add(&path->wire, REQUEST_WRITE, REQUEST_FUA);
	mock_wire_add(&path->wire, REQUEST_WRITE, REQUEST_FUA);
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -ENOSPC);
	mock_disk_finish(&path->disk, 2, 0);
	assert_false(run());
	answer_expect(1, -ENOSPC);
	mock_disk_finish(&path->disk, 2, -EIO);
	assert_false(run());
	unanswered_expect(2);
	assert_int_equal(path->nr_flush_failed, 1);
	balance_expect();
}

/* ---- Barriers: xen-contract.md §4.2, faults.md R13 ---------------------------------------------- */

#define BARRIER_DATA (REQUEST_PREFLUSH | REQUEST_FUA | REQUEST_BARRIER)

static void barrier_orders(void **state)
{
	(void)state;
	add(REQUEST_WRITE);
	add(REQUEST_WRITE);
	mock_wire_add(&path->wire, REQUEST_WRITE, BARRIER_DATA);
	add(REQUEST_WRITE);
	assert_false(run());
	/* The barrier's data is fetched with the rest; it waits, and nothing is fetched behind it. */
	journal_expect("pop1 pop2 pop3 load submit1W submit2W kick ");
	mock_disk_finish(&path->disk, 2, 0);
	assert_false(run());
	assert_int_equal(path->disk.nr_submitted, 2);
	path->journal.text[0] = '\0';
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	journal_expect("reap store respond1 flush submit3F kick ");
	for (unsigned part = 0; part < 2; part++) { /* the flush, the write */
		mock_disk_finish(&path->disk, 3, 0);
		assert_false(run());
		unanswered_expect(3);
		assert_int_equal(path->wire.nr_popped, 3);
	}
	path->journal.text[0] = '\0';
	mock_disk_finish(&path->disk, 3, 0);
	assert_false(run());
	answer_expect(3, 0);
	journal_expect("reap store respond3 flush pop4 pop0 load submit4W kick pop0 arm ");
	mock_disk_finish(&path->disk, 4, 0);
	assert_false(run());
	balance_expect();
}

/* Alone in the ring, with nothing to wait for and nothing to write. */
static void barrier_alone(void **state)
{
	(void)state;
	mock_wire_add(&path->wire, REQUEST_FLUSH, REQUEST_BARRIER);
	assert_false(run());
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	answer_expect(1, 0);
	path->disk.at_once = true;
	for (unsigned i = 0; i < 3; i++)
		mock_wire_add(&path->wire, REQUEST_FLUSH, REQUEST_BARRIER);
	mock_wire_add(&path->wire, REQUEST_WRITE, BARRIER_DATA);
	assert_false(run());
	for (unsigned id = 2; id <= 5; id++)
		answer_expect(id, 0);
	assert_true(path->wire.armed);
	balance_expect();
}

/* A barrier that is refused, or whose data cannot be had, is no barrier: what follows is served. */
static void barrier_that_is_none(void **state)
{
	(void)state;
	path->disk.at_once = true;
	for (unsigned i = 0; i < 4; i++)
		mock_wire_add(&path->wire, REQUEST_WRITE, BARRIER_DATA);
	path->wire.requests[0].status = -EINVAL;
	path->wire.requests[1].resolve_status = -EFAULT;
	path->wire.requests[2].offset_bytes = 1ull << 40;
	path->wire.requests[3].load_status = -EFAULT;
	add(REQUEST_READ);
	assert_false(run());
	answer_expect(1, -EINVAL);
	answer_expect(2, -EFAULT);
	answer_expect(3, -ERANGE);
	answer_expect(4, -EFAULT);
	answer_expect(5, 0);
	balance_expect();
}

/* A failed barrier is a failed flush. */
static void barrier_fails(void **state)
{
	(void)state;
	mock_wire_add(&path->wire, REQUEST_FLUSH, REQUEST_BARRIER);
	add(REQUEST_READ);
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -EIO);
	assert_false(run());
	unanswered_expect(1);
	assert_int_equal(path->nr_flush_failed, 1);
	mock_disk_finish(&path->disk, 2, 0);
	assert_false(run());
	answer_expect(2, 0);
	balance_expect();
}

/* In order: what was fetched is answered, the barrier too. In a hurry: it is dropped. */
static void barrier_at_the_end(void **state)
{
	(void)state;
	add(REQUEST_WRITE);
	mock_wire_add(&path->wire, REQUEST_FLUSH, REQUEST_BARRIER);
	assert_false(run());
	dataplane_stop(&path->dataplane);
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	assert_false(dataplane_idle(&path->dataplane));
	mock_disk_finish(&path->disk, 2, 0);
	assert_false(run());
	answer_expect(2, 0);
	balance_expect();
}

static void barrier_abandoned(void **state)
{
	(void)state;
	add(REQUEST_WRITE);
	mock_wire_add(&path->wire, REQUEST_FLUSH, REQUEST_BARRIER);
	assert_false(run());
	dataplane_abandon(&path->dataplane);
	path->wire.untouchable = true;
	assert_false(dataplane_idle(&path->dataplane));
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	assert_true(dataplane_idle(&path->dataplane));
	assert_int_equal(path->disk.nr_submitted, 1);
	assert_int_equal(path->dataplane.pool.nr_free, 32);
}

/* ---- Discards ----------------------------------------------------------------------------------- */

/* Cut to whole granules (4096 bytes here); nothing to do is no error (faults.md R18, R25). */
static void discards(void **state)
{
	static const struct {
		uint64_t offset_bytes, len_bytes, cut_offset_bytes, cut_len_bytes;
	} rows[] = {
		{4096, 8192, 4096, 8192}, {4096 - 512, 8192, 4096, 4096},
		{512, 4096, 0, 0},	  {0, 0, 0, 0},
		{1024 * 4096, 0, 0, 0},	  {4096, 4096 + 512, 4096, 4096},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned id = add(REQUEST_DISCARD), nr_submitted = path->disk.nr_submitted;

		path->wire.requests[id - 1].offset_bytes = rows[i].offset_bytes;
		path->wire.requests[id - 1].len_bytes = rows[i].len_bytes;
		assert_false(run());
		if (rows[i].cut_len_bytes) {
			const struct request *request = TAILQ_FIRST(&path->disk.submitted);

			assert_int_equal(request->offset_bytes, rows[i].cut_offset_bytes);
			assert_int_equal(request->len_bytes, rows[i].cut_len_bytes);
			mock_disk_finish(&path->disk, id, 0);
			assert_false(run());
		} else {
			assert_int_equal(path->disk.nr_submitted, nr_submitted);
		}
		answer_expect(id, 0);
	}
	assert_int_equal(path->dataplane.stats.nr_discards, sizeof(rows) / sizeof(rows[0]));
	balance_expect();
}

/* Storage may refuse a discard that it was thought to take; the guest then stops (faults.md S21). */
static void discard_unsupported_after_all(void **state)
{
	(void)state;
	add(REQUEST_DISCARD);
	add(REQUEST_DISCARD);
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -EOPNOTSUPP);
	mock_disk_finish(&path->disk, 2, -EIO);
	assert_false(run());
	answer_expect(1, -EOPNOTSUPP);
	answer_expect(2, -EIO);
	balance_expect();
}

/* ---- A flush that fails ------------------------------------------------------------------------- */

/* The first failure: held and reported. From then on writes and discards are held, too; reads go on, and
 * what cannot be a request is refused as ever. */
static void flush_failure_is_held(void **state)
{
	(void)state;
	add(REQUEST_FLUSH);
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -EIO);
	assert_false(run());
	unanswered_expect(1);
	assert_int_equal(path->nr_flush_failed, 1);
	assert_int_equal(path->trouble_err, -EIO);

	path->disk.at_once = true;
	add(REQUEST_WRITE);
	add(REQUEST_READ);
	add_preflush();
	add(REQUEST_DISCARD);
	mock_wire_add(&path->wire, REQUEST_FLUSH, REQUEST_BARRIER);
	add(REQUEST_WRITE);
	path->wire.requests[6].offset_bytes = 1ull << 40;
	assert_false(run());
	unanswered_expect(2);
	answer_expect(3, 0);
	for (unsigned id = 4; id <= 6; id++)
		unanswered_expect(id);
	answer_expect(7, -ERANGE);
	assert_int_equal(path->disk.nr_submitted, 2); /* the flush and the read */
	assert_int_equal(path->nr_flush_failed, 1);
	assert_int_equal(nr_held(), 5);
	balance_expect();
}

/* A later empty flush is the same trap as the first: no answer to it either, least of all an error. */
static void later_flush_is_held_too(void **state)
{
	(void)state;
	add(REQUEST_FLUSH);
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -EIO);
	assert_false(run());
	path->disk.at_once = true;
	for (unsigned id = 2; id <= 4; id++) {
		add(REQUEST_FLUSH);
		assert_false(run());
		unanswered_expect(id);
	}
	assert_int_equal(path->disk.nr_submitted, 1);
	assert_int_equal(path->nr_flush_failed, 1);
	assert_int_equal(nr_held(), 4);
	balance_expect();
}

/* Two flushes in flight: the kernel reports a lost write once, so the one that comes back after the failure
 * with 0 says nothing (faults.md S32: the next FLUSH is not quietly OKAY). */
static void flush_in_flight_beside_a_failed_one(void **state)
{
	(void)state;
	add(REQUEST_FLUSH);
	add(REQUEST_FLUSH);
	add_preflush();
	add(REQUEST_WRITE);
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -EIO);
	mock_disk_finish(&path->disk, 2, 0);
	mock_disk_finish(&path->disk, 3, 0);
	mock_disk_finish(&path->disk, 4, 0);
	assert_false(run());
	unanswered_expect(1);
	unanswered_expect(2);
	unanswered_expect(3); /* its flush proves nothing, so its write must not be */
	answer_expect(4, 0);  /* was in the cache when it was said to be */
	assert_int_equal(path->nr_flush_failed, 1);
	balance_expect();
}

/* The flush before a write is a flush: its failure means lost data just the same. */
static void failed_preflush_counts(void **state)
{
	(void)state;
	add_preflush();
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -EIO);
	assert_false(run());
	unanswered_expect(1);
	assert_int_equal(path->nr_flush_failed, 1);
	path->disk.at_once = true;
	add(REQUEST_WRITE);
	add(REQUEST_FLUSH);
	add(REQUEST_READ);
	assert_false(run());
	unanswered_expect(2);
	unanswered_expect(3);
	answer_expect(4, 0);
	assert_int_equal(path->nr_flush_failed, 1);
	balance_expect();
}

/* Elsewhere (virtio) an error is an error, and the guest may try again. */
static void flush_failure_where_it_is_not_deadly(void **state)
{
	(void)state;
	path->wire.ops.flush_error_is_deadly = false;
	add(REQUEST_FLUSH);
	add_preflush();
	assert_false(run());
	mock_disk_finish(&path->disk, 1, -EIO);
	mock_disk_finish(&path->disk, 2, -EIO);
	assert_false(run());
	answer_expect(1, -EIO);
	answer_expect(2, -EIO);
	assert_int_equal(path->nr_flush_failed, 0);
	path->disk.at_once = true;
	add(REQUEST_WRITE);
	assert_false(run());
	answer_expect(3, 0);
	balance_expect();
}

/* A malformed request is answered even if its place in the pool last held a flush: what the decoder
 * did not fill means nothing. */
static void stale_fields_of_a_malformed_request(void **state)
{
	unsigned id;

	(void)state;
	path->disk.at_once = true;
	add(REQUEST_FLUSH); /* leaves its op in the pool's warmest request */
	assert_false(run());
	path->disk.at_once = false;
	add(REQUEST_READ);
	add(REQUEST_FLUSH);
	assert_false(run());
	mock_disk_finish(&path->disk, 3, -EIO);
	mock_disk_finish(&path->disk, 2, 0);
	assert_false(run());
	for (unsigned i = 0; i < 40; i++) {
		id = add(REQUEST_READ);
		path->wire.requests[id - 1].status = -EINVAL;
		assert_false(run());
		answer_expect(id, -EINVAL);
	}
	balance_expect();
}

/* ---- Limits ------------------------------------------------------------------------------------- */

/* A transport with memory for 3 requests: neither a busy loop nor a stall, and no asking for events while
 * there is no room. */
static void memory_exhaustion(void **state)
{
	(void)state;
	path->wire.room = 3;
	for (unsigned i = 0; i < 8; i++)
		add(REQUEST_READ);
	assert_false(run());
	assert_int_equal(path->wire.nr_popped, 3);
	assert_false(path->wire.armed);
	mock_disk_finish(&path->disk, 2, 0);
	assert_false(run());
	assert_int_equal(path->wire.nr_popped, 4);
	path->disk.at_once = true;
	mock_disk_finish(&path->disk, 1, 0);
	mock_disk_finish(&path->disk, 3, 0);
	mock_disk_finish(&path->disk, 4, 0);
	assert_false(run());
	assert_int_equal(path->wire.nr_answered, 8);
	assert_true(path->wire.armed);
	/* Refused requests give their memory back in the same pass. */
	for (unsigned i = 0; i < 8; i++)
		path->wire.requests[add(REQUEST_READ) - 1].offset_bytes = 1ull << 40;
	assert_false(run());
	assert_int_equal(path->wire.nr_answered, 16);
	balance_expect();
}

/* More requests than the pool has (a guest that breaks the protocol, or a transport that cannot tell): no
 * busy loop, and each completion makes room for the next. */
static void pool_exhaustion(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 40; i++)
		add(REQUEST_READ);
	assert_false(run());
	assert_int_equal(path->wire.nr_popped, 32);
	assert_int_equal(path->disk.nr_held, 32);
	assert_int_equal(path->wire.nr_arm, 0); /* an event would be of no use now */
	assert_false(run());
	assert_int_equal(path->wire.nr_popped, 32);
	for (unsigned id = 1; id <= 5; id++)
		mock_disk_finish(&path->disk, id, 0);
	assert_false(run());
	assert_int_equal(path->wire.nr_popped, 37);
	assert_int_equal(path->wire.nr_arm, 0);
	for (unsigned id = 6; id <= 37; id++)
		mock_disk_finish(&path->disk, id, 0);
	assert_false(run());
	assert_int_equal(path->wire.nr_popped, 40);
	assert_true(path->wire.armed); /* and now it is of use */
	for (unsigned id = 38; id <= 40; id++)
		mock_disk_finish(&path->disk, id, 0);
	assert_false(run());
	for (unsigned id = 1; id <= 40; id++)
		answer_expect(id, 0);
	balance_expect();
}

/* Every place held by a flush that failed: still no busy loop. */
static void pool_full_of_held_flushes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 33; i++)
		add(REQUEST_FLUSH);
	assert_false(run());
	for (unsigned id = 1; id <= 32; id++)
		mock_disk_finish(&path->disk, id, -EIO);
	assert_false(run());
	assert_false(run());
	assert_int_equal(path->wire.nr_answered, 0);
	assert_int_equal(nr_held(), 32);
	assert_int_equal(path->nr_flush_failed, 1);
}

/* A request that comes between the last pop and arm is not slept on. */
static void quick_guest(struct mock_wire *wire)
{
	mock_wire_add(wire, REQUEST_READ, 0);
}

static void arm_race(void **state)
{
	(void)state;
	path->disk.at_once = true;
	path->wire.arm_hook = quick_guest;
	assert_false(run());
	journal_expect("pop0 arm pop1 pop0 load submit1R kick reap store respond1 flush pop0 arm ");
	answer_expect(1, 0);
	/* Never asleep without having asked last. */
	assert_true(path->wire.armed);
}

/* A guest that never lets the ring run dry: each run ends, and says that there is more. */
static bool flood(struct mock_wire *wire)
{
	if (wire->nr_requests == MOCK_REQUESTS_MAX)
		return false;
	mock_wire_add(wire, REQUEST_READ, 0);
	return true;
}

static void flood_has_a_budget(void **state)
{
	unsigned nr_runs = 0;

	(void)state;
	path->journal.off = true;
	path->disk.at_once = true;
	path->wire.more = flood;
	while (run()) {
		nr_runs++;
		/* At most 16 passes of a ring full each. */
		assert_true(path->wire.nr_answered <= nr_runs * 16 * 32);
	}
	assert_true(nr_runs >= MOCK_REQUESTS_MAX / (16 * 32));
	assert_int_equal(path->wire.nr_answered, MOCK_REQUESTS_MAX);
	balance_expect();
}

/* ---- Ends --------------------------------------------------------------------------------------- */

/* A broken ring: reported once, what was good before is still done and answered, pop is never called
 * again. */
static void ring_breaks(void **state)
{
	(void)state;
	add(REQUEST_READ);
	path->wire.pop_error = -EPROTO;
	assert_false(run());
	journal_expect("pop1 broken load submit1R kick ");
	assert_int_equal(path->nr_broken, 1);
	assert_int_equal(path->trouble_err, -EPROTO);
	mock_disk_finish(&path->disk, 1, 0);
	assert_false(run());
	journal_expect("reap store respond1 flush ");
	for (int i = 0; i < 10; i++)
		assert_false(run());
	journal_expect("");
	assert_int_equal(path->nr_broken, 1);
	balance_expect();
}

/* Stop: nothing is fetched any more, everything fetched is answered. */
static void stop_answers(void **state)
{
	(void)state;
	add(REQUEST_READ);
	add(REQUEST_WRITE);
	add_preflush();
	assert_false(run());
	assert_false(dataplane_idle(&path->dataplane));
	dataplane_stop(&path->dataplane);
	add(REQUEST_READ);
	assert_false(run());
	for (unsigned id = 1; id <= 3; id++)
		mock_disk_finish(&path->disk, id, id == 2 ? -EIO : 0);
	assert_false(run());
	assert_false(dataplane_idle(&path->dataplane)); /* the write after the flush */
	mock_disk_finish(&path->disk, 3, 0);
	assert_false(run());
	answer_expect(1, 0);
	answer_expect(2, -EIO);
	answer_expect(3, 0);
	assert_int_equal(path->wire.nr_popped, 3);
	assert_true(dataplane_idle(&path->dataplane));
	balance_expect();
}

/* Abandon: the transport is gone; what is in flight ends, and no more is submitted for it. */
static void abandon_touches_nothing(void **state)
{
	(void)state;
	add(REQUEST_READ);
	add_preflush();
	add(REQUEST_FLUSH);
	assert_false(run());
	dataplane_abandon(&path->dataplane);
	path->wire.untouchable = true;
	add(REQUEST_READ);
	assert_false(run());
	for (unsigned id = 1; id <= 3; id++)
		mock_disk_finish(&path->disk, id, 0);
	assert_false(run());
	assert_true(dataplane_idle(&path->dataplane));
	assert_int_equal(path->disk.nr_submitted, 3);
	assert_int_equal(path->wire.nr_answered, 0);
	assert_int_equal(path->dataplane.pool.nr_free, 32);
	assert_int_equal(path->dataplane.stats.written_bytes, 0); /* that write never was */
}

/* ---- All of it at random ------------------------------------------------------------------------ */

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Any order of completions, any mix, failures of everything but flushes, too little memory: each request
 * is answered exactly once with the status it earned, nothing is left, and no barrier meets another request
 * in the driver (mock-path.c looks). */
static void random_life(void **state)
{
	static int expected[MOCK_REQUESTS_MAX];
	uint32_t seed = 4711;

	(void)state;
	path->journal.off = true;
	path->wire.room = 20;
	while (path->wire.nr_answered < MOCK_REQUESTS_MAX) {
		unsigned nr = random_next(&seed) % 20;

		while (nr-- && path->wire.nr_requests < MOCK_REQUESTS_MAX &&
		       path->wire.nr_requests - path->wire.nr_answered < 32) {
			static const struct {
				enum request_op op;
				unsigned flags;
			} kinds[] = {
				{REQUEST_READ, 0},
				{REQUEST_READ, 0},
				{REQUEST_READ, 0},
				{REQUEST_READ, 0},
				{REQUEST_WRITE, 0},
				{REQUEST_WRITE, 0},
				{REQUEST_WRITE, 0},
				{REQUEST_WRITE, 0},
				{REQUEST_FLUSH, 0},
				{REQUEST_WRITE, REQUEST_PREFLUSH},
				{REQUEST_WRITE, REQUEST_FUA},
				{REQUEST_DISCARD, 0},
				{REQUEST_WRITE, BARRIER_DATA},
				{REQUEST_FLUSH, REQUEST_BARRIER},
			};
			unsigned kind = random_next(&seed) % (sizeof(kinds) / sizeof(kinds[0]));
			unsigned id = mock_wire_add(&path->wire, kinds[kind].op, kinds[kind].flags);
			struct mock_request *request = &path->wire.requests[id - 1];

			expected[id - 1] = 0;
			switch (random_next(&seed) % 16) {
			case 0:
				expected[id - 1] = request->status = -EINVAL;
				break;
			case 1:
				if (request->op == REQUEST_WRITE)
					expected[id - 1] = request->load_status = -EFAULT;
				break;
			case 2:
				if (request->op == REQUEST_READ)
					expected[id - 1] = request->store_status = -EFAULT;
				break;
			case 3:
				if (request->op != REQUEST_FLUSH) {
					request->offset_bytes = 1ull << 40;
					expected[id - 1] = -ERANGE;
				}
				break;
			}
		}
		run();
		nr = random_next(&seed) % 20;
		while (nr-- && path->disk.nr_held) {
			struct request *request = TAILQ_FIRST(&path->disk.submitted);
			unsigned skip = random_next(&seed) % path->disk.nr_held;
			unsigned id;

			while (skip--)
				request = TAILQ_NEXT(request, link);
			id = mock_request_id(request);
			if (request->op != REQUEST_FLUSH && !expected[id - 1] &&
			    random_next(&seed) % 10 == 0) {
				expected[id - 1] = -EIO;
				mock_disk_finish(&path->disk, id, -EIO);
			} else {
				mock_disk_finish(&path->disk, id, 0);
			}
		}
	}
	for (unsigned id = 1; id <= MOCK_REQUESTS_MAX; id++)
		answer_expect(id, expected[id - 1]);
	balance_expect();
	assert_int_equal(path->nr_broken + path->nr_flush_failed, 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(a_batch_is_one_of_each),
		CASE(at_once),
		CASE(nothing_to_do),
		CASE(errors_are_each_ones_own),
		CASE(refused_requests),
		CASE(driver_cannot_say_unsupported),
		CASE(read_only_disk),
		CASE(flush_not_offered),
		CASE(preflush_in_order),
		CASE(preflush_at_once),
		CASE(preflush_fails),
		CASE(preflush_write_fails),
		CASE(fua_in_order),
		CASE(fua_fails),
		CASE(barrier_orders),
		CASE(barrier_alone),
		CASE(barrier_that_is_none),
		CASE(barrier_fails),
		CASE(barrier_at_the_end),
		CASE(barrier_abandoned),
		CASE(discards),
		CASE(discard_unsupported_after_all),
		CASE(flush_failure_is_held),
		CASE(later_flush_is_held_too),
		CASE(flush_in_flight_beside_a_failed_one),
		CASE(failed_preflush_counts),
		CASE(flush_failure_where_it_is_not_deadly),
		CASE(stale_fields_of_a_malformed_request),
		CASE(memory_exhaustion),
		CASE(pool_exhaustion),
		CASE(pool_full_of_held_flushes),
		CASE(arm_race),
		CASE(flood_has_a_budget),
		CASE(ring_breaks),
		CASE(stop_answers),
		CASE(abandon_touches_nothing),
		CASE(random_life),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
