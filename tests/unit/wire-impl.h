/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * struct wire in terms of Xen's public headers; compiled once for each struct layout.
 *
 * Owns: the table WIRE_NAME, which the including file names. Trusts: the headers. Runs on: the test.
 * Must not know: the backend.
 */
#include "tests/unit/wire.h"

_Static_assert(sizeof(struct blkif_front_ring) <= sizeof(struct wire_ring),
	       "room for a front ring");
_Static_assert(sizeof(struct blkif_back_ring) <= sizeof(struct wire_ring), "room for a back ring");
_Static_assert(BLKIF_MAX_SEGMENTS_PER_REQUEST == WIRE_MAX_SEGMENTS, "one limit");
_Static_assert(BLKIF_MAX_INDIRECT_PAGES_PER_REQUEST == WIRE_MAX_INDIRECT_PAGES, "one limit");

static blkif_front_ring_t *front(struct wire_ring *ring)
{
	return (blkif_front_ring_t *)ring->opaque;
}

static blkif_back_ring_t *back(struct wire_ring *ring)
{
	return (blkif_back_ring_t *)ring->opaque;
}

static unsigned nr_slots(void *shared, size_t bytes)
{
	blkif_sring_t *sring = shared;

	return (unsigned)__RING_SIZE(sring, (long)bytes);
}

static void front_init(struct wire_ring *ring, void *shared, size_t bytes, uint32_t start)
{
	blkif_sring_t *sring = shared;

	SHARED_RING_INIT(sring);
	sring->req_prod = sring->rsp_prod = start;
	sring->req_event = sring->rsp_event = start + 1;
	FRONT_RING_ATTACH(front(ring), sring, start, (long)bytes);
}

static bool front_full(struct wire_ring *ring)
{
	return RING_FULL(front(ring));
}

static void front_put(struct wire_ring *ring, const struct wire_request *request)
{
	blkif_request_t *slot = RING_GET_REQUEST(front(ring), front(ring)->req_prod_pvt);

	slot->operation = request->operation;
	slot->nr_segments = request->nr_segments;
	slot->handle = request->handle;
	slot->id = request->id;
	slot->sector_number = request->sector;
	for (unsigned i = 0; i < request->nr_segments && i < WIRE_MAX_SEGMENTS; i++) {
		slot->seg[i].gref = request->segments[i].gref;
		slot->seg[i].first_sect = request->segments[i].first;
		slot->seg[i].last_sect = request->segments[i].last;
	}
	front(ring)->req_prod_pvt++;
}

static void front_put_discard(struct wire_ring *ring, const struct wire_discard *discard)
{
	blkif_request_discard_t *slot =
		(blkif_request_discard_t *)RING_GET_REQUEST(front(ring), front(ring)->req_prod_pvt);

	slot->operation = BLKIF_OP_DISCARD;
	slot->flag = discard->flag;
	slot->handle = discard->handle;
	slot->id = discard->id;
	slot->sector_number = discard->sector;
	slot->nr_sectors = discard->nr_sectors;
	front(ring)->req_prod_pvt++;
}

static void front_put_indirect(struct wire_ring *ring, const struct wire_indirect *indirect)
{
	blkif_request_indirect_t *slot = (blkif_request_indirect_t *)RING_GET_REQUEST(
		front(ring), front(ring)->req_prod_pvt);

	slot->operation = BLKIF_OP_INDIRECT;
	slot->indirect_op = indirect->operation;
	slot->nr_segments = indirect->nr_segments;
	slot->handle = indirect->handle;
	slot->id = indirect->id;
	slot->sector_number = indirect->sector;
	for (unsigned i = 0; i < WIRE_MAX_INDIRECT_PAGES; i++)
		slot->indirect_grefs[i] = indirect->grefs[i];
	front(ring)->req_prod_pvt++;
}

static void table_put(void *page, unsigned idx, struct wire_segment segment)
{
	struct blkif_request_segment *entry = (struct blkif_request_segment *)page + idx;

	entry->gref = segment.gref;
	entry->first_sect = segment.first;
	entry->last_sect = segment.last;
}

