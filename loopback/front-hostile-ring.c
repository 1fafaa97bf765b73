// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hostile mode, rows about the ring: what requests must not say.
 *
 * Owns: one function per row. Trusts / does not trust: a backend under test, in nothing.
 * Runs on: the main thread; sleeps for answers. A racing row has one more thread,
 *   which scribbles on the shared ring while the row lasts. Must not know: options, jobs.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loopback/front-hostile-internal.h"

static void indirect_put(struct hostile *h, uint8_t inner_op, uint16_t nr_segments, uint64_t id)
{
	struct front_ring *ring = &link_of(h)->queues[0].ring;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	front_indirect_encode(ring->abi, id, inner_op, nr_segments, 0, h->pages.grefs[PAGE_TABLE],
			      slot);
	front_ring_put(ring, slot);
}

/* ---- R: the ring -------------------------------------------------------------------------------- */

static void row_r01(struct hostile *h)
{
	struct front_link *link = link_of(h);
	const uint32_t beyond[] = {link->queues[0].ring.nr_slots + 1, 0x80000000u};
	struct front_request request = request_make(h, BLKIF_READ, 1, 0);
	uint32_t start = link->queues[0].ring.rsp_cons;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	/* Each slot holds a good request, which a backend that believes the index would answer. */
	front_request_encode(link->queues[0].ring.abi, &request, slot);
	for (uint32_t i = 0; i < link->queues[0].ring.nr_slots; i++)
		memcpy(front_ring_slot(&link->queues[0].ring, i), slot,
		       link->queues[0].ring.abi->slot_bytes);
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		front_ring_poke(&link->queues[0].ring, FRONT_OFF_REQ_PROD, start + beyond[i]);
		front_link_notify(link, 0);
		check(h, !ring_answers(h), "req_prod %#x beyond the consumer: no slot is handled",
		      beyond[i]);
	}
}

/* The other side of a race: two bytes that change all the time. */
struct flipper {
	uint8_t *byte[2]; /* may be moved while it runs */
	uint8_t value[2][2];
	bool stop;
};

/* No sleep: the shorter its period, the more it hits. */
static void *flipper_run(void *arg)
{
	struct flipper *flipper = arg;

	for (unsigned turn = 0; !__atomic_load_n(&flipper->stop, __ATOMIC_RELAXED); turn++)
		for (unsigned i = 0; i < 2; i++)
			__atomic_store_n(__atomic_load_n(&flipper->byte[i], __ATOMIC_RELAXED),
					 flipper->value[i][turn >> i & 1], __ATOMIC_RELAXED);
	return NULL;
}

