// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The blkif transport over a fake Xen host, with a frontend made of ring.h's macros.
 *
 * Owns: nothing. Trusts: include/transport.h and xen-ops.h (the contracts), wire.h (the frontend); for what
 *   a failed grant copy means, xen-contract.md §4.5 item 8.
 * Runs on: the test. Must not know: the disk.
 */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "tests/unit/blkif-guest.h"
#include "tests/unit/unit.h"

/* ---- Attach and disconnect ---------------------------------------------------------------------- */

/* Whatever fails, everything taken before is given back (guest_tear_down checks), and the text names it. */
static void attach_failures(void **state)
{
	static const struct {
		size_t knob;
		int err, result;
		const char *word;
	} rows[] = {
		{offsetof(struct fake_xen, map_error), -EINVAL, -EINVAL, "grant"},
		{offsetof(struct fake_xen, bind_error), -ENOENT, -ENOENT, "event channel"},
		{offsetof(struct fake_xen, reserve_error), -ENOMEM, -ENOMEM, "memory"},
	};
	struct blkif_ring_params params = guest_params(&blkif_abi_x86_64, 2);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int *knob = (int *)((char *)&guest.fake + rows[i].knob);
		struct transport *transport = NULL;
		struct error error;

		*knob = rows[i].err;
		assert_int_equal(transport_blkif_attach(&guest.fake.host, FAKE_DOMID, &params,
							&transport, &error),
				 rows[i].result);
		*knob = 0;
		assert_null(transport);
		assert_non_null(strstr(error.text, rows[i].word));
		assert_int_equal(guest.fake.nr_mapped, 0);
		assert_int_equal(guest.fake.nr_bound, 0);
	}
}

static void attach_holds_what_it_says(void **state)
{
	(void)state;
	for (size_t abi = 0; abi < GUEST_ABIS; abi++)
		for (unsigned order = 0; order <= BLKIF_RING_ORDER_MAX; order++) {
			guest_connect_as(abi, order);
			assert_int_equal(guest.fake.nr_mapped, 1u << order);
			assert_int_equal(guest.fake.nr_bound, 1);
			/* A full batch of a one-page ring is one call; larger ones are cut. */
			assert_int_equal(guest.fake.nr_reserved, order ? 512 : 32 * 11);
			assert_int_equal(guest.transport->ops->poll_fd(guest.transport),
					 guest.fake.event_fd);
			guest_disconnect();
			assert_int_equal(guest.fake.nr_mapped, 0);
			assert_int_equal(guest.fake.nr_bound, 0);
		}
}

/* Once or five times: each thing is released once. Buffers of requests in flight stay until free(). */
static void disconnect_is_idempotent(void **state)
{
	const struct wire_segment segment = {100, 0, 7};
	struct request_list batch;
	struct request *request;

	(void)state;
	guest_connect_as(0, 0);
	guest_put(1, 1, 0, 1, &segment);
	assert_int_equal(guest_pop_all(&batch), 1);
	request = TAILQ_FIRST(&batch);
	for (int i = 0; i < 5; i++) {
		guest.transport->ops->disconnect(guest.transport);
		assert_int_equal(guest.fake.nr_mapped, 0);
		assert_int_equal(guest.fake.nr_bound, 0);
	}
	memset(request->iov[0].iov_base, 0x77, request->iov[0].iov_len);
	guest_disconnect();
}

/* A host that refuses to let go is no reason to try again, or to die. */
static void disconnect_failures(void **state)
{
	(void)state;
	guest_connect_as(0, 0);
	guest.fake.unbind_error = -EIO;
	guest.fake.unmap_error = -EIO;
	guest.transport->ops->disconnect(guest.transport);
	guest_disconnect();
}

/* ---- Data --------------------------------------------------------------------------------------- */

/* Segments that touch in local memory are one iovec: a whole page runs into the next segment if that
 * begins at its page's start. */
