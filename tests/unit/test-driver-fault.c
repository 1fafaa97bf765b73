// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The fault driver does what it is told, no less and no more.
 *
 * Owns: its disks.
 * Trusts / does not trust: the memory driver below it.
 * Runs on: the test; waits for real timers in two cases.
 * Must not know: its inner lists.
 */
#include "config.h"

#include <errno.h>

#include "backend/clock.h"
#include "tests/unit/driver-harness.h"

#define BLOCK 512u
#define DEPTH 8u

static struct harness harness;

static void writes_submit(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		memset(harness_buffer(&harness, i), (int)i + 1, 2 * BLOCK);
		harness_submit(&harness, harness_request(&harness, i, REQUEST_WRITE, i * 2 * BLOCK,
							 2 * BLOCK, 1));
	}
}

static char block_byte(uint64_t block)
{
	assert_int_equal(harness_run(&harness, REQUEST_READ, block * BLOCK, BLOCK, 1), 0);
	return harness_buffer(&harness, 0)[BLOCK - 1];
}

static void error_at_hits_once(void **state)
{
	(void)state;
	harness_open(&harness, "fault:op=write,error-at=3,errno=ENOSPC:memory:size=1M",
		     DISK_OPEN_WRITABLE, DEPTH);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 0, BLOCK, 1), 0); /* does not count */
	writes_submit(DEPTH);
	harness_finish(&harness, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(harness.requests[i].status, i == 2 ? -ENOSPC : 0);
	assert_int_equal(block_byte(2), 2);
	assert_int_equal(block_byte(4), 0); /* the failed one moved nothing */
	assert_int_equal(block_byte(6), 4);
	harness_close(&harness);
}

static void error_every_repeats(void **state)
{
	(void)state;
	harness_open(&harness, "fault:error-every=3:memory:size=1M", DISK_OPEN_WRITABLE, DEPTH);
	for (unsigned i = 1; i <= 30; i++)
		assert_int_equal(
			harness_run(&harness, i % 2 ? REQUEST_READ : REQUEST_WRITE, 0, BLOCK, 1),
			i % 3 ? 0 : -EIO);
	harness_close(&harness);
}

static void flush_errors(void **state)
{
	(void)state;
	harness_open(&harness, "fault:op=flush,error-every=1,errno=5:null:size=1M",
		     DISK_OPEN_WRITABLE, DEPTH);
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), -5);
	assert_int_equal(harness_run(&harness, REQUEST_WRITE, 0, BLOCK, 1), 0);
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), -5);
	harness_close(&harness);
}

/* A discard is hit by its own word and by "all", which is the default. It has no memory: split=1 leaves it
 * whole (what lies in the request's iov then is none of its business). */
static void discard_errors(void **state)
{
	static const char *const specs[] = {
		"fault:op=discard,error-at=2:memory:size=1M",
		"fault:error-at=4:memory:size=1M", /* two writes before */
		"fault:op=all,error-at=4,split=1:memory:size=1M",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		harness_open(&harness, specs[i], DISK_OPEN_WRITABLE, 1);
		memset(harness_buffer(&harness, 0), 0x5a, 16384);
		assert_int_equal(harness_run(&harness, REQUEST_WRITE, 0, 16384, 1), 0);
		assert_int_equal(harness_run(&harness, REQUEST_WRITE, 16384, 4096, 1), 0);
		assert_int_equal(harness_run(&harness, REQUEST_DISCARD, 0, 8192, 0), 0);
		assert_int_equal(harness_run(&harness, REQUEST_DISCARD, 8192, 4096, 0), -EIO);
		assert_int_equal(harness_run(&harness, REQUEST_READ, 0, 16384, 1), 0);
		for (unsigned at = 0; at < 16384; at++)
			assert_int_equal(harness_buffer(&harness, 0)[at], at < 8192 ? 0 : 0x5a);
		harness_close(&harness);
	}
}

static void split_error_tears_the_write(void **state)
{
	(void)state;
	harness_open(&harness, "fault:op=write,error-at=1,split=1:memory:size=1M",
		     DISK_OPEN_WRITABLE, DEPTH);
	writes_submit(1);
	harness_finish(&harness, 1);
	assert_int_equal(harness.requests[0].status, -EIO);
	assert_int_equal(block_byte(0), 1);
	assert_int_equal(block_byte(1), 0);
	/* A single block cannot be split: it fails whole. */
	harness_close(&harness);
	harness_open(&harness, "fault:op=write,error-at=1,split=1:memory:size=1M",
		     DISK_OPEN_WRITABLE, DEPTH);
	memset(harness_buffer(&harness, 0), 9, BLOCK);
	assert_int_equal(harness_run(&harness, REQUEST_WRITE, 0, BLOCK, 1), -EIO);
	assert_int_equal(block_byte(0), 0);
	harness_close(&harness);
}