/* Run @body while @flipper flips. */
static void race_run(struct hostile *h, struct flipper *flipper,
		     void (*body)(struct hostile *h, struct flipper *flipper))
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, flipper_run, flipper);

	if (err) {
		check(h, false, "cannot start the racing thread: %s", strerror(err));
		return;
	}
	body(h, flipper);
	__atomic_store_n(&flipper->stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* The flipper rewrites the slot's first two bytes, which are the answer's id's first two as well: the
 * count in the id stands above them. */
static void slot_flip(struct hostile *h, struct flipper *flipper, uint32_t slot_idx)
{
	uint8_t *slot = front_ring_slot(&link_of(h)->queues[0].ring, slot_idx);

	__atomic_store_n(&flipper->byte[0], slot + BLKIF_OFF_NR_SEGMENTS, __ATOMIC_RELAXED);
	__atomic_store_n(&flipper->byte[1], slot + BLKIF_OFF_OPERATION, __ATOMIC_RELAXED);
}

static void race_r02(struct hostile *h, struct flipper *flipper)
{
	unsigned nr_read = 0, nr_refused = 0;
	struct front_response response;

	for (uint64_t i = 1; i <= h->nr_races; i++) {
		struct front_request request = request_make(h, BLKIF_READ, 1, 0);
		bool consistent;
		int err;

		request.id = i << 16;
		slot_flip(h, flipper, link_of(h)->queues[0].ring.req_prod_pvt);
		request_put(h, &request);
		err = answer_await(h, &response);
		if (err) {
			check(h, false, "race round %llu: no answer (%s)", (unsigned long long)i,
			      strerror(-err));
			return;
		}
		/* READ of 1 segment, READ of 255, or DISCARD: each has its own answer. */
		consistent =
			response.operation == BLKIF_READ
				? status_bit(response.status) & (OKAY | ERROR)
				: response.operation == BLKIF_DISCARD &&
					  (h->front->disk.discard
						   ? status_bit(response.status)
						   : response.status == BLKIF_STATUS_EOPNOTSUPP);
		if (response.id >> 16 != i || !consistent) {
			check(h, false,
			      "race round %llu: answer id %#llx operation %u status %d is of no single snapshot",
			      (unsigned long long)i, (unsigned long long)response.id,
			      response.operation, response.status);
			return;
		}
		nr_read += !response.status;
		nr_refused += response.status != 0;
	}
	check(h, true,
	      "%u requests changed while they were fetched: each answer is of one snapshot (%u OKAY, %u refused)",
	      h->nr_races, nr_read, nr_refused);
}

static void row_r02(struct hostile *h)
{
	struct flipper flipper = {.value = {{1, 255}, {BLKIF_READ, BLKIF_DISCARD}}};

	slot_flip(h, &flipper, 0);
	race_run(h, &flipper, race_r02);
}

#define R03_SEGMENTS 64

static void race_r03(struct hostile *h, struct flipper *flipper)
{
	struct front_response response;

	(void)flipper; /* stays where it is */
	data_fill(h);
	for (uint64_t i = 1; i <= h->nr_races; i++) {
		int err;

		indirect_put(h, BLKIF_READ, R03_SEGMENTS, i);
		err = answer_await(h, &response);
		if (err || response.id != i || response.operation != BLKIF_READ ||
		    !(status_bit(response.status) & (OKAY | ERROR))) {
			check(h, false, "race round %llu: no answer or a wrong one",
			      (unsigned long long)i);
			return;
		}
	}
	check(h, page_untouched(h, PAGE_GUARD_LOW) && page_untouched(h, PAGE_GUARD_HIGH),
	      "%u indirect requests whose segments changed while they were fetched: nothing beside the page is written",
	      h->nr_races);
}

static void row_r03(struct hostile *h)
{
	uint8_t *table = page_addr(h, PAGE_TABLE);
	struct flipper flipper = {
		.byte = {table + 5, table + 5}, /* last_sect of segment 0 */
		.value = {{7, 255}, {255, 7}},
	};

	for (unsigned i = 0; i < R03_SEGMENTS; i++) {
		uint8_t *segment = table + i * BLKIF_SEGMENT_BYTES;

		blkif_put32(segment, 0, h->pages.grefs[PAGE_DATA]);
		segment[4] = 0;
		segment[5] = 7;
	}
	if (h->front->disk.max_indirect_segments >= R03_SEGMENTS) {
		race_run(h, &flipper, race_r03);
		return;
	}
	indirect_put(h, BLKIF_READ, R03_SEGMENTS, 3);
	answer_expect(h, 3, BLKIF_INDIRECT, BLKIF_READ, UNSUPPORTED,
		      "INDIRECT of READ, not offered by this backend,");
}

static void row_r04(struct hostile *h)
{
	static const uint8_t counts[] = {12, 255};
	char what[64];

	data_fill(h);
	for (size_t i = 0; i < sizeof(counts); i++) {
		for (uint8_t operation = BLKIF_READ; operation <= BLKIF_WRITE; operation++) {
			struct front_request request = request_make(h, operation, counts[i], 0);

			snprintf(what, sizeof(what), "%s with %u segments",
				 front_operation_name(operation), counts[i]);
			request_expect(h, &request, ERROR, what);
		}
	}
	check(h, data_untouched(h), "no page is touched");
}

static void row_r05(struct hostile *h)
{
	struct front_request request = request_make(h, BLKIF_READ, 0, 0);

	request_expect(h, &request, ERROR, "READ with 0 segments");
	request = request_make(h, BLKIF_WRITE, 0, 0);
	request_expect(h, &request, ERROR, "WRITE with 0 segments");
	request = request_make(h, BLKIF_FLUSH_DISKCACHE, 0, 0);
	request_expect(h, &request, h->front->disk.flush ? OKAY : UNSUPPORTED,
		       h->front->disk.flush ? "FLUSH with 0 segments"
					    : "FLUSH, not offered by this backend,");
}

/* READ and WRITE of one segment [@first-@last]. */
static void range_expect(struct hostile *h, uint8_t first, uint8_t last)
{
	char what[64];

	for (uint8_t operation = BLKIF_READ; operation <= BLKIF_WRITE; operation++) {
		struct front_request request = request_make(h, operation, 1, 0);

		request.segments[0] = segment_make(h, PAGE_DATA, first, last);
		snprintf(what, sizeof(what), "%s [%u-%u]", front_operation_name(operation), first,
			 last);
		request_expect(h, &request, ERROR, what);
	}
}

static void row_r06(struct hostile *h)
{
	data_fill(h);
	range_expect(h, 5, 2);
	check(h, data_untouched(h), "no page is touched");
}

static void row_r07(struct hostile *h)
{
	if (!contents_note(h, 0))
		return;
	data_fill(h);
	range_expect(h, 0, 8);
	range_expect(h, 7, 8);
	range_expect(h, 0, 255);
	range_expect(h, 255, 255);
	check(h, data_untouched(h), "the page and its neighbours are untouched");
	check(h, contents_unchanged(h, 0), "the disk is unchanged");
}

static void row_r08(struct hostile *h)
{
	const uint64_t sectors[] = {UINT64_MAX - 7, 1ull << 55, 1ull << 63};
	char what[64];

	if (!contents_note(h, 0))
		return;
	data_fill(h);
	for (size_t i = 0; i < sizeof(sectors) / sizeof(sectors[0]); i++) {
		for (uint8_t operation = BLKIF_READ; operation <= BLKIF_WRITE; operation++) {
			struct front_request request = request_make(h, operation, 1, sectors[i]);

			snprintf(what, sizeof(what), "%s of sector %#llx",
				 front_operation_name(operation), (unsigned long long)sectors[i]);
			request_expect(h, &request, ERROR, what);
		}
	}
	check(h, data_untouched(h), "no page is touched");
	check(h, contents_unchanged(h, 0), "the disk is unchanged");
}

static void row_r09(struct hostile *h)
{
	uint64_t last_page = disk_sectors(h) - BLKIF_SECTORS_PER_PAGE, sectors = 0;
	struct front_request request;

	if (!contents_note(h, last_page))
		return;
	data_fill(h);
	request = request_make(h, BLKIF_WRITE, 2, last_page);
	request_expect(h, &request, ERROR, "WRITE whose second page lies past the end");
	request = request_make(h, BLKIF_READ, 2, last_page);
	request_expect(h, &request, ERROR, "READ whose second page lies past the end");
	request = request_make(h, BLKIF_WRITE, 1, disk_sectors(h));
	request_expect(h, &request, ERROR, "WRITE that begins at the end");
	check(h, contents_unchanged(h, last_page), "the last page is unchanged");
	check(h,
	      !store_read_number(h->front->store, h->front->backend, "sectors", UINT64_MAX,
				 &sectors) &&
		      sectors == disk_sectors(h),
	      "the disk has its old size");
}

/* ---- R12 to R22 --------------------------------------------------------------------------------- */

static void discard_put(struct hostile *h, uint64_t id)
{
	struct front_ring *ring = &link_of(h)->queues[0].ring;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	front_discard_encode(ring->abi, id, 0, 0, BLKIF_SECTORS_PER_PAGE, slot);
	front_ring_put(ring, slot);
}

static void row_r12(struct hostile *h)
{
	static const uint8_t unknown[] = {4, 7, 255};
	const struct front_disk *disk = &h->front->disk;
	struct front_request request;
	char what[64];

	for (size_t i = 0; i < sizeof(unknown); i++) {
		request = request_make(h, unknown[i], 1, 0);
		snprintf(what, sizeof(what), "operation %u", unknown[i]);
		request_expect(h, &request, UNSUPPORTED, what);
	}
	if (disk->discard) {
		skip(h, "this backend offers DISCARD");
	} else {
		discard_put(h, 12);
		answer_expect(h, 12, BLKIF_DISCARD, BLKIF_DISCARD, UNSUPPORTED,
			      "DISCARD, not offered,");
	}
	if (disk->barrier) {
		skip(h, "this backend offers WRITE_BARRIER");
	} else {
		request = request_make(h, BLKIF_WRITE_BARRIER, 0, 0);
		request_expect(h, &request, UNSUPPORTED, "WRITE_BARRIER alone, not offered,");
		request = request_make(h, BLKIF_WRITE_BARRIER, 1, 0);
		request_expect(h, &request, UNSUPPORTED, "WRITE_BARRIER with data, not offered,");
	}
	if (disk->max_indirect_segments) {
		skip(h, "this backend offers INDIRECT");
	} else {
		indirect_put(h, BLKIF_READ, 1, 13);
		answer_expect(h, 13, BLKIF_INDIRECT, BLKIF_READ, UNSUPPORTED,
			      "INDIRECT, not offered,");
	}
}

static void row_r14(struct hostile *h)
{
	struct front_request request;

	if (!(h->front->disk.info & FRONT_INFO_READONLY)) {
		skip(h, "the disk is writable: attach one with mode=r");
		return;
	}
	if (!contents_note(h, 0))
		return;
	data_fill(h);
	request = request_make(h, BLKIF_WRITE, 1, 0);
	request_expect(h, &request, ERROR, "WRITE to a read-only disk");
	/* Not offered is as good a refusal as read-only; row R12 is about which of the two. */
	discard_put(h, 14);
	answer_expect(h, 14, BLKIF_DISCARD, BLKIF_DISCARD, REFUSED, "DISCARD on a read-only disk");
	memset(page_addr(h, PAGE_TABLE), 0, XEN_PAGE_SIZE);
	blkif_put32(page_addr(h, PAGE_TABLE), 0, h->pages.grefs[PAGE_DATA]);
	page_addr(h, PAGE_TABLE)[5] = 7;
	indirect_put(h, BLKIF_WRITE, 1, 15);
	answer_expect(h, 15, BLKIF_INDIRECT, BLKIF_WRITE, REFUSED,
		      "INDIRECT of WRITE to a read-only disk");
	check(h, contents_unchanged(h, 0), "the disk is unchanged");
}

static void row_r17(struct hostile *h)
{
	struct front_request request = request_make(h, BLKIF_READ, 1, 0);
	struct front_response response;
	unsigned nr_answers = 0;

	request.id = 17;
	request_put(h, &request);
	request.sector = BLKIF_SECTORS_PER_PAGE;
	request_put(h, &request);
	front_link_kick(link_of(h));
	while (nr_answers < 2 && !answer_take(h, &response) && response.id == 17 &&
	       !response.status)
		nr_answers++;
	check(h, nr_answers == 2, "two READs in flight with one id: %u of 2 answered OKAY",
	      nr_answers);
	request.id = UINT64_MAX;
	request_expect(h, &request, OKAY, "READ with id 2^64-1");
	request.id = 0;
	request_expect(h, &request, OKAY, "READ with id 0");
}

#define R22_ROUNDS 200

static void row_r22(struct hostile *h)
{
	struct front_link *link = link_of(h);
	struct front_ring *ring = &link->queues[0].ring;

	for (unsigned i = 0; i < R22_ROUNDS; i++) {
		struct front_request request = request_make(h, BLKIF_READ, 1, 0);
		uint64_t deadline_ns = clock_now_ns() + ANSWER_NS;
		struct front_response response;
		int ret;

		front_ring_poke(ring, FRONT_OFF_RSP_PROD, (uint32_t)front_random(&h->id_state));
		front_ring_poke(ring, FRONT_OFF_REQ_EVENT, (uint32_t)front_random(&h->id_state));
		front_ring_poke(ring, FRONT_OFF_RSP_EVENT, (uint32_t)front_random(&h->id_state));
		request_put(h, &request);
		front_ring_publish(ring);
		front_link_notify(link,
				  0); /* with such a req_event nobody can tell if it is wanted */
		/* With such an rsp_event no event may come: look every millisecond. */
		while (front_ring_peek(ring, FRONT_OFF_RSP_PROD) != ring->rsp_cons + 1 &&
		       clock_now_ns() < deadline_ns)
			front_link_wait(link, clock_now_ns() + NSEC_PER_MSEC);
		ret = front_ring_take(ring, &response);
		if (ret != 1 || response.id != request.id || response.status) {
			check(h, false, "round %u: no good answer in its slot", i);
			return;
		}
	}
	check(h, true,
	      "%u rounds with random rsp_prod, req_event, rsp_event: each answer in its slot",
	      R22_ROUNDS);
}

/* ---- Barriers, discards, indirect requests, sectors --------------------------------------------- */

#define R13_WRITES 8

/* Answers in any order, but for the barrier's: after all before it, before all after it. */
static void row_r13(struct hostile *h)
{
	struct front_request request;
	struct front_response response;
	unsigned nr_before = 0, position = 0;

	if (!h->front->disk.barrier) {
		skip(h, "this backend does not offer WRITE_BARRIER");
		return;
	}
	for (unsigned i = 0; i < R13_WRITES + 2; i++) {
		request = request_make(h, i == R13_WRITES ? BLKIF_WRITE_BARRIER : BLKIF_WRITE, 1,
				       (uint64_t)i * BLKIF_SECTORS_PER_PAGE);
		request.id = i;
		request_put(h, &request);
	}
	front_link_kick(link_of(h));
	for (unsigned i = 0; i < R13_WRITES + 2; i++) {
		if (answer_take(h, &response) || response.status) {
			check(h, false, "answer %u of %u is missing or no OKAY", i, R13_WRITES + 2);
			return;
		}
		if (response.id == R13_WRITES)
			position = i;
		nr_before += response.id < R13_WRITES && i < R13_WRITES;
	}
	check(h, nr_before == R13_WRITES && position == R13_WRITES,
	      "a barrier is answered after the %u writes before it and before the one after it",
	      R13_WRITES);
	request = request_make(h, BLKIF_WRITE_BARRIER, 0, 0);
	request_expect(h, &request, OKAY, "an empty barrier, alone,");
}

static void table_fill(struct hostile *h, unsigned nr_segments)
{
	for (unsigned i = 0; i < nr_segments; i++)
		front_table_encode(page_addr(h, PAGE_TABLE), i, segment_make(h, PAGE_DATA, 0, 7));
}

static void row_r16(struct hostile *h)
{
	uint64_t max = h->front->disk.max_indirect_segments;
	const uint16_t bad[] = {0, (uint16_t)(max + 1), 511, 512, 513, 65535};
	static const uint8_t bad_ops[] = {BLKIF_FLUSH_DISKCACHE, BLKIF_DISCARD, BLKIF_INDIRECT,
					  255};
	char what[64];

	if (!max) {
		skip(h, "this backend does not offer INDIRECT");
		return;
	}
	table_fill(h, BLKIF_SEGMENTS_PER_INDIRECT_PAGE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (bad[i] && bad[i] <= max)
			continue;
		snprintf(what, sizeof(what), "INDIRECT of READ with %u segments", bad[i]);
		indirect_put(h, BLKIF_READ, bad[i], 100 + i);
		answer_expect(h, 100 + i, BLKIF_READ, BLKIF_READ, ERROR, what);
	}
	for (size_t i = 0; i < sizeof(bad_ops); i++) {
		snprintf(what, sizeof(what), "INDIRECT of operation %u", bad_ops[i]);
		indirect_put(h, bad_ops[i], 1, 200 + i);
		answer_expect(h, 200 + i, bad_ops[i], BLKIF_INDIRECT, REFUSED, what);
	}
	/* All segments are one page, which is granted once. */
	indirect_put(h, BLKIF_READ, 64, 300);
	answer_expect(h, 300, BLKIF_READ, BLKIF_READ, OKAY,
		      "INDIRECT of READ with one page 64 times");
	indirect_put(h, BLKIF_READ, 1, 301);
	answer_expect(h, 301, BLKIF_READ, BLKIF_READ, OKAY, "INDIRECT of READ with 1 segment");
	front_table_encode(page_addr(h, PAGE_TABLE), 1, segment_make(h, PAGE_DATA, 5, 2));
	indirect_put(h, BLKIF_READ, 2, 302);
	answer_expect(h, 302, BLKIF_READ, BLKIF_READ, ERROR, "INDIRECT with a swapped segment");
}

static void discard_expect(struct hostile *h, uint8_t flag, uint64_t sector, uint64_t nr_sectors,
			   unsigned statuses, const char *what)
{
	struct front_ring *ring = &link_of(h)->queues[0].ring;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};
	uint64_t id = front_random(&h->id_state);

	front_discard_encode(ring->abi, id, flag, sector, nr_sectors, slot);
	front_ring_put(ring, slot);
	answer_expect(h, id, BLKIF_DISCARD, BLKIF_DISCARD, statuses, what);
}