static void iov_merging(void **state)
{
	static const struct {
		unsigned nr_segments, nr_iov;
		struct wire_segment segments[4];
		size_t lengths[4];
	} rows[] = {
		{1, 1, {{100, 0, 7}}, {4096}},
		{2, 1, {{100, 0, 7}, {101, 0, 7}}, {8192}},
		{3, 1, {{100, 4, 7}, {101, 0, 7}, {102, 0, 3}}, {8192}},
		{2, 2, {{100, 0, 6}, {101, 0, 7}}, {3584, 4096}},
		{2, 2, {{100, 0, 7}, {101, 1, 7}}, {4096, 3584}},
		{4, 2, {{100, 0, 7}, {101, 0, 1}, {102, 0, 7}, {103, 0, 7}}, {5120, 8192}},
		{2, 2, {{100, 3, 3}, {100, 4, 4}}, {512, 512}}, /* adjacent there, not here */
	};

	(void)state;
	guest_connect_as(0, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct request_list batch;
		struct request *request;
		uint64_t len_bytes = 0;

		guest_put(0, i, 8, rows[i].nr_segments, rows[i].segments);
		assert_int_equal(guest_pop_all(&batch), 1);
		request = TAILQ_FIRST(&batch);
		assert_int_equal(request->status, 0);
		assert_int_equal(request->op, REQUEST_READ);
		assert_int_equal(request->offset_bytes, 4096);
		assert_int_equal(request->nr_iov, rows[i].nr_iov);
		for (unsigned v = 0; v < request->nr_iov; v++) {
			assert_int_equal(request->iov[v].iov_len, rows[i].lengths[v]);
			/* driver.h memory_align_bytes: 512 is the least a block device asks for. */
			assert_int_equal((uintptr_t)request->iov[v].iov_base % 512, 0);
			len_bytes += request->iov[v].iov_len;
		}
		assert_int_equal(request->len_bytes, len_bytes);
		guest_respond_all(&batch);
		guest_answer_expect(i, 0, 0);
	}
	guest_disconnect();
}

/* Random shapes, several requests a batch: data comes over whole and nowhere else, in one copy call per
 * direction and batch. */
static void random_shapes(void **state)
{
	uint32_t seed = 99;

	(void)state;
	for (size_t abi = 0; abi < GUEST_ABIS; abi++) {
		guest_connect_as(abi, abi == 1 ? 1 : 0);
		for (uint64_t round = 0; round < 60; round++) {
			struct shape shapes[24];
			unsigned nr = 1 + random_next(&seed) % 24, nr_calls, n;
			struct request_list batch;
			struct request *request;
			uint32_t gref = 64;
			bool reads = false, writes = false;

			for (n = 0; n < nr; n++) {
				bool write = random_next(&seed) & 1;

				shapes[n].nr = 1 + random_next(&seed) % WIRE_MAX_SEGMENTS;
				for (unsigned i = 0; i < shapes[n].nr; i++, gref++) {
					uint8_t first = random_next(&seed) % 8;

					if (random_next(&seed) & 1)
						first = 0;
					shapes[n].segments[i] = (struct wire_segment){
						gref, first,
						(uint8_t)(random_next(&seed) & 1
								  ? 7
								  : first + random_next(&seed) %
										    (8u - first))};
					memset(fake_page(&guest.fake, gref), 0xa5, XEN_PAGE_SIZE);
				}
				if (write)
					shape_fill(&shapes[n], n);
				reads |= !write;
				writes |= write;
				guest_put(write ? 1 : 0, n, 0, shapes[n].nr, shapes[n].segments);
			}
			assert_int_equal(guest_pop_all(&batch), nr);
			nr_calls = guest.fake.nr_copy_calls;
			guest.transport->ops->load(guest.transport, &batch);
			assert_int_equal(guest.fake.nr_copy_calls - nr_calls, writes);
			n = 0;
			TAILQ_FOREACH(request, &batch, link) {
				assert_int_equal(request->status, 0);
				if (request->op == REQUEST_WRITE)
					iov_check(request, n);
				else
					iov_fill(request, n);
				n++;
			}
			nr_calls = guest.fake.nr_copy_calls;
			guest.transport->ops->store(guest.transport, &batch);
			assert_int_equal(guest.fake.nr_copy_calls - nr_calls, reads);
			n = 0;
			TAILQ_FOREACH(request, &batch, link) {
				assert_int_equal(request->status, 0);
				shape_check(&shapes[n], n);
				n++;
			}
			guest_respond_all(&batch);
			for (n = 0; n < nr; n++) {
				struct wire_response response;

				assert_true(guest.wire->front_get(&guest.front, &response));
				assert_int_equal(response.id, n);
				assert_int_equal(response.status, 0);
			}
		}
		guest_disconnect();
	}
}

/* The most that one batch can be: a full ring of 11 whole pages each, still one call within what was
 * reserved. */
