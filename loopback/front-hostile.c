// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hostile mode: what a broken or malicious guest does, and the answers a backend owes it.
 *
 * Owns: the table of known faults (rNN: ring protocol, gNN: grants and event channels), which its other
 *   files fill; TAP output with one line per assertion.
 * Trusts / does not trust: a backend under test, in nothing.
 * Runs on: the main thread; sleeps for answers.
 * Must not know: options, jobs.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "loopback/front-hostile-internal.h"

/* ---- TAP ---------------------------------------------------------------------------------------- */

static void row_name_print(const struct hostile *h)
{
	for (const char *c = h->row; *c; c++)
		fputc(toupper((unsigned char)*c), h->tap);
}

bool check(struct hostile *h, bool good, const char *format, ...)
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

void skip(struct hostile *h, const char *why)
{
	fprintf(h->tap, "ok %u - ", ++h->nr_tests);
	row_name_print(h);
	fprintf(h->tap, " # SKIP %s\n", why);
	fflush(h->tap);
}

/* ---- Requests and answers ----------------------------------------------------------------------- */

struct front_link *link_of(struct hostile *h)
{
	return &h->front->link;
}

uint8_t *page_addr(const struct hostile *h, unsigned page)
{
	return h->pages.addr + (size_t)page * XEN_PAGE_SIZE;
}

void page_fill(struct hostile *h, unsigned page)
{
	memset(page_addr(h, page), UNTOUCHED, XEN_PAGE_SIZE);
}

bool page_untouched(const struct hostile *h, unsigned page)
{
	const uint8_t *addr = page_addr(h, page);

	for (unsigned i = 0; i < XEN_PAGE_SIZE; i++)
		if (addr[i] != UNTOUCHED)
			return false;
	return true;
}

bool data_untouched(const struct hostile *h)
{
	return page_untouched(h, PAGE_GUARD_LOW) && page_untouched(h, PAGE_DATA) &&
	       page_untouched(h, PAGE_GUARD_HIGH);
}

void data_fill(struct hostile *h)
{
	page_fill(h, PAGE_GUARD_LOW);
	page_fill(h, PAGE_DATA);
	page_fill(h, PAGE_GUARD_HIGH);
}

struct blkif_segment segment_make(const struct hostile *h, unsigned page, uint8_t first,
				  uint8_t last)
{
	return (struct blkif_segment){h->pages.grefs[page], first, last};
}

/* A request of @nr_segments whole data pages at @sector with an id of its own. */
struct front_request request_make(struct hostile *h, uint8_t operation, uint8_t nr_segments,
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

void request_put(struct hostile *h, const struct front_request *request)
{
	struct front_ring *ring = &link_of(h)->queues[0].ring;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	front_request_encode(ring->abi, request, slot);
	front_ring_put(ring, slot);
}

int answer_take(struct hostile *h, struct front_response *response)
{
	return front_link_take(link_of(h), response, clock_now_ns() + ANSWER_NS);
}

/* Send what was put and wait for one answer. */
int answer_await(struct hostile *h, struct front_response *response)
{
	int err = front_link_kick(link_of(h));

	return err ? err : answer_take(h, response);
}

unsigned status_bit(int16_t status)
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
bool answer_expect(struct hostile *h, uint64_t id, uint8_t operation, uint8_t inner_op,
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

bool request_expect(struct hostile *h, const struct front_request *request, unsigned statuses,
		    const char *what)
{
	request_put(h, request);
	return answer_expect(h, request->id, request->operation, request->operation, statuses,
			     what);
}

/* Read the page at @sector into @page; false if that fails. */
bool page_read(struct hostile *h, uint64_t sector, unsigned page)
{
	struct front_request request = request_make(h, BLKIF_READ, 1, sector);
	struct front_response response;

	request.segments[0] = segment_make(h, page, 0, 7);
	request_put(h, &request);
	return !answer_await(h, &response) && response.id == request.id && !response.status;
}

bool contents_note(struct hostile *h, uint64_t sector)
{
	return page_read(h, sector, PAGE_BEFORE) ||
	       check(h, false, "a good READ of sector %llu before the row",
		     (unsigned long long)sector);
}

bool contents_unchanged(struct hostile *h, uint64_t sector)
{
	return page_read(h, sector, PAGE_AFTER) &&
	       !memcmp(page_addr(h, PAGE_BEFORE), page_addr(h, PAGE_AFTER), XEN_PAGE_SIZE);
}

uint64_t disk_sectors(const struct hostile *h)
{
	return h->front->disk.nr_sectors512;
}

/* Whether rsp_prod moves within SILENCE_NS. */
bool ring_answers(struct hostile *h)
{
	struct front_link *link = link_of(h);
	uint64_t deadline_ns = clock_now_ns() + SILENCE_NS;

	while (!front_ring_arm(&link->queues[0].ring))
		if (front_link_wait(link, deadline_ns))
			return false;
	return true;
}

/* ---- Running ------------------------------------------------------------------------------------ */

/* Whether @wanted, as typed, means @row. */
static bool row_wanted(const struct row *row, const char *wanted)
{
	return !strcasecmp(wanted, row->name) || !strcasecmp(wanted, "all") ||
	       (!strcasecmp(wanted, "grants") && row->flags & ROW_IN_GRANTS);
}

static const struct row *const row_lists[] = {
	front_hostile_ring_rows,
	front_hostile_connect_rows,
	front_hostile_grant_rows,
};
#define NR_LISTS (sizeof(row_lists) / sizeof(row_lists[0]))

bool front_hostile_known(const char *row)
{
	for (size_t i = 0; i < NR_LISTS; i++)
		for (const struct row *r = row_lists[i]; r->name; r++)
			if (row_wanted(r, row))
				return true;
	return false;
}

void front_hostile_list(FILE *out)
{
	for (size_t i = 0; i < NR_LISTS; i++)
		for (const struct row *r = row_lists[i]; r->name; r++)
			fprintf(out, "  %-10s %s\n", r->name, r->what);
	fprintf(out, "  %-10s %s\n  %-10s %s\n", "grants", "g01, g06 and same-page", "all",
		"every row");
}

int session_begin(struct hostile *h)
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
int session_end(struct hostile *h)
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

	for (size_t i = 0; i < NR_LISTS; i++)
		for (const struct row *r = row_lists[i]; !err && !front->link.stop && r->name; r++)
			if (row_wanted(r, row))
				err = row_run(&h, r);
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
