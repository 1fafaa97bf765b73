// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hostile mode: what a broken or malicious guest does, and the answers a backend owes it.
 *
 * Owns: one function per row of the table of known faults (rNN: ring protocol, gNN: grants and event
 *   channels), TAP output with one line per assertion.
 * Trusts / does not trust: a backend under test, in nothing.
 * Runs on: the main thread; sleeps for answers. A racing row has one more thread, which scribbles on
 *   the shared ring while the row lasts.
 * Must not know: options, jobs.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/clock.h"
#include "loopback/front-hostile.h"
#include "loopback/front-pattern.h"

#define ANSWER_NS (5 * NSEC_PER_SEC)  /* a backend that is well answers long before */
#define SILENCE_NS (NSEC_PER_SEC / 2) /* how long no answer counts as none */
#define UNTOUCHED 0x5a		      /* fills pages that must not change */
#define MIN_DISK_SECTORS 1024

/* Our shared pages. The data page has a guard on both sides, here and in the grant table. */
enum { PAGE_GUARD_LOW, PAGE_DATA, PAGE_GUARD_HIGH, PAGE_BEFORE, PAGE_AFTER, PAGE_TABLE, NR_PAGES };

/* What an answer may be, as bits. */
#define OKAY (1u << 0)
#define ERROR (1u << 1)
#define UNSUPPORTED (1u << 2)
#define REFUSED (ERROR | UNSUPPORTED)

struct hostile {
	struct front *front;
	struct front_pages pages;
	struct error *error;
	FILE *tap;
	const char *row;
	unsigned nr_races;
	unsigned nr_tests, nr_failed;
	uint64_t id_state;
};

#define ROW_CONNECTS_ITSELF (1u << 0) /* called without a connection */
#define ROW_STOPS_RING (1u << 1)      /* good I/O only after a new connection */
#define ROW_IN_GRANTS (1u << 2)	      /* of the group "grants" */

struct row {
	const char *name, *what;
	void (*run)(struct hostile *h);
	unsigned flags;
};

/* ---- TAP ---------------------------------------------------------------------------------------- */

static void row_name_print(const struct hostile *h)
{
	for (const char *c = h->row; *c; c++)
		fputc(toupper((unsigned char)*c), h->tap);
}

__attribute__((format(printf, 3, 4))) static bool check(struct hostile *h, bool good,
							const char *format, ...)
{
	va_list ap;

	fprintf(h->tap, "%sok %u - ", good ? "" : "not ", ++h->nr_tests);
	row_name_print(h);
	fputc(' ', h->tap);
	va_start(ap, format);
	vfprintf(h->tap, format, ap);
	va_end(ap);
	fputc('\n', h->tap);
	fflush(h->tap);
	h->nr_failed += !good;
	return good;
}

static void skip(struct hostile *h, const char *why)
{
	fprintf(h->tap, "ok %u - ", ++h->nr_tests);
	row_name_print(h);
	fprintf(h->tap, " # SKIP %s\n", why);
	fflush(h->tap);
}

/* ---- Requests and answers ----------------------------------------------------------------------- */

static struct front_link *link_of(struct hostile *h)
{
	return &h->front->link;
}

static uint8_t *page_addr(const struct hostile *h, unsigned page)
{
	return h->pages.addr + (size_t)page * XEN_PAGE_SIZE;
}

static void page_fill(struct hostile *h, unsigned page)
{
	memset(page_addr(h, page), UNTOUCHED, XEN_PAGE_SIZE);
}

static bool page_untouched(const struct hostile *h, unsigned page)
{
	const uint8_t *addr = page_addr(h, page);

	for (unsigned i = 0; i < XEN_PAGE_SIZE; i++)
		if (addr[i] != UNTOUCHED)
			return false;
	return true;
}

static bool data_untouched(const struct hostile *h)
{
	return page_untouched(h, PAGE_GUARD_LOW) && page_untouched(h, PAGE_DATA) &&
	       page_untouched(h, PAGE_GUARD_HIGH);
}