static void full_batch(void **state)
{
	struct request_list batch;

	(void)state;
	guest_connect_as(0, 0);
	for (uint64_t id = 0; id < 32; id++) {
		struct shape shape = {.nr = WIRE_MAX_SEGMENTS};

		for (unsigned i = 0; i < WIRE_MAX_SEGMENTS; i++)
			shape.segments[i] = (struct wire_segment){64 + (uint32_t)id * 11 + i, 0, 7};
		shape_fill(&shape, id);
		guest_put(1, id, 0, shape.nr, shape.segments);
	}
	assert_int_equal(guest_pop_all(&batch), 32);
	guest.transport->ops->load(guest.transport, &batch);
	assert_int_equal(guest.fake.nr_copy_calls, 1);
	for (unsigned n = 0; n < 32; n++)
		iov_check(guest_nth(&batch, n), n);
	guest_respond_all(&batch);
	guest_disconnect();
}

/* ---- Failures ----------------------------------------------------------------------------------- */

/* A piece that fails takes its own request with it and no other; for a READ, too, of which other pieces
 * were copied. */
static void failing_piece(void **state)
{
	static const struct wire_segment segments[3][2] = {
		{{100, 0, 7}, {101, 0, 7}}, {{102, 0, 7}, {103, 0, 7}}, {{104, 0, 7}, {105, 0, 7}}};

	(void)state;
	for (unsigned operation = 0; operation <= 1; operation++)
		for (unsigned bad = 1; bad <= 6; bad++) {
			struct request_list batch;

			guest_connect_as(0, 0);
			guest.fake.fail_piece = bad;
			guest.fake.nr_pieces = 0;
			for (uint64_t id = 0; id < 3; id++)
				guest_put((uint8_t)operation, id, 0, 2, segments[id]);
			assert_int_equal(guest_pop_all(&batch), 3);
			if (operation)
				guest.transport->ops->load(guest.transport, &batch);
			else
				guest.transport->ops->store(guest.transport, &batch);
			for (unsigned n = 0; n < 3; n++)
				assert_int_equal(guest_nth(&batch, n)->status,
						 n == (bad - 1) / 2 ? -EFAULT : 0);
			guest_respond_all(&batch);
			for (unsigned n = 0; n < 3; n++)
				guest_answer_expect(n, (uint8_t)operation,
						    n == (bad - 1) / 2 ? -1 : 0);
			guest.fake.fail_piece = 0;
			guest_disconnect();
		}
}

/* Revoked, out of range, and the call as a whole refused. */
static void unreachable_memory(void **state)
{
	const struct wire_segment good = {100, 0, 7}, revoked = {101, 0, 7},
				  wild = {0xfffffffe, 0, 7};
	struct request_list batch;

	(void)state;
	guest_connect_as(0, 0);
	guest.fake.revoked[101] = true;
	guest_put(1, 1, 0, 1, &good);
	guest_put(1, 2, 0, 1, &revoked);
	guest_put(1, 3, 0, 1, &wild);
	assert_int_equal(guest_pop_all(&batch), 3);
	guest.transport->ops->load(guest.transport, &batch);
	guest_respond_all(&batch);
	guest_answer_expect(1, 1, 0);
	guest_answer_expect(2, 1, -1);
	guest_answer_expect(3, 1, -1);

	guest.fake.copy_error = -EPERM;
	guest_put(1, 4, 0, 1, &good);
	guest_put(0, 5, 0, 1, &good);
	assert_int_equal(guest_pop_all(&batch), 2);
	guest.transport->ops->load(guest.transport, &batch);
	assert_int_equal(guest_nth(&batch, 0)->status, -EFAULT);
	assert_int_equal(guest_nth(&batch, 1)->status, 0); /* a READ has nothing to load */
	guest.transport->ops->store(guest.transport, &batch);
	guest_respond_all(&batch);
	guest_answer_expect(4, 1, -1);
	guest_answer_expect(5, 0, -1);
	guest_disconnect();
}

/* G04: a call that says it went well and touched no status, or left a positive one, copied nothing. */
static void statuses_that_say_nothing(void **state)
{
	const struct wire_segment segment = {100, 0, 7};
	struct request_list batch;

	(void)state;
	guest_connect_as(0, 0);
	for (unsigned round = 0; round < 2; round++) {
		guest.fake.leave_status = round == 0;
		guest.fake.copy_error = round == 1;
		guest_put(1, 1, 0, 1, &segment);
		guest_put(0, 2, 0, 1, &segment);
		assert_int_equal(guest_pop_all(&batch), 2);
		guest.transport->ops->load(guest.transport, &batch);
		assert_int_equal(guest_nth(&batch, 0)->status, -EFAULT);
		guest.transport->ops->store(guest.transport, &batch);
		assert_int_equal(guest_nth(&batch, 1)->status, -EFAULT);
		guest_respond_all(&batch);
		guest_answer_expect(1, 1, -1);
		guest_answer_expect(2, 0, -1);
	}
	guest_disconnect();
}

