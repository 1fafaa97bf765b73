// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The frontend's end of a shared ring: indices, slots, and every memory barrier of that side.
 *
 * Owns: the private indices, and the frontend's accesses to the ring's shared pages; how a request is
 *   laid out in a slot.
 * Trusts / does not trust: a backend under test: an index that cannot be is reported.
 * Runs on: one thread; never blocks.
 * Must not know: grants, event channels, what the data is.
 */
#include "config.h"

#include <errno.h>

#include "loopback/front-ring.h"

static uint32_t *index_shared(const struct front_ring *ring, unsigned offset)
{
	return (uint32_t *)(ring->shared + offset);
}

uint8_t *front_ring_slot(const struct front_ring *ring, uint32_t idx)
{
	return ring->shared + BLKIF_RING_HEADER_BYTES +
	       (idx & (ring->nr_slots - 1)) * ring->abi->slot_bytes;
}

void front_ring_poke(struct front_ring *ring, unsigned offset, uint32_t value)
{
	__atomic_store_n(index_shared(ring, offset), htole32(value), __ATOMIC_RELEASE);
}

uint32_t front_ring_peek(const struct front_ring *ring, unsigned offset)
{
	return le32toh(__atomic_load_n(index_shared(ring, offset), __ATOMIC_ACQUIRE));
}

void front_ring_init(struct front_ring *ring, const struct blkif_abi *abi, void *shared,
		     unsigned order)
{
	*ring = (struct front_ring){
		.shared = shared,
		.abi = abi,
		.nr_slots = blkif_abi_nr_slots(abi, order),
	};
	/* ring.h SHARED_RING_INIT: each side wants to hear of the very first entry. */
	front_ring_poke(ring, FRONT_OFF_REQ_EVENT, 1);
	front_ring_poke(ring, FRONT_OFF_RSP_EVENT, 1);
}

uint32_t front_ring_nr_free(const struct front_ring *ring)
{
	return ring->nr_slots - (ring->req_prod_pvt - ring->rsp_cons);
}

void front_ring_put(struct front_ring *ring, const uint8_t slot[BLKIF_SLOT_BYTES_MAX])
{
	memcpy(front_ring_slot(ring, ring->req_prod_pvt), slot, ring->abi->slot_bytes);
	ring->req_prod_pvt++;
}

bool front_ring_publish(struct front_ring *ring)
{
	uint32_t old = ring->req_prod, new = ring->req_prod_pvt, req_event;

	if (old == new)
		return false;
	__atomic_store_n(index_shared(ring, FRONT_OFF_REQ_PROD), htole32(new),
			 __ATOMIC_RELEASE); /* A */
	ring->req_prod = new;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* D */
	req_event =
		le32toh(__atomic_load_n(index_shared(ring, FRONT_OFF_REQ_EVENT), __ATOMIC_RELAXED));
	return new - req_event < new - old;
}

int front_ring_take(struct front_ring *ring, struct front_response *response)
{
	uint32_t rsp_prod = le32toh(
		__atomic_load_n(index_shared(ring, FRONT_OFF_RSP_PROD), __ATOMIC_ACQUIRE)); /* B */
	const uint8_t *slot;

	if (rsp_prod == ring->rsp_cons)
		return 0;
	if (rsp_prod - ring->rsp_cons > ring->req_prod - ring->rsp_cons)
		return -EPROTO;
	slot = front_ring_slot(ring, ring->rsp_cons);
	response->id = blkif_get64(slot, BLKIF_OFF_RSP_ID);
	response->operation = slot[BLKIF_OFF_RSP_OPERATION];
	response->status = (int16_t)blkif_get16(slot, BLKIF_OFF_RSP_STATUS);
	ring->rsp_cons++;
	return 1;
}

bool front_ring_arm(struct front_ring *ring)
{
	uint32_t rsp_prod;

	__atomic_store_n(index_shared(ring, FRONT_OFF_RSP_EVENT), htole32(ring->rsp_cons + 1),
			 __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* C */
	rsp_prod =
		le32toh(__atomic_load_n(index_shared(ring, FRONT_OFF_RSP_PROD), __ATOMIC_RELAXED));
	return rsp_prod != ring->rsp_cons;
}

void front_request_encode(const struct blkif_abi *abi, const struct front_request *request,
			  uint8_t *slot)
{
	slot[BLKIF_OFF_OPERATION] = request->operation;
	slot[BLKIF_OFF_NR_SEGMENTS] = request->nr_segments;
	blkif_put16(slot, BLKIF_OFF_HANDLE, request->handle);
	blkif_put64(slot, abi->off_id, request->id);
	blkif_put64(slot, abi->off_sector, request->sector);
	for (unsigned i = 0; i < request->nr_segments && i < BLKIF_MAX_SEGMENTS; i++)
		blkif_put_segment(abi, slot, i, request->segments[i]);
}

/* In all three layouts of a request, what follows sector_number begins at off_segments. */

void front_discard_encode(const struct blkif_abi *abi, uint64_t id, uint8_t flag, uint64_t sector,
			  uint64_t nr_sectors, uint8_t *slot)
{
	slot[BLKIF_OFF_OPERATION] = BLKIF_DISCARD;
	slot[1] = flag;
	blkif_put16(slot, BLKIF_OFF_HANDLE, 0);
	blkif_put64(slot, abi->off_id, id);
	blkif_put64(slot, abi->off_sector, sector);
	blkif_put64(slot, abi->off_segments, nr_sectors);
}

void front_indirect_encode(const struct blkif_abi *abi, uint64_t id, uint8_t inner_op,
			   uint16_t nr_segments, uint64_t sector, uint32_t gref, uint8_t *slot)
{
	slot[BLKIF_OFF_OPERATION] = BLKIF_INDIRECT;
	slot[1] = inner_op;
	blkif_put16(slot, 2, nr_segments);
	blkif_put64(slot, abi->off_id, id);
	blkif_put64(slot, abi->off_sector, sector);
	blkif_put16(slot, abi->off_segments, 0); /* handle */
	blkif_put32(slot, abi->off_segments + 4u, gref);
}

void front_table_encode(uint8_t *table, unsigned idx, struct blkif_segment segment)
{
	uint8_t *at = table + idx * BLKIF_SEGMENT_BYTES;

	blkif_put32(at, 0, segment.gref);
	at[4] = segment.first_sector;
	at[5] = segment.last_sector;
}

const char *front_operation_name(uint8_t operation)
{
	switch (operation) {
	case BLKIF_READ:
		return "READ";
	case BLKIF_WRITE:
		return "WRITE";
	case BLKIF_WRITE_BARRIER:
		return "WRITE_BARRIER";
	case BLKIF_FLUSH_DISKCACHE:
		return "FLUSH";
	case BLKIF_DISCARD:
		return "DISCARD";
	case BLKIF_INDIRECT:
		return "INDIRECT";
	}
	return "unknown";
}

const char *front_status_name(int16_t status)
{
	switch (status) {
	case BLKIF_STATUS_OKAY:
		return "OKAY";
	case BLKIF_STATUS_ERROR:
		return "ERROR";
	case BLKIF_STATUS_EOPNOTSUPP:
		return "EOPNOTSUPP";
	}
	return "unknown";
}
