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

#include "drivers/sector-emulation.h"
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

/* Finish @nr requests; they must be done in the order in which they were submitted. */
static void finish_in_order(unsigned nr)
{
	struct request *request;
	unsigned idx = 0;

	harness_kick(&harness);
	while (harness.nr_done < nr) {
		assert_true(harness_edge(&harness, 10000));
		harness_reap(&harness);
	}
	TAILQ_FOREACH(request, &harness.done, link)
		assert_ptr_equal(request, &harness.requests[idx++]);
	harness_finish(&harness, nr);
}

/* Nobody overtakes somebody who waits for the same block, or for a buffer: he might wait for ever. */
static void first_come_first_served(void **state)
{
	static const unsigned sectors[][2] = {{1, 1}, {7, 2}, {15, 1}, {8, 8}, {15, 2}};

	(void)state;
	harness_open(&harness, "fault:op=write,delay-ms=10:memory:size=1M,block=4096", FLAGS,
		     DEPTH);
	for (unsigned i = 0; i < 5; i++)
		harness_submit(&harness,
			       harness_request(&harness, i, REQUEST_WRITE, sectors[i][0] * SECTOR,
					       sectors[i][1] * SECTOR, 1));
	finish_in_order(5);
	harness_close(&harness);
	harness_open(&harness, "fault:delay-ms=10:memory:size=1M,block=4096", FLAGS, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		harness_submit(&harness, harness_request(&harness, i, REQUEST_READ,
							 i * 4096 + SECTOR, SECTOR, 1));
	finish_in_order(DEPTH);
	harness_close(&harness);
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

/* ---- A disk below that looks at everything ------------------------------------------------------- */

#define STRICT_DISK_BYTES (16u << 20)
#define BIG_BYTES (704u << 10) /* more than two bounce buffers */

static struct {
	struct disk disk;
	struct disk_queue queue;
	struct disk *inner;
	struct disk_queue *inner_queue;
	unsigned depth, nr_in_flight;
	const void *last_base;
	unsigned nr_closes;
} strict;

static char big_buffers[DEPTH][BIG_BYTES] __attribute__((aligned(4096)));

static void strict_close(struct disk *disk)
{
	assert_ptr_equal(disk, &strict.disk);
	strict.inner->driver->close(strict.inner);
	strict.nr_closes++;
}

static int strict_queue_create(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
			       struct error *error)
{
	strict.queue.disk = disk;
	strict.depth = depth;
	*queue_out = &strict.queue;
	return strict.inner->driver->queue_create(strict.inner, depth, &strict.inner_queue, error);
}

static void strict_queue_destroy(struct disk_queue *queue)
{
	(void)queue;
	strict.inner->driver->queue_destroy(strict.inner_queue);
}

/* What driver.h promises to a driver of these limits. */
static void strict_submit(struct disk_queue *queue, struct request *request)
{
	const uint32_t block_bytes = queue->disk->limits.logical_block_bytes;
	uint64_t len_bytes = 0;

	for (unsigned i = 0; i < request->nr_iov; i++) {
		assert_int_equal((uintptr_t)request->iov[i].iov_base % block_bytes, 0);
		assert_int_equal(request->iov[i].iov_len % block_bytes, 0);
		len_bytes += request->iov[i].iov_len;
	}
	assert_int_equal(len_bytes, request->len_bytes);
	assert_int_equal(request->offset_bytes % block_bytes, 0);
	assert_true(request->op == REQUEST_FLUSH || request->len_bytes);
	assert_true(request->offset_bytes + request->len_bytes <= STRICT_DISK_BYTES);
	assert_true(++strict.nr_in_flight <= strict.depth);
	strict.last_base = request->nr_iov ? request->iov->iov_base : NULL;
	strict.inner->driver->submit(strict.inner_queue, request);
}

static void strict_kick(struct disk_queue *queue)
{
	(void)queue;
	strict.inner->driver->kick(strict.inner_queue);
}

static int strict_poll_fd(struct disk_queue *queue)
{
	(void)queue;
	return strict.inner->driver->poll_fd(strict.inner_queue);
}

static unsigned strict_reap(struct disk_queue *queue, struct request_list *done)
{
	unsigned nr = strict.inner->driver->reap(strict.inner_queue, done);

	(void)queue;
	strict.nr_in_flight -= nr;
	return nr;
}

static const struct driver strict_driver = {
	.name = "strict",
	.close = strict_close,
	.queue_create = strict_queue_create,
	.queue_destroy = strict_queue_destroy,
	.submit = strict_submit,
	.kick = strict_kick,
	.poll_fd = strict_poll_fd,
	.reap = strict_reap,
};

static struct disk *strict_open(const char *spec)
{
	struct error error;

	memset(&strict, 0, sizeof(strict));
	assert_int_equal(disk_open(spec, DISK_OPEN_WRITABLE, &strict.inner, &error), 0);
	strict.disk = *strict.inner;
	strict.disk.driver = &strict_driver;
	strict.disk.limits.memory_align_bytes = strict.disk.limits.logical_block_bytes;
	return &strict.disk;
}

static void strict_open_emulated(const char *spec)
{
	struct disk *emulated;
	struct error error;

	assert_int_equal(sector_emulation_open(strict_open(spec), &emulated, &error), 0);
	harness_open_queue(&harness, emulated, DEPTH);
}

/* Any length, in parts at any sector of memory. */
static void big_submit(unsigned idx, enum request_op op, uint64_t at, uint64_t len, uint32_t *seed)
{
	struct request *request = harness_request(&harness, idx, op, at, SECTOR, 1);
	char *base = big_buffers[idx] + (at / SECTOR + random_next(seed)) % 8 * SECTOR;
	unsigned nr = 0;

	request->len_bytes = len;
	for (uint64_t left = len; left; nr++) {
		uint64_t part = (1 + random_next(seed) % 64) * SECTOR;

		if (part > left || nr == HARNESS_MAX_IOV - 1)
			part = left;
		request->iov[nr] = (struct iovec){base + (len - left), part};
		left -= part;
	}
	request->nr_iov = nr;
	harness_submit(&harness, request);
}

static void big_rounds(const char *spec, unsigned nr_rounds)
{
	static char model[STRICT_DISK_BYTES];
	uint32_t seed = 7;

	memset(model, 0, sizeof(model));
	strict_open_emulated(spec);
	for (unsigned round = 0; round < nr_rounds; round++) {
		uint64_t at = random_next(&seed) % (STRICT_DISK_BYTES / 4 / SECTOR) * SECTOR;
		struct iovec data[DEPTH];
		unsigned nr;

		for (nr = 0; nr < DEPTH; nr++) {
			bool big = random_next(&seed) % 4 == 0;
			uint64_t len = (1 + random_next(&seed) % (big ? 1390 : 24)) * SECTOR;
			bool write = random_next(&seed) % 3;

			if (at + len > STRICT_DISK_BYTES)
				break;
			if (write) {
				memset(big_buffers[nr], (int)random_next(&seed), BIG_BYTES);
				memcpy(model + at, big_buffers[nr], len);
			}
			big_submit(nr, write ? REQUEST_WRITE : REQUEST_READ, at, len, &seed);
			data[nr] = *harness.requests[nr].iov;
			at += len + random_next(&seed) % 2 * SECTOR;
		}
		harness_finish(&harness, nr);
		for (unsigned i = 0; i < nr; i++) {
			const struct request *request = &harness.requests[i];

			assert_int_equal(request->status, 0);
			if (memcmp(data[i].iov_base, model + request->offset_bytes,
				   request->len_bytes))
				fail_msg("round %u: wrong data in %llu bytes at %llu", round,
					 (unsigned long long)request->len_bytes,
					 (unsigned long long)request->offset_bytes);
		}
	}
	for (uint64_t at = 0; at < STRICT_DISK_BYTES; at += HARNESS_BUFFER_BYTES) {
		assert_int_equal(harness_run(&harness, REQUEST_READ, at, HARNESS_BUFFER_BYTES, 1),
				 0);
		assert_memory_equal(harness_buffer(&harness, 0), model + at, HARNESS_BUFFER_BYTES);
	}
	assert_int_equal(strict.nr_in_flight, 0);
	harness_close(&harness);
	assert_int_equal(strict.nr_closes, 1);
}

static void big_and_misaligned(void **state)
{
	(void)state;
	big_rounds("memory:size=16M,block=4096", 60);
	big_rounds("fault:reorder=6:memory:size=16M,block=4096", 60);
	big_rounds("fault:op=write,delay-ms=1:memory:size=16M,block=65536", 10);
}

/* What suits the disk below is given to it as it is. */
static void aligned_is_not_copied(void **state)
{
	(void)state;
	strict_open_emulated("memory:size=16M,block=4096");
	for (unsigned i = 0; i < 2; i++) {
		enum request_op op = i ? REQUEST_READ : REQUEST_WRITE;
		struct request *request;

		assert_int_equal(harness_run(&harness, op, 8192, 8192, 1), 0);
		assert_ptr_equal(strict.last_base, harness_buffer(&harness, 0));
		/* Only the address, the length of the parts, the offset. */
		request = harness_request(&harness, 0, op, 8192, 4096, 1);
		request->iov->iov_base = harness_buffer(&harness, 0) + SECTOR;
		harness_submit(&harness, request);
		harness_finish(&harness, 1);
		assert_int_equal(request->status, 0);
		assert_ptr_not_equal(strict.last_base, harness_buffer(&harness, 0) + SECTOR);
		assert_int_equal(harness_run(&harness, op, 8192, 8192, 5), 0);
		assert_ptr_not_equal(strict.last_base, harness_buffer(&harness, 0));
		assert_int_equal(harness_run(&harness, op, SECTOR, 4096, 1), 0);
		assert_ptr_not_equal(strict.last_base, harness_buffer(&harness, 0));
	}
	harness_close(&harness);
}

/* An error in a later piece of a long request; what follows gets its buffer. */
static void errors_in_pieces(void **state)
{
	uint32_t seed = 1;

	(void)state;
	strict_open_emulated("fault:op=write,error-every=2:memory:size=16M,block=4096");
	for (unsigned i = 0; i < DEPTH; i++)
		big_submit(i, REQUEST_WRITE, SECTOR + i * 409600, 409600 - SECTOR, &seed);
	harness_finish(&harness, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_true(!harness.requests[i].status || harness.requests[i].status == -EIO);
	assert_int_equal(strict.nr_in_flight, 0);
	harness_close(&harness);
}

static void too_large_blocks_are_refused(void **state)
{
	struct disk *lower = strict_open("memory:size=16M,block=4096"), *emulated;
	struct error error = {""};

	(void)state;
	lower->limits.memory_align_bytes = 1u << 20;
	assert_int_equal(sector_emulation_open(lower, &emulated, &error), -EOPNOTSUPP);
	assert_non_null(strstr(error.text, "1048576"));
	assert_int_equal(strict.nr_closes, 1);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(limits),
		cmocka_unit_test(random_at_once),
		cmocka_unit_test(random_reordered),
		cmocka_unit_test(random_on_64k),
		cmocka_unit_test(neighbours),
		cmocka_unit_test(whole_block_meets_a_part),
		cmocka_unit_test(errors),
		cmocka_unit_test(flush_and_discard),
		cmocka_unit_test(big_and_misaligned),
		cmocka_unit_test(aligned_is_not_copied),
		cmocka_unit_test(errors_in_pieces),
		cmocka_unit_test(first_come_first_served),
		cmocka_unit_test(too_large_blocks_are_refused),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