/* The lower layer's errors come through a split, whichever half meets them. */
static void split_passes_errors_up(void **state)
{
	(void)state;
	harness_open(&harness, "fault:split=1:fault:error-at=2:memory:size=1M", DISK_OPEN_WRITABLE,
		     DEPTH);
	writes_submit(1);
	harness_finish(&harness, 1);
	assert_int_equal(harness.requests[0].status, -EIO); /* its second half */
	assert_int_equal(harness.requests[0].len_bytes, 2 * BLOCK);
	assert_int_equal(harness.requests[0].offset_bytes, 0);
	assert_int_equal(block_byte(0), 1);
	assert_int_equal(block_byte(1), 0);
	harness_close(&harness);
}

/* The order in which request indices came out. */
static void order_is(const unsigned *order, unsigned nr)
{
	struct request *request = TAILQ_FIRST(&harness.done);

	for (unsigned i = 0; i < nr; i++) {
		assert_non_null(request);
		assert_int_equal(request - harness.requests, order[i]);
		request = TAILQ_NEXT(request, link);
	}
	assert_null(request);
}

static void reorder_turns_around(void **state)
{
	static const unsigned order[] = {4, 3, 2, 1, 0};

	(void)state;
	harness_open(&harness, "fault:reorder=3:memory:size=1M", DISK_OPEN_WRITABLE, DEPTH);
	writes_submit(5);
	harness_kick(&harness);
	order_is(order, 5);
	harness_finish(&harness, 5);
	harness_close(&harness);
}

/* Only what the rule concerns is held; the last one does not wait for a window that never fills. */
static void reorder_holds_and_lets_go(void **state)
{
	static const unsigned first[] = {2}, all[] = {2, 3, 1, 0};

	(void)state;
	clock_set_fake(NSEC_PER_SEC);
	harness_open(&harness, "fault:op=write,reorder=4:fault:op=read,delay-ms=50:memory:size=1M",
		     DISK_OPEN_WRITABLE, DEPTH);
	writes_submit(2);
	harness_submit(&harness, harness_request(&harness, 2, REQUEST_FLUSH, 0, 0, 0));
	harness_submit(&harness, harness_request(&harness, 3, REQUEST_READ, 0, BLOCK, 1));
	harness_kick(&harness);
	order_is(first, 1); /* the read is on its way, so the writes are held */
	clock_set_fake(2 * NSEC_PER_SEC);
	harness_reap(&harness);
	assert_int_equal(harness.nr_done, 4);
	order_is(all, 4);
	harness_finish(&harness, 4);
	harness_close(&harness);
}

static void delay_by_the_clock(void **state)
{
	(void)state;
	clock_set_fake(NSEC_PER_SEC);
	harness_open(&harness, "fault:op=write,delay-ms=100:memory:size=1M", DISK_OPEN_WRITABLE,
		     DEPTH);
	writes_submit(2);
	harness_kick(&harness);
	assert_int_equal(harness.nr_done, 0);
	clock_set_fake(NSEC_PER_SEC + 50 * NSEC_PER_MSEC);
	harness_submit(&harness, harness_request(&harness, 2, REQUEST_READ, 0, BLOCK, 1));
	memset(harness_buffer(&harness, 3), 4, BLOCK);
	harness_submit(&harness, harness_request(&harness, 3, REQUEST_WRITE, 0, BLOCK, 1));
	harness_kick(&harness);
	assert_int_equal(harness.nr_done, 1); /* reads do not wait */
	clock_set_fake(NSEC_PER_SEC + 100 * NSEC_PER_MSEC);
	harness_reap(&harness);
	assert_int_equal(harness.nr_done, 3);
	clock_set_fake(NSEC_PER_SEC + 149 * NSEC_PER_MSEC);
	harness_reap(&harness);
	assert_int_equal(harness.nr_done, 3);
	clock_set_fake(NSEC_PER_SEC + 150 * NSEC_PER_MSEC);
	harness_reap(&harness);
	assert_int_equal(harness.nr_done, 4);
	harness_finish(&harness, 4);
	harness_close(&harness);
}

/* Each edge is a new one, through two layers below. */
static void delay_makes_edges(const char *spec)
{
	harness_open(&harness, spec, DISK_OPEN_WRITABLE, DEPTH);
	for (unsigned round = 0; round < 5; round++) {
		uint64_t start_ns = clock_now_ns();

		writes_submit(DEPTH);
		harness_finish(&harness, DEPTH);
		assert_true(clock_now_ns() - start_ns >= 10 * NSEC_PER_MSEC);
	}
	while (harness_edge(&harness, 0))
		harness_reap(&harness);
	assert_false(harness_edge(&harness, 50));
	harness_close(&harness);
}

static void delay_edges_are_new(void **state)
{
	(void)state;
	delay_makes_edges("fault:delay-ms=10:memory:size=1M");
	delay_makes_edges("fault:split=1:fault:delay-ms=10:memory:size=1M");
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(
			delay_edges_are_new), /* first: the others stop the clock for good */
		cmocka_unit_test(error_at_hits_once),
		cmocka_unit_test(error_every_repeats),
		cmocka_unit_test(flush_errors),
		cmocka_unit_test(discard_errors),
		cmocka_unit_test(split_error_tears_the_write),
		cmocka_unit_test(split_passes_errors_up),
		cmocka_unit_test(reorder_turns_around),
		cmocka_unit_test(reorder_holds_and_lets_go),
		cmocka_unit_test(delay_by_the_clock),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