/* A request that failed already is not copied; a batch without data makes no call. */
static void nothing_to_copy(void **state)
{
	const struct wire_segment segment = {100, 0, 7};
	struct request_list batch;

	(void)state;
	guest_connect_as(0, 0);
	memset(fake_page(&guest.fake, 100), 0xa5, XEN_PAGE_SIZE);
	guest_put(3, 1, 0, 0, NULL);
	guest_put(0, 2, 0, 1, &segment);
	guest_put(0, 3, 0, 12, NULL);
	assert_int_equal(guest_pop_all(&batch), 3);
	assert_int_equal(guest_nth(&batch, 0)->op, REQUEST_FLUSH);
	assert_int_equal(guest_nth(&batch, 0)->nr_iov, 0);
	assert_int_equal(guest_nth(&batch, 2)->status, -EINVAL);
	guest.transport->ops->load(guest.transport, &batch);
	guest_nth(&batch, 1)->status = -EIO;
	guest.transport->ops->store(guest.transport, &batch);
	assert_int_equal(guest.fake.nr_copy_calls, 0);
	for (size_t i = 0; i < XEN_PAGE_SIZE; i++)
		assert_int_equal(fake_page(&guest.fake, 100)[i], 0xa5);
	guest_respond_all(&batch);
	guest_answer_expect(1, 3, 0);
	guest_answer_expect(2, 0, -1);
	guest_answer_expect(3, 0, -1);
	guest_disconnect();
}

/* Equal ids, extreme ids: opaque, echoed (R17). Statuses on the wire (R12). */
static void ids_and_statuses(void **state)
{
	static const int statuses[] = {0, -EIO, -EOPNOTSUPP, -EINVAL, -EROFS, -ERANGE, -ENOSPC};
	static const int16_t wire_statuses[] = {0, -1, -2, -1, -1, -1, -1};
	const struct wire_segment segment = {100, 0, 7};
	struct request_list batch;

	(void)state;
	guest_connect_as(1, 0);
	for (unsigned i = 0; i < 7; i++)
		guest_put(0, i & 1 ? UINT64_MAX : 5, 0, 1, &segment);
	guest_put(200, 6, 0, 0, NULL);
	assert_int_equal(guest_pop_all(&batch), 8);
	for (unsigned i = 0; i < 7; i++)
		guest_nth(&batch, i)->status = statuses[i];
	guest_respond_all(&batch);
	for (unsigned i = 0; i < 7; i++)
		guest_answer_expect(i & 1 ? UINT64_MAX : 5, 0, wire_statuses[i]);
	guest_answer_expect(6, 200, -2);
	guest_disconnect();
}

/* A flush with data is a write to the driver and a FLUSH_DISKCACHE in the answer. */
static void flush_with_data(void **state)
{
	const struct wire_segment segment = {100, 1, 2};
	struct shape shape = {1, {{100, 1, 2}}};
	struct request_list batch;
	struct request *request;

	(void)state;
	guest_connect_as(0, 0);
	shape_fill(&shape, 9);
	guest_put(3, 9, 16, 1, &segment);
	assert_int_equal(guest_pop_all(&batch), 1);
	request = TAILQ_FIRST(&batch);
	assert_int_equal(request->op, REQUEST_WRITE);
	assert_int_equal(request->flags, REQUEST_PREFLUSH);
	assert_int_equal(request->offset_bytes, 8192);
	guest.transport->ops->load(guest.transport, &batch);
	iov_check(request, 9);
	guest_respond_all(&batch);
	guest_answer_expect(9, 3, 0);
	guest_disconnect();
}

/* ---- Events ------------------------------------------------------------------------------------- */

