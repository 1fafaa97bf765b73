/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The frontend's end of a shared ring: indices, slots, and every memory barrier of that side.
 *
 * Owns: the private indices, and the frontend's accesses to the ring's shared pages; how a request is
 *   laid out in a slot.
 * Trusts / does not trust: a backend under test: an index or an answer that cannot be is reported.
 * Runs on: one thread; never blocks.
 * Must not know: grants, event channels, what the data is.
 *
 * Barriers carry the names of the backend's (backend/blkif-ring.h), each is the other half of its pair:
 *   A  release store of req_prod, after the slots are written
 *   B  acquire load of rsp_prod, before the answers are read
 *   C  full fence, rsp_event stored before rsp_prod is re-read (RING_FINAL_CHECK_FOR_RESPONSES)
 *   D  full fence, req_prod stored before req_event is read (RING_PUSH_REQUESTS_AND_CHECK_NOTIFY)
 */
#ifndef VBDISK_FRONT_RING_H
#define VBDISK_FRONT_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/blkif-abi.h"

struct front_ring {
	uint8_t *shared; /* header and slots; the backend writes here, too */
	const struct blkif_abi *abi;
	uint32_t nr_slots;
	uint32_t req_prod_pvt; /* requests written, not all published */
	uint32_t req_prod;     /* requests published */
	uint32_t rsp_cons;     /* answers taken */
};

/* A request as blkif.h's struct blkif_request; a hostile one may count more segments than it has. */
struct front_request {
	uint8_t operation;
	uint8_t nr_segments;
	uint16_t handle;
	uint64_t id;
	uint64_t sector;
	struct blkif_segment segments[BLKIF_MAX_SEGMENTS];
};

struct front_response {
	uint64_t id;
	uint8_t operation;
	int16_t status;
};

/* Make a fresh ring of 1 << @order zeroed pages at @shared (page aligned; the caller's). */
void front_ring_init(struct front_ring *ring, const struct blkif_abi *abi, void *shared,
		     unsigned order);

/* Requests that still fit: slots without an unanswered request in them. */
uint32_t front_ring_nr_free(const struct front_ring *ring);

/* Write @slot (abi->slot_bytes of it) into the next request slot; there must be a free one. */
void front_ring_put(struct front_ring *ring, const uint8_t slot[BLKIF_SLOT_BYTES_MAX]);

/* Publish the requests. True if the backend asked to be notified of them. */
bool front_ring_publish(struct front_ring *ring);

/* Take the next answer. 1, 0 if there is none, -EPROTO if rsp_prod claims more answers than there are
 * unanswered requests. */
int front_ring_take(struct front_ring *ring, struct front_response *response);

/* Ask for an event with the next answer. True if one is there already. */
bool front_ring_arm(struct front_ring *ring);

/* For misuse: where slot @idx lies, and the four header words by their byte offset in ring.h. */
#define FRONT_OFF_REQ_PROD 0
#define FRONT_OFF_REQ_EVENT 4
#define FRONT_OFF_RSP_PROD 8
#define FRONT_OFF_RSP_EVENT 12
uint8_t *front_ring_slot(const struct front_ring *ring, uint32_t idx);
void front_ring_poke(struct front_ring *ring, unsigned offset, uint32_t value);
uint32_t front_ring_peek(const struct front_ring *ring, unsigned offset);

/* Lay @request out in @slot. Bytes that belong to no field keep what they hold; at most
 * BLKIF_MAX_SEGMENTS segments are written, whatever nr_segments says. */
void front_request_encode(const struct blkif_abi *abi, const struct front_request *request,
			  uint8_t *slot);

/* struct blkif_request_discard: @flag 1 is "secure"; @nr_sectors in 512-byte units. */
void front_discard_encode(const struct blkif_abi *abi, uint64_t id, uint8_t flag, uint64_t sector,
			  uint64_t nr_sectors, uint8_t *slot);

/* struct blkif_request_indirect of @inner_op, with one page @gref of segments. */
void front_indirect_encode(const struct blkif_abi *abi, uint64_t id, uint8_t inner_op,
			   uint16_t nr_segments, uint64_t sector, uint32_t gref, uint8_t *slot);

/* Lay segment @idx out in a page of an INDIRECT's segments. */
void front_table_encode(uint8_t *table, unsigned idx, struct blkif_segment segment);

/* "READ", "WRITE", ...; "operation 7" has no name and is "unknown". */
const char *front_operation_name(uint8_t operation);

/* "OKAY", "ERROR", "EOPNOTSUPP", or "unknown". */
const char *front_status_name(int16_t status);

#endif
