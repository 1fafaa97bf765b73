// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * 512-byte sectors on a disk of 4096-byte blocks: every byte where it belongs, whatever else is in flight.
 *
 * Owns: nothing. Trusts: the memory and fault drivers below. Runs on: the test, waits for delays.
 * Must not know: how it is done.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/driver-harness.h"

#define DISK_BYTES (1u << 20)
#define SECTOR 512u
#define DEPTH 32u
#define FLAGS (DISK_OPEN_WRITABLE | DISK_OPEN_SECTOR_512)

static struct harness harness;

static void limits(void **state)
{
	const struct disk_limits *limits;

	(void)state;
	harness_open(&harness, "memory:size=1M,block=4096", FLAGS, 1);
	limits = &harness.disk->limits;
	assert_int_equal(limits->logical_block_bytes, 512);
	assert_int_equal(limits->memory_align_bytes, 512);
	assert_int_equal(limits->physical_block_bytes, 4096);
	assert_int_equal(limits->discard_granularity_bytes, 4096);
	assert_int_equal(harness.disk->max_queues, 1);
	harness_close(&harness);
	/* Not where it is not needed, nor when it is not asked for. */
	harness_open(&harness, "memory:size=1M", FLAGS, 1);
	assert_int_equal(harness.disk->max_queues, 0);
	harness_close(&harness);
	harness_open(&harness, "memory:size=1M,block=4096", DISK_OPEN_WRITABLE, 1);
	assert_int_equal(harness.disk->limits.logical_block_bytes, 4096);
	harness_close(&harness);
}

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Requests of any sectors, that do not overlap each other but share blocks, all in flight together. */
static void random_rounds(const char *spec, unsigned nr_rounds)
{
	static char model[DISK_BYTES];
	uint32_t seed = 31;

	memset(model, 0, sizeof(model));
	harness_open(&harness, spec, FLAGS, DEPTH);
	for (unsigned round = 0; round < nr_rounds; round++) {
		/* A stretch of the disk, cut into neighbours. */
		uint64_t at = random_next(&seed) % (DISK_BYTES / 2 / SECTOR) * SECTOR;
		unsigned nr = 1 + random_next(&seed) % DEPTH;

		for (unsigned i = 0; i < nr; i++) {
			unsigned nr_sectors = 1 + random_next(&seed) % (i % 8 ? 12 : 128);
			uint64_t len = (uint64_t)nr_sectors * SECTOR;
			bool write = random_next(&seed) % 3;
			unsigned nr_iov =
				1 + random_next(&seed) % (nr_sectors < 8 ? nr_sectors : 8);

			if (at + len > DISK_BYTES)
				len = DISK_BYTES - at;
			if (!len) {
				nr = i;
				break;
			}
			if (len / SECTOR < nr_iov)
				nr_iov = 1;
			if (write) {
				memset(harness_buffer(&harness, i), (int)random_next(&seed), len);
				memcpy(model + at, harness_buffer(&harness, i), len);
			}
			harness_submit(&harness,
				       harness_request(&harness, i,
						       write ? REQUEST_WRITE : REQUEST_READ, at,
						       len, nr_iov));
			at += len + random_next(&seed) % 2 * SECTOR;
			if (at >= DISK_BYTES) {
				nr = i + 1;
				break;
			}
		}
		harness_finish(&harness, nr);
		for (unsigned i = 0; i < nr; i++) {
			const struct request *request = &harness.requests[i];

			assert_int_equal(request->status, 0);
			if (memcmp(harness_buffer(&harness, i), model + request->offset_bytes,
				   request->len_bytes))
				fail_msg("round %u: wrong data in %llu bytes at %llu", round,
					 (unsigned long long)request->len_bytes,
					 (unsigned long long)request->offset_bytes);
		}
	}
	/* And nothing else was touched. */
	for (uint64_t at = 0; at < DISK_BYTES; at += HARNESS_BUFFER_BYTES) {
		assert_int_equal(harness_run(&harness, REQUEST_READ, at, HARNESS_BUFFER_BYTES, 1),
				 0);
		assert_memory_equal(harness_buffer(&harness, 0), model + at, HARNESS_BUFFER_BYTES);
	}
	harness_close(&harness);
}

static void random_at_once(void **state)
{
	(void)state;
	random_rounds("memory:size=1M,block=4096", 2000);
}

static void random_reordered(void **state)
{
	(void)state;
	random_rounds("fault:reorder=7:memory:size=1M,block=4096", 1000);
}

