// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From the bytes of a blkif slot to what they ask for.
 *
 * Owns: the meaning of a request's fields and the checks that the wire itself demands.
 * Trusts / does not trust: the slot is a private copy of hostile bytes.
 * Runs on: the queue's thread; never blocks.
 * Must not know: shared memory, grants' contents, the disk.
 */
#include "config.h"

#include <errno.h>

#include "backend/blkif-decode.h"

/* blkif.h: segments' first_sect and last_sect are 512-byte sectors within one page, ends included. */
static int segments_decode(const struct blkif_abi *abi, const uint8_t *slot,
			   struct blkif_request *decoded)
{
	decoded->len_bytes = 0;
	for (unsigned i = 0; i < decoded->nr_segments; i++) {
		struct blkif_segment segment = blkif_get_segment(abi, slot, i);

		if (segment.first_sector > segment.last_sector ||
		    segment.last_sector >= BLKIF_SECTORS_PER_PAGE)
			return -EINVAL;
		decoded->segments[i] = segment;
		decoded->len_bytes +=
			(segment.last_sector - segment.first_sector + 1u) * BLKIF_SECTOR_BYTES;
	}
	return 0;
}

int blkif_decode(const struct blkif_abi *abi, const uint8_t *slot, struct blkif_request *decoded)
{
	uint64_t sector = blkif_get64(slot, abi->off_sector);
	unsigned min_segments = 1;

	decoded->id = blkif_get64(slot, abi->off_id);
	decoded->operation = slot[BLKIF_OFF_OPERATION];
	decoded->nr_segments = slot[BLKIF_OFF_NR_SEGMENTS];
	decoded->flags = 0;
	switch (decoded->operation) {
	case BLKIF_READ:
		decoded->op = REQUEST_READ;
		break;
	case BLKIF_WRITE:
		decoded->op = REQUEST_WRITE;
		break;
	case BLKIF_FLUSH_DISKCACHE:
		/* With segments: flush, then write (xen-blkback REQ_PREFLUSH, QEMU presync). */
		min_segments = 0;
		decoded->op = decoded->nr_segments ? REQUEST_WRITE : REQUEST_FLUSH;
		decoded->flags = decoded->nr_segments ? REQUEST_PREFLUSH : 0;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (decoded->nr_segments < min_segments || decoded->nr_segments > BLKIF_MAX_SEGMENTS)
		return -EINVAL;
	/* An empty flush carries no position: xen-blkback ignores its sector, Linux sends 0. */
	if (decoded->op == REQUEST_FLUSH) {
		decoded->offset_bytes = 0;
		decoded->len_bytes = 0;
		return 0;
	}
	if (sector > UINT64_MAX / BLKIF_SECTOR_BYTES)
		return -EINVAL;
	decoded->offset_bytes = sector * BLKIF_SECTOR_BYTES;
	return segments_decode(abi, slot, decoded);
}
