// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Persistent grants over the blkif transport: drivers work on the guest's pages, or on copies where there is
 * no mapping.
 *
 * Owns: nothing. Trusts: include/transport.h (the contract), wire.h (the frontend), blkif.h for persistent
 *   grants. Runs on: the test. Must not know: the disk.
 */
#include "config.h"

#include <errno.h>

#include "backend/clock.h"
#include "tests/unit/blkif-guest.h"
#include "tests/unit/fake-grace.h"
#include "tests/unit/unit.h"

#define START_S 1000

static void connect_keeping(size_t abi, unsigned nr_pages)
{
	struct blkif_ring_params params = guest_params(guest_abis[abi].abi, 0);

	params.persistent_grants = nr_pages;
	params.max_indirect = 32;
	memset(&fake_grace, 0, sizeof(fake_grace));
	clock_set_fake(START_S * NSEC_PER_SEC);
	guest_connect(abi, &params);
}

/* Nothing is copied in either direction, and nothing is mapped twice. */
static void no_copies(void **state)
{
	const struct wire_segment segments[] = {{100, 2, 5}, {101, 0, 7}};
	const struct shape shape = {2, {{100, 2, 5}, {101, 0, 7}}};

	(void)state;
	for (size_t abi = 0; abi < GUEST_ABIS; abi++) {
		unsigned nr_map_calls;

		connect_keeping(abi, 100);
		nr_map_calls = guest.fake.nr_map_calls;
		assert_false(guest.transport->untidy);
		for (unsigned round = 0; round < 20; round++) {
			struct request_list batch;
			struct request *request;

			memset(fake_page(&guest.fake, 100), 0xa5, 2 * XEN_PAGE_SIZE);
			shape_fill(&shape, round);
			guest_put(1, 1, 0, 2, segments);
			assert_int_equal(guest_pop_all(&batch), 1);
			request = TAILQ_FIRST(&batch);
			guest.transport->ops->resolve(guest.transport, &batch);
			guest.transport->ops->load(guest.transport, &batch);
			assert_int_equal(request->status, 0);
			assert_ptr_equal(request->iov[0].iov_base,
					 fake_page(&guest.fake, 100) + 1024);
			assert_int_equal(request->len_bytes, 2048 + 4096);
			iov_check(request, round);
			guest_respond_all(&batch);

			memset(fake_page(&guest.fake, 100), 0xa5, 2 * XEN_PAGE_SIZE);
			guest_put(0, 2, 0, 2, segments);
			assert_int_equal(guest_pop_all(&batch), 1);
			iov_fill(TAILQ_FIRST(&batch), round + 1);
			guest.transport->ops->store(guest.transport, &batch);
			guest_respond_all(&batch);
			shape_check(&shape, round + 1);
			guest_answer_expect(1, 1, 0);
			guest_answer_expect(2, 0, 0);
		}
		assert_int_equal(guest.fake.nr_copy_calls, 0);
		assert_int_equal(guest.fake.nr_map_calls, nr_map_calls + 2);
		assert_true(guest.transport->untidy);
		guest_disconnect();
		assert_int_equal(fake_grace.nr_waits, 1);
	}
}

