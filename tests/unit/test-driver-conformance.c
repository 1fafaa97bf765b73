// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What every driver must do: one set of assertions, run over a table of disks.
 *
 * Owns: its disks and images.
 * Trusts / does not trust: nothing.
 * Runs on: the test; waits.
 * Must not know: how a driver does it.
 */
#include "config.h"

#include <stdio.h>

#include "tests/unit/driver-harness.h"

#define DISK_BYTES (4u << 20)
#define DEPTH 32u

/* A disk under test. %s stands for a fresh image of DISK_BYTES. */
struct subject {
	const char *spec;
	bool forgets;
	unsigned flags; /* beside DISK_OPEN_WRITABLE */
};

static const struct subject subjects[] = {
	{"null:size=4M", .forgets = true},
	{"memory:size=4M", .forgets = false},
	{"memory:size=4194304,block=4096", .forgets = false},
	{"file:%s", .forgets = false},
	{"aio:%s", .forgets = false},
	{"fault::memory:size=4M", .forgets = false},
	{"fault:split=1:memory:size=4M", .forgets = false},
	{"fault:reorder=5:memory:size=4M", .forgets = false},
	{"fault:delay-ms=1:memory:size=4M", .forgets = false},
	{"fault:split=1,delay-ms=1,reorder=3:file:%s", .forgets = false},
	{"fault:op=write,split=1:fault:op=read,delay-ms=1:file:%s", .forgets = false},
	{"memory:size=4M,block=4096", .flags = DISK_OPEN_SECTOR_512},
	{"memory:size=4M,block=16384", .flags = DISK_OPEN_SECTOR_512},
	{"fault:split=1,delay-ms=1,reorder=3:memory:size=4M,block=4096",
	 .flags = DISK_OPEN_SECTOR_512},
	{"file:%s", .flags = DISK_OPEN_SECTOR_512},
};

static void subject_spec(const struct subject *subject, char *spec, size_t size)
{
	const char *hole = strstr(subject->spec, "%s");

	if (hole)
		snprintf(spec, size, "%.*s%s%s", (int)(hole - subject->spec), subject->spec,
			 scratch_image(1, DISK_BYTES), hole + 2);
	else
		snprintf(spec, size, "%s", subject->spec);
}

static void limits_are_sane(const struct disk_limits *limits, bool writable)
{
	assert_int_equal(limits->size_bytes, DISK_BYTES);
	assert_true(limits->logical_block_bytes >= 512);
	assert_int_equal(limits->logical_block_bytes & (limits->logical_block_bytes - 1), 0);
	assert_int_equal(limits->physical_block_bytes % limits->logical_block_bytes, 0);
	assert_int_equal(limits->size_bytes % limits->logical_block_bytes, 0);
	assert_true(limits->memory_align_bytes > 0);
	assert_int_equal(limits->memory_align_bytes & (limits->memory_align_bytes - 1), 0);
	assert_int_equal(limits->can_write, writable);
	assert_true(limits->can_flush);
	assert_true(writable || !limits->can_discard);
}

static void buffer_is(const char *buffer, size_t len, int byte)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)buffer[i] != byte)
			fail_msg("byte %zu is %02x, not %02x", i, (unsigned char)buffer[i], byte);
}

/* A full queue of writes, a flush, a full queue of reads. */
static void batch_round(struct harness *harness, bool forgets)
{
	const uint64_t block = harness->disk->limits.logical_block_bytes;

	for (unsigned i = 0; i < DEPTH; i++) {
		memset(harness_buffer(harness, i), (int)i + 1, 2 * block);
		harness_submit(harness, harness_request(harness, i, REQUEST_WRITE, i * 2 * block,
							2 * block, 1 + i % 2));
	}
	harness_finish(harness, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(harness->requests[i].status, 0);
		assert_int_equal(harness->requests[i].offset_bytes, i * 2 * block);
		assert_int_equal(harness->requests[i].len_bytes, 2 * block);
	}
	assert_int_equal(harness_run(harness, REQUEST_FLUSH, 0, 0, 0), 0);
	for (unsigned i = 0; i < DEPTH; i++) {
		memset(harness_buffer(harness, i), 0xee, 2 * block);
		harness_submit(harness, harness_request(harness, i, REQUEST_READ, i * 2 * block,
							2 * block, 2 - i % 2));
	}
	harness_finish(harness, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(harness->requests[i].status, 0);
		buffer_is(harness_buffer(harness, i), 2 * block, forgets ? 0 : (int)i + 1);
	}
}

