// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: the blkif decoder, and the gate behind it.
 *
 * Owns: the properties that hold for every slot a guest can write. Trusts: nothing. Runs on: the fuzzer, or
 *   tests/fuzz/replay.c. Must not know: rings, grants.
 *
 * Input: one byte that chooses the ABI, the disk and what was offered, then the slot (112 bytes, of which the
 *   ABI's are used), then the segment table of an INDIRECT; each padded with zeroes.
 *
 * To fuzz (from the top of the source, with ./configure done in BUILD):
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -IBUILD -I. -Iinclude -o fuzz \
 *         tests/fuzz/fuzz-blkif-decode.c backend/blkif-decode.c backend/blkif-abi.c \
 *         backend/request-validate.c
 *     ./fuzz -max_len=1137 -max_total_time=120 CORPUS-COPY tests/fuzz/corpus/blkif-decode
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "backend/blkif-decode.h"
#include "backend/request-validate.h"
#include "xen-ops.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct blkif_abi *const abis[] = {&blkif_abi_x86_64, &blkif_abi_x86_32,
					       &blkif_abi_arm};

#define LIMITS(size, logical, physical, write, flush)                                              \
	{                                                                                          \
		.size_bytes = (size), .logical_block_bytes = (logical),                            \
		.physical_block_bytes = (physical), .memory_align_bytes = (logical),               \
		.can_write = (write), .can_flush = (flush)                                         \
	}
static const struct disk_limits disks[] = {
	LIMITS(64u << 20, 512, 512, true, true),
	LIMITS(64u << 20, 4096, 4096, true, true),
	LIMITS(64u << 20, 512, 4096, false, true),
	LIMITS(UINT64_MAX - 511, 512, 512, true, false),
};

static const struct blkif_offer offers[] = {{false, 0}, {true, 128}, {true, 0}, {false, 4096}};

static char memory[BLKIF_MAX_INDIRECT_SEGMENTS * XEN_PAGE_SIZE] __attribute__((aligned(4096)));

/* What the gate lets through lies within the disk, whatever the decoder said. */
static void admitted_check(const struct blkif_request *decoded,
			   const struct blkif_segment *segments, const struct disk_limits *limits)
{
	static struct iovec iov[BLKIF_MAX_INDIRECT_SEGMENTS];
	struct request request = {
		.op = decoded->op,
		.flags = decoded->flags,
		.offset_bytes = decoded->offset_bytes,
		.len_bytes = decoded->len_bytes,
		.iov = iov,
		.nr_iov = decoded->nr_segments,
	};

	for (unsigned i = 0; i < request.nr_iov; i++)
		iov[i] = (struct iovec){memory + i * XEN_PAGE_SIZE +
						segments[i].first_sector * BLKIF_SECTOR_BYTES,
					(segments[i].last_sector - segments[i].first_sector + 1u) *
						BLKIF_SECTOR_BYTES};
	if (request_validate(&request, limits))
		return;
	if (request.op == REQUEST_FLUSH) {
		CHECK(limits->can_flush);
		return;
	}
	CHECK(request.op == REQUEST_READ || limits->can_write);
	CHECK(request.op != REQUEST_DISCARD || limits->can_discard);
	CHECK(request.len_bytes || request.op == REQUEST_DISCARD);
	CHECK(request.offset_bytes <= limits->size_bytes);
	CHECK(request.len_bytes <= limits->size_bytes - request.offset_bytes);
	if (request.op == REQUEST_DISCARD)
		return;
	CHECK(!(request.offset_bytes % limits->logical_block_bytes));
	CHECK(!(request.len_bytes % limits->logical_block_bytes));
}

/* The flags that an operation can have. */
static void flags_check(const struct blkif_request *decoded, const struct blkif_offer *offer)
{
	unsigned allowed = 0;

	if (decoded->op == REQUEST_DISCARD)
		allowed = REQUEST_SECURE;
	if (decoded->op == REQUEST_FLUSH)
		allowed = REQUEST_BARRIER;
	if (decoded->op == REQUEST_WRITE)
		allowed = REQUEST_PREFLUSH | REQUEST_FUA | REQUEST_BARRIER;
	CHECK(!(decoded->flags & ~allowed));
	CHECK(offer->barrier || !(decoded->flags & (REQUEST_BARRIER | REQUEST_FUA)));
}

/* A table in memory of exactly its size, so that a read past its end shows. */
static int table_decode(const uint8_t *data, size_t size, struct blkif_request *decoded,
			struct blkif_segment *segments)
{
	size_t table_bytes = (size_t)decoded->nr_segments * BLKIF_SEGMENT_BYTES;
	uint8_t *table = calloc(1, table_bytes);
	int err;

	CHECK(table);
	memcpy(table, data, size < table_bytes ? size : table_bytes);
	err = blkif_decode_segments(table, decoded->nr_segments, segments, &decoded->len_bytes);
	free(table);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct blkif_segment segments[BLKIF_MAX_INDIRECT_SEGMENTS];
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};
	size_t slot_bytes = size - 1 < sizeof(slot) ? size - 1 : sizeof(slot);
	const struct blkif_offer *offer;
	const struct blkif_abi *abi;
	struct blkif_request decoded;
	uint64_t len_bytes = 0;
	int err;

	if (!size)
		return 0;
	abi = abis[data[0] % 3];
	offer = &offers[data[0] / 12 % 4];
	memcpy(slot, data + 1, slot_bytes);
	err = blkif_decode(abi, offer, slot, &decoded);
	CHECK(!err || err == -EINVAL || err == -EOPNOTSUPP);
	/* The answer's fields come back whatever else is wrong. */
	CHECK(decoded.id == blkif_get64(slot, abi->off_id));
	CHECK(decoded.operation == slot[slot[0] == BLKIF_INDIRECT]);
	if (err)
		return 0;
	flags_check(&decoded, offer);
	CHECK(!(decoded.offset_bytes % BLKIF_SECTOR_BYTES));
	if (decoded.nr_indirect_pages) {
		CHECK(decoded.nr_segments && decoded.nr_segments <= offer->max_indirect);
		CHECK(decoded.nr_indirect_pages <= BLKIF_MAX_INDIRECT_PAGES);
		if (table_decode(data + 1 + slot_bytes, size - 1 - slot_bytes, &decoded, segments))
			return 0;
	} else {
		CHECK(decoded.nr_segments <= BLKIF_MAX_SEGMENTS);
		memcpy(segments, decoded.segments, sizeof(decoded.segments));
	}
	CHECK((decoded.op == REQUEST_READ || decoded.op == REQUEST_WRITE) == !!decoded.nr_segments);
	for (unsigned i = 0; i < decoded.nr_segments; i++) {
		CHECK(segments[i].first_sector <= segments[i].last_sector);
		CHECK(segments[i].last_sector < BLKIF_SECTORS_PER_PAGE);
		len_bytes += (segments[i].last_sector - segments[i].first_sector + 1u) *
			     BLKIF_SECTOR_BYTES;
	}
	if (decoded.op == REQUEST_DISCARD)
		CHECK(decoded.len_bytes <= UINT64_MAX - decoded.offset_bytes);
	else
		CHECK(decoded.len_bytes == len_bytes);
	admitted_check(&decoded, segments, &disks[data[0] / 3 % 4]);
	return 0;
}
