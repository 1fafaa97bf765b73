// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs against a small backend in memory, which can be told to misbehave: each misdeed is found.
 *
 * Owns: the fake host (grants are array indices) and the fake backend, which runs inside notify().
 * Trusts: backend/blkif-ring.c and blkif-decode.c. Runs on: the test, one thread, so each case happens
 * the same way every time. Must not know: xenstore.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/blkif-decode.h"
#include "backend/blkif-ring.h"
#include "container.h"
#include "loopback/front-job.h"
#include "tests/unit/unit.h"

#define DISK_SECTORS 2048u
#define NR_PAGES 1024u
#define FIRST_GREF 8u

enum misdeed {
	NONE,
	LOSE_WRITE,  /* say OKAY, write nothing */
	MISDIRECT,   /* write 8 sectors too early */
	TEAR,	     /* write the first segment only */
	TEAR_SECTOR, /* write all but the last 256 bytes */
	FAIL,	     /* ERROR */
	ANSWER_TWICE,
	WRONG_ID,
	WRONG_OPERATION,
	NEVER_ANSWER,
};

/* ---- The fake host and backend ------------------------------------------------------------------ */

struct fake {
	struct xen_host host;
	uint8_t *pages;	   /* NR_PAGES */
	unsigned nr_pages; /* handed out; a bump allocator, as tests are short */
	unsigned nr_shares;
	int event_fd;
	bool pending;
	struct blkif_ring ring;
	uint8_t disk[DISK_SECTORS * BLKIF_SECTOR_BYTES];

	enum misdeed misdeed;
	unsigned misdeed_at; /* the n-th WRITE from now, from 1 */
	unsigned nr_flushes;
};

static struct fake fake;
static struct loop *loop;
static struct front_link front;
static struct front_stats stats;
static struct error error;

static int fake_share(struct xen_host *host, uint32_t domid, unsigned nr, bool writable,
		      uint32_t *grefs_out, void **addr_out)
{
	(void)host;
	(void)domid;
	(void)writable;
	if (nr > NR_PAGES - fake.nr_pages)
		return -ENOSPC;
	*addr_out = fake.pages + (size_t)fake.nr_pages * XEN_PAGE_SIZE;
	memset(*addr_out, 0, (size_t)nr * XEN_PAGE_SIZE);
	for (unsigned i = 0; i < nr; i++)
		grefs_out[i] = FIRST_GREF + fake.nr_pages++;
	fake.nr_shares++;
	return 0;
}

static int fake_unshare(struct xen_host *host, void *addr, unsigned nr)
{
	(void)host;
	(void)addr;
	(void)nr;
	fake.nr_shares--;
	return 0;
}

static int fake_alloc_unbound(struct xen_host *host, uint32_t domid, uint32_t *port_out)
{
	(void)host;
	(void)domid;
	*port_out = 5;
	return 0;
}

static int fake_unbind(struct xen_host *host, uint32_t port)
{
	(void)host;
	assert_int_equal(port, 5);
	return 0;
}

static int fake_poll_fd(struct xen_host *host)
{
	(void)host;
	return fake.event_fd;
}

static int fake_pending(struct xen_host *host, uint32_t *port_out)
{
	uint64_t count;

	(void)host;
	if (read(fake.event_fd, &count, sizeof(count)) < 0)
		return -EAGAIN;
	*port_out = 5;
	return 0;
}

static int fake_unmask(struct xen_host *host, uint32_t port)
{
	(void)host;
	(void)port;
	return 0;
}

