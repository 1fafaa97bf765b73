// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: the blkif decoder, and the gate behind it.
 *
 * Owns: the properties that hold for every slot a guest can write. Trusts: nothing. Runs on: the fuzzer, or
 *   tests/fuzz/replay.c. Must not know: rings, grants.
 *
 * Input: one byte that chooses the ABI and the disk, then the slot, padded with zeroes.
 *
 * To fuzz (from the top of the source, with ./configure done in BUILD):
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -IBUILD -I. -Iinclude -o fuzz \
 *         tests/fuzz/fuzz-blkif-decode.c backend/blkif-decode.c backend/blkif-abi.c \
 *         backend/request-validate.c
 *     ./fuzz -max_len=113 -max_total_time=120 CORPUS-COPY tests/fuzz/corpus/blkif-decode
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

static char memory[BLKIF_MAX_SEGMENTS * XEN_PAGE_SIZE] __attribute__((aligned(4096)));

/* What the gate lets through lies within the disk, whatever the decoder said. */
static void admitted_check(const struct blkif_request *decoded, const struct disk_limits *limits)
{
	struct iovec iov[BLKIF_MAX_SEGMENTS];
	struct request request = {
		.op = decoded->op,
		.flags = decoded->flags,
		.offset_bytes = decoded->offset_bytes,
		.len_bytes = decoded->len_bytes,
		.iov = iov,
		.nr_iov = decoded->op == REQUEST_FLUSH ? 0 : decoded->nr_segments,
	};

	for (unsigned i = 0; i < request.nr_iov; i++)
		iov[i] = (struct iovec){
			memory + i * XEN_PAGE_SIZE +
				decoded->segments[i].first_sector * BLKIF_SECTOR_BYTES,
			(decoded->segments[i].last_sector - decoded->segments[i].first_sector +
			 1u) * BLKIF_SECTOR_BYTES};
	if (request_validate(&request, limits))
		return;
	if (request.op == REQUEST_FLUSH) {
		CHECK(limits->can_flush);
		return;
	}
	CHECK(request.op == REQUEST_READ || limits->can_write);
	CHECK(request.len_bytes && request.offset_bytes < limits->size_bytes);
	CHECK(request.len_bytes <= limits->size_bytes - request.offset_bytes);
	CHECK(!(request.offset_bytes % limits->logical_block_bytes));
	CHECK(!(request.len_bytes % limits->logical_block_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};
	const struct blkif_abi *abi;
	struct blkif_request decoded;
	uint64_t len_bytes = 0;
	int err;

	if (!size || size - 1 > sizeof(slot))
		return 0;
	abi = abis[data[0] % 3];
	memcpy(slot, data + 1, size - 1);
	err = blkif_decode(abi, slot, &decoded);
	CHECK(!err || err == -EINVAL || err == -EOPNOTSUPP);
	/* The answer's fields come back whatever else is wrong. */
	CHECK(decoded.id == blkif_get64(slot, abi->off_id));
	CHECK(decoded.operation == slot[BLKIF_OFF_OPERATION]);
	if (err)
		return 0;
	CHECK(decoded.nr_segments <= BLKIF_MAX_SEGMENTS);
	CHECK((decoded.op == REQUEST_FLUSH) == !decoded.nr_segments);
	CHECK(!decoded.flags || (decoded.flags == REQUEST_PREFLUSH && decoded.op == REQUEST_WRITE));
	for (unsigned i = 0; i < decoded.nr_segments; i++) {
		CHECK(decoded.segments[i].first_sector <= decoded.segments[i].last_sector);
		CHECK(decoded.segments[i].last_sector < BLKIF_SECTORS_PER_PAGE);
		len_bytes +=
			(decoded.segments[i].last_sector - decoded.segments[i].first_sector + 1u) *
			BLKIF_SECTOR_BYTES;
	}
	CHECK(decoded.len_bytes == len_bytes);
	CHECK(!(decoded.offset_bytes % BLKIF_SECTOR_BYTES));
	admitted_check(&decoded, &disks[data[0] / 3 % 4]);
	return 0;
}
