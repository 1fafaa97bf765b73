// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate, as a table of requests and verdicts.
 *
 * Owns: nothing. Trusts: include/driver.h's description of struct disk_limits, and the right answers of
 *   faults.md R05, R08, R09, R14, R25, S31. Runs on: the test. Must not know: any wire.
 */
#include "config.h"

#include <errno.h>

#include "backend/request-validate.h"
#include "tests/unit/unit.h"

#define MIB (1024ull * 1024)
#define DISK64 (64 * MIB)

#define LIMITS(size, block, write, flush)                                                          \
	{                                                                                          \
		.size_bytes = (size), .logical_block_bytes = (block),                              \
		.physical_block_bytes = (block), .memory_align_bytes = (block),                    \
		.can_write = (write), .can_flush = (flush)                                         \
	}
static const struct disk_limits disk64 = LIMITS(DISK64, 512, true, true);
static const struct disk_limits disk64_ro = LIMITS(DISK64, 512, false, true);
static const struct disk_limits disk64_no_flush = LIMITS(DISK64, 512, true, false);
static const struct disk_limits disk_4kn = LIMITS(DISK64, 4096, true, true);
/* Close to the largest there can be: the sums of an unwary check would wrap. */
static const struct disk_limits disk_huge = LIMITS(UINT64_MAX - 511, 512, true, true);
static const struct disk_limits disk_3tib = LIMITS(3ull << 40, 512, true, true);

static const struct disk_limits disk_discard = {
	.size_bytes = DISK64,
	.logical_block_bytes = 512,
	.physical_block_bytes = 512,
	.memory_align_bytes = 512,
	.can_write = true,
	.can_discard = true,
	.discard_granularity_bytes = 65536,
	.discard_alignment_bytes = 512,
};
static const struct disk_limits disk_discard_ro = {
	.size_bytes = DISK64,
	.logical_block_bytes = 512,
	.physical_block_bytes = 512,
	.memory_align_bytes = 512,
	.can_discard = true,
	.discard_granularity_bytes = 512,
};

static char memory[16 * 4096] __attribute__((aligned(4096)));

struct row {
	const char *name;
	const struct disk_limits *limits;
	enum request_op op;
	unsigned flags;
	uint64_t offset_bytes;
	uint64_t len_bytes; /* also the one iov's length, unless iov says otherwise */
	struct iovec iov[3];
	int verdict;
};