static void random_on_64k(void **state)
{
	(void)state;
	random_rounds("fault:reorder=5:memory:size=1M,block=65536", 300);
}

/* Two writes of one block, the first of which is slow: both are there in the end. */
static void neighbours(void **state)
{
	(void)state;
	harness_open(&harness, "fault:delay-ms=20:memory:size=1M,block=4096", FLAGS, DEPTH);
	memset(harness_buffer(&harness, 0), 1, 4096);
	assert_int_equal(harness_run(&harness, REQUEST_WRITE, 8192, 4096, 1), 0);
	for (unsigned i = 0; i < 8; i++) {
		memset(harness_buffer(&harness, i), (int)(0x10 + i), SECTOR);
		harness_submit(&harness, harness_request(&harness, i, REQUEST_WRITE,
							 8192 + i * SECTOR, SECTOR, 1));
	}
	harness_finish(&harness, 8);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 8192, 4096, 1), 0);
	for (unsigned i = 0; i < 4096; i++)
		assert_int_equal((unsigned char)harness_buffer(&harness, 0)[i], 0x10 + i / SECTOR);
	harness_close(&harness);
}

/* A write of the whole block between the read and the write of another's sector: what it wrote beside that
 * sector must not be undone. */
static void whole_block_meets_a_part(void **state)
{
	(void)state;
	for (unsigned part_first = 0; part_first < 2; part_first++) {
		harness_open(&harness, "fault:op=read,delay-ms=20:memory:size=1M,block=4096", FLAGS,
			     DEPTH);
		memset(harness_buffer(&harness, 0), 0xaa, SECTOR);
		memset(harness_buffer(&harness, 1), 0xbb, 4096);
		for (unsigned i = 0; i < 2; i++) {
			bool part = i != part_first;

			harness_submit(&harness,
				       harness_request(&harness, part ? 0 : 1, REQUEST_WRITE, 0,
						       part ? SECTOR : 4096, 1));
		}
		harness_finish(&harness, 2);
		assert_int_equal(harness_run(&harness, REQUEST_READ, 0, 4096, 1), 0);
		for (unsigned i = SECTOR; i < 4096; i++)
			assert_int_equal((unsigned char)harness_buffer(&harness, 0)[i], 0xbb);
		harness_close(&harness);
	}
}

/* The error of a part is the request's, and those who waited for it go on. */
static void errors(void **state)
{
	static const char *const specs[] = {
		"fault:op=read,error-every=2:memory:size=1M,block=4096",
		"fault:op=write,error-every=2:memory:size=1M,block=4096",
	};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		unsigned nr_failed = 0;

		harness_open(&harness, specs[i], FLAGS, DEPTH);
		for (unsigned j = 0; j < DEPTH; j++)
			harness_submit(&harness, harness_request(&harness, j, REQUEST_WRITE,
								 j * SECTOR, SECTOR, 1));
		harness_finish(&harness, DEPTH);
		for (unsigned j = 0; j < DEPTH; j++) {
			assert_true(harness.requests[j].status == 0 ||
				    harness.requests[j].status == -EIO);
			nr_failed += harness.requests[j].status != 0;
		}
		assert_int_equal(nr_failed, DEPTH / 2);
		harness_close(&harness);
	}
}

/* A flush is no write of anything; a discard waits for the parts of its blocks. */
static void flush_and_discard(void **state)
{
	(void)state;
	harness_open(&harness, "fault:op=read,delay-ms=20:memory:size=1M,block=4096", FLAGS, DEPTH);
	memset(harness_buffer(&harness, 0), 0xaa, SECTOR);
	harness_submit(&harness, harness_request(&harness, 0, REQUEST_WRITE, 512, SECTOR, 1));
	harness_submit(&harness, harness_request(&harness, 1, REQUEST_DISCARD, 0, 4096, 0));
	harness_submit(&harness, harness_request(&harness, 2, REQUEST_FLUSH, 0, 0, 0));
	harness_finish(&harness, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(harness.requests[i].status, 0);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 0, 4096, 1), 0);
	for (unsigned i = 0; i < 4096; i++)
		assert_int_equal(harness_buffer(&harness, 0)[i], 0);
	harness_close(&harness);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(limits),	    cmocka_unit_test(random_at_once),
		cmocka_unit_test(random_reordered), cmocka_unit_test(random_on_64k),
		cmocka_unit_test(neighbours),	    cmocka_unit_test(whole_block_meets_a_part),
		cmocka_unit_test(errors),	    cmocka_unit_test(flush_and_discard),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
