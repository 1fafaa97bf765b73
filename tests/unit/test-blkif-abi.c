// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The offset tables of backend/blkif-abi.h against Xen's own public headers.
 *
 * Owns: nothing. Trusts: xen/io/blkif.h, ring.h and protocols.h (through wire.h). Runs on: the test.
 * Must not know: the ring, the decoder.
 */
#include "config.h"

#include <xen/io/protocols.h>

#include "backend/blkif-abi.h"
#include "tests/unit/unit.h"
#include "tests/unit/wire.h"
#include "xen-ops.h"

static void layout_check(const struct blkif_abi *abi, const struct wire *wire)
{
	assert_int_equal(abi->slot_bytes, wire->bytes.slot);
	assert_int_equal(abi->off_id, wire->request.id);
	assert_int_equal(abi->off_sector, wire->request.sector);
	assert_int_equal(abi->off_segments, wire->request.segments);
	/* What blkif-abi.h says is the same in all layouts. */
	assert_int_equal(BLKIF_OFF_OPERATION, wire->request.operation);
	assert_int_equal(BLKIF_OFF_NR_SEGMENTS, wire->request.nr_segments);
	assert_int_equal(BLKIF_OFF_HANDLE, wire->request.handle);
	assert_int_equal(BLKIF_OFF_RSP_ID, wire->response.id);
	assert_int_equal(BLKIF_OFF_RSP_OPERATION, wire->response.operation);
	assert_int_equal(BLKIF_OFF_RSP_STATUS, wire->response.status);
	assert_int_equal(BLKIF_OFF_DISCARD_FLAG, wire->discard.flag);
	assert_int_equal(BLKIF_DISCARD_SECURE, wire->discard_secure);
	assert_int_equal(abi->off_id, wire->discard.id);
	assert_int_equal(abi->off_sector, wire->discard.sector);
	assert_int_equal(abi->off_nr_sectors, wire->discard.nr_sectors);
	assert_int_equal(BLKIF_OFF_INDIRECT_OP, wire->indirect.operation);
	assert_int_equal(BLKIF_OFF_INDIRECT_NR_SEGMENTS, wire->indirect.nr_segments);
	assert_int_equal(abi->off_id, wire->indirect.id);
	assert_int_equal(abi->off_sector, wire->indirect.sector);
	assert_int_equal(abi->off_indirect_grefs, wire->indirect.grefs);
	assert_int_equal(BLKIF_MAX_INDIRECT_PAGES, wire->max_indirect_pages);
	assert_int_equal(BLKIF_SEGMENTS_PER_INDIRECT_PAGE, XEN_PAGE_SIZE / wire->bytes.segment);
	assert_int_equal(BLKIF_SEGMENT_BYTES, wire->bytes.segment);
	assert_int_equal(BLKIF_MAX_SEGMENTS, wire->max_segments);
	assert_int_equal(BLKIF_RING_HEADER_BYTES, wire->header.slots);
	assert_true(abi->slot_bytes <= BLKIF_SLOT_BYTES_MAX);
	/* The ring copies slots word by word. */
	assert_int_equal(abi->slot_bytes % 4, 0);
	/* Our answer is written over the first bytes of a slot only. */
	assert_true(BLKIF_RESPONSE_BYTES <= wire->bytes.response);
}

static void offsets_match_the_public_header(void **state)
{
	(void)state;
	layout_check(&blkif_abi_x86_64, &wire_x86_64);
	layout_check(&blkif_abi_x86_32, &wire_x86_32);
	/* arm-abi is the native layout of a machine with 8-byte aligned u64, as x86_64's. */
	layout_check(&blkif_abi_arm, &wire_x86_64);
}

/* Figures that xen-blkback and every frontend rely on, spelled out (blkif.h, sizes of the structs). */
static void slot_strides(void **state)
{
	(void)state;
	assert_int_equal(wire_x86_64.bytes.slot, 112);
	assert_int_equal(wire_x86_32.bytes.slot, 108);
	assert_int_equal(wire_x86_64.bytes.response, 16);
	assert_int_equal(wire_x86_32.bytes.response, 12);
}

static void slot_counts_match_ring_h(void **state)
{
	static uint8_t shared[XEN_PAGE_SIZE << BLKIF_RING_ORDER_MAX] __attribute__((aligned(4096)));
	static const struct {
		const struct blkif_abi *abi;
		const struct wire *wire;
	} rows[] = {{&blkif_abi_x86_64, &wire_x86_64},
		    {&blkif_abi_x86_32, &wire_x86_32},
		    {&blkif_abi_arm, &wire_x86_64}};

	(void)state;
	assert_int_equal(BLKIF_RING_ORDER_MAX + 1, WIRE_ORDERS);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned order = 0; order <= BLKIF_RING_ORDER_MAX; order++) {
			unsigned nr = blkif_abi_nr_slots(rows[i].abi, order);

			assert_int_equal(nr, rows[i].wire->nr_slots_const[order]);
			assert_int_equal(nr,
					 rows[i].wire->nr_slots(shared, XEN_PAGE_SIZE << order));
			assert_int_equal(nr, 32u << order);
			/* The last slot ends within the pages. */
			assert_true(BLKIF_RING_HEADER_BYTES + nr * rows[i].abi->slot_bytes <=
				    XEN_PAGE_SIZE << order);
		}
}

