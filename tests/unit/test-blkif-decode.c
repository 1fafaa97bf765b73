// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The decoder against golden vectors, and the answers' bytes against theirs.
 *
 * Owns: nothing. Trusts: tests/vectors/, whose heads name their source. Runs on: the test.
 * Must not know: the transport.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "backend/blkif-decode.h"
#include "backend/blkif-ring.h"
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"
#include "xen-ops.h"

static const struct blkif_abi *const abis[] = {&blkif_abi_x86_64, &blkif_abi_x86_32,
					       &blkif_abi_arm};

static const char *op_name(const struct blkif_request *decoded)
{
	static const struct {
		enum request_op op;
		unsigned flags;
		const char *name;
	} names[] = {
		{REQUEST_READ, 0, "READ"},
		{REQUEST_WRITE, 0, "WRITE"},
		{REQUEST_WRITE, REQUEST_PREFLUSH, "WRITE+PREFLUSH"},
		{REQUEST_WRITE, REQUEST_PREFLUSH | REQUEST_FUA | REQUEST_BARRIER, "WRITE+BARRIER"},
		{REQUEST_FLUSH, 0, "FLUSH"},
		{REQUEST_FLUSH, REQUEST_BARRIER, "FLUSH+BARRIER"},
		{REQUEST_DISCARD, 0, "DISCARD"},
		{REQUEST_DISCARD, REQUEST_SECURE, "DISCARD+SECURE"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].op == decoded->op && names[i].flags == decoded->flags)
			return names[i].name;
	return "?";
}

static void request_check(const struct vector *vector)
{
	char text[160], segments[256] = "";
	const struct blkif_offer offer = {vector->barrier, vector->max_indirect};
	struct blkif_request decoded;
	int err;

	memset(&decoded, 0x5a, sizeof(decoded));
	err = blkif_decode(vector->abi, &offer, vector->slot, &decoded);
	if (err) {
		snprintf(text, sizeof(text), "%s id=%" PRIx64 " op=%u",
			 err == -EINVAL	      ? "-EINVAL"
			 : err == -EOPNOTSUPP ? "-EOPNOTSUPP"
					      : "?",
			 decoded.id, decoded.operation);
	} else {
		snprintf(text, sizeof(text),
			 "ok %s id=%" PRIx64 " op=%u offset=%" PRIu64 " len=%" PRIu64,
			 op_name(&decoded), decoded.id, decoded.operation, decoded.offset_bytes,
			 decoded.len_bytes);
		if (decoded.nr_indirect_pages)
			snprintf(segments, sizeof(segments), "%u in", decoded.nr_segments);
		for (unsigned i = 0; i < decoded.nr_indirect_pages; i++) {
			size_t len = strlen(segments);

			snprintf(segments + len, sizeof(segments) - len, " %u",
				 decoded.indirect_grefs[i]);
		}
		for (unsigned i = 0; i < decoded.nr_segments && !decoded.nr_indirect_pages; i++) {
			size_t len = strlen(segments);

			snprintf(segments + len, sizeof(segments) - len, "%s%u:%u-%u", i ? " " : "",
				 decoded.segments[i].gref, decoded.segments[i].first_sector,
				 decoded.segments[i].last_sector);
		}
	}
	if (strcmp(text, vector->expect) || strcmp(segments, vector->segments))
		fail_msg("%s: decoded as \"%s\" [%s], should be \"%s\" [%s]", vector->name, text,
			 segments, vector->expect, vector->segments);
}

static void requests(void **state)
{
	(void)state;
	assert_true(vectors_run("blkif-requests.txt", request_check) >= 60);
}