static void data_move(const struct blkif_request *request, enum misdeed misdeed)
{
	uint64_t at = request->offset_bytes - (misdeed == MISDIRECT ? 4096 : 0);

	for (unsigned i = 0; i < request->nr_segments; i++) {
		const struct blkif_segment *segment = &request->segments[i];
		size_t len =
			(segment->last_sector - segment->first_sector + 1u) * BLKIF_SECTOR_BYTES;
		uint8_t *page = fake.pages + (size_t)(segment->gref - FIRST_GREF) * XEN_PAGE_SIZE +
				segment->first_sector * BLKIF_SECTOR_BYTES;

		assert_true(segment->gref - FIRST_GREF < fake.nr_pages);
		assert_true(at + len <= sizeof(fake.disk));
		if (request->op == REQUEST_READ)
			memcpy(page, fake.disk + at, len);
		else if (misdeed == TEAR_SECTOR && i == request->nr_segments - 1u)
			memcpy(fake.disk + at, page, len - 256);
		else if (misdeed != TEAR || !i)
			memcpy(fake.disk + at, page, len);
		at += len;
	}
}

static void request_serve(const struct blkif_request *request)
{
	enum misdeed misdeed = NONE;
	uint64_t id = request->id;
	uint8_t operation = request->operation;

	if (request->op == REQUEST_WRITE && fake.misdeed_at && !--fake.misdeed_at)
		misdeed = fake.misdeed;
	if (request->op == REQUEST_FLUSH)
		fake.nr_flushes++;
	else if (misdeed != LOSE_WRITE && misdeed != FAIL)
		data_move(request, misdeed);
	if (misdeed == NEVER_ANSWER)
		return;
	if (misdeed == WRONG_ID)
		id ^= 1ull << 40;
	if (misdeed == WRONG_OPERATION)
		operation = BLKIF_READ;
	blkif_ring_put(&fake.ring, id, operation,
		       misdeed == FAIL ? BLKIF_STATUS_ERROR : BLKIF_STATUS_OKAY);
	if (misdeed == ANSWER_TWICE)
		blkif_ring_put(&fake.ring, id, operation, BLKIF_STATUS_OKAY);
}

static int fake_notify(struct xen_host *host, uint32_t port)
{
	static const struct blkif_offer offer;
	struct blkif_request requests[32];
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];
	unsigned nr = 0;
	uint64_t one = 1;

	(void)host;
	(void)port;
	/* All first: an answer too many goes over a slot that nobody has looked at. */
	do {
		while (blkif_ring_pop(&fake.ring, slot) == 1)
			assert_int_equal(blkif_decode(fake.ring.abi, &offer, slot, &requests[nr++]),
					 0);
	} while (blkif_ring_arm(&fake.ring));
	for (unsigned i = 0; i < nr; i++)
		request_serve(&requests[i]);
	if (blkif_ring_publish(&fake.ring))
		assert_int_equal(write(fake.event_fd, &one, sizeof(one)), sizeof(one));
	return 0;
}

static const struct xen_host_ops fake_ops = {
	.share = fake_share,
	.unshare = fake_unshare,
	.alloc_unbound = fake_alloc_unbound,
	.unbind = fake_unbind,
	.notify = fake_notify,
	.poll_fd = fake_poll_fd,
	.pending = fake_pending,
	.unmask = fake_unmask,
};

static int set_up(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	memset(&front, 0, sizeof(front));
	memset(&stats, 0, sizeof(stats));
	fake.host.ops = &fake_ops;
	fake.pages = aligned_alloc(XEN_PAGE_SIZE, NR_PAGES * XEN_PAGE_SIZE);
	fake.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!fake.pages || fake.event_fd < 0 || loop_create(&loop) ||
	    front_link_open(&front, loop, &fake.host, 0, &blkif_abi_x86_32, 0, 1, &error))
		return -1;
	blkif_ring_init(&fake.ring, &blkif_abi_x86_32, front.queues[0].ring_pages, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (front_link_close(&front, &error) || fake.nr_shares)
		return -1;
	loop_destroy(loop);
	close(fake.event_fd);
	free(fake.pages);
	return 0;
}

/* ---- Jobs --------------------------------------------------------------------------------------- */