/* A flush may carry data: first the flush, then the write (blkback REQ_PREFLUSH, QEMU presync). */
static void row_flush_data(struct hostile *h)
{
	struct front_request request;

	if (!h->front->disk.flush || h->front->disk.info & FRONT_INFO_READONLY) {
		skip(h, "the disk cannot be flushed, or not be written");
		return;
	}
	memset(page_addr(h, PAGE_DATA), 0x77, XEN_PAGE_SIZE);
	request = request_make(h, BLKIF_FLUSH_DISKCACHE, 1, BLKIF_SECTORS_PER_PAGE);
	request_expect(h, &request, OKAY, "FLUSH with a page of data");
	check(h,
	      page_read(h, BLKIF_SECTORS_PER_PAGE, PAGE_AFTER) &&
		      !memcmp(page_addr(h, PAGE_AFTER), page_addr(h, PAGE_DATA), XEN_PAGE_SIZE),
	      "its data is written");
	request.segments[0] = segment_make(h, PAGE_DATA, 6, 1);
	request_expect(h, &request, ERROR, "FLUSH with a swapped segment");
	request = request_make(h, BLKIF_FLUSH_DISKCACHE, 1, disk_sectors(h));
	request_expect(h, &request, ERROR, "FLUSH with data past the end");
}

