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

static const char *op_name(const struct blkif_request *decoded)
{
	switch (decoded->op) {
	case REQUEST_READ:
		return decoded->flags ? "READ+?" : "READ";
	case REQUEST_WRITE:
		return decoded->flags == REQUEST_PREFLUSH ? "WRITE+PREFLUSH"
		       : decoded->flags			  ? "WRITE+?"
							  : "WRITE";
	case REQUEST_FLUSH:
		return decoded->flags ? "FLUSH+?" : "FLUSH";
	case REQUEST_DISCARD:
	case REQUEST_OPS:
		break;
	}
	return "?";
}

static void request_check(const struct vector *vector)
{
	char text[160], segments[256] = "";
	struct blkif_request decoded;
	int err;

	memset(&decoded, 0x5a, sizeof(decoded));
	err = blkif_decode(vector->abi, vector->slot, &decoded);
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
		for (unsigned i = 0; i < decoded.nr_segments; i++) {
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
	assert_true(vectors_run("blkif-requests.txt", request_check) >= 30);
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

/* Each operation and segment count there is: only READ, WRITE and FLUSH are known (R12), with 1-11, 1-11
 * and 0-11 segments (R04, R05); id and operation come back in every case, for the answer. */
static void every_operation_and_count(void **state)
{
	static const struct blkif_abi *const abis[] = {&blkif_abi_x86_64, &blkif_abi_x86_32,
						       &blkif_abi_arm};

	(void)state;
	for (size_t abi = 0; abi < 3; abi++)
		for (unsigned op = 0; op < 256; op++)
			for (unsigned nr = 0; nr < 256; nr++) {
				uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};
				bool known = op == 0 || op == 1 || op == 3;
				bool good = nr <= 11 && (nr || op == 3);
				struct blkif_request decoded;

				slot[BLKIF_OFF_OPERATION] = (uint8_t)op;
				slot[BLKIF_OFF_NR_SEGMENTS] = (uint8_t)nr;
				blkif_put64(slot, abis[abi]->off_id, 0xfedcba9876543210ull);
				assert_int_equal(blkif_decode(abis[abi], slot, &decoded),
						 !known ? -EOPNOTSUPP
						 : good ? 0
							: -EINVAL);
				assert_int_equal(decoded.id, 0xfedcba9876543210ull);
				assert_int_equal(decoded.operation, op);
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
			struct blkif_request decoded;

			blkif_put_segment(&blkif_abi_x86_64, slot, 0,
					  (struct blkif_segment){9, (uint8_t)first, (uint8_t)last});
			assert_int_equal(blkif_decode(&blkif_abi_x86_64, slot, &decoded),
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
		cmocka_unit_test(every_operation_and_count),
		cmocka_unit_test(every_segment_range),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