static const struct front_job_config base = {
	.kind = FRONT_JOB_SEQ_WRITE,
	.depth = 8,
	.block_bytes = 8192,
	.max_segments = BLKIF_MAX_SEGMENTS,
	.read_percent = 50,
	.verify = true,
	.seed = 3,
	.timeout_ns = 200000000, /* 0.2 s */
};

static int job_run(const struct front_job_config *config)
{
	struct front_job *job;
	int err;

	error.text[0] = '\0';
	assert_int_equal(front_job_create(config, DISK_SECTORS, &job, &error), 0);
	err = front_job_run(job, &front, &stats, &error);
	front_job_destroy(job);
	return err;
}

static void every_kind(void **state)
{
	(void)state;
	for (int kind = 0; kind < FRONT_JOB_KINDS; kind++) {
		struct front_job_config config = base;

		config.kind = (enum front_job_kind)kind;
		config.verify = kind != FRONT_JOB_SEQ_READ && kind != FRONT_JOB_RAND_READ &&
				kind != FRONT_JOB_FLUSH && kind != FRONT_JOB_DISCARD;
		config.count = 100;
		memset(&stats, 0, sizeof(stats));
		fake.nr_pages = 1; /* the ring's stays */
		assert_int_equal(job_run(&config), 0);
		assert_true(stats.nr_reads + stats.nr_writes + stats.nr_flushes +
				    stats.nr_discards ==
			    100);
		assert_true(stats.nr_latencies == 100);
		assert_true(!config.verify || stats.nr_sectors_verified);
	}
}

/* All block sizes there are, cut at random places: what is written is what is read. */
static void segments_at_random_places(void **state)
{
	(void)state;
	for (uint32_t sectors = 1; sectors <= 88; sectors++) {
		struct front_job_config config = base;

		config.kind = FRONT_JOB_MIXED;
		config.block_bytes = sectors * BLKIF_SECTOR_BYTES;
		config.unaligned = true;
		config.count = 20;
		config.seed = sectors;
		fake.nr_pages = 1;
		assert_int_equal(job_run(&config), 0);
	}
}

static void flush_every(void **state)
{
	struct front_job_config config = base;

	(void)state;
	config.count = 44;
	config.flush_every = 10;
	assert_int_equal(job_run(&config), 0);
	assert_true(stats.nr_writes == 40 && stats.nr_flushes == 4);
	assert_int_equal(fake.nr_flushes, 4);
}

/* Random order overwrites blocks: a later verify-only run knows each one's last generation. */
static void verify_only(void **state)
{
	struct front_job_config config = base;

	(void)state;
	config.kind = FRONT_JOB_RAND_WRITE;
	config.count = 500;
	assert_int_equal(job_run(&config), 0);
	config.verify = false;
	config.verify_only = true;
	fake.nr_pages = 1;
	assert_int_equal(job_run(&config), 0);
	assert_true(stats.nr_writes == 500);
	/* One more was never written. */
	config.count = 501;
	fake.nr_pages = 1;
	assert_int_equal(job_run(&config), -EILSEQ);
	config.any_generation = true;
	fake.nr_pages = 1;
	assert_int_equal(job_run(&config), 0);
}

static void misdeed_found(enum misdeed misdeed, unsigned at, int expected, const char *named)
{
	struct front_job_config config = base;

	fake.misdeed = misdeed;
	fake.misdeed_at = at;
	assert_int_equal(job_run(&config), expected);
	if (!strstr(error.text, named))
		fail_msg("expected \"%s\" in: %s", named, error.text);
}

static void write_lost(void **state)
{
	(void)state;
	misdeed_found(LOSE_WRITE, 3, -EILSEQ, "sector 32: lost write");
}

static void write_misdirected(void **state)
{
	(void)state;
	/* Block 2 begins at sector 32; its first half has gone over the second half of block 1. */
	misdeed_found(MISDIRECT, 3, -EILSEQ, "sector 24: misdirected write");
	assert_non_null(strstr(error.text, "seen sector 32"));
}