static void row_r18(struct hostile *h)
{
	struct front_request request;

	if (!h->front->disk.discard) {
		skip(h, "this backend does not offer DISCARD");
		return;
	}
	memset(page_addr(h, PAGE_DATA), 0xc3, XEN_PAGE_SIZE);
	request = request_make(h, BLKIF_WRITE, 1, 0);
	request_expect(h, &request, OKAY, "a WRITE before");
	if (!contents_note(h, 0))
		return;
	discard_expect(h, 0, 1ull << 63, 1ull << 63, ERROR, "DISCARD of 2^63 sectors at 2^63");
	discard_expect(h, 0, 0, UINT64_MAX, ERROR, "DISCARD of 2^64-1 sectors");
	discard_expect(h, 0, 0, 1ull << 55, ERROR, "DISCARD of 2^55 sectors");
	discard_expect(h, 0, disk_sectors(h) - 1, 2, ERROR, "DISCARD past the end");
	discard_expect(h, 0, 0, 0, OKAY, "DISCARD of no sectors");
	discard_expect(h, 0, disk_sectors(h), 0, OKAY, "DISCARD of no sectors at the end");
	check(h, contents_unchanged(h, 0), "none of them discards anything");
}

static void row_r19(struct hostile *h)
{
	if (!h->front->disk.discard || h->front->disk.discard_secure) {
		skip(h, "this backend offers no DISCARD, or secure ones");
		return;
	}
	discard_expect(h, 1, 0, BLKIF_SECTORS_PER_PAGE, OKAY, "DISCARD with the secure flag");
}

