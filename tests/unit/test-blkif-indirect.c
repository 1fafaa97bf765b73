// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Indirect requests over the blkif transport, and the memory of all requests: tables, chunks, exhaustion.
 *
 * Owns: nothing. Trusts: include/transport.h (the contract), wire.h (the frontend), blkif.h for what a table
 *   is; xen-contract.md §4.5 for what is refused. Runs on: the test. Must not know: the disk.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/blkif-guest.h"
#include "tests/unit/unit.h"

#define TABLE_GREF 32 /* request n's first table page is TABLE_GREF + 8 * n */
#define DATA_GREF 1024

static void connect_offering(size_t abi, unsigned order, unsigned max_indirect,
			     size_t data_bytes_max)
{
	struct blkif_ring_params params = guest_params(guest_abis[abi].abi, order);

	params.max_indirect = max_indirect;
	params.data_bytes_max = data_bytes_max;
	guest_connect(abi, &params);
}

static void table_put(uint32_t first_gref, unsigned idx, struct wire_segment segment)
{
	guest.wire->table_put(fake_page(&guest.fake, first_gref + idx / 512), idx % 512, segment);
}

static void indirect_put(uint8_t operation, uint64_t id, unsigned nr_segments, uint32_t table_gref)
{
	struct wire_indirect indirect = {
		.operation = operation,
		.nr_segments = (uint16_t)nr_segments,
		.handle = 0xcafe,
		.id = id,
		.sector = 8,
	};

	for (unsigned i = 0; i < WIRE_MAX_INDIRECT_PAGES; i++)
		indirect.grefs[i] = table_gref + i;
	guest.wire->front_put_indirect(&guest.front, &indirect);
}

/* A table of whole pages @first_gref, @first_gref + 1, ...; each a5. */
static void table_fill(uint32_t table_gref, unsigned nr_segments, uint32_t first_gref)
{
	for (unsigned i = 0; i < nr_segments; i++) {
		table_put(table_gref, i, (struct wire_segment){first_gref + i, 0, 7});
		memset(fake_page(&guest.fake, first_gref + i), 0xa5, XEN_PAGE_SIZE);
	}
}

static void resolve(struct request_list *batch)
{
	guest.transport->ops->resolve(guest.transport, batch);
}

/* Pop the only request. */
static struct request *pop_one(struct request_list *batch)
{
	assert_int_equal(guest_pop_all(batch), 1);
	return TAILQ_FIRST(batch);
}

/* ---- Tables ------------------------------------------------------------------------------------- */

/* Both directions, each layout, the counts around a direct request's most, a chunk's and a table page's
 * (R16): every byte goes to its place; one grant copy for the tables. */
static void data_goes_to_its_place(void **state)
{
	static const unsigned counts[] = {1,   11,  12,	 16,  17,   32,	  255,
					  256, 511, 512, 513, 1024, 1025, 4096};

	(void)state;
	for (size_t abi = 0; abi < GUEST_ABIS; abi++) {
		connect_offering(abi, 0, 4096, 0);
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			unsigned nr = counts[c], nr_calls = guest.fake.nr_copy_calls;
			struct request_list batch;
			struct request *request;

			table_fill(TABLE_GREF, nr, DATA_GREF);
			/* Ends in a part of a page, begins in one. */
			table_put(TABLE_GREF, 0, (struct wire_segment){DATA_GREF, 7, 7});
			if (nr > 1)
				table_put(TABLE_GREF, nr - 1,
					  (struct wire_segment){DATA_GREF + nr - 1, 2, 3});
			indirect_put(0, c, nr, TABLE_GREF);
			request = pop_one(&batch);
			assert_int_equal(request->status, 0);
			assert_int_equal(request->op, REQUEST_READ);
			assert_int_equal(request->offset_bytes, 4096);
			resolve(&batch);
			assert_int_equal(guest.fake.nr_copy_calls, nr_calls + 1);
			assert_int_equal(request->status, 0);
			assert_int_equal(request->len_bytes,
					 nr == 1 ? 512 : 512 + (nr - 2) * 4096 + 1024);
			iov_fill(request, 7);
			guest.transport->ops->store(guest.transport, &batch);
			guest_respond_all(&batch);
			guest_answer_expect(c, 0, 0);
			for (unsigned i = 0; i < 512; i++)
				assert_int_equal(fake_page(&guest.fake, DATA_GREF)[3584 + i],
						 pattern(7, i));
			assert_int_equal(fake_page(&guest.fake, DATA_GREF)[3583], 0xa5);
			for (unsigned i = 0; nr > 2 && i < (nr - 2) * 4096u; i++)
				if (fake_page(&guest.fake, DATA_GREF + 1)[i] != pattern(7, 512 + i))
					fail_msg("%u segments: byte %u differs", nr, i);
			if (nr > 1)
				assert_int_equal(fake_page(&guest.fake, DATA_GREF + nr - 1)[2048],
						 0xa5);

			/* And back: what was read is what a WRITE of the same table brings. */
			indirect_put(1, c, nr, TABLE_GREF);
			request = pop_one(&batch);
			resolve(&batch);
			guest.transport->ops->load(guest.transport, &batch);
			assert_int_equal(request->op, REQUEST_WRITE);
			iov_check(request, 7);
			guest_respond_all(&batch);
			guest_answer_expect(c, 1, 0);
		}
		guest_disconnect();
	}
}

