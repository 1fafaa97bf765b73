/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The three layouts of a blkif ring, as tables of offsets.
 *
 * Owns: where each field of xen/include/public/io/blkif.h lies for each `protocol`.
 * Trusts / does not trust: works on private copies of slots; the only accessors to shared memory are
 *   the ring's (blkif-ring.h).
 * Runs on: any thread; never blocks.
 * Must not know: what a field means.
 *
 * The layouts differ because a u64 is aligned to 8 bytes on x86_64 and arm, to 4 on x86_32. All are
 * little-endian, and so is every host that Xen runs on; a big-endian build (tests) converts.
 */
#ifndef VBDISK_BLKIF_ABI_H
#define VBDISK_BLKIF_ABI_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Operations and status codes of blkif.h. */
enum blkif_op {
	BLKIF_READ = 0,
	BLKIF_WRITE = 1,
	BLKIF_WRITE_BARRIER = 2,
	BLKIF_FLUSH_DISKCACHE = 3,
	BLKIF_DISCARD = 5,
	BLKIF_INDIRECT = 6,
};

enum blkif_status {
	BLKIF_STATUS_OKAY = 0,
	BLKIF_STATUS_ERROR = -1,
	BLKIF_STATUS_EOPNOTSUPP = -2,
};

#define BLKIF_MAX_SEGMENTS 11	    /* BLKIF_MAX_SEGMENTS_PER_REQUEST */
#define BLKIF_MAX_INDIRECT_PAGES 8  /* BLKIF_MAX_INDIRECT_PAGES_PER_REQUEST */
#define BLKIF_SECTOR_BYTES 512u	    /* the unit of all sector numbers on the wire */
#define BLKIF_SECTORS_PER_PAGE 8u   /* XEN_PAGE_SIZE / 512 */
#define BLKIF_SLOT_BYTES_MAX 112u   /* the larger of the two request layouts */
#define BLKIF_RESPONSE_BYTES 12u    /* id, operation, status, padding: the smaller layout */
#define BLKIF_RING_HEADER_BYTES 64u /* ring.h: req_prod, req_event, rsp_prod, rsp_event, padding */
#define BLKIF_RING_ORDER_MAX 4	    /* 16 pages, as xen-blkback */

/* Same in all layouts. */
#define BLKIF_OFF_OPERATION 0
#define BLKIF_OFF_NR_SEGMENTS 1
#define BLKIF_OFF_HANDLE 2 /* not in an INDIRECT */
#define BLKIF_OFF_DISCARD_FLAG 1
#define BLKIF_OFF_INDIRECT_OP 1
#define BLKIF_OFF_INDIRECT_NR_SEGMENTS 2 /* u16 */
#define BLKIF_OFF_RSP_ID 0
#define BLKIF_OFF_RSP_OPERATION 8
#define BLKIF_OFF_RSP_STATUS 10

#define BLKIF_DISCARD_SECURE 1u /* in the flag byte */

struct blkif_abi {
	const char *protocol; /* the frontend's `protocol` node (xen/io/protocols.h) */
	uint8_t slot_bytes;   /* distance of two slots */
	uint8_t off_id;
	uint8_t off_sector;
	uint8_t off_segments;	    /* segment i at + i * BLKIF_SEGMENT_BYTES */
	uint8_t off_nr_sectors;	    /* u64, of a DISCARD */
	uint8_t off_indirect_grefs; /* u32[BLKIF_MAX_INDIRECT_PAGES], of an INDIRECT */
};

#define BLKIF_SEGMENT_BYTES 8 /* gref u32, first_sect u8, last_sect u8, 2 bytes padding */

/* An indirect page is a table of segments, the same in all layouts. */
#define BLKIF_SEGMENTS_PER_INDIRECT_PAGE 512u /* XEN_PAGE_SIZE / BLKIF_SEGMENT_BYTES */
#define BLKIF_MAX_INDIRECT_SEGMENTS (BLKIF_MAX_INDIRECT_PAGES * BLKIF_SEGMENTS_PER_INDIRECT_PAGE)

struct blkif_segment {
	uint32_t gref;
	uint8_t first_sector; /* 512-byte sectors within the page, both ends included */
	uint8_t last_sector;
};

extern const struct blkif_abi blkif_abi_x86_64;
extern const struct blkif_abi blkif_abi_x86_32;
extern const struct blkif_abi blkif_abi_arm;

/* The layout for a `protocol` node's text; NULL for an unknown one. @protocol NULL (no node): x86_32 on
 * an x86 host, arm on arm, as xen-blkback and QEMU (BLKIF_PROTOCOL_DEFAULT). */
const struct blkif_abi *blkif_abi_find(const char *protocol);

/* Slots of a ring of 1 << @order pages: the largest power of two that fits (ring.h __RING_SIZE). */
unsigned blkif_abi_nr_slots(const struct blkif_abi *abi, unsigned order);

/* Field access on a private copy of a slot. */
static inline uint16_t blkif_get16(const uint8_t *slot, unsigned offset)
{
	uint16_t value;

	memcpy(&value, slot + offset, sizeof(value));
	return le16toh(value);
}

static inline uint32_t blkif_get32(const uint8_t *slot, unsigned offset)
{
	uint32_t value;

	memcpy(&value, slot + offset, sizeof(value));
	return le32toh(value);
}

static inline uint64_t blkif_get64(const uint8_t *slot, unsigned offset)
{
	uint64_t value;

	memcpy(&value, slot + offset, sizeof(value));
	return le64toh(value);
}

static inline void blkif_put16(uint8_t *slot, unsigned offset, uint16_t value)
{
	value = htole16(value);
	memcpy(slot + offset, &value, sizeof(value));
}

static inline void blkif_put32(uint8_t *slot, unsigned offset, uint32_t value)
{
	value = htole32(value);
	memcpy(slot + offset, &value, sizeof(value));
}

static inline void blkif_put64(uint8_t *slot, unsigned offset, uint64_t value)
{
	value = htole64(value);
	memcpy(slot + offset, &value, sizeof(value));
}

/* Segments in a table: a slot's (at its off_segments), or a copy of indirect pages. */
static inline struct blkif_segment blkif_table_get(const uint8_t *table, unsigned idx)
{
	const uint8_t *at = table + idx * BLKIF_SEGMENT_BYTES;

	return (struct blkif_segment){
		.gref = blkif_get32(at, 0),
		.first_sector = at[4],
		.last_sector = at[5],
	};
}

static inline void blkif_table_put(uint8_t *table, unsigned idx, struct blkif_segment segment)
{
	uint8_t *at = table + idx * BLKIF_SEGMENT_BYTES;

	blkif_put32(at, 0, segment.gref);
	at[4] = segment.first_sector;
	at[5] = segment.last_sector;
}

static inline struct blkif_segment blkif_get_segment(const struct blkif_abi *abi,
						     const uint8_t *slot, unsigned idx)
{
	return blkif_table_get(slot + abi->off_segments, idx);
}

static inline void blkif_put_segment(const struct blkif_abi *abi, uint8_t *slot, unsigned idx,
				     struct blkif_segment segment)
{
	blkif_table_put(slot + abi->off_segments, idx, segment);
}

#endif