/* Whatever sector-size says, a sector number counts 512 bytes (blkif.h since Xen 4.20). */
static void row_r23(struct hostile *h)
{
	struct front_request request = request_make(h, BLKIF_WRITE, 1, BLKIF_SECTORS_PER_PAGE);

	memset(page_addr(h, PAGE_DATA), 0x3c, XEN_PAGE_SIZE);
	request_expect(h, &request, OKAY, "WRITE of sector 8");
	request = request_make(h, BLKIF_READ, 2, 0);
	request.segments[0] = segment_make(h, PAGE_BEFORE, 0, 7);
	request.segments[1] = segment_make(h, PAGE_AFTER, 0, 7);
	request_expect(h, &request, OKAY, "READ of sectors 0 to 15");
	check(h, !memcmp(page_addr(h, PAGE_AFTER), page_addr(h, PAGE_DATA), XEN_PAGE_SIZE),
	      "sector 8 is the second page of it");
}

static void row_r25(struct hostile *h)
{
	struct front_request request;

	if (h->front->disk.sector_bytes == BLKIF_SECTOR_BYTES) {
		skip(h, "the disk has sectors of 512 bytes");
		return;
	}
	if (!contents_note(h, BLKIF_SECTORS_PER_PAGE))
		return;
	request = request_make(h, BLKIF_READ, 1, 1);
	request.segments[0] = segment_make(h, PAGE_DATA, 0, 0);
	request_expect(h, &request, ERROR, "READ of sector 1 of a block");
	request = request_make(h, BLKIF_WRITE, 1, BLKIF_SECTORS_PER_PAGE);
	request.segments[0] = segment_make(h, PAGE_DATA, 1, 7);
	request_expect(h, &request, ERROR, "WRITE of 7 sectors of a block");
	check(h, contents_unchanged(h, BLKIF_SECTORS_PER_PAGE), "the block is unchanged");
	if (h->front->disk.discard)
		discard_expect(h, 0, 1, BLKIF_SECTORS_PER_PAGE, OKAY, "DISCARD from sector 1");
}