/* The table is copied, the data is not. */
static void indirect(void **state)
{
	struct wire_indirect entry = {.operation = 1, .nr_segments = 20, .id = 1, .grefs = {40}};
	struct request_list batch;
	struct request *request;

	(void)state;
	connect_keeping(1, 100);
	for (unsigned i = 0; i < 20; i++)
		guest.wire->table_put(fake_page(&guest.fake, 40), i,
				      (struct wire_segment){200 + 2 * i, 0, 7});
	guest.wire->front_put_indirect(&guest.front, &entry);
	assert_int_equal(guest_pop_all(&batch), 1);
	request = TAILQ_FIRST(&batch);
	guest.transport->ops->resolve(guest.transport, &batch);
	guest.transport->ops->load(guest.transport, &batch);
	assert_int_equal(guest.fake.nr_copy_calls, 1);
	assert_int_equal(request->nr_iov, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_ptr_equal(request->iov[i].iov_base, fake_page(&guest.fake, 200 + 2 * i));
	assert_true(guest.transport->untidy);
	guest_respond_all(&batch);
	/* Refused before its table was looked at, and with a table that is bad: nothing stays pinned. */
	guest.wire->front_put_indirect(&guest.front, &entry);
	assert_int_equal(guest_pop_all(&batch), 1);
	TAILQ_FIRST(&batch)->status = -EROFS;
	guest_respond_all(&batch);
	guest.wire->table_put(fake_page(&guest.fake, 40), 19, (struct wire_segment){1, 9, 9});
	guest.wire->front_put_indirect(&guest.front, &entry);
	assert_int_equal(guest_pop_all(&batch), 1);
	guest.transport->ops->resolve(guest.transport, &batch);
	assert_int_equal(TAILQ_FIRST(&batch)->status, -EINVAL);
	guest_respond_all(&batch);
	guest.transport->ops->disconnect(guest.transport);
	assert_int_equal(guest.fake.nr_mapped, 0);
	guest_disconnect();
}

/* Few pages, many references, maps that fail (G08): each request's data is right however its segments came,
 * and never more is mapped than agreed. */
static void mapped_and_copied(void **state)
{
	uint32_t seed = 17;

	(void)state;
	for (unsigned nr_pages = 1; nr_pages <= 200; nr_pages = nr_pages * 3 + 1) {
		connect_keeping(0, nr_pages);
		for (uint64_t round = 0; round < 300; round++) {
			unsigned nr = 1 + random_next(&seed) % 8;
			struct request_list batch;
			struct request *request;
			struct shape shapes[8];
			uint32_t gref = 64 + random_next(&seed) % 200;

			for (unsigned n = 0; n < nr; n++) {
				shapes[n].nr = 1 + random_next(&seed) % WIRE_MAX_SEGMENTS;
				for (unsigned i = 0; i < shapes[n].nr; i++, gref++) {
					shapes[n].segments[i] = (struct wire_segment){
						gref, (uint8_t)(random_next(&seed) % 4),
						(uint8_t)(4 + random_next(&seed) % 4)};
					memset(fake_page(&guest.fake, gref), 0xa5, XEN_PAGE_SIZE);
				}
				if (n & 1)
					shape_fill(&shapes[n], n);
				guest_put(n & 1, n, 0, shapes[n].nr, shapes[n].segments);
			}
			fake_grace.over |= random_next(&seed) & 1;
			guest.fake.fail_map = guest.fake.nr_map_calls + random_next(&seed) % 8;
			assert_int_equal(guest_pop_all(&batch), nr);
			assert_true(guest.fake.nr_mapped <= nr_pages + 1); /* and the ring */
			guest.transport->ops->load(guest.transport, &batch);
			for (unsigned n = 0; n < nr; n++)
				if (n & 1)
					iov_check(guest_nth(&batch, n), n);
				else
					iov_fill(guest_nth(&batch, n), n);
			guest.transport->ops->store(guest.transport, &batch);
			TAILQ_FOREACH(request, &batch, link)
				assert_int_equal(request->status, 0);
			for (unsigned n = 0; n < nr; n++)
				shape_check(&shapes[n], n);
			guest_respond_all(&batch);
			for (unsigned n = 0; n < nr; n++)
				guest_answer_expect(n, n & 1, 0);
		}
		assert_true(guest.fake.nr_copy_calls > 0);
		guest_disconnect();
		guest.fake.fail_map = 0;
	}
}

/* A reference that can be neither mapped nor copied fails its own request only (G01, G02). */
static void bad_reference(void **state)
{
	const struct wire_segment good = {100, 0, 7}, bad[2] = {{101, 0, 7}, {102, 0, 7}};
	struct request_list batch;

	(void)state;
	connect_keeping(0, 100);
	guest.fake.revoked[102] = true;
	guest_put(1, 1, 0, 1, &good);
	guest_put(1, 2, 0, 2, bad);
	guest_put(0, 3, 0, 2, bad);
	assert_int_equal(guest_pop_all(&batch), 3);
	guest.transport->ops->load(guest.transport, &batch);
	assert_int_equal(guest_nth(&batch, 1)->status, -EFAULT);
	guest.transport->ops->store(guest.transport, &batch);
	guest_respond_all(&batch);
	guest_answer_expect(1, 1, 0);
	guest_answer_expect(2, 1, -1);
	guest_answer_expect(3, 0, -1);
	guest_disconnect();
}

/* transport.h: tidy() until nothing is mapped any more; then again when something is. */
static void tidy(void **state)
{
	const struct wire_segment segment = {100, 0, 7};
	struct request_list batch;

	(void)state;
	connect_keeping(0, 100);
	for (unsigned round = 0; round < 2; round++) {
		unsigned start_s = START_S + 1000 * round;

		clock_set_fake(start_s * NSEC_PER_SEC);
		guest_put(1, 1, 0, 1, &segment);
		assert_int_equal(guest_pop_all(&batch), 1);
		assert_true(guest.transport->untidy);
		guest_respond_all(&batch);
		clock_set_fake((start_s + 60) * NSEC_PER_SEC);
		assert_true(guest.transport->ops->tidy(guest.transport));
		assert_int_equal(guest.fake.nr_maps[100], 1);
		fake_grace.over = true;
		assert_false(guest.transport->ops->tidy(guest.transport));
		assert_false(guest.transport->untidy);
		assert_int_equal(guest.fake.nr_maps[100], 0);
	}
	guest_disconnect();
}

/* transport.h: pages that a driver works on stay until free(), all else goes at once. */
static void disconnect_with_io_in_flight(void **state)
{
	const struct wire_segment idle = {100, 0, 7}, in_flight[2] = {{101, 0, 7}, {102, 0, 7}};
	struct request_list batch;
	struct request *request;

	(void)state;
	connect_keeping(0, 100);
	guest_put(1, 1, 0, 1, &idle);
	assert_int_equal(guest_pop_all(&batch), 1);
	guest_respond_all(&batch);
	guest_put(0, 2, 0, 2, in_flight);
	assert_int_equal(guest_pop_all(&batch), 1);
	request = TAILQ_FIRST(&batch);
	for (unsigned i = 0; i < 3; i++)
		guest.transport->ops->disconnect(guest.transport);
	assert_int_equal(fake_grace.nr_waits, 1);
	assert_int_equal(guest.fake.nr_bound, 0);
	assert_int_equal(guest.fake.nr_mapped, 2);
	assert_int_equal(guest.fake.nr_maps[101], 1);
	assert_int_equal(guest.fake.nr_maps[102], 1);
	memset(request->iov[0].iov_base, 0x77, request->iov[0].iov_len);
	guest_disconnect(); /* tear_down checks that nothing is left */
	assert_int_equal(fake_grace.nr_waits, 2);
}

/* G03: clean-up after failures leaks nothing. */
static void reconnects_with_failing_maps(void **state)
{
	const struct wire_segment segments[2] = {{100, 0, 7}, {101, 0, 7}};
	struct request_list batch;

	(void)state;
	for (unsigned round = 0; round < 1000; round++) {
		connect_keeping(0, 100);
		if (round % 10 == 0)
			guest.fake.fail_map = guest.fake.nr_map_calls + 1 + round / 10 % 2;
		guest_put(0, round, 0, 2, segments);
		assert_int_equal(guest_pop_all(&batch), 1);
		guest.transport->ops->store(guest.transport, &batch);
		assert_int_equal(TAILQ_FIRST(&batch)->status, 0);
		guest_respond_all(&batch);
		guest_answer_expect(round, 0, 0);
		guest_disconnect();
		assert_int_equal(guest.fake.nr_mapped, 0);
	}
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, guest_set_up, guest_tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(no_copies),
		CASE(indirect),
		CASE(mapped_and_copied),
		CASE(bad_reference),
		CASE(tidy),
		CASE(disconnect_with_io_in_flight),
		CASE(reconnects_with_failing_maps),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
