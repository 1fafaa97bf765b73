// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The frontend's end of a ring: slot layouts byte for byte, and index arithmetic against the backend's end.
 *
 * Owns: golden slots, written by hand from blkif.h. Trusts: backend/blkif-ring.c as the other end.
 * Runs on: the test. Must not know: grants, events.
 */
#include "config.h"

#include <errno.h>

#include "backend/blkif-ring.h"
#include "loopback/front-ring.h"
#include "tests/unit/unit.h"
#include "xen-ops.h"

static uint8_t shared[XEN_PAGE_SIZE << BLKIF_RING_ORDER_MAX] __attribute__((aligned(4096)));

/* ---- Layouts ------------------------------------------------------------------------------------ */

/* blkif.h, struct blkif_request, u64 aligned to 8 (x86_64, arm):
 *   operation u8 @0, nr_segments u8 @1, handle u16 @2, [4 bytes padding], id u64 @8,
 *   sector_number u64 @16, seg[] @24: gref u32, first_sect u8, last_sect u8, [2 bytes padding] */
static const uint8_t write_64[] = {
	0x01, 0x02, 0x34, 0x12, 0xee, 0xee, 0xee, 0xee, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
	0x22, 0x11, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0xdd, 0xcc, 0xbb, 0xaa,
	0x00, 0x07, 0xee, 0xee, 0x0d, 0x0c, 0x0b, 0x0a, 0x03, 0x04, 0xee, 0xee,
};
/* The same with u64 aligned to 4 (x86_32): id @4, sector_number @12, seg[] @20. */
static const uint8_t write_32[] = {
	0x01, 0x02, 0x34, 0x12, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0xdd, 0xcc, 0xbb, 0xaa,
	0x00, 0x07, 0xee, 0xee, 0x0d, 0x0c, 0x0b, 0x0a, 0x03, 0x04, 0xee, 0xee,
};
/* struct blkif_request_discard: flag u8 @1, handle @2, id, sector_number, nr_sectors u64. */
static const uint8_t discard_64[] = {
	0x05, 0x01, 0x00, 0x00, 0xee, 0xee, 0xee, 0xee, 0x88, 0x77, 0x66,
	0x55, 0x44, 0x33, 0x22, 0x11, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03,
	0x02, 0x01, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
};
static const uint8_t discard_32[] = {
	0x05, 0x01, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x08, 0x07,
	0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
};
/* struct blkif_request_indirect: indirect_op u8 @1, nr_segments u16 @2, id, sector_number, handle u16,
 * [2 bytes padding], indirect_grefs u32[8]. */
static const uint8_t indirect_64[] = {
	0x06, 0x01, 0x01, 0x02, 0xee, 0xee, 0xee, 0xee, 0x88, 0x77, 0x66,
	0x55, 0x44, 0x33, 0x22, 0x11, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03,
	0x02, 0x01, 0x00, 0x00, 0xee, 0xee, 0xdd, 0xcc, 0xbb, 0xaa,
};
static const uint8_t indirect_32[] = {
	0x06, 0x01, 0x01, 0x02, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x08, 0x07,
	0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x00, 0x00, 0xee, 0xee, 0xdd, 0xcc, 0xbb, 0xaa,
};

#define ID 0x1122334455667788ull
#define SECTOR 0x0102030405060708ull

static void slot_is(const uint8_t *slot, const uint8_t *golden, size_t size)
{
	assert_memory_equal(slot, golden, size);
	for (size_t i = size; i < BLKIF_SLOT_BYTES_MAX; i++)
		assert_int_equal(slot[i], 0xee);
}