/* First and last block, the largest transfer with the most parts, and what was never written. */
static void edges_round(struct harness *harness, bool forgets)
{
	const uint64_t block = harness->disk->limits.logical_block_bytes;
	unsigned most = HARNESS_BUFFER_BYTES / (unsigned)block;
	const struct {
		uint64_t offset_bytes, len_bytes;
		unsigned nr_iov;
	} extents[] = {
		{0, block, 1},
		{DISK_BYTES - block, block, 1},
		{DISK_BYTES - HARNESS_BUFFER_BYTES, HARNESS_BUFFER_BYTES,
		 most < HARNESS_MAX_IOV ? most : HARNESS_MAX_IOV},
		{block, 3 * block, 2},
	};

	assert_int_equal(harness_run(harness, REQUEST_READ, DISK_BYTES / 2, block, 1), 0);
	buffer_is(harness_buffer(harness, 0), block, 0);
	for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
		memset(harness_buffer(harness, 0), 0xa0 + (int)i, extents[i].len_bytes);
		assert_int_equal(harness_run(harness, REQUEST_WRITE, extents[i].offset_bytes,
					     extents[i].len_bytes, extents[i].nr_iov),
				 0);
		memset(harness_buffer(harness, 0), 0xee, extents[i].len_bytes);
		assert_int_equal(harness_run(harness, REQUEST_READ, extents[i].offset_bytes,
					     extents[i].len_bytes, extents[i].nr_iov),
				 0);
		buffer_is(harness_buffer(harness, 0), extents[i].len_bytes,
			  forgets ? 0 : 0xa0 + (int)i);
	}
}

/* Batches of random requests in disjoint slots, against a copy of the disk in memory. */
static void random_rounds(struct harness *harness)
{
	const uint64_t block = harness->disk->limits.logical_block_bytes;
	const uint64_t slot_bytes = DISK_BYTES / DEPTH;
	char *model = calloc(1, DISK_BYTES);
	unsigned seed = 1;

	assert_non_null(model);
	for (uint64_t at = 0; at < DISK_BYTES; at += HARNESS_BUFFER_BYTES) {
		memset(harness_buffer(harness, 0), 0, HARNESS_BUFFER_BYTES);
		assert_int_equal(harness_run(harness, REQUEST_WRITE, at, HARNESS_BUFFER_BYTES, 1),
				 0);
	}
	for (unsigned round = 0; round < 20; round++) {
		unsigned nr = 1 + (unsigned)rand_r(&seed) % DEPTH;

		for (unsigned i = 0; i < nr; i++) {
			static const enum request_op ops[] = {REQUEST_READ, REQUEST_WRITE,
							      REQUEST_WRITE, REQUEST_FLUSH};
			enum request_op op = ops[rand_r(&seed) % 4];
			uint64_t nr_blocks =
				1 + (unsigned)rand_r(&seed) % (HARNESS_BUFFER_BYTES / block);
			uint64_t offset = i * slot_bytes +
					  (unsigned)rand_r(&seed) %
						  (slot_bytes / block - nr_blocks + 1) * block;
			uint64_t most = nr_blocks < HARNESS_MAX_IOV ? nr_blocks : HARNESS_MAX_IOV;
			unsigned nr_iov = 1 + (unsigned)rand_r(&seed) % (unsigned)most;

			if (op == REQUEST_FLUSH) {
				harness_request(harness, i, op, 0, 0, 0);
			} else {
				harness_request(harness, i, op, offset, nr_blocks * block, nr_iov);
				memset(harness_buffer(harness, i), rand_r(&seed) & 0xff,
				       nr_blocks * block);
			}
			if (op == REQUEST_WRITE)
				memcpy(model + offset, harness_buffer(harness, i),
				       nr_blocks * block);
			harness_submit(harness, &harness->requests[i]);
		}
		harness_finish(harness, nr);
		for (unsigned i = 0; i < nr; i++) {
			const struct request *request = &harness->requests[i];

			assert_int_equal(request->status, 0);
			if (request->op == REQUEST_READ)
				assert_memory_equal(harness_buffer(harness, i),
						    model + request->offset_bytes,
						    request->len_bytes);
		}
	}
	free(model);
}

/* Two queues share a disk and nothing else; a new queue sees what an old one wrote. */
static void queues_round(struct harness *harness, bool forgets)
{
	const uint64_t block = harness->disk->limits.logical_block_bytes;
	struct harness second;

	if (harness->disk->max_queues == 1)
		return;
	harness_open_queue(&second, harness->disk, 2);
	memset(harness_buffer(harness, 0), 0x11, block);
	memset(harness_buffer(&second, 0), 0x22, block);
	harness_submit(harness, harness_request(harness, 0, REQUEST_WRITE, 0, block, 1));
	harness_submit(&second, harness_request(&second, 0, REQUEST_WRITE, block, block, 1));
	harness_finish(&second, 1);
	harness_finish(harness, 1);
	harness_close_queue(&second);
	harness_open_queue(&second, harness->disk, 1);
	assert_int_equal(harness_run(&second, REQUEST_READ, 0, 2 * block, 1), 0);
	buffer_is(harness_buffer(&second, 0), block, forgets ? 0 : 0x11);
	buffer_is(harness_buffer(&second, 0) + block, block, forgets ? 0 : 0x22);
	harness_close_queue(&second);
}