static void protocol_names(void **state)
{
	(void)state;
	assert_ptr_equal(blkif_abi_find(XEN_IO_PROTO_ABI_X86_64), &blkif_abi_x86_64);
	assert_ptr_equal(blkif_abi_find(XEN_IO_PROTO_ABI_X86_32), &blkif_abi_x86_32);
	assert_ptr_equal(blkif_abi_find(XEN_IO_PROTO_ABI_ARM), &blkif_abi_arm);
	assert_string_equal(blkif_abi_x86_64.protocol, XEN_IO_PROTO_ABI_X86_64);
	assert_string_equal(blkif_abi_x86_32.protocol, XEN_IO_PROTO_ABI_X86_32);
	assert_string_equal(blkif_abi_arm.protocol, XEN_IO_PROTO_ABI_ARM);
	/* An unknown protocol is refused, never guessed at (R11). */
	assert_null(blkif_abi_find("foo"));
	assert_null(blkif_abi_find(""));
	assert_null(blkif_abi_find("x86_64-abi "));
	assert_null(blkif_abi_find("X86_64-ABI"));
}

/* No node: xen-blkback's BLKIF_PROTOCOL_DEFAULT and QEMU take x86_32 on x86; arm has one layout. */
static void protocol_default(void **state)
{
	(void)state;
#if defined(__arm__) || defined(__aarch64__)
	assert_ptr_equal(blkif_abi_find(NULL), &blkif_abi_arm);
#else
	assert_ptr_equal(blkif_abi_find(NULL), &blkif_abi_x86_32);
#endif
}

/* What the header's struct holds is what the accessors read, and the other way round. */
static void accessors_agree_with_structs(void **state)
{
	static const struct {
		const struct blkif_abi *abi;
		const struct wire *wire;
	} rows[] = {{&blkif_abi_x86_64, &wire_x86_64}, {&blkif_abi_x86_32, &wire_x86_32}};
	static uint8_t shared[XEN_PAGE_SIZE] __attribute__((aligned(4096)));
	struct wire_request request = {
		.operation = 1,
		.nr_segments = WIRE_MAX_SEGMENTS,
		.handle = 0xcafe,
		.id = 0x1122334455667788ull,
		.sector = 0x99aabbccddeeff01ull,
	};

	(void)state;
	for (unsigned i = 0; i < WIRE_MAX_SEGMENTS; i++)
		request.segments[i] =
			(struct wire_segment){0xf0000000u + i, (uint8_t)i, (uint8_t)(0x80 + i)};
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		const struct blkif_abi *abi = rows[row].abi;
		const uint8_t *slot = shared + BLKIF_RING_HEADER_BYTES;
		uint8_t copy[BLKIF_SLOT_BYTES_MAX] = {0};
		struct wire_ring front;

		memset(shared, 0, sizeof(shared));
		rows[row].wire->front_init(&front, shared, sizeof(shared), 0);
		rows[row].wire->front_put(&front, &request);
		assert_int_equal(slot[BLKIF_OFF_OPERATION], request.operation);
		assert_int_equal(slot[BLKIF_OFF_NR_SEGMENTS], request.nr_segments);
		assert_int_equal(blkif_get16(slot, BLKIF_OFF_HANDLE), request.handle);
		assert_int_equal(blkif_get64(slot, abi->off_id), request.id);
		assert_int_equal(blkif_get64(slot, abi->off_sector), request.sector);
		copy[BLKIF_OFF_OPERATION] = request.operation;
		copy[BLKIF_OFF_NR_SEGMENTS] = request.nr_segments;
		blkif_put16(copy, BLKIF_OFF_HANDLE, request.handle);
		blkif_put64(copy, abi->off_id, request.id);
		blkif_put64(copy, abi->off_sector, request.sector);
		for (unsigned i = 0; i < WIRE_MAX_SEGMENTS; i++) {
			struct blkif_segment segment = blkif_get_segment(abi, slot, i);

			assert_int_equal(segment.gref, request.segments[i].gref);
			assert_int_equal(segment.first_sector, request.segments[i].first);
			assert_int_equal(segment.last_sector, request.segments[i].last);
			blkif_put_segment(abi, copy, i, segment);
		}
		assert_memory_equal(copy, slot, rows[row].wire->bytes.request);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(offsets_match_the_public_header),
		cmocka_unit_test(slot_strides),
		cmocka_unit_test(slot_counts_match_ring_h),
		cmocka_unit_test(protocol_names),
		cmocka_unit_test(protocol_default),
		cmocka_unit_test(accessors_agree_with_structs),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