static void layouts(void **state)
{
	static const struct {
		const struct blkif_abi *abi;
		const uint8_t *write, *discard, *indirect;
		size_t write_size, discard_size, indirect_size;
	} cases[] = {
		{&blkif_abi_x86_64, write_64, discard_64, indirect_64, sizeof(write_64),
		 sizeof(discard_64), sizeof(indirect_64)},
		{&blkif_abi_arm, write_64, discard_64, indirect_64, sizeof(write_64),
		 sizeof(discard_64), sizeof(indirect_64)},
		{&blkif_abi_x86_32, write_32, discard_32, indirect_32, sizeof(write_32),
		 sizeof(discard_32), sizeof(indirect_32)},
	};
	const struct front_request request = {
		.operation = BLKIF_WRITE,
		.nr_segments = 2,
		.handle = 0x1234,
		.id = ID,
		.sector = SECTOR,
		.segments = {{0xaabbccdd, 0, 7}, {0x0a0b0c0d, 3, 4}},
	};
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(slot, 0xee, sizeof(slot));
		front_request_encode(cases[i].abi, &request, slot);
		slot_is(slot, cases[i].write, cases[i].write_size);
		memset(slot, 0xee, sizeof(slot));
		front_discard_encode(cases[i].abi, ID, 1, SECTOR, 0x1112131415161718ull, slot);
		slot_is(slot, cases[i].discard, cases[i].discard_size);
		memset(slot, 0xee, sizeof(slot));
		front_indirect_encode(cases[i].abi, ID, BLKIF_WRITE, 0x0201, SECTOR, 0xaabbccdd,
				      slot);
		slot_is(slot, cases[i].indirect, cases[i].indirect_size);
	}
}

/* A count beyond the segments there are is written as it is, and nothing behind the slot is. */
static void too_many_segments(void **state)
{
	struct front_request request = {.operation = BLKIF_READ, .nr_segments = 255};
	uint8_t slot[BLKIF_SLOT_BYTES_MAX + 8];

	(void)state;
	memset(slot, 0xee, sizeof(slot));
	front_request_encode(&blkif_abi_x86_64, &request, slot);
	assert_int_equal(slot[1], 255);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(slot[BLKIF_SLOT_BYTES_MAX + i], 0xee);
}

/* blkif.h, struct blkif_response: id u64 @0, operation u8 @8, status s16 @10 in every layout. */
static void response_layout(void **state)
{
	static const uint8_t golden[] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
					 0x22, 0x11, 0x03, 0xee, 0xfe, 0xff};
	static const struct blkif_abi *const abis[] = {&blkif_abi_x86_64, &blkif_abi_x86_32};
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct front_response response;
		struct front_ring ring;

		memset(shared, 0, sizeof(shared));
		front_ring_init(&ring, abis[i], shared, 0);
		front_ring_put(&ring, slot);
		front_ring_publish(&ring);
		memcpy(shared + 64, golden, sizeof(golden));
		front_ring_poke(&ring, FRONT_OFF_RSP_PROD, 1);
		assert_int_equal(front_ring_take(&ring, &response), 1);
		assert_true(response.id == ID);
		assert_int_equal(response.operation, BLKIF_FLUSH_DISKCACHE);
		assert_int_equal(response.status, BLKIF_STATUS_EOPNOTSUPP);
	}
}

/* ---- Arithmetic --------------------------------------------------------------------------------- */

static const uint32_t starts[] = {0, 0x7ffffffeu, 0xfffffff0u, 0xffffffffu};

static void rings_begin(struct front_ring *front, struct blkif_ring *back,
			const struct blkif_abi *abi, unsigned order, uint32_t start)
{
	memset(shared, 0, sizeof(shared));
	front_ring_init(front, abi, shared, order);
	blkif_ring_init(back, abi, shared, order);
	front->req_prod_pvt = front->req_prod = front->rsp_cons = start;
	back->req_cons = back->rsp_prod_pvt = back->rsp_prod = start;
	front_ring_poke(front, FRONT_OFF_REQ_PROD, start);
	front_ring_poke(front, FRONT_OFF_RSP_PROD, start);
	front_ring_poke(front, FRONT_OFF_REQ_EVENT, start + 1);
	front_ring_poke(front, FRONT_OFF_RSP_EVENT, start + 1);
}

static void request_put(struct front_ring *ring, uint64_t id)
{
	struct front_request request = {.operation = BLKIF_READ, .nr_segments = 1, .id = id};
	uint8_t slot[BLKIF_SLOT_BYTES_MAX] = {0};

	front_request_encode(ring->abi, &request, slot);
	front_ring_put(ring, slot);
}