/* Whole granules go, and read as zeroes (fallocate(2): a hole does; memory drivers say so); what is beside
 * them stays. */
static void discard_round(struct harness *harness, bool forgets)
{
	const struct disk_limits *limits = &harness->disk->limits;
	uint64_t granule = limits->discard_granularity_bytes;

	assert_true(limits->can_discard);
	assert_true(granule && granule % limits->logical_block_bytes == 0);
	assert_true(limits->discard_alignment_bytes < granule);
	memset(harness_buffer(harness, 0), 0x5a, 4 * granule);
	assert_int_equal(harness_run(harness, REQUEST_WRITE, 0, 4 * granule, 1), 0);
	assert_int_equal(harness_run(harness, REQUEST_DISCARD, granule, 2 * granule, 0), 0);
	assert_int_equal(harness_run(harness, REQUEST_READ, 0, 4 * granule, 1), 0);
	if (forgets)
		return;
	buffer_is(harness_buffer(harness, 0), granule, 0x5a);
	buffer_is(harness_buffer(harness, 0) + granule, 2 * granule, 0);
	buffer_is(harness_buffer(harness, 0) + 3 * granule, granule, 0x5a);
}

/* What a host whose pages are larger than a granule sees all the time: pages that a range has a part of
 * keep the rest. */
static void memory_discards_parts_of_pages(void **state)
{
	static const unsigned ranges[][2] = {
		{0, 512},     {512, 512},    {4096 - 512, 512},	 {4096, 512},
		{512, 4096},  {512, 8192},   {4096 + 512, 3584}, {3584, 1024},
		{3584, 8192}, {4096, 12288}, {0, 65536},
	};
	struct harness harness;

	(void)state;
	harness_open(&harness, "memory:size=1M", DISK_OPEN_WRITABLE, 1);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		unsigned first = ranges[i][0], end = first + ranges[i][1];

		memset(harness_buffer(&harness, 0), 0x5a, HARNESS_BUFFER_BYTES);
		assert_int_equal(harness_run(&harness, REQUEST_WRITE, 0, HARNESS_BUFFER_BYTES, 1),
				 0);
		assert_int_equal(harness_run(&harness, REQUEST_DISCARD, first, end - first, 0), 0);
		assert_int_equal(harness_run(&harness, REQUEST_READ, 0, HARNESS_BUFFER_BYTES, 1),
				 0);
		buffer_is(harness_buffer(&harness, 0), first, 0x5a);
		buffer_is(harness_buffer(&harness, 0) + first, end - first, 0);
		buffer_is(harness_buffer(&harness, 0) + end, HARNESS_BUFFER_BYTES - end, 0x5a);
	}
	harness_close(&harness);
}

static void subject_conforms(void **state)
{
	uint64_t size_bytes;
	const struct subject *subject = *state;
	unsigned nr_fds = nr_open_fds();
	struct harness harness;
	char spec[8192];

	subject_spec(subject, spec, sizeof(spec));
	harness_open(&harness, spec, DISK_OPEN_WRITABLE | subject->flags, DEPTH);
	limits_are_sane(&harness.disk->limits, true);
	assert_int_equal(harness_reap(&harness), 0);
	harness_kick(&harness);
	assert_int_equal(harness.nr_done, 0);
	edges_round(&harness, subject->forgets);
	batch_round(&harness, subject->forgets);
	queues_round(&harness, subject->forgets);
	if (!subject->forgets)
		random_rounds(&harness);
	discard_round(&harness, subject->forgets);
	assert_int_equal(harness.disk->driver->refresh(harness.disk, &size_bytes), 0);
	assert_int_equal(size_bytes, DISK_BYTES);
	assert_false(harness_edge(&harness, 0) && harness_reap(&harness));
	harness_close(&harness);

	harness_open(&harness, spec, subject->flags, 1);
	limits_are_sane(&harness.disk->limits, false);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 0, 4096, 1), 0);
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), 0);
	harness_close(&harness);
	assert_int_equal(nr_open_fds(), nr_fds);
}

int main(void)
{
	enum { NR = sizeof(subjects) / sizeof(subjects[0]) };
	struct CMUnitTest cases[NR + 1] = {
		[NR] = cmocka_unit_test(memory_discards_parts_of_pages),
	};

	if (scratch_skip_all())
		return 0;
	for (size_t i = 0; i < NR; i++)
		cases[i] = (struct CMUnitTest){
			.name = subjects[i].spec,
			.test_func = subject_conforms,
			.initial_state = (void *)(uintptr_t)&subjects[i],
		};
	return cmocka_run_group_tests(cases, NULL, NULL);
}
