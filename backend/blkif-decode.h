/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * From the bytes of a blkif slot to what they ask for.
 *
 * Owns: the meaning of a request's fields and the checks that the wire itself demands
 *   (segment counts and ranges, sector to byte without overflow).
 * Trusts / does not trust: the slot is a private copy of hostile bytes.
 * Runs on: the queue's thread; never blocks.
 * Must not know: shared memory, grants' contents, the disk.
 */
#ifndef VBDISK_BLKIF_DECODE_H
#define VBDISK_BLKIF_DECODE_H

#include "backend/blkif-abi.h"
#include "request.h"

/* A decoded slot. */
struct blkif_request {
	uint64_t id;	   /* the guest's, opaque: echoed, never an index */
	uint8_t operation; /* echoed in the answer */
	uint8_t nr_segments;
	struct blkif_segment segments[BLKIF_MAX_SEGMENTS];

	enum request_op op;
	unsigned flags;	       /* REQUEST_PREFLUSH */
	uint64_t offset_bytes; /* first byte on the disk */
	uint64_t len_bytes;    /* sum of the segments */
};

/* Decode @slot. id and operation are filled in every case, for the answer. 0; -EOPNOTSUPP for an
 * operation which is not offered; -EINVAL for what cannot be a request. */
int blkif_decode(const struct blkif_abi *abi, const uint8_t *slot, struct blkif_request *decoded);

#endif