static void data_fill(struct hostile *h)
{
	page_fill(h, PAGE_GUARD_LOW);
	page_fill(h, PAGE_DATA);
	page_fill(h, PAGE_GUARD_HIGH);
}

static struct blkif_segment segment_make(const struct hostile *h, unsigned page, uint8_t first,
					 uint8_t last)
{
	return (struct blkif_segment){h->pages.grefs[page], first, last};
}

/* A request of @nr_segments whole data pages at @sector with an id of its own. */
static struct front_request request_make(struct hostile *h, uint8_t operation, uint8_t nr_segments,
					 uint64_t sector)
{
	struct front_request request = {
		.operation = operation,
		.nr_segments = nr_segments,
		.id = front_random(&h->id_state),
		.sector = sector,
	};

	for (unsigned i = 0; i < BLKIF_MAX_SEGMENTS; i++)
		request.segments[i] = segment_make(h, PAGE_DATA, 0, 7);
	return request;
}

static void request_put(struct hostile *h, const struct front_request *request)
{
	struct front_ring *ring = &link_of(h)->queues[0].ring;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	front_request_encode(ring->abi, request, slot);
	front_ring_put(ring, slot);
}

static int answer_take(struct hostile *h, struct front_response *response)
{
	return front_link_take(link_of(h), response, clock_now_ns() + ANSWER_NS);
}

/* Send what was put and wait for one answer. */
static int answer_await(struct hostile *h, struct front_response *response)
{
	int err = front_link_kick(link_of(h));

	return err ? err : answer_take(h, response);
}

static unsigned status_bit(int16_t status)
{
	switch (status) {
	case BLKIF_STATUS_OKAY:
		return OKAY;
	case BLKIF_STATUS_ERROR:
		return ERROR;
	case BLKIF_STATUS_EOPNOTSUPP:
		return UNSUPPORTED;
	}
	return 0;
}

static const char *statuses_name(unsigned statuses)
{
	switch (statuses) {
	case OKAY:
		return "OKAY";
	case ERROR:
		return "ERROR";
	case UNSUPPORTED:
		return "EOPNOTSUPP";
	case REFUSED:
		return "ERROR or EOPNOTSUPP";
	}
	return "anything";
}

/* Wait for one answer, which must carry @id and @operation (or @inner_op) and one of @statuses. */
static bool answer_expect(struct hostile *h, uint64_t id, uint8_t operation, uint8_t inner_op,
			  unsigned statuses, const char *what)
{
	struct front_response response;
	int err = answer_await(h, &response);

	if (err)
		return check(h, false, "%s: no answer (%s), expected %s", what, strerror(-err),
			     statuses_name(statuses));
	if (response.id != id)
		return check(h, false, "%s: answer carries id %#llx instead of %#llx", what,
			     (unsigned long long)response.id, (unsigned long long)id);
	if (response.operation != operation && response.operation != inner_op)
		return check(h, false, "%s: answer names operation %u instead of %u", what,
			     response.operation, operation);
	if (!(status_bit(response.status) & statuses))
		return check(h, false, "%s: answered %s (%d), expected %s", what,
			     front_status_name(response.status), response.status,
			     statuses_name(statuses));
	return check(h, true, "%s answers %s", what, front_status_name(response.status));
}

static bool request_expect(struct hostile *h, const struct front_request *request,
			   unsigned statuses, const char *what)
{
	request_put(h, request);
	return answer_expect(h, request->id, request->operation, request->operation, statuses,
			     what);
}

/* Read the page at @sector into @page; false if that fails. */
static bool page_read(struct hostile *h, uint64_t sector, unsigned page)
{
	struct front_request request = request_make(h, BLKIF_READ, 1, sector);
	struct front_response response;

	request.segments[0] = segment_make(h, page, 0, 7);
	request_put(h, &request);
	return !answer_await(h, &response) && response.id == request.id && !response.status;
}