static const struct row rows[] = {
	{"first block", &disk64, REQUEST_READ, 0, 0, 512, {{0}}, 0},
	{"last block", &disk64, REQUEST_READ, 0, DISK64 - 512, 512, {{0}}, 0},
	{"write of the last block", &disk64, REQUEST_WRITE, 0, DISK64 - 512, 512, {{0}}, 0},
	{"whole disk", &disk64, REQUEST_READ, 0, 0, DISK64, {{memory, DISK64}}, 0},
	{"one block behind the end", &disk64, REQUEST_READ, 0, DISK64, 512, {{0}}, -ERANGE},
	{"end behind the end", &disk64, REQUEST_WRITE, 0, DISK64 - 512, 1024, {{0}}, -ERANGE},
	{"longer than the disk", &disk64, REQUEST_READ, 0, 0, DISK64 + 512, {{0}}, -ERANGE},
	/* R09: each piece is in range by itself (131064 + 8 sectors is the end), the sum is not. */
	{"sum of pieces",
	 &disk64,
	 REQUEST_WRITE,
	 0,
	 131064 * 512ull,
	 8192,
	 {{memory, 4096}, {memory + 4096, 4096}},
	 -ERANGE},
	/* R08: offsets near 2^64 as 2^64-8 sectors would have given; sums wrap to small numbers. */
	{"sum wraps to 0", &disk64, REQUEST_WRITE, 0, UINT64_MAX - 4095, 4096, {{0}}, -ERANGE},
	{"sum wraps to the disk",
	 &disk64,
	 REQUEST_WRITE,
	 0,
	 UINT64_MAX - 511,
	 4096,
	 {{0}},
	 -ERANGE},
	{"length wraps", &disk64, REQUEST_READ, 0, 512, UINT64_MAX - 511, {{0}}, -ERANGE},
	{"all ones", &disk64, REQUEST_READ, 0, UINT64_MAX, UINT64_MAX, {{0}}, -ERANGE},
	{"huge disk, last block", &disk_huge, REQUEST_READ, 0, UINT64_MAX - 1023, 512, {{0}}, 0},
	{"huge disk, behind", &disk_huge, REQUEST_READ, 0, UINT64_MAX - 1023, 1024, {{0}}, -ERANGE},
	/* S31: beyond 2 TiB is a place of its own. */
	{"sector 2^32", &disk_3tib, REQUEST_WRITE, 0, 2ull << 40, 4096, {{0}}, 0},
	{"empty read", &disk64, REQUEST_READ, 0, 0, 0, {{0}}, -EINVAL},
	{"empty write", &disk64, REQUEST_WRITE, 0, 0, 0, {{0}}, -EINVAL},
	{"empty at the end", &disk64, REQUEST_READ, 0, DISK64, 0, {{0}}, -EINVAL},
	/* Read-only (R14): everything but READ and FLUSH is refused. */
	{"read-only: read", &disk64_ro, REQUEST_READ, 0, 0, 512, {{0}}, 0},
	{"read-only: write", &disk64_ro, REQUEST_WRITE, 0, 0, 512, {{0}}, -EROFS},
	{"read-only: preflush write",
	 &disk64_ro,
	 REQUEST_WRITE,
	 REQUEST_PREFLUSH,
	 0,
	 512,
	 {{0}},
	 -EROFS},
	{"read-only: write out of range", &disk64_ro, REQUEST_WRITE, 0, DISK64, 512, {{0}}, -EROFS},
	{"read-only: flush", &disk64_ro, REQUEST_FLUSH, 0, 0, 0, {{0}}, 0},
	/* Without a promise of stability there is no flush, alone or before a write. */
	{"flush", &disk64, REQUEST_FLUSH, 0, 0, 0, {{0}}, 0},
	{"no flush: flush", &disk64_no_flush, REQUEST_FLUSH, 0, 0, 0, {{0}}, -EOPNOTSUPP},
	{"no flush: preflush write",
	 &disk64_no_flush,
	 REQUEST_WRITE,
	 REQUEST_PREFLUSH,
	 0,
	 512,
	 {{0}},
	 -EOPNOTSUPP},
	{"no flush: write", &disk64_no_flush, REQUEST_WRITE, 0, 0, 512, {{0}}, 0},
	{"preflush write", &disk64, REQUEST_WRITE, REQUEST_PREFLUSH, 0, 512, {{0}}, 0},
	{"preflush write out of range",
	 &disk64,
	 REQUEST_WRITE,
	 REQUEST_PREFLUSH,
	 DISK64,
	 512,
	 {{0}},
	 -ERANGE},
	/* 4096-byte blocks (R25). */
	{"4Kn: aligned", &disk_4kn, REQUEST_READ, 0, 4096, 8192, {{0}}, 0},
	{"4Kn: offset", &disk_4kn, REQUEST_READ, 0, 512, 4096, {{0}}, -EINVAL},
	{"4Kn: length", &disk_4kn, REQUEST_WRITE, 0, 4096, 3584, {{0}}, -EINVAL},
	{"4Kn: lengths whose sum is aligned",
	 &disk_4kn,
	 REQUEST_WRITE,
	 0,
	 4096,
	 4096,
	 {{memory, 2048}, {memory + 4096, 2048}},
	 -EINVAL},
	{"4Kn: second piece short",
	 &disk_4kn,
	 REQUEST_READ,
	 0,
	 0,
	 4608,
	 {{memory, 4096}, {memory + 4096, 512}},
	 -EINVAL},
	{"4Kn: two pages",
	 &disk_4kn,
	 REQUEST_READ,
	 0,
	 0,
	 8192,
	 {{memory, 4096}, {memory + 8192, 4096}},
	 0},
	/* Alignment in memory is another matter than length. */
	{"4Kn: memory", &disk_4kn, REQUEST_READ, 0, 0, 4096, {{memory + 512, 4096}}, -EINVAL},
	{"512: memory", &disk64, REQUEST_READ, 0, 0, 4096, {{memory + 512, 4096}}, 0},
	{"512: odd memory", &disk64, REQUEST_READ, 0, 0, 512, {{memory + 256, 512}}, -EINVAL},
	{"512: odd length", &disk64, REQUEST_READ, 0, 0, 513, {{memory, 513}}, -EINVAL},
	{"512: odd offset", &disk64, REQUEST_READ, 0, 1, 512, {{0}}, -EINVAL},
	/* Discards: faults.md R12, R14, R18; any alignment is fine, the edges are left alone (R25). */
	{"discard", &disk_discard, REQUEST_DISCARD, 0, 0, DISK64, {{0}}, 0},
	{"discard of nothing", &disk_discard, REQUEST_DISCARD, 0, DISK64, 0, {{0}}, 0},
	{"discard, unaligned", &disk_discard, REQUEST_DISCARD, REQUEST_SECURE, 512, 512, {{0}}, 0},
	{"discard past the end",
	 &disk_discard,
	 REQUEST_DISCARD,
	 0,
	 DISK64 - 512,
	 1024,
	 {{0}},
	 -ERANGE},
	{"discard that wraps",
	 &disk_discard,
	 REQUEST_DISCARD,
	 0,
	 UINT64_MAX - 511,
	 1024,
	 {{0}},
	 -ERANGE},
	{"discard, not offered", &disk64, REQUEST_DISCARD, 0, 0, 512, {{0}}, -EOPNOTSUPP},
	{"discard, read-only", &disk_discard_ro, REQUEST_DISCARD, 0, 0, 512, {{0}}, -EROFS},
	{"no flush: FUA write",
	 &disk64_no_flush,
	 REQUEST_WRITE,
	 REQUEST_FUA,
	 0,
	 512,
	 {{0}},
	 -EOPNOTSUPP},
	{"unknown operation", &disk64, (enum request_op)99, 0, 0, 512, {{0}}, -EOPNOTSUPP},
};