/* Full rings of every size go round across the index wrap; answers come back in another order. */
static void rounds(void **state)
{
	static const struct blkif_abi *const abis[] = {&blkif_abi_x86_64, &blkif_abi_x86_32,
						       &blkif_abi_arm};

	(void)state;
	for (size_t a = 0; a < 3; a++)
		for (unsigned order = 0; order <= BLKIF_RING_ORDER_MAX; order++)
			for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
				struct front_response response;
				uint8_t slot[BLKIF_SLOT_BYTES_MAX];
				uint64_t ids[512];
				struct front_ring front;
				struct blkif_ring back;

				rings_begin(&front, &back, abis[a], order, starts[s]);
				assert_int_equal(front.nr_slots, 32u << order);
				for (uint64_t round = 0; round < 3; round++) {
					uint32_t nr = 0;

					while (front_ring_nr_free(&front))
						request_put(&front, round << 32 | nr++);
					assert_int_equal(nr, front.nr_slots);
					assert_true(front_ring_publish(&front));
					for (uint32_t i = 0; i < nr; i++) {
						assert_int_equal(blkif_ring_pop(&back, slot), 1);
						ids[i] = blkif_get64(slot, abis[a]->off_id);
						assert_true(ids[i] == (round << 32 | i));
					}
					assert_int_equal(blkif_ring_pop(&back, slot), 0);
					for (uint32_t i = nr; i--;)
						blkif_ring_put(&back, ids[i], BLKIF_READ, 0);
					assert_true(blkif_ring_publish(&back));
					for (uint32_t i = nr; i--;) {
						assert_int_equal(front_ring_take(&front, &response),
								 1);
						assert_true(response.id == ids[i]);
					}
					assert_int_equal(front_ring_take(&front, &response), 0);
					assert_false(front_ring_arm(&front));
					assert_false(blkif_ring_arm(&back));
				}
			}
}

/* More answers than requests: before, at and after the wrap. */
static void too_many_answers(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		struct front_response response;
		struct front_ring front;
		struct blkif_ring back;

		rings_begin(&front, &back, &blkif_abi_x86_64, 0, starts[s]);
		front_ring_poke(&front, FRONT_OFF_RSP_PROD, starts[s] + 1);
		assert_int_equal(front_ring_take(&front, &response), -EPROTO);
		request_put(&front, 1);
		/* Put, but not published: nobody can have answered it. */
		assert_int_equal(front_ring_take(&front, &response), -EPROTO);
		front_ring_publish(&front);
		front_ring_poke(&front, FRONT_OFF_RSP_PROD, starts[s] - 1);
		assert_int_equal(front_ring_take(&front, &response), -EPROTO);
		front_ring_poke(&front, FRONT_OFF_RSP_PROD, starts[s] + 1);
		assert_int_equal(front_ring_take(&front, &response), 1);
	}
}

/* Notified exactly when the new requests step over req_event. */
static void notify_window(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++)
		for (uint32_t event = 0; event <= 6; event++) {
			struct front_ring front;
			struct blkif_ring back;

			rings_begin(&front, &back, &blkif_abi_x86_32, 0, starts[s]);
			assert_false(front_ring_publish(&front));
			front_ring_poke(&front, FRONT_OFF_REQ_EVENT, starts[s] + event);
			for (unsigned i = 0; i < 4; i++)
				request_put(&front, i);
			assert_int_equal(front_ring_publish(&front), event >= 1 && event <= 4);
		}
}

static void arm(void **state)
{
	struct front_response response;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];
	struct front_ring front;
	struct blkif_ring back;

	(void)state;
	rings_begin(&front, &back, &blkif_abi_x86_64, 0, 0xffffffffu);
	request_put(&front, 1);
	request_put(&front, 2);
	front_ring_publish(&front);
	while (blkif_ring_pop(&back, slot) == 1)
		;
	blkif_ring_put(&back, 1, BLKIF_READ, 0);
	assert_true(blkif_ring_publish(&back));
	/* One is there: no sleep. */
	assert_true(front_ring_arm(&front));
	assert_int_equal(front_ring_take(&front, &response), 1);
	assert_false(front_ring_arm(&front));
	assert_int_equal(front_ring_peek(&front, FRONT_OFF_RSP_EVENT), 1);
	blkif_ring_put(&back, 2, BLKIF_READ, 0);
	assert_true(blkif_ring_publish(&back));
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(layouts),
		cmocka_unit_test(too_many_segments),
		cmocka_unit_test(response_layout),
		cmocka_unit_test(rounds),
		cmocka_unit_test(too_many_answers),
		cmocka_unit_test(notify_window),
		cmocka_unit_test(arm),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
