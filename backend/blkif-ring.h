/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The backend's end of a shared ring: indices, slots, and every memory barrier there is.
 *
 * Owns: the private indices, and the only accesses to the ring's shared pages.
 * Trusts / does not trust: the guest may write anything into the shared pages at any moment. Each slot
 *   is copied out once, whole; progress is counted by private indices only.
 * Runs on: the queue's thread; never blocks.
 * Must not know: what the slots mean.
 *
 * Shared layout (xen/include/public/io/ring.h, DEFINE_RING_TYPES): u32 req_prod at 0, req_event at 4,
 * rsp_prod at 8, rsp_event at 12, slots from byte 64. Barriers pair with the frontend's macros:
 *   A  acquire load of req_prod      <- its wmb() before req_prod (RING_PUSH_REQUESTS)
 *   B  release store of rsp_prod     -> its rmb() after reading rsp_prod
 *   C  full fence, rsp_prod stored before rsp_event is read   <-> RING_FINAL_CHECK_FOR_RESPONSES
 *   D  full fence, req_event stored before req_prod is re-read <-> RING_PUSH_REQUESTS_AND_CHECK_NOTIFY
 */
#ifndef VBDISK_BLKIF_RING_H
#define VBDISK_BLKIF_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/blkif-abi.h"

struct blkif_ring {
	uint8_t *shared; /* guest-writable: header and slots */
	const struct blkif_abi *abi;
	uint32_t nr_slots;
	uint32_t req_cons;
	uint32_t rsp_prod_pvt; /* answers written, not all published */
	uint32_t rsp_prod;     /* answers published */
};

/* Take up a fresh ring of 1 << @order pages mapped at @shared (page aligned; the caller's). */
void blkif_ring_init(struct blkif_ring *ring, const struct blkif_abi *abi, void *shared,
		     unsigned order);

/* Copy the next request slot into @slot (abi->slot_bytes). 1, 0 if there is none, -EPROTO if the
 * guest's producer index claims more requests than the ring can hold. */
int blkif_ring_pop(struct blkif_ring *ring, uint8_t slot[BLKIF_SLOT_BYTES_MAX]);

/* Write an answer into the next response slot; its three fields only, so that no byte of ours leaks
 * through the padding (XSA-216). */
void blkif_ring_put(struct blkif_ring *ring, uint64_t id, uint8_t operation, int16_t status);

/* Publish the answers. True if the guest asked to be notified of them. */
bool blkif_ring_publish(struct blkif_ring *ring);

/* Ask for an event with the next request. True if one is there already. */
bool blkif_ring_arm(struct blkif_ring *ring);

#endif