static bool contents_note(struct hostile *h, uint64_t sector)
{
	return page_read(h, sector, PAGE_BEFORE) ||
	       check(h, false, "a good READ of sector %llu before the row",
		     (unsigned long long)sector);
}

static bool contents_unchanged(struct hostile *h, uint64_t sector)
{
	return page_read(h, sector, PAGE_AFTER) &&
	       !memcmp(page_addr(h, PAGE_BEFORE), page_addr(h, PAGE_AFTER), XEN_PAGE_SIZE);
}

static uint64_t disk_sectors(const struct hostile *h)
{
	return h->front->disk.nr_sectors512;
}

/* ---- R: the ring -------------------------------------------------------------------------------- */

/* Whether rsp_prod moves within SILENCE_NS. */
static bool ring_answers(struct hostile *h)
{
	struct front_link *link = link_of(h);
	uint64_t deadline_ns = clock_now_ns() + SILENCE_NS;

	while (!front_ring_arm(&link->queues[0].ring))
		if (front_link_wait(link, deadline_ns))
			return false;
	return true;
}

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

static void indirect_put(struct hostile *h, uint8_t inner_op, uint16_t nr_segments, uint64_t id)
{
	struct front_ring *ring = &link_of(h)->queues[0].ring;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	front_indirect_encode(ring->abi, id, inner_op, nr_segments, 0, h->pages.grefs[PAGE_TABLE],
			      slot);
	front_ring_put(ring, slot);
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

/* ---- R10, R11: the layouts ---------------------------------------------------------------------- */

/* Connect with another protocol and share the pages. */
static bool protocol_connect(struct hostile *h, const char *protocol)
{
	struct error error;
	int err;

	h->front->config.protocol = protocol;
	err = front_connect(h->front, &error);
	if (!err)
		err = front_pages_share(link_of(h), NR_PAGES, true, &h->pages, &error);
	return !err || check(h, false, "%s: %s", protocol, error.text);
}

static void protocol_disconnect(struct hostile *h)
{
	struct error error;
	int err = front_disconnect(h->front, &error);

	if (err)
		check(h, false, "disconnect: %s", error.text);
	front_pages_revoke(link_of(h), &h->pages);
}

static const char *const protocols[] = {"x86_64-abi", "x86_32-abi", "arm-abi"};
#define NR_PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

#define R10_READS 64

static void padding_check(struct hostile *h, const char *protocol)
{
	struct front_ring *ring = &link_of(h)->queues[0].ring;
	unsigned stride = ring->abi->slot_bytes;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];

	for (uint32_t i = 0; i < ring->nr_slots; i++)
		memset(front_ring_slot(ring, i), 0xa5, stride);
	for (unsigned i = 0; i < R10_READS; i++) {
		struct front_request request = request_make(h, BLKIF_READ, 1, 0);
		struct front_response response;
		const uint8_t *answered;

		memset(slot, 0xa5, sizeof(slot));
		front_request_encode(ring->abi, &request, slot);
		front_ring_put(ring, slot);
		if (answer_await(h, &response) || response.id != request.id || response.status) {
			check(h, false, "%s: READ %u is not answered OKAY", protocol, i);
			return;
		}
		/* One at a time: the answer lies over its request. */
		answered = front_ring_slot(ring, ring->rsp_cons - 1);
		for (unsigned b = BLKIF_OFF_RSP_OPERATION + 1; b < stride; b++) {
			if (b == BLKIF_OFF_RSP_STATUS || b == BLKIF_OFF_RSP_STATUS + 1)
				continue;
			if (answered[b] == slot[b] || !answered[b])
				continue;
			check(h, false,
			      "%s: byte %u of an answer's slot is %#x, not ours and not 0",
			      protocol, b, answered[b]);
			return;
		}
	}
	check(h, true, "%s: padding of %u answers holds nothing of the backend's", protocol,
	      R10_READS);
}

