// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hostile mode, rows about grants and event channels.
 *
 * Owns: one function per row. Trusts / does not trust: a backend under test, in nothing.
 * Runs on: the main thread; sleeps for answers. Must not know: options, jobs.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "loopback/front-hostile-internal.h"

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

/* The port goes away under requests in flight; the backend cannot tell us of their end any more. */
static void row_g12(struct hostile *h)
{
	struct front_link *link = link_of(h);
	struct xen_host *host = link->host;

	for (unsigned i = 0; i < 16; i++) {
		struct front_request request = request_make(h, BLKIF_READ, 1, 8 * i);

		request_put(h, &request);
	}
	front_link_kick(link);
	check(h, !host->ops->unbind(host, link->queues[0].port), "the port is closed");
	/* Another one in its place, for the end of the connection to close. */
	check(h, !host->ops->alloc_unbound(host, link->peer, &link->queues[0].port), "a new port");
}

const struct row front_hostile_grant_rows[] = {
	{"g01", "grant references that were never granted", row_g01, ROW_IN_GRANTS},
	{"g06", "pages revoked, or granted read-only", row_g06, ROW_IN_GRANTS},
	{"g11", "event storm", row_g11, 0},
	{"same-page", "one page in several segments", row_same_page, ROW_IN_GRANTS},
	{"g12", "event channel closed with requests in flight", row_g12, ROW_STOPS_RING},
	{NULL, NULL, NULL, 0},
};
