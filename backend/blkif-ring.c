// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The backend's end of a shared ring: indices, slots, and every memory barrier there is.
 *
 * Owns: the private indices, and the only accesses to the ring's shared pages.
 * Trusts / does not trust: the guest may write anything into the shared pages at any moment.
 * Runs on: the queue's thread; never blocks.
 * Must not know: what the slots mean.
 */
#include "config.h"

#include <errno.h>

#include "backend/blkif-ring.h"

#define OFF_REQ_PROD 0
#define OFF_REQ_EVENT 4
#define OFF_RSP_PROD 8
#define OFF_RSP_EVENT 12

static uint32_t *index_shared(struct blkif_ring *ring, unsigned offset)
{
	return (uint32_t *)(ring->shared + offset);
}

static uint8_t *slot_shared(struct blkif_ring *ring, uint32_t idx)
{
	return ring->shared + BLKIF_RING_HEADER_BYTES +
	       (idx & (ring->nr_slots - 1)) * ring->abi->slot_bytes;
}

void blkif_ring_init(struct blkif_ring *ring, const struct blkif_abi *abi, void *shared,
		     unsigned order)
{
	*ring = (struct blkif_ring){
		.shared = shared,
		.abi = abi,
		.nr_slots = blkif_abi_nr_slots(abi, order),
	};
}

int blkif_ring_pop(struct blkif_ring *ring, uint8_t slot[BLKIF_SLOT_BYTES_MAX])
{
	uint32_t req_prod = le32toh(
		__atomic_load_n(index_shared(ring, OFF_REQ_PROD), __ATOMIC_ACQUIRE)); /* A */
	const volatile uint32_t *from;

	if (req_prod == ring->req_cons)
		return 0;
	/* A slot is free for a request again only when its answer is written: there can be as many new ones
	 * as slots less those fetched and not answered. Counted from our own consumer index, so that a
	 * producer which steps back is caught, too (ring.h's RING_REQUEST_PROD_OVERFLOW, which counts
	 * from the answers, would let slots that were fetched before be fetched again). */
	if (req_prod - ring->req_cons > ring->nr_slots - (ring->req_cons - ring->rsp_prod_pvt))
		return -EPROTO;
	/* Word by word through volatile: each byte of the slot is read exactly once (XSA-155). Slots of all
	 * layouts are whole, 4-byte aligned words. */
	from = (const volatile uint32_t *)slot_shared(ring, ring->req_cons);
	for (unsigned i = 0; i < ring->abi->slot_bytes / 4u; i++) {
		uint32_t word = from[i];

		memcpy(slot + 4 * i, &word, 4);
	}
	ring->req_cons++;
	return 1;
}

void blkif_ring_put(struct blkif_ring *ring, uint64_t id, uint8_t operation, int16_t status)
{
	uint8_t *slot = slot_shared(ring, ring->rsp_prod_pvt);
	uint8_t bytes[BLKIF_RESPONSE_BYTES];
	uint32_t word;

	blkif_put64(bytes, BLKIF_OFF_RSP_ID, id);
	for (unsigned i = 0; i < 2; i++) {
		memcpy(&word, bytes + 4 * i, 4);
		((volatile uint32_t *)slot)[i] = word;
	}
	*(volatile uint8_t *)(slot + BLKIF_OFF_RSP_OPERATION) = operation;
	*(volatile uint16_t *)(slot + BLKIF_OFF_RSP_STATUS) = htole16((uint16_t)status);
	ring->rsp_prod_pvt++;
}

bool blkif_ring_publish(struct blkif_ring *ring)
{
	uint32_t old = ring->rsp_prod, new = ring->rsp_prod_pvt, rsp_event;

	if (old == new)
		return false;
	__atomic_store_n(index_shared(ring, OFF_RSP_PROD), htole32(new), __ATOMIC_RELEASE); /* B */
	ring->rsp_prod = new;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* C */
	rsp_event = le32toh(__atomic_load_n(index_shared(ring, OFF_RSP_EVENT), __ATOMIC_RELAXED));
	return new - rsp_event < new - old;
}

bool blkif_ring_arm(struct blkif_ring *ring)
{
	uint32_t req_prod;

	__atomic_store_n(index_shared(ring, OFF_REQ_EVENT), htole32(ring->req_cons + 1),
			 __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* D */
	req_prod = le32toh(__atomic_load_n(index_shared(ring, OFF_REQ_PROD), __ATOMIC_RELAXED));
	return req_prod != ring->req_cons;
}