static void row_r10(struct hostile *h)
{
	for (size_t i = 0; i < NR_PROTOCOLS; i++) {
		if (protocol_connect(h, protocols[i]))
			padding_check(h, protocols[i]);
		protocol_disconnect(h);
	}
}

static void protocol_unknown_check(struct hostile *h)
{
	const uint32_t mark = 0x5a5a5a5a;
	struct front *front = h->front;
	struct error error;
	int err;

	front->config.protocol = "foo";
	err = front_connect(front, &error);
	check(h, err == -ECONNREFUSED, "protocol foo is refused%s%s",
	      err == -ECONNREFUSED ? "" : ": ",
	      err == -ECONNREFUSED ? ""
	      : err		   ? error.text
				   : "the backend is Connected");
	check(h, front->backend_state == XENBUS_CLOSING || front->backend_state == XENBUS_CLOSED,
	      "the backend's state is %s", xenbus_state_name(front->backend_state));
	/* A backend that had mapped the ring and bound the port would take this for work to do. */
	front_ring_poke(&front->link.queues[0].ring, FRONT_OFF_REQ_EVENT, mark);
	front_ring_poke(&front->link.queues[0].ring, FRONT_OFF_REQ_PROD, 1);
	front_link_notify(&front->link, 0);
	check(h,
	      !ring_answers(h) &&
		      front_ring_peek(&front->link.queues[0].ring, FRONT_OFF_REQ_EVENT) == mark,
	      "nobody looks at the ring");
	protocol_disconnect(h);
}

static void row_r11(struct hostile *h)
{
	char what[64];

	for (size_t i = 0; i < NR_PROTOCOLS; i++) {
		if (protocol_connect(h, protocols[i])) {
			struct front_request request = request_make(h, BLKIF_READ, 1, 0);

			request.id = 0x1122334455667788ull;
			snprintf(what, sizeof(what), "%s: READ with id %#llx", protocols[i],
				 (unsigned long long)request.id);
			request_expect(h, &request, OKAY, what);
		}
		protocol_disconnect(h);
	}
	protocol_unknown_check(h);
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

/* ---- G: grants and event channels --------------------------------------------------------------- */

static void row_g01(struct hostile *h)
{
	static const uint32_t never[] = {0x7ffffff0u, UINT32_MAX};
	struct front_request good = request_make(h, BLKIF_READ, 1, 0), bad, after;
	struct front_response response;
	unsigned nr_right = 0;
	char what[64];

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		for (uint8_t operation = BLKIF_READ; operation <= BLKIF_WRITE; operation++) {
			bad = request_make(h, operation, BLKIF_MAX_SEGMENTS, 0);
			bad.segments[5].gref = never[i];
			snprintf(what, sizeof(what), "%s with reference %#x in segment 5 of 11",
				 front_operation_name(operation), never[i]);
			request_expect(h, &bad, ERROR, what);
		}
	}
	bad = request_make(h, BLKIF_READ, 1, 0);
	bad.segments[0].gref = never[0];
	after = request_make(h, BLKIF_READ, 1, BLKIF_SECTORS_PER_PAGE);
	request_put(h, &good);
	request_put(h, &bad);
	request_put(h, &after);
	front_link_kick(link_of(h));
	for (unsigned i = 0; i < 3 && !answer_take(h, &response); i++)
		nr_right += response.id == bad.id ? response.status == BLKIF_STATUS_ERROR
						  : !response.status;
	check(h, nr_right == 3, "a bad reference between two good requests: %u of 3 answered right",
	      nr_right);
}