/* Counts that cannot be (R16), what cannot be inside: refused with the operation inside, no grant touched. */
static void refused_entries(void **state)
{
	static const struct {
		uint8_t operation;
		unsigned nr_segments;
	} rows[] = {{0, 0}, {0, 33}, {1, 33}, {1, 65535}, {3, 1}, {5, 1}, {6, 1}, {255, 1}};
	struct request_list batch;

	(void)state;
	connect_offering(1, 0, 32, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		indirect_put(rows[i].operation, i, rows[i].nr_segments, TABLE_GREF);
		assert_int_equal(pop_one(&batch)->status, -EINVAL);
		guest_respond_all(&batch);
		guest_answer_expect(i, rows[i].operation, -1);
	}
	assert_int_equal(guest.fake.nr_copy_calls, 0);
	guest_disconnect();
	/* Nothing was offered (R12). */
	guest_connect_as(0, 0);
	indirect_put(1, 1, 1, TABLE_GREF);
	assert_int_equal(pop_one(&batch)->status, -EOPNOTSUPP);
	guest_respond_all(&batch);
	guest_answer_expect(1, 1, -2);
	guest_disconnect();
}

/* A table that cannot be had, or holds a bad segment, spoils its own request only; plain requests in the
 * batch are not touched. */
static void bad_tables(void **state)
{
	const struct wire_segment good = {100, 0, 7};
	struct request_list batch;

	(void)state;
	connect_offering(0, 0, 1024, SIZE_MAX);
	for (unsigned n = 0; n < 4; n++)
		table_fill(TABLE_GREF + 8 * n, 600, DATA_GREF);
	guest.fake.revoked[TABLE_GREF + 8 + 1] = true; /* the second page of request 1's */
	table_put(TABLE_GREF + 16, 599, (struct wire_segment){DATA_GREF, 0, 8});
	for (unsigned n = 0; n < 4; n++)
		indirect_put(1, n, 600, TABLE_GREF + 8 * n);
	guest_put(1, 4, 0, 1, &good);
	assert_int_equal(guest_pop_all(&batch), 5);
	resolve(&batch);
	assert_int_equal(guest.fake.nr_copy_calls, 1);
	assert_int_equal(guest_nth(&batch, 0)->status, 0);
	assert_int_equal(guest_nth(&batch, 1)->status, -EFAULT);
	assert_int_equal(guest_nth(&batch, 2)->status, -EINVAL);
	assert_int_equal(guest_nth(&batch, 3)->status, 0);
	assert_int_equal(guest_nth(&batch, 4)->status, 0);
	assert_int_equal(guest_nth(&batch, 3)->len_bytes, 600 * 4096);
	guest_respond_all(&batch);
	guest_answer_expect(0, 1, 0);
	guest_answer_expect(1, 1, -1);
	guest_answer_expect(2, 1, -1);
	guest_answer_expect(3, 1, 0);
	guest_answer_expect(4, 1, 0);

	guest.fake.revoked[TABLE_GREF + 8 + 1] = false;
	guest.fake.copy_error = -EPERM;
	indirect_put(0, 5, 1, TABLE_GREF);
	assert_int_equal(pop_one(&batch)->status, 0);
	resolve(&batch);
	assert_int_equal(TAILQ_FIRST(&batch)->status, -EFAULT);
	guest_respond_all(&batch);
	guest_answer_expect(5, 0, -1);
	guest_disconnect();
}

