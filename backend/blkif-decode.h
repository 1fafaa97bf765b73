/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * From the bytes of a blkif slot to what they ask for.
 *
 * Owns: the meaning of a request's fields and the checks that the wire itself demands
 *   (segment counts and ranges, sector to byte without overflow).
 * Trusts / does not trust: slots and segment tables are private copies of hostile bytes.
 * Runs on: the queue's thread; never blocks.
 * Must not know: shared memory, grants' contents, the disk.
 */
#ifndef VBDISK_BLKIF_DECODE_H
#define VBDISK_BLKIF_DECODE_H

#include <stdbool.h>

#include "backend/blkif-abi.h"
#include "request.h"

/* Operations that a frontend may use only if they were offered to it. Whether the disk can flush or
 * discard is asked by the gate. */
struct blkif_offer {
	bool barrier;	       /* feature-barrier */
	unsigned max_indirect; /* feature-max-indirect-segments; 0: no INDIRECT */
};

/* A decoded slot. */
struct blkif_request {
	uint64_t id;		   /* the guest's, opaque: echoed, never an index */
	uint8_t operation;	   /* echoed in the answer; of an INDIRECT, the operation inside */
	uint8_t nr_indirect_pages; /* 0: the segments are here; else their table is there */
	uint16_t nr_segments;
	union {
		struct blkif_segment segments[BLKIF_MAX_SEGMENTS];
		uint32_t indirect_grefs[BLKIF_MAX_INDIRECT_PAGES];
	};

	enum request_op op;
	unsigned flags;	       /* REQUEST_* */
	uint64_t offset_bytes; /* first byte on the disk */
	uint64_t len_bytes;    /* sum of the segments; 0 while they are in indirect pages */
};

/* Decode @slot. id, operation and nr_segments are filled in every case, for the answer and the log. 0;
 * -EOPNOTSUPP for an operation which is not offered; -EINVAL for what cannot be a request. */
int blkif_decode(const struct blkif_abi *abi, const struct blkif_offer *offer, const uint8_t *slot,
		 struct blkif_request *decoded);

/* Decode a table of @nr segments into @segments, and add up their length. 0 or -EINVAL. */
int blkif_decode_segments(const uint8_t *table, unsigned nr, struct blkif_segment *segments,
			  uint64_t *len_bytes_out);

#endif