static void row_g06(struct hostile *h)
{
	struct front_request request = request_make(h, BLKIF_READ, 1, 0);
	struct front_pages pages;
	struct front_response response;
	struct error error;
	int err;

	if (front_pages_share(link_of(h), 1, false, &pages, &error)) {
		check(h, false, "%s", error.text);
		return;
	}
	request.segments[0].gref = pages.grefs[0];
	memset(pages.addr, UNTOUCHED, XEN_PAGE_SIZE);
	request_expect(h, &request, ERROR, "READ into a page granted read-only");
	check(h,
	      pages.addr[0] == UNTOUCHED && !memcmp(pages.addr, pages.addr + 1, XEN_PAGE_SIZE - 1),
	      "the read-only page is untouched");
	front_pages_revoke(link_of(h), &pages);

	request.id++;
	request_expect(h, &request, ERROR, "READ into a revoked page");
	request = request_make(h, BLKIF_WRITE, 1, 0);
	request.segments[0].gref = 0;
	if (!front_pages_share(link_of(h), 1, true, &pages, &error)) {
		request.segments[0].gref = pages.grefs[0];
		front_pages_revoke(link_of(h), &pages);
	}
	request_expect(h, &request, ERROR, "WRITE from a revoked page");

	if (front_pages_share(link_of(h), 1, true, &pages, &error)) {
		check(h, false, "%s", error.text);
		return;
	}
	request = request_make(h, BLKIF_READ, 1, 0);
	request.segments[0].gref = pages.grefs[0];
	request_put(h, &request);
	err = front_link_kick(link_of(h));
	front_pages_revoke(link_of(h), &pages);
	if (!err)
		err = answer_take(h, &response);
	check(h, !err && response.id == request.id && status_bit(response.status) & (OKAY | ERROR),
	      "READ into a page revoked in flight is answered");
}

static void row_same_page(struct hostile *h)
{
	struct front_request request = request_make(h, BLKIF_READ, 2, 0);

	if (!contents_note(h, 0))
		return;
	request.segments[0] = segment_make(h, PAGE_DATA, 0, 3);
	request.segments[1] = segment_make(h, PAGE_DATA, 4, 7);
	request_expect(h, &request, OKAY, "READ into both halves of one page");
	check(h, !memcmp(page_addr(h, PAGE_BEFORE), page_addr(h, PAGE_DATA), XEN_PAGE_SIZE),
	      "both halves are right");
	request = request_make(h, BLKIF_READ, BLKIF_MAX_SEGMENTS, 0);
	request_expect(h, &request, OKAY, "READ of 11 segments into one page");
}

/* Shorter than the field's storm: this is about the answers, not about the neighbours. */
static void row_g11(struct hostile *h)
{
	unsigned nr_events = h->nr_races * 5;

	for (unsigned i = 0; i < nr_events; i++) {
		int err = front_link_notify(link_of(h), 0);

		if (err) {
			check(h, false, "event %u cannot be sent: %s", i, strerror(-err));
			return;
		}
	}
	check(h, !ring_answers(h), "%u events with an empty ring: nothing is answered", nr_events);
}

static const struct row rows[] = {
	{"r01", "req_prod beyond the ring", row_r01, ROW_STOPS_RING},
	{"r02", "request changed while it is fetched", row_r02, 0},
	{"r03", "indirect segments changed while they are fetched", row_r03, 0},
	{"r04", "more segments than a request has", row_r04, 0},
	{"r05", "no segments", row_r05, 0},
	{"r06", "segment with its ends swapped", row_r06, 0},
	{"r07", "segment past the end of its page", row_r07, 0},
	{"r08", "sector numbers that wrap in bytes", row_r08, 0},
	{"r09", "request that begins within the disk and ends past it", row_r09, 0},
	{"r10", "padding of answers", row_r10, ROW_CONNECTS_ITSELF},
	{"r11", "the three layouts, and an unknown one", row_r11, ROW_CONNECTS_ITSELF},
	{"r12", "operations that are unknown or not offered", row_r12, 0},
	{"r14", "writes to a read-only disk", row_r14, 0},
	{"r17", "equal and extreme ids", row_r17, 0},
	{"r22", "the backend's own indices overwritten", row_r22, 0},
	{"g01", "grant references that were never granted", row_g01, ROW_IN_GRANTS},
	{"g06", "pages revoked, or granted read-only", row_g06, ROW_IN_GRANTS},
	{"g11", "event storm", row_g11, 0},
	{"same-page", "one page in several segments", row_same_page, ROW_IN_GRANTS},
};
#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