const struct row front_hostile_ring_rows[] = {
	{"r01", "req_prod beyond the ring", row_r01, ROW_STOPS_RING},
	{"r02", "request changed while it is fetched", row_r02, 0},
	{"r03", "indirect segments changed while they are fetched", row_r03, 0},
	{"r04", "more segments than a request has", row_r04, 0},
	{"r05", "no segments", row_r05, 0},
	{"r06", "segment with its ends swapped", row_r06, 0},
	{"r07", "segment past the end of its page", row_r07, 0},
	{"r08", "sector numbers that wrap in bytes", row_r08, 0},
	{"r09", "request that begins within the disk and ends past it", row_r09, 0},
	{"r12", "operations that are unknown or not offered", row_r12, 0},
	{"r14", "writes to a read-only disk", row_r14, 0},
	{"r17", "equal and extreme ids", row_r17, 0},
	{"r22", "the backend's own indices overwritten", row_r22, 0},
	{"r13", "barriers that are overtaken, and lone ones", row_r13, 0},
	{"r16", "counts and operations of indirect requests", row_r16, 0},
	{"r18", "discards whose range wraps, is too long, or empty", row_r18, 0},
	{"r19", "a discard with the secure flag", row_r19, 0},
	{"flush-data", "flushes that carry data", row_flush_data, 0},
	{"r23", "sector numbers count 512 bytes", row_r23, 0},
	{"r25", "parts of a sector of 4096 bytes", row_r25, 0},
	{NULL, NULL, NULL, 0},
};