/* ring.h reads and writes the shared indices as plain memory and orders them by fences, which
 * ThreadSanitizer does not understand. For it alone the frontend's three uses of an index are spelled as the
 * atomic accesses that they mean, so that it can tell whether the backend's own order its slots. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WIRE_ATOMIC
#endif
#elif defined(__SANITIZE_THREAD__)
#define WIRE_ATOMIC
#endif

#ifdef WIRE_ATOMIC
static bool front_push(struct wire_ring *ring)
{
	blkif_sring_t *sring = front(ring)->sring;
	RING_IDX old = __atomic_load_n(&sring->req_prod, __ATOMIC_RELAXED);
	RING_IDX new = front(ring)->req_prod_pvt;

	__atomic_store_n(&sring->req_prod, new, __ATOMIC_SEQ_CST);
	return new - __atomic_load_n(&sring->req_event, __ATOMIC_SEQ_CST) < new - old;
}

static bool front_has_responses(struct wire_ring *ring)
{
	return __atomic_load_n(&front(ring)->sring->rsp_prod, __ATOMIC_SEQ_CST) !=
	       front(ring)->rsp_cons;
}

static bool front_final_check(struct wire_ring *ring)
{
	__atomic_store_n(&front(ring)->sring->rsp_event, front(ring)->rsp_cons + 1,
			 __ATOMIC_SEQ_CST);
	return front_has_responses(ring);
}
#else
static bool front_push(struct wire_ring *ring)
{
	bool notify;

	RING_PUSH_REQUESTS_AND_CHECK_NOTIFY(front(ring), notify);
	return notify;
}

static bool front_has_responses(struct wire_ring *ring)
{
	return XEN_RING_NR_UNCONSUMED_RESPONSES(front(ring));
}

static bool front_final_check(struct wire_ring *ring)
{
	bool more;

	RING_FINAL_CHECK_FOR_RESPONSES(front(ring), more);
	return more;
}
#endif

static bool front_get(struct wire_ring *ring, struct wire_response *response)
{
	const blkif_response_t *slot;

	if (!front_has_responses(ring))
		return false;
	xen_rmb();
	slot = RING_GET_RESPONSE(front(ring), front(ring)->rsp_cons);
	response->id = slot->id;
	response->operation = slot->operation;
	response->status = slot->status;
	front(ring)->rsp_cons++;
	return true;
}

static void back_init(struct wire_ring *ring, void *shared, size_t bytes, uint32_t start)
{
	blkif_sring_t *sring = shared;

	BACK_RING_ATTACH(back(ring), sring, start, (long)bytes);
}

static bool back_overflow(struct wire_ring *ring)
{
	return RING_REQUEST_PROD_OVERFLOW(back(ring), back(ring)->sring->req_prod);
}

static bool back_get(struct wire_ring *ring)
{
	if (back(ring)->req_cons == back(ring)->sring->req_prod)
		return false;
	back(ring)->req_cons++;
	return true;
}

static void back_put(struct wire_ring *ring, const struct wire_response *response)
{
	blkif_response_t *slot = RING_GET_RESPONSE(back(ring), back(ring)->rsp_prod_pvt);

	slot->id = response->id;
	slot->operation = response->operation;
	slot->status = response->status;
	back(ring)->rsp_prod_pvt++;
}

static bool back_push(struct wire_ring *ring)
{
	bool notify;

	RING_PUSH_RESPONSES_AND_CHECK_NOTIFY(back(ring), notify);
	return notify;
}

static bool back_final_check(struct wire_ring *ring)
{
	bool more;

	RING_FINAL_CHECK_FOR_REQUESTS(back(ring), more);
	return more;
}

#define SLOTS(order) __CONST_RING_SIZE(blkif, 4096u << (order))

const struct wire WIRE_NAME = {
	.bytes = {sizeof(blkif_request_t), sizeof(union blkif_sring_entry),
		  sizeof(blkif_response_t), sizeof(struct blkif_request_segment)},
	.request = {offsetof(blkif_request_t, operation), offsetof(blkif_request_t, nr_segments),
		    offsetof(blkif_request_t, handle), offsetof(blkif_request_t, id),
		    offsetof(blkif_request_t, sector_number), offsetof(blkif_request_t, seg)},
	.discard = {offsetof(blkif_request_discard_t, flag),
		    offsetof(blkif_request_discard_t, handle),
		    offsetof(blkif_request_discard_t, id),
		    offsetof(blkif_request_discard_t, sector_number),
		    offsetof(blkif_request_discard_t, nr_sectors)},
	.indirect = {offsetof(blkif_request_indirect_t, indirect_op),
		     offsetof(blkif_request_indirect_t, nr_segments),
		     offsetof(blkif_request_indirect_t, handle),
		     offsetof(blkif_request_indirect_t, id),
		     offsetof(blkif_request_indirect_t, sector_number),
		     offsetof(blkif_request_indirect_t, indirect_grefs)},
	.segment = {offsetof(struct blkif_request_segment, gref),
		    offsetof(struct blkif_request_segment, first_sect),
		    offsetof(struct blkif_request_segment, last_sect)},
	.response = {offsetof(blkif_response_t, id), offsetof(blkif_response_t, operation),
		     offsetof(blkif_response_t, status)},
	.header = {offsetof(blkif_sring_t, req_prod), offsetof(blkif_sring_t, req_event),
		   offsetof(blkif_sring_t, rsp_prod), offsetof(blkif_sring_t, rsp_event),
		   offsetof(blkif_sring_t, ring)},
	.max_segments = BLKIF_MAX_SEGMENTS_PER_REQUEST,
	.max_indirect_pages = BLKIF_MAX_INDIRECT_PAGES_PER_REQUEST,
	.discard_secure = BLKIF_DISCARD_SECURE,
	.nr_slots_const = {SLOTS(0), SLOTS(1), SLOTS(2), SLOTS(3), SLOTS(4)},
	.nr_slots = nr_slots,
	.front_init = front_init,
	.front_full = front_full,
	.front_put = front_put,
	.front_put_discard = front_put_discard,
	.front_put_indirect = front_put_indirect,
	.table_put = table_put,
	.front_push = front_push,
	.front_get = front_get,
	.front_final_check = front_final_check,
	.back_init = back_init,
	.back_overflow = back_overflow,
	.back_get = back_get,
	.back_put = back_put,
	.back_push = back_push,
	.back_final_check = back_final_check,
};