/* The same page as both pages of a table, and as a table twice (R16). */
static void repeated_table_page(void **state)
{
	struct wire_indirect indirect = {.operation = 1,
					 .nr_segments = 513,
					 .id = 1,
					 .sector = 0,
					 .grefs = {TABLE_GREF, TABLE_GREF}};
	struct request_list batch;
	struct request *request;

	(void)state;
	connect_offering(0, 0, 1024, SIZE_MAX);
	table_fill(TABLE_GREF, 512, DATA_GREF);
	for (unsigned i = 0; i < 512; i++)
		memset(fake_page(&guest.fake, DATA_GREF + i), (int)(i & 0xff), XEN_PAGE_SIZE);
	guest.wire->front_put_indirect(&guest.front, &indirect);
	indirect.id = 2;
	guest.wire->front_put_indirect(&guest.front, &indirect);
	assert_int_equal(guest_pop_all(&batch), 2);
	resolve(&batch);
	guest.transport->ops->load(guest.transport, &batch);
	TAILQ_FOREACH(request, &batch, link) {
		size_t at = 0;

		assert_int_equal(request->status, 0);
		assert_int_equal(request->len_bytes, 513 * 4096);
		for (unsigned v = 0; v < request->nr_iov; v++)
			for (size_t i = 0; i < request->iov[v].iov_len; i += 512, at += 512)
				assert_int_equal(((uint8_t *)request->iov[v].iov_base)[i],
						 at / 4096 % 512 & 0xff);
	}
	guest_respond_all(&batch);
	guest_disconnect();
}

static void table_rewrite(struct fake_xen *fake, const struct xen_copy *piece)
{
	if (piece->gref == TABLE_GREF)
		memset(fake_page(fake, TABLE_GREF), 0xff, XEN_PAGE_SIZE);
}

/* XSA-155 in its indirect form (R03): the guest rewrites the table as soon as it was copied. What was checked
 * is what is used: the copy. */
static void table_changes_after_the_copy(void **state)
{
	struct request_list batch;
	struct request *request;

	(void)state;
	connect_offering(0, 0, 64, 0);
	for (unsigned i = 0; i < 64; i++) {
		table_put(TABLE_GREF, i, (struct wire_segment){DATA_GREF + i, 0, 7});
		memset(fake_page(&guest.fake, DATA_GREF + i), (int)i, XEN_PAGE_SIZE);
	}
	guest.fake.after_piece = table_rewrite;
	indirect_put(1, 1, 64, TABLE_GREF);
	request = pop_one(&batch);
	resolve(&batch);
	assert_int_equal(fake_page(&guest.fake, TABLE_GREF)[0], 0xff);
	assert_int_equal(request->status, 0);
	assert_int_equal(request->len_bytes, 64 * 4096);
	guest.transport->ops->load(guest.transport, &batch);
	assert_int_equal(request->status, 0);
	for (unsigned v = 0, at = 0; v < request->nr_iov; v++)
		for (size_t i = 0; i < request->iov[v].iov_len; i++, at++)
			assert_int_equal(((uint8_t *)request->iov[v].iov_base)[i], at / 4096);
	guest_respond_all(&batch);
	guest_disconnect();
}

/* ---- Memory ------------------------------------------------------------------------------------- */

/* transport-blkif.h: memory for data is bounded, the rest of the ring waits, and nothing of it is lost: each
 * answer makes room for one more. */
static void the_rest_of_the_ring_waits(void **state)
{
	struct request_list out, answered;
	struct request *request;

	(void)state;
	/* 32 + 16 - 1 = 47 chunks at least: 16 must be free for another, so two of 16 each can be out. */
	connect_offering(0, 0, 256, 1);
	table_fill(TABLE_GREF, 256, DATA_GREF);
	for (unsigned n = 0; n < 32; n++)
		indirect_put(1, n, 256, TABLE_GREF);
	assert_int_equal(guest_pop_all(&out), 2);
	for (unsigned n = 0; n < 32; n++) {
		request = request_pool_get(&guest.pool);
		request->state = REQUEST_DECODED;
		if (n < 31)
			assert_int_equal(guest.transport->ops->pop(guest.transport, request),
					 -EAGAIN);
		request_pool_put(&guest.pool, request);
		resolve(&out);
		guest.transport->ops->load(guest.transport, &out);
		TAILQ_INIT(&answered);
		request = TAILQ_FIRST(&out);
		assert_int_equal(request->status, 0);
		assert_int_equal(request->len_bytes, 1 << 20);
		TAILQ_REMOVE(&out, request, link);
		TAILQ_INSERT_TAIL(&answered, request, link);
		guest_respond_all(&answered);
		guest_answer_expect(n, 1, 0);
		request = guest_pop();
		assert_int_equal(!!request, n < 30);
		if (request)
			TAILQ_INSERT_TAIL(&out, request, link);
	}
	assert_true(TAILQ_EMPTY(&out));
	guest_disconnect();
}

/* A ring of plain requests is never held up by memory, whatever is offered and however little is allowed;
 * nor one of the largest, if it is allowed. */