static void response_check(const struct vector *vector)
{
	static uint8_t page[XEN_PAGE_SIZE] __attribute__((aligned(4096)));
	uint8_t *slot = page + BLKIF_RING_HEADER_BYTES + vector->abi->slot_bytes;
	struct blkif_ring ring;
	unsigned operation;
	uint64_t id;
	int status;

	assert_int_equal(sscanf(vector->put, "%" SCNx64 " %u %d", &id, &operation, &status), 3);
	memset(page, 0xa5, sizeof(page));
	blkif_ring_init(&ring, vector->abi, page, 0);
	ring.rsp_prod_pvt = ring.rsp_prod = 33; /* slot 1, so that a write before it would show */
	blkif_ring_put(&ring, id, (uint8_t)operation, (int16_t)status);
	if (memcmp(slot, vector->slot, vector->nr_bytes))
		for (unsigned i = 0; i < vector->nr_bytes; i++)
			if (slot[i] != vector->slot[i])
				fail_msg("%s: byte %u is %02x, should be %02x", vector->name, i,
					 slot[i], vector->slot[i]);
	/* Nothing but this slot was touched, the indices included. */
	for (uint8_t *at = page; at < page + sizeof(page); at++)
		if ((at < slot || at >= slot + vector->nr_bytes) && *at != 0xa5)
			fail_msg("%s: byte %ld of the page was written", vector->name,
				 (long)(at - page));
	assert_int_equal(ring.rsp_prod_pvt, 34);
}

static void responses(void **state)
{
	(void)state;
	assert_true(vectors_run("blkif-responses.txt", response_check) >= 7);
}

/* Each operation and value of byte 1 there is. Byte 1 counts segments: READ and WRITE have 1-11, FLUSH and
 * an offered WRITE_BARRIER 0-11 (R04, R05); is a flag of DISCARD, of which any other bit means nothing; and
 * is the operation inside of INDIRECT: READ or WRITE, of 1 segment here. What is not offered or unknown is
 * unsupported (R12). id and operation come back in every case, for the answer; of INDIRECT the one inside
 * (Linux drivers/block/xen-blkfront.c blkif_interrupt()). */
static int operation_result(unsigned op, unsigned byte1, const struct blkif_offer *offer)
{
	switch (op) {
	case 0:
	case 1:
		return byte1 >= 1 && byte1 <= 11 ? 0 : -EINVAL;
	case 2:
		if (!offer->barrier)
			return -EOPNOTSUPP;
		return byte1 <= 11 ? 0 : -EINVAL;
	case 3:
		return byte1 <= 11 ? 0 : -EINVAL;
	case 5:
		return 0;
	case 6:
		if (!offer->max_indirect)
			return -EOPNOTSUPP;
		return byte1 <= 1 ? 0 : -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
}

static void every_operation_and_byte1(void **state)
{
	static const struct blkif_offer offers[] = {{false, 0}, {true, 0}, {false, 256}, {true, 1}};

	(void)state;
	for (size_t i = 0; i < 3 * 4 * 256 * 256; i++) {
		const struct blkif_abi *abi = abis[i % 3];
		const struct blkif_offer *offer = &offers[i / 3 % 4];
		unsigned op = i / 12 % 256, byte1 = (unsigned)(i / 12 / 256);
		uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};
		struct blkif_request decoded;

		slot[BLKIF_OFF_OPERATION] = (uint8_t)op;
		slot[1] = (uint8_t)byte1;
		slot[2] = 1; /* of INDIRECT: one segment */
		blkif_put64(slot, abi->off_id, 0xfedcba9876543210ull);
		assert_int_equal(blkif_decode(abi, offer, slot, &decoded),
				 operation_result(op, byte1, offer));
		assert_int_equal(decoded.id, 0xfedcba9876543210ull);
		assert_int_equal(decoded.operation, op == 6 ? byte1 : op);
	}
}

/* Each count that the 16 bits of INDIRECT can say (R16): 1 to what was offered, in as few pages of 512 as
 * hold them (blkif.h). */