/* ---- Running ------------------------------------------------------------------------------------ */

/* Whether @wanted, as typed, means @row. */
static bool row_wanted(const struct row *row, const char *wanted)
{
	return !strcasecmp(wanted, row->name) || !strcasecmp(wanted, "all") ||
	       (!strcasecmp(wanted, "grants") && row->flags & ROW_IN_GRANTS);
}

bool front_hostile_known(const char *row)
{
	for (size_t i = 0; i < NR_ROWS; i++)
		if (row_wanted(&rows[i], row))
			return true;
	return false;
}

void front_hostile_list(FILE *out)
{
	for (size_t i = 0; i < NR_ROWS; i++)
		fprintf(out, "  %-10s %s\n", rows[i].name, rows[i].what);
	fprintf(out, "  %-10s %s\n  %-10s %s\n", "grants", "g01, g06 and same-page", "all",
		"every row");
}

static int session_begin(struct hostile *h)
{
	int err = front_connect(h->front, h->error);

	if (err)
		return err;
	if (disk_sectors(h) < MIN_DISK_SECTORS)
		return error_set(
			h->error, EINVAL,
			"hostile rows need a disk of at least %u sectors, this one has %llu",
			MIN_DISK_SECTORS, (unsigned long long)disk_sectors(h));
	return front_pages_share(link_of(h), NR_PAGES, true, &h->pages, h->error);
}

/* The link goes first: then no request can name the pages any more. */
static int session_end(struct hostile *h)
{
	int err = front_disconnect(h->front, h->error);
	int revoke_err = front_pages_revoke(link_of(h), &h->pages);

	if (!revoke_err || err)
		return err;
	return error_set(h->error, -revoke_err, "cannot revoke the data pages: %s",
			 strerror(-revoke_err));
}

static void standing_check(struct hostile *h)
{
	check(h, page_read(h, 0, PAGE_DATA), "a good READ is answered OKAY afterwards");
}

static int row_run(struct hostile *h, const struct row *row)
{
	const char *protocol = h->front->config.protocol;
	int err = 0, end_err;

	h->row = row->name;
	if (row->flags & ROW_CONNECTS_ITSELF) {
		row->run(h);
		h->front->config.protocol = protocol;
	} else {
		err = session_begin(h);
		if (!err)
			row->run(h);
	}
	if (!err && row->flags & ROW_STOPS_RING)
		err = session_end(h);
	if (!err && row->flags & (ROW_STOPS_RING | ROW_CONNECTS_ITSELF))
		err = session_begin(h);
	if (!err)
		standing_check(h);
	if (err) {
		/* The first error is the one to tell. */
		struct error *error = h->error;

		h->error = NULL;
		session_end(h);
		h->error = error;
		return err;
	}
	end_err = session_end(h);
	return end_err;
}

int front_hostile_run(struct front *front, const char *row, unsigned nr_races, FILE *tap,
		      struct error *error)
{
	struct hostile h = {
		.front = front,
		.error = error,
		.tap = tap,
		.nr_races = nr_races,
		.id_state = 1,
	};
	int err = 0;

	for (size_t i = 0; !err && !front->link.stop && i < NR_ROWS; i++)
		if (row_wanted(&rows[i], row))
			err = row_run(&h, &rows[i]);
	if (err)
		fprintf(tap, "Bail out! %s\n", error->text);
	fprintf(tap, "1..%u\n", h.nr_tests);
	if (!err && front->link.stop)
		err = error_set(error, ECANCELED, "stopped before the last row");
	if (!err && h.nr_failed)
		err = error_set(error, EILSEQ, "%u of %u hostile checks failed", h.nr_failed,
				h.nr_tests);
	return err;
}
