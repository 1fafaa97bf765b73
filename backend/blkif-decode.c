// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From the bytes of a blkif slot to what they ask for.
 *
 * Owns: the meaning of a request's fields and the checks that the wire itself demands.
 * Trusts / does not trust: slots and segment tables are private copies of hostile bytes.
 * Runs on: the queue's thread; never blocks.
 * Must not know: shared memory, grants' contents, the disk.
 */
#include "config.h"

#include <errno.h>

#include "backend/blkif-decode.h"

/* The largest number of sectors whose bytes can be counted. */
#define SECTORS_MAX (UINT64_MAX / BLKIF_SECTOR_BYTES)

/* blkif.h: segments' first_sect and last_sect are 512-byte sectors within one page, ends included. */
int blkif_decode_segments(const uint8_t *table, unsigned nr, struct blkif_segment *segments,
			  uint64_t *len_bytes_out)
{
	uint64_t len_bytes = 0;

	for (unsigned i = 0; i < nr; i++) {
		struct blkif_segment segment = blkif_table_get(table, i);

		if (segment.first_sector > segment.last_sector ||
		    segment.last_sector >= BLKIF_SECTORS_PER_PAGE)
			return -EINVAL;
		segments[i] = segment;
		len_bytes += (segment.last_sector - segment.first_sector + 1u) * BLKIF_SECTOR_BYTES;
	}
	*len_bytes_out = len_bytes;
	return 0;
}

static int position_decode(const struct blkif_abi *abi, const uint8_t *slot,
			   struct blkif_request *decoded)
{
	uint64_t sector = blkif_get64(slot, abi->off_sector);

	if (sector > SECTORS_MAX)
		return -EINVAL;
	decoded->offset_bytes = sector * BLKIF_SECTOR_BYTES;
	return 0;
}

static int data_decode(const struct blkif_abi *abi, const uint8_t *slot, enum request_op op,
		       unsigned flags, struct blkif_request *decoded)
{
	int err;

	if (!decoded->nr_segments || decoded->nr_segments > BLKIF_MAX_SEGMENTS)
		return -EINVAL;
	decoded->op = op;
	decoded->flags = flags;
	err = position_decode(abi, slot, decoded);
	if (err)
		return err;
	return blkif_decode_segments(slot + abi->off_segments, decoded->nr_segments,
				     decoded->segments, &decoded->len_bytes);
}

/* FLUSH_DISKCACHE and WRITE_BARRIER may have data, to be written after the flush (xen-blkback
 * REQ_PREFLUSH, QEMU presync), or none. An empty one carries no position: xen-blkback ignores its sector,
 * Linux sends 0. */
static int flush_decode(const struct blkif_abi *abi, const uint8_t *slot, unsigned write_flags,
			unsigned empty_flags, struct blkif_request *decoded)
{
	if (decoded->nr_segments)
		return data_decode(abi, slot, REQUEST_WRITE, write_flags, decoded);
	decoded->op = REQUEST_FLUSH;
	decoded->flags = empty_flags;
	decoded->offset_bytes = 0;
	decoded->len_bytes = 0;
	return 0;
}

static int discard_decode(const struct blkif_abi *abi, const uint8_t *slot,
			  struct blkif_request *decoded)
{
	uint64_t nr_sectors = blkif_get64(slot, abi->off_nr_sectors);
	int err = position_decode(abi, slot, decoded);

	if (err)
		return err;
	if (nr_sectors > SECTORS_MAX - decoded->offset_bytes / BLKIF_SECTOR_BYTES)
		return -EINVAL;
	decoded->op = REQUEST_DISCARD;
	decoded->flags = slot[BLKIF_OFF_DISCARD_FLAG] & BLKIF_DISCARD_SECURE ? REQUEST_SECURE : 0;
	decoded->len_bytes = nr_sectors * BLKIF_SECTOR_BYTES;
	return 0;
}

static int indirect_decode(const struct blkif_abi *abi, const struct blkif_offer *offer,
			   const uint8_t *slot, struct blkif_request *decoded)
{
	if (!offer->max_indirect)
		return -EOPNOTSUPP;
	if (decoded->operation != BLKIF_READ && decoded->operation != BLKIF_WRITE)
		return -EINVAL;
	if (!decoded->nr_segments || decoded->nr_segments > offer->max_indirect)
		return -EINVAL;
	decoded->nr_indirect_pages =
		(uint8_t)((decoded->nr_segments + BLKIF_SEGMENTS_PER_INDIRECT_PAGE - 1) /
			  BLKIF_SEGMENTS_PER_INDIRECT_PAGE);
	for (unsigned i = 0; i < decoded->nr_indirect_pages; i++)
		decoded->indirect_grefs[i] = blkif_get32(slot, abi->off_indirect_grefs + 4 * i);
	decoded->op = decoded->operation == BLKIF_READ ? REQUEST_READ : REQUEST_WRITE;
	decoded->flags = 0;
	decoded->len_bytes = 0;
	return position_decode(abi, slot, decoded);
}

int blkif_decode(const struct blkif_abi *abi, const struct blkif_offer *offer, const uint8_t *slot,
		 struct blkif_request *decoded)
{
	decoded->id = blkif_get64(slot, abi->off_id);
	decoded->operation = slot[BLKIF_OFF_OPERATION];
	decoded->nr_segments = slot[BLKIF_OFF_NR_SEGMENTS];
	decoded->nr_indirect_pages = 0;
	switch (decoded->operation) {
	case BLKIF_READ:
		return data_decode(abi, slot, REQUEST_READ, 0, decoded);
	case BLKIF_WRITE:
		return data_decode(abi, slot, REQUEST_WRITE, 0, decoded);
	case BLKIF_FLUSH_DISKCACHE:
		return flush_decode(abi, slot, REQUEST_PREFLUSH, 0, decoded);
	case BLKIF_WRITE_BARRIER:
		if (!offer->barrier)
			return -EOPNOTSUPP;
		return flush_decode(abi, slot, REQUEST_PREFLUSH | REQUEST_FUA | REQUEST_BARRIER,
				    REQUEST_BARRIER, decoded);
	case BLKIF_DISCARD:
		decoded->nr_segments = 0;
		return discard_decode(abi, slot, decoded);
	case BLKIF_INDIRECT:
		/* Frontends expect the operation inside in every answer, refusals included (Linux
		 * blkif_interrupt(), xen-blkback dispatch_rw_block_io()). */
		decoded->operation = slot[BLKIF_OFF_INDIRECT_OP];
		decoded->nr_segments = blkif_get16(slot, BLKIF_OFF_INDIRECT_NR_SEGMENTS);
		return indirect_decode(abi, offer, slot, decoded);
	default:
		return -EOPNOTSUPP;
	}
}