static void full_rings(void **state)
{
	const struct wire_segment segment = {100, 0, 7};

	(void)state;
	for (unsigned order = 0; order <= BLKIF_RING_ORDER_MAX; order++) {
		struct request_list batch;

		connect_offering(0, order, 256, 0);
		for (unsigned n = 0; n < 32u << order; n++)
			guest_put(0, n, 0, 1, &segment);
		assert_int_equal(guest_pop_all(&batch), 32u << order);
		guest_respond_all(&batch);
		guest_disconnect();

		connect_offering(0, order, 256, SIZE_MAX);
		table_fill(TABLE_GREF, 256, DATA_GREF);
		for (unsigned n = 0; n < 32u << order; n++)
			indirect_put(1, n, 256, TABLE_GREF);
		assert_int_equal(guest_pop_all(&batch), 32u << order);
		resolve(&batch);
		assert_int_equal(guest_nth(&batch, (32u << order) - 1)->len_bytes, 256 * 4096);
		guest_respond_all(&batch);
		guest_disconnect();
	}
}

/* Whole chunks' worth of full segments in a fresh queue lie side by side: one iovec. */
static void full_segments_join(void **state)
{
	struct request_list batch;
	struct request *request;

	(void)state;
	connect_offering(0, 0, 256, 0);
	for (unsigned round = 0; round < 3; round++) {
		table_fill(TABLE_GREF, 256, DATA_GREF);
		indirect_put(0, 1, 256, TABLE_GREF);
		request = pop_one(&batch);
		resolve(&batch);
		assert_int_equal(request->nr_iov, 1);
		assert_int_equal(request->iov[0].iov_len, 1 << 20);
		guest_respond_all(&batch);
	}
	guest_disconnect();
}

/* A batch with more pieces than one grant copy takes is cut; a failure in a later call is its request's. */
static void large_batches_are_cut(void **state)
{
	struct request_list batch;

	(void)state;
	connect_offering(0, 0, 256, SIZE_MAX);
	for (unsigned n = 0; n < 32; n++) {
		table_fill(TABLE_GREF + 8 * n, 256, DATA_GREF + 256 * n);
		indirect_put(1, n, 256, TABLE_GREF + 8 * n);
	}
	assert_true(guest.fake.nr_reserved >= 512 && guest.fake.nr_reserved <= 1024);
	assert_int_equal(guest_pop_all(&batch), 32);
	resolve(&batch);
	assert_int_equal(guest.fake.nr_copy_calls, 1);
	guest.fake.nr_copy_calls = guest.fake.nr_pieces = 0;
	guest.fake.fail_piece = 256 * 20 + 1; /* request 20's first */
	guest.transport->ops->load(guest.transport, &batch);
	assert_int_equal(guest.fake.nr_pieces, 32 * 256);
	assert_int_equal(guest.fake.nr_copy_calls,
			 (32 * 256 + guest.fake.nr_reserved - 1) / guest.fake.nr_reserved);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(guest_nth(&batch, n)->status, n == 20 ? -EFAULT : 0);
	guest_respond_all(&batch);
	guest_disconnect();
}

static long resident_kib(void)
{
	FILE *in = fopen("/proc/self/statm", "r");
	long size, resident;

	assert_non_null(in);
	assert_int_equal(fscanf(in, "%ld %ld", &size, &resident), 2);
	fclose(in);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* docs/footprint.md: what is reserved costs nothing until it is used. The largest ring there is, with all
 * that can be offered; the pool's requests are the test's own. */
static void a_connected_ring_is_small(void **state)
{
	struct blkif_ring_params params = guest_params(&blkif_abi_x86_64, BLKIF_RING_ORDER_MAX);
	struct transport *transport;
	struct error error;
	long before;

	(void)state;
	params.max_indirect = 256;
	params.data_bytes_max = SIZE_MAX;
	before = resident_kib();
	assert_int_equal(
		transport_blkif_attach(&guest.fake.host, FAKE_DOMID, &params, &transport, &error),
		0);
	assert_true(resident_kib() - before < 256);
	/* The scratch of a plain request, with its inline tables. */
	assert_true(transport->ops->request_size <= 448);
	transport->ops->free(transport);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, guest_set_up, guest_tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(data_goes_to_its_place),
		CASE(refused_entries),
		CASE(bad_tables),
		CASE(repeated_table_page),
		CASE(table_changes_after_the_copy),
		CASE(the_rest_of_the_ring_waits),
		CASE(full_rings),
		CASE(full_segments_join),
		CASE(large_batches_are_cut),
		CASE(a_connected_ring_is_small),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