static void write_torn(void **state)
{
	(void)state;
	misdeed_found(TEAR, 2, -EILSEQ, "sector 24: lost write");
	assert_non_null(strstr(error.text, "torn write"));
}

static void sector_torn(void **state)
{
	(void)state;
	misdeed_found(TEAR_SECTOR, 2, -EILSEQ, "sector 31: torn");
}

static void write_stale(void **state)
{
	struct front_job_config config = base;

	(void)state;
	config.count = 256; /* twice over the disk */
	fake.misdeed = LOSE_WRITE;
	fake.misdeed_at = 130;
	assert_int_equal(job_run(&config), -EILSEQ);
	assert_non_null(strstr(error.text, "sector 16: lost write: data of an earlier generation"));
}

static void write_refused(void **state)
{
	struct front_job_config config = base;

	(void)state;
	misdeed_found(FAIL, 2, -EIO, "WRITE of sector 16 (8192 bytes) was answered ERROR (-1)");
	assert_true(stats.nr_errors == 1);
	config.allow_errors = true;
	fake.nr_pages = 1;
	fake.misdeed_at = 2;
	assert_int_equal(job_run(&config), 0);
}

static void answered_twice(void **state)
{
	(void)state;
	misdeed_found(ANSWER_TWICE, 2, -EPROTO, "claims more answers than there are requests");
}

static void answered_with_wrong_id(void **state)
{
	(void)state;
	misdeed_found(WRONG_ID, 2, -EPROTO, "no request with this id");
}

static void answered_with_wrong_operation(void **state)
{
	(void)state;
	misdeed_found(WRONG_OPERATION, 2, -EPROTO, "names operation 0 instead of 1");
}

static void never_answered(void **state)
{
	(void)state;
	misdeed_found(NEVER_ANSWER, 2, -ETIMEDOUT, "the oldest is the WRITE of sector 16");
}

static void range_beyond_disk(void **state)
{
	struct front_job_config config = base;
	struct front_job *job;

	(void)state;
	config.offset_bytes = DISK_SECTORS * 512;
	assert_int_equal(front_job_create(&config, DISK_SECTORS, &job, &error), -EINVAL);
	config.offset_bytes = 512;
	config.size_bytes = DISK_SECTORS * 512;
	assert_int_equal(front_job_create(&config, DISK_SECTORS, &job, &error), -EINVAL);
	config.size_bytes = 512;
	assert_int_equal(front_job_create(&config, DISK_SECTORS, &job, &error), -EINVAL);
}

/* ---- The histogram ------------------------------------------------------------------------------ */

static void percentiles(void **state)
{
	static struct front_stats counted;

	(void)state;
	assert_true(front_latency_percentile(&counted, 50) == 0);
	for (uint64_t i = 1; i <= 1000; i++)
		front_latency_add(&counted, i * 1000);
	assert_in_range(front_latency_percentile(&counted, 50), 490000, 520000);
	assert_in_range(front_latency_percentile(&counted, 99), 980000, 1000000);
	assert_true(front_latency_percentile(&counted, 100) == 1000000);
	front_latency_add(&counted, UINT64_MAX);
	assert_true(counted.latency_max_ns == UINT64_MAX);
	assert_true(front_latency_percentile(&counted, 100) == UINT64_MAX);
}

#define job_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		job_test(every_kind),
		job_test(segments_at_random_places),
		job_test(flush_every),
		job_test(verify_only),
		job_test(write_lost),
		job_test(write_misdirected),
		job_test(write_torn),
		job_test(sector_torn),
		job_test(write_stale),
		job_test(write_refused),
		job_test(answered_twice),
		job_test(answered_with_wrong_id),
		job_test(answered_with_wrong_operation),
		job_test(never_answered),
		job_test(range_beyond_disk),
		cmocka_unit_test(percentiles),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
