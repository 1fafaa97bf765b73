/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The blkif wire as Xen's own public headers define it: the oracle that the backend's tables and ring
 * arithmetic are held against, and the frontend's half of a ring.
 *
 * Owns: struct wire. Trusts: xen/io/blkif.h and xen/io/ring.h. Runs on: the test; the front functions may
 * run on a thread of their own. Must not know: how the backend does it.
 *
 * wire-impl.h is compiled twice: as the compiler lays structs out on x86_64 and arm (wire-x86_64.c), and
 * under #pragma pack(4) (wire-x86_32.c). i386 aligns u64 to 4 bytes and everything else as x86_64 does,
 * and blkif.h's structs hold no pointers, so the packed ones are i386's.
 */
#ifndef VBDISK_TEST_WIRE_H
#define VBDISK_TEST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAX_SEGMENTS 11
#define WIRE_ORDERS 5 /* 1, 2, 4, 8, 16 pages */

struct wire_segment {
	uint32_t gref;
	uint8_t first, last;
};

struct wire_request {
	uint8_t operation, nr_segments;
	uint16_t handle;
	uint64_t id, sector;
	struct wire_segment segments[WIRE_MAX_SEGMENTS];
};

struct wire_discard {
	uint8_t flag;
	uint16_t handle;
	uint64_t id, sector, nr_sectors;
};

#define WIRE_MAX_INDIRECT_PAGES 8

struct wire_indirect {
	uint8_t operation; /* the one inside */
	uint16_t nr_segments, handle;
	uint64_t id, sector;
	uint32_t grefs[WIRE_MAX_INDIRECT_PAGES];
};

struct wire_response {
	uint64_t id;
	uint8_t operation;
	int16_t status;
};

/* A front or a back ring of ring.h, whose layout only wire-impl.h knows. */
struct wire_ring {
	_Alignas(16) char opaque[64];
};

struct wire {
	/* What offsetof() and sizeof() say about the public structs. */
	struct {
		size_t request, slot, response, segment;
	} bytes;
	struct {
		size_t operation, nr_segments, handle, id, sector, segments;
	} request;
	struct {
		size_t flag, handle, id, sector, nr_sectors;
	} discard;
	struct {
		size_t operation, nr_segments, handle, id, sector, grefs;
	} indirect;
	struct {
		size_t gref, first, last;
	} segment;
	struct {
		size_t id, operation, status;
	} response;
	struct {
		size_t req_prod, req_event, rsp_prod, rsp_event, slots;
	} header;
	unsigned max_segments, max_indirect_pages;
	uint8_t discard_secure;
	unsigned nr_slots_const[WIRE_ORDERS]; /* __CONST_RING_SIZE */

	/* __RING_SIZE of a ring at @shared of @bytes. */
	unsigned (*nr_slots)(void *shared, size_t bytes);

	/* The frontend. All indices of a fresh ring begin at @start. */
	void (*front_init)(struct wire_ring *ring, void *shared, size_t bytes, uint32_t start);
	bool (*front_full)(struct wire_ring *ring);
	void (*front_put)(struct wire_ring *ring, const struct wire_request *request);
	void (*front_put_discard)(struct wire_ring *ring, const struct wire_discard *discard);
	void (*front_put_indirect)(struct wire_ring *ring, const struct wire_indirect *indirect);
	/* The @idx'th segment of an indirect page (blkif.h: an array of struct blkif_request_segment). */
	void (*table_put)(void *page, unsigned idx, struct wire_segment segment);
	bool (*front_push)(struct wire_ring *ring); /* true: notify the backend */
	bool (*front_get)(struct wire_ring *ring, struct wire_response *response);
	bool (*front_final_check)(struct wire_ring *ring); /* true: more work */

	/* A backend made of ring.h's macros. */
	void (*back_init)(struct wire_ring *ring, void *shared, size_t bytes, uint32_t start);
	bool (*back_overflow)(struct wire_ring *ring);
	bool (*back_get)(struct wire_ring *ring);
	void (*back_put)(struct wire_ring *ring, const struct wire_response *response);
	bool (*back_push)(struct wire_ring *ring); /* true: notify the frontend */
	bool (*back_final_check)(struct wire_ring *ring);
};

extern const struct wire wire_x86_64;
extern const struct wire wire_x86_32;

#endif