static void events(void **state)
{
	const struct wire_segment segment = {100, 0, 7};
	struct request_list batch;
	uint64_t one = 1;

	(void)state;
	guest_connect_as(0, 0);
	/* A fresh ring has rsp_event 1: the first answer notifies, the second is not asked for. */
	guest_put(0, 1, 0, 1, &segment);
	guest_put(0, 2, 0, 1, &segment);
	assert_int_equal(guest_pop_all(&batch), 2);
	guest_respond_all(&batch);
	assert_int_equal(guest.fake.nr_notify, 1);
	guest_put(0, 3, 0, 1, &segment);
	assert_int_equal(guest_pop_all(&batch), 1);
	guest_respond_all(&batch);
	assert_int_equal(guest.fake.nr_notify, 1);
	/* A port that cannot be notified any more is no error of ours. */
	for (uint64_t id = 1; id <= 3; id++)
		guest_answer_expect(id, 0, 0);
	assert_false(guest.wire->front_final_check(&guest.front));
	guest.fake.notify_error = -ENOENT;
	guest_put(0, 4, 0, 1, &segment);
	assert_int_equal(guest_pop_all(&batch), 1);
	guest_respond_all(&batch);
	assert_int_equal(guest.fake.nr_notify, 2);

	/* Taking the event unmasks its port; without an event nothing is unmasked. */
	assert_int_equal(write(guest.fake.event_fd, &one, sizeof(one)), sizeof(one));
	guest.transport->ops->acknowledge(guest.transport);
	assert_int_equal(guest.fake.nr_unmask, 1);
	guest.transport->ops->acknowledge(guest.transport);
	assert_int_equal(guest.fake.nr_unmask, 1);

	assert_false(guest.transport->ops->arm(guest.transport));
	guest_put(0, 5, 0, 1, &segment);
	assert_true(guest.wire->front_push(&guest.front)); /* armed: it would notify */
	assert_true(guest.transport->ops->arm(guest.transport));
	guest_disconnect();
}

/* A port whose other end is gone (G12): one line for a connection, and answers go on. */
static void notify_failures(void **state)
{
	const struct wire_segment segment = {100, 0, 7};
	char path[] = "/tmp/test-transport-blkif-XXXXXX", text[4096] = "";
	int file = mkstemp(path);
	struct request_list batch;

	(void)state;
	assert_true(file >= 0);
	unlink(path);
	dup2(file, STDERR_FILENO); /* tear_down puts it back */
	guest_connect_as(0, 0);
	guest.fake.notify_error = -ENOENT;
	for (unsigned id = 1; id <= 20; id++) {
		guest_put(0, id, 0, 1, &segment);
		assert_int_equal(guest_pop_all(&batch), 1);
		guest_respond_all(&batch);
		assert_int_equal(guest.fake.nr_notify, id);
		guest_answer_expect(id, 0, 0);
		assert_false(guest.wire->front_final_check(&guest.front)); /* notify me again */
	}
	guest_disconnect();
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	close(file);
	assert_non_null(strstr(text, "cannot notify"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* faults.md F03: a notification that fails once is sent again. */
static void notify_again(void **state)
{
	const struct wire_segment segment = {100, 0, 7};
	struct request_list batch;

	(void)state;
	guest_connect_as(0, 0);
	guest.fake.notify_error = -EAGAIN;
	guest.fake.notify_error_times = 2;
	guest_put(0, 1, 0, 1, &segment);
	assert_int_equal(guest_pop_all(&batch), 1);
	guest_respond_all(&batch);
	assert_int_equal(guest.fake.nr_notify, 3);
	assert_int_equal(guest.fake.notify_error, 0);
	guest_disconnect();
}

static void broken_ring(void **state)
{
	struct request *request;

	(void)state;
	guest_connect_as(0, 0);
	blkif_put32(fake_page(&guest.fake, GUEST_RING_GREF), 0, 33);
	request = request_pool_get(&guest.pool);
	request->state = REQUEST_DECODED;
	assert_int_equal(guest.transport->ops->pop(guest.transport, request), -EPROTO);
	guest_disconnect();
}

/* An empty flush's error is deadly on this wire, and only the transport can say so. */
static void says_that_flush_errors_are_deadly(void **state)
{
	(void)state;
	guest_connect_as(0, 0);
	assert_true(guest.transport->ops->flush_error_is_deadly);
	guest_disconnect();
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, guest_set_up, guest_tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(attach_failures),
		CASE(attach_holds_what_it_says),
		CASE(disconnect_is_idempotent),
		CASE(disconnect_failures),
		CASE(iov_merging),
		CASE(random_shapes),
		CASE(full_batch),
		CASE(failing_piece),
		CASE(unreachable_memory),
		CASE(statuses_that_say_nothing),
		CASE(nothing_to_copy),
		CASE(ids_and_statuses),
		CASE(flush_with_data),
		CASE(events),
		CASE(notify_failures),
		CASE(notify_again),
		CASE(broken_ring),
		CASE(says_that_flush_errors_are_deadly),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