static void table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct iovec iov[3];
		struct request request = {
			.op = rows[i].op,
			.flags = rows[i].flags,
			.offset_bytes = rows[i].offset_bytes,
			.len_bytes = rows[i].len_bytes,
			.iov = iov,
		};
		int verdict;

		memcpy(iov, rows[i].iov, sizeof(iov));
		if (!iov[0].iov_base && rows[i].len_bytes)
			iov[0] = (struct iovec){memory, rows[i].len_bytes};
		while (request.nr_iov < 3 && iov[request.nr_iov].iov_base)
			request.nr_iov++;
		verdict = request_validate(&request, rows[i].limits);
		if (verdict != rows[i].verdict)
			fail_msg("%s: %d, should be %d", rows[i].name, verdict, rows[i].verdict);
	}
}

/* Whole granules only, never outward (xen-contract.md §4.2): against a walk over all granules. */
static void rounding(void **state)
{
	uint32_t seed = 99;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct disk_limits limits = disk_discard;
		struct request request = {.op = REQUEST_DISCARD, .flags = REQUEST_SECURE};
		uint64_t first = UINT64_MAX, last_end = 0, offset, end;
		unsigned random[4];

		for (unsigned j = 0; j < 4; j++) {
			seed = seed * 1664525u + 1013904223u;
			random[j] = seed >> 8;
		}
		limits.size_bytes = 256 * 512;
		limits.discard_granularity_bytes = 512 * (1 + random[0] % 48); /* no power of two */
		limits.discard_alignment_bytes =
			random[1] % (limits.discard_granularity_bytes / 512) * 512;
		limits.can_secure_discard = i % 2;
		offset = random[2] % 256 * 512;
		end = offset + random[3] % (257 - offset / 512) * 512;
		request.offset_bytes = offset;
		request.len_bytes = end - offset;
		for (uint64_t at = limits.discard_alignment_bytes; at < limits.size_bytes;
		     at += limits.discard_granularity_bytes) {
			if (at < offset || at + limits.discard_granularity_bytes > end)
				continue;
			if (first == UINT64_MAX)
				first = at;
			last_end = at + limits.discard_granularity_bytes;
		}
		assert_int_equal(request_round(&request, &limits), last_end != 0);
		assert_int_equal(!!(request.flags & REQUEST_SECURE), limits.can_secure_discard);
		if (!last_end)
			continue;
		assert_int_equal(request.offset_bytes, first);
		assert_int_equal(request.offset_bytes + request.len_bytes, last_end);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(rounding),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