static void every_indirect_count(void **state)
{
	static const unsigned offered[] = {1, 32, 256, 511, 512, 513, 4095, 4096};

	(void)state;
	for (size_t i = 0; i < sizeof(offered) / sizeof(offered[0]) * 3; i++)
		for (unsigned nr = 0; nr <= UINT16_MAX; nr++) {
			const struct blkif_offer offer = {false, offered[i / 3]};
			const struct blkif_abi *abi = abis[i % 3];
			uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {BLKIF_INDIRECT, BLKIF_WRITE};
			bool good = nr >= 1 && nr <= offer.max_indirect;
			struct blkif_request decoded;

			blkif_put16(slot, 2, (uint16_t)nr);
			for (unsigned page = 0; page < 8; page++)
				blkif_put32(slot, abi->off_indirect_grefs + page * 4, 100 + page);
			assert_int_equal(blkif_decode(abi, &offer, slot, &decoded),
					 good ? 0 : -EINVAL);
			assert_int_equal(decoded.nr_segments, nr);
			if (!good)
				continue;
			assert_int_equal(decoded.nr_indirect_pages,
					 nr <= 512 ? 1 : nr / 512 + !!(nr % 512));
			for (unsigned page = 0; page < decoded.nr_indirect_pages; page++)
				assert_int_equal(decoded.indirect_grefs[page], 100 + page);
		}
}

/* A table as long as eight pages: segments in order, and the first that is bad spoils it. */
static void segment_tables(void **state)
{
	static uint8_t table[BLKIF_MAX_INDIRECT_SEGMENTS * BLKIF_SEGMENT_BYTES];
	static struct blkif_segment segments[BLKIF_MAX_INDIRECT_SEGMENTS];
	static const unsigned bad[] = {0, 1, 511, 512, 513, 4095};
	uint64_t len_bytes;

	(void)state;
	for (unsigned i = 0; i < BLKIF_MAX_INDIRECT_SEGMENTS; i++)
		blkif_table_put(table, i, (struct blkif_segment){i * 7, i % 8, 7});
	assert_int_equal(blkif_decode_segments(table, 4096, segments, &len_bytes), 0);
	for (unsigned i = 0; i < 4096; i++) {
		assert_int_equal(segments[i].gref, i * 7);
		assert_int_equal(segments[i].first_sector, i % 8);
		assert_int_equal(segments[i].last_sector, 7);
	}
	/* 8 + 7 + ... + 1 = 36 sectors in each eight segments. */
	assert_int_equal(len_bytes, 4096 / 8 * 36 * 512);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		blkif_table_put(table, bad[i], (struct blkif_segment){1, 7, 8});
		assert_int_equal(blkif_decode_segments(table, 4096, segments, &len_bytes), -EINVAL);
		assert_int_equal(blkif_decode_segments(table, bad[i], segments, &len_bytes), 0);
		blkif_table_put(table, bad[i], (struct blkif_segment){1, 7, 7});
	}
}

/* Each pair of first and last sector: good if and only if first <= last <= 7 (R06, R07). */
static void every_segment_range(void **state)
{
	(void)state;
	for (unsigned first = 0; first < 256; first++)
		for (unsigned last = 0; last < 256; last++) {
			uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {BLKIF_WRITE, 1};
			bool good = first <= last && last <= 7;
			const struct blkif_offer offer = {false, 0};
			struct blkif_request decoded;

			blkif_put_segment(&blkif_abi_x86_64, slot, 0,
					  (struct blkif_segment){9, (uint8_t)first, (uint8_t)last});
			assert_int_equal(blkif_decode(&blkif_abi_x86_64, &offer, slot, &decoded),
					 good ? 0 : -EINVAL);
			if (good)
				assert_int_equal(decoded.len_bytes, (last - first + 1) * 512);
		}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(responses),
		cmocka_unit_test(every_operation_and_byte1),
		cmocka_unit_test(every_indirect_count),
		cmocka_unit_test(segment_tables),
		cmocka_unit_test(every_segment_range),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
