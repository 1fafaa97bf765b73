// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hostile mode, rows about connecting: layouts, and keys that make no sense.
 *
 * Owns: one function per row. Trusts / does not trust: a backend under test, in nothing.
 * Runs on: the main thread; sleeps for answers. Must not know: options, jobs.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "loopback/front-hostile-internal.h"

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

/* ---- Keys --------------------------------------------------------------------------------------- */

/* Connect with one key that is odd: refused as a whole, and nobody looks at any ring. */
static void odd_key_refused(struct hostile *h, const char *key, const char *value)
{
	const uint32_t mark = 0x5a5a5a5a;
	struct front *front = h->front;
	struct error error = {""};
	int err;

	front->config.odd_key = key;
	front->config.odd_value = value;
	err = front_connect(front, &error);
	front->config.odd_key = NULL;
	check(h, err == -ECONNREFUSED, "%s=%s is refused%s%s", key, value ? value : "(missing)",
	      err == -ECONNREFUSED ? "" : ": ", err == -ECONNREFUSED ? "" : error.text);
	for (unsigned i = 0; i < front->link.nr_queues; i++) {
		struct front_ring *ring = &front->link.queues[i].ring;

		front_ring_poke(ring, FRONT_OFF_REQ_EVENT, mark);
		front_ring_poke(ring, FRONT_OFF_REQ_PROD, 1);
		front_link_notify(&front->link, i);
	}
	for (unsigned i = 0; i < front->link.nr_queues; i++)
		if (front_ring_peek(&front->link.queues[i].ring, FRONT_OFF_REQ_EVENT) != mark)
			check(h, false, "somebody looks at ring %u", i);
	protocol_disconnect(h);
}

static void row_r20(struct hostile *h)
{
	static const char *const orders[] = {"5", "31", "4294967295", "-1", "0x1", " 1", ""};
	static const char *const pages[] = {"0", "3", "32", "-1", "x"};

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		odd_key_refused(h, "ring-page-order", orders[i]);
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		odd_key_refused(h, "num-ring-pages", pages[i]);
}

static void row_r21(struct hostile *h)
{
	static const char *const counts[] = {"0", "17", "4294967297", "abc", "-1"};
	struct front *front = h->front;
	unsigned nr_queues = front->config.nr_queues;
	uint64_t offered;
	char key[64];

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		odd_key_refused(h, "multi-queue-num-queues", counts[i]);
	offered = front->disk.max_queues;
	if (offered < 2) {
		skip(h, "this backend offers one queue");
		return;
	}
	snprintf(key, sizeof(key), "%llu", (unsigned long long)offered + 1);
	odd_key_refused(h, "multi-queue-num-queues", key);
	front->config.nr_queues = offered < 4 ? (unsigned)offered : 4;
	snprintf(key, sizeof(key), "queue-%u/ring-ref", front->config.nr_queues - 1);
	odd_key_refused(h, key, NULL);
	odd_key_refused(h, key, "4294967295");
	snprintf(key, sizeof(key), "queue-%u/event-channel", front->config.nr_queues - 1);
	odd_key_refused(h, key, NULL);
	odd_key_refused(h, key, "4294967295");
	odd_key_refused(h, "queue-0/event-channel", "x");
	front->config.nr_queues = nr_queues;
}

static void row_r24(struct hostile *h)
{
	struct front *front = h->front;
	uint64_t sectors;

	if (session_begin(h)) {
		check(h, false, "connect: %s", h->error->text);
		return;
	}
	sectors = disk_sectors(h);
	session_end(h);
	front->config.odd_key = "feature-large-sector-size";
	front->config.odd_value = "1";
	if (session_begin(h))
		check(h, false, "connect with feature-large-sector-size: %s", h->error->text);
	else
		check(h, disk_sectors(h) == sectors && page_read(h, 8, PAGE_DATA),
		      "feature-large-sector-size changes nothing");
	session_end(h);
	front->config.odd_key = NULL;
}

/* A ring that is left with requests pending; none of its answers may come to the next one. */
static void row_g14(struct hostile *h)
{
	for (unsigned round = 0; round < 5; round++) {
		if (session_begin(h)) {
			check(h, false, "connect: %s", h->error->text);
			return;
		}
		if (round && ring_answers(h))
			check(h, false, "an answer in a ring that nothing was asked in");
		for (unsigned i = 0; i < 30; i++) {
			struct front_request request = request_make(h, BLKIF_READ, 1, 8 * i);

			request_put(h, &request);
		}
		front_link_kick(link_of(h));
		if (session_end(h)) {
			check(h, false, "disconnect: %s", h->error->text);
			return;
		}
	}
	check(h, true, "five rings were left with requests in flight");
}

const struct row front_hostile_connect_rows[] = {
	{"r10", "padding of answers", row_r10, ROW_CONNECTS_ITSELF},
	{"r11", "the three layouts, and an unknown one", row_r11, ROW_CONNECTS_ITSELF},
	{"r20", "ring sizes that are none", row_r20, ROW_CONNECTS_ITSELF},
	{"r21", "numbers of queues that are none, and queues that are not there", row_r21,
	 ROW_CONNECTS_ITSELF},
	{"r24", "a key of old, which must not change anything", row_r24, ROW_CONNECTS_ITSELF},
	{"g14", "rings left with requests pending", row_g14, ROW_CONNECTS_ITSELF},
	{NULL, NULL, NULL, 0},
};
