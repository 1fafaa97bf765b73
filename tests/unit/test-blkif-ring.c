// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The backend's end of a ring against ring.h's macros, in one thread and in two.
 *
 * Owns: nothing. Trusts: xen/io/ring.h, through wire.h. Runs on: the test, and one frontend thread.
 * Must not know: the decoder.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/blkif-ring.h"
#include "tests/unit/unit.h"
#include "tests/unit/wire.h"
#include "xen-ops.h"

#define RING_BYTES_MAX (XEN_PAGE_SIZE << BLKIF_RING_ORDER_MAX)

static uint8_t shared_a[RING_BYTES_MAX] __attribute__((aligned(4096)));
static uint8_t shared_b[RING_BYTES_MAX] __attribute__((aligned(4096)));

static const struct {
	const struct blkif_abi *abi;
	const struct wire *wire;
} abis[] = {{&blkif_abi_x86_64, &wire_x86_64},
	    {&blkif_abi_x86_32, &wire_x86_32},
	    {&blkif_abi_arm, &wire_x86_64}};
#define NR_ABIS (sizeof(abis) / sizeof(abis[0]))

/* Where fresh indices begin: at zero as every frontend does, and so that u32 wraps soon. */
static const uint32_t starts[] = {0, 0xffffffffu, 0xfffffff0u, 0x7ffffffcu};
#define NR_STARTS (sizeof(starts) / sizeof(starts[0]))

static void ring_begin(struct blkif_ring *ring, struct wire_ring *front, size_t abi, unsigned order,
		       uint32_t start)
{
	memset(shared_a, 0, sizeof(shared_a));
	abis[abi].wire->front_init(front, shared_a, XEN_PAGE_SIZE << order, start);
	blkif_ring_init(ring, abis[abi].abi, shared_a, order);
	ring->req_cons = ring->rsp_prod_pvt = ring->rsp_prod = start;
}

static struct wire_request request_make(uint64_t id)
{
	return (struct wire_request){.operation = (uint8_t)(id % 3),
				     .nr_segments = 1,
				     .id = id,
				     .sector = ~id,
				     .segments = {{(uint32_t)id, 0, 7}}};
}

static uint32_t header_read(const uint8_t *shared, unsigned offset)
{
	return blkif_get32(shared, offset);
}

/* Every slot of every ring there can be is popped whole and in order, and answered in its place. */
static void requests_and_answers_pass(void **state)
{
	(void)state;
	for (size_t abi = 0; abi < NR_ABIS; abi++)
		for (unsigned order = 0; order <= BLKIF_RING_ORDER_MAX; order++)
			for (size_t s = 0; s < NR_STARTS; s++) {
				const struct wire *wire = abis[abi].wire;
				uint8_t slot[BLKIF_SLOT_BYTES_MAX];
				struct wire_response response;
				struct blkif_ring ring;
				struct wire_ring front;
				uint64_t id = 0, popped = 0;

				ring_begin(&ring, &front, abi, order, starts[s]);
				assert_int_equal(ring.nr_slots, 32u << order);
				/* One and a half rounds, in chunks that do not divide the ring. */
				for (int round = 0; round < 3; round++) {
					unsigned nr = ring.nr_slots / 2 + 3;

					for (unsigned i = 0; i < nr; i++) {
						struct wire_request request = request_make(id++);

						wire->front_put(&front, &request);
					}
					assert_int_equal(blkif_ring_pop(&ring, slot), 0);
					wire->front_push(&front);
					while (blkif_ring_pop(&ring, slot) == 1) {
						uint64_t got = blkif_get64(slot, ring.abi->off_id);

						assert_int_equal(got, popped);
						assert_int_equal(
							blkif_get64(slot, ring.abi->off_sector),
							~got);
						assert_int_equal(
							blkif_get_segment(ring.abi, slot, 0).gref,
							got);
						blkif_ring_put(&ring, got, slot[0], -1);
						popped++;
					}
					assert_int_equal(popped, id);
					/* Not before it is published. */
					assert_false(wire->front_get(&front, &response));
					blkif_ring_publish(&ring);
					for (unsigned i = 0; i < nr; i++) {
						assert_true(wire->front_get(&front, &response));
						assert_int_equal(response.id, id - nr + i);
						assert_int_equal(response.operation,
								 response.id % 3);
						assert_int_equal(response.status, -1);
					}
					assert_false(wire->front_get(&front, &response));
				}
			}
}

/* A full ring is no overflow; one more is (R01), and so is any number up to 2^31 and beyond. No slot is
 * handled then. The count is from the private index, so that a guest which overwrites rsp_prod and the
 * events changes nothing (R22). */
static void overflow(void **state)
{
	static const uint32_t extras[] = {1, 2, 31, 0x7fffffdfu, 0x80000000u, 0xffffffdfu};

	(void)state;
	for (size_t abi = 0; abi < NR_ABIS; abi++)
		for (size_t s = 0; s < NR_STARTS; s++) {
			uint8_t slot[BLKIF_SLOT_BYTES_MAX];
			struct blkif_ring ring;
			struct wire_ring front;

			ring_begin(&ring, &front, abi, 0, starts[s]);
			blkif_put32(shared_a, 0, starts[s] + 32);
			blkif_put32(shared_a, 8, 0xdeadbeef);
			blkif_put32(shared_a, 4, 0xdeadbeef);
			blkif_put32(shared_a, 12, 0xdeadbeef);
			for (int i = 0; i < 32; i++)
				assert_int_equal(blkif_ring_pop(&ring, slot), 1);
			assert_int_equal(blkif_ring_pop(&ring, slot), 0);

			for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++) {
				ring_begin(&ring, &front, abi, 0, starts[s]);
				blkif_put32(shared_a, 0, starts[s] + 32 + extras[i]);
				assert_int_equal(blkif_ring_pop(&ring, slot), -EPROTO);
				assert_int_equal(ring.req_cons, starts[s]);
			}
		}
}

/* With requests in flight the room is less: what counts is answers, not what was fetched. */
static void overflow_counts_unanswered(void **state)
{
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];
	struct blkif_ring ring;
	struct wire_ring front;

	(void)state;
	ring_begin(&ring, &front, 0, 0, 0);
	blkif_put32(shared_a, 0, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(blkif_ring_pop(&ring, slot), 1);
	blkif_put32(shared_a, 0, 33);
	assert_int_equal(blkif_ring_pop(&ring, slot), -EPROTO);
	/* An answer that is written makes room for one request, published or not. */
	blkif_ring_put(&ring, 0, 0, 0);
	assert_int_equal(blkif_ring_pop(&ring, slot), 1);
	/* A producer that steps back claims nearly 2^32 requests, also if it stays above the answers. */
	for (uint32_t back = 0; back < 11; back++) {
		blkif_put32(shared_a, 0, back);
		assert_int_equal(blkif_ring_pop(&ring, slot), -EPROTO);
		assert_int_equal(ring.req_cons, 11);
	}
}

/* Nothing new to publish is nothing to notify, whatever rsp_event says. */
static void publish_nothing(void **state)
{
	struct blkif_ring ring;
	struct wire_ring front;

	(void)state;
	ring_begin(&ring, &front, 0, 0, 0);
	for (uint32_t event = 0; event < 4; event++) {
		blkif_put32(shared_a, 12, event - 1);
		assert_false(blkif_ring_publish(&ring));
	}
	assert_int_equal(header_read(shared_a, 8), 0);
}

/* Notify if and only if rsp_event lies in (old, new]: each event around the window, wraps included. */
static void notify_window(void **state)
{
	(void)state;
	for (size_t s = 0; s < NR_STARTS; s++)
		for (unsigned nr = 1; nr <= 5; nr++)
			for (int delta = -3; delta <= 8; delta++) {
				struct blkif_ring ring;
				struct wire_ring front;

				ring_begin(&ring, &front, 0, 0, starts[s]);
				blkif_put32(shared_a, 12, starts[s] + (uint32_t)delta);
				for (unsigned i = 0; i < nr; i++)
					blkif_ring_put(&ring, i, 0, 0);
				assert_int_equal(blkif_ring_publish(&ring),
						 delta >= 1 && delta <= (int)nr);
				assert_int_equal(header_read(shared_a, 8), starts[s] + nr);
			}
}

/* arm asks for the very next request, and tells whether one is there. */
static void arm(void **state)
{
	(void)state;
	for (size_t s = 0; s < NR_STARTS; s++) {
		struct wire_request request = request_make(7);
		uint8_t slot[BLKIF_SLOT_BYTES_MAX];
		struct blkif_ring ring;
		struct wire_ring front;

		ring_begin(&ring, &front, 0, 0, starts[s]);
		blkif_put32(shared_a, 4, starts[s] - 1); /* not armed */
		wire_x86_64.front_put(&front, &request);
		assert_false(wire_x86_64.front_push(&front)); /* nobody is to be woken */
		assert_true(blkif_ring_arm(&ring));	      /* so arm must see it */
		assert_int_equal(blkif_ring_pop(&ring, slot), 1);
		assert_false(blkif_ring_arm(&ring));
		assert_int_equal(header_read(shared_a, 4), starts[s] + 2);
		wire_x86_64.front_put(&front, &request);
		assert_true(wire_x86_64.front_push(&front)); /* the next one wakes */
	}
}

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* The same random life on two rings, one served by us and one by ring.h's own macros: they must agree on
 * each overflow, notification and final check, and on every byte of both rings' pages afterwards. */
static void same_as_the_macros(void **state)
{
	uint32_t seed = 20260101;

	(void)state;
	for (int life = 0; life < 60; life++) {
		size_t abi = (size_t)life % NR_ABIS;
		unsigned order = (unsigned)life % 3;
		uint32_t start = random_next(&seed) << 8 | 0xf0;
		const struct wire *wire = abis[abi].wire;
		size_t bytes = XEN_PAGE_SIZE << order;
		struct wire_ring front_a, front_b, back_b;
		struct blkif_ring ring;
		unsigned outstanding = 0; /* fetched, not answered */
		uint64_t id = 0;

		if (life & 1)
			start = 0xffffff80u + (start & 0x7f);
		ring_begin(&ring, &front_a, abi, order, start);
		memset(shared_b, 0, sizeof(shared_b));
		wire->front_init(&front_b, shared_b, bytes, start);
		wire->back_init(&back_b, shared_b, bytes, start);
		for (int step = 0; step < 2000; step++) {
			uint8_t slot[BLKIF_SLOT_BYTES_MAX];
			struct wire_response response, other;
			struct wire_request request;
			unsigned nr = random_next(&seed) % 9;

			switch (random_next(&seed) % 6) {
			case 0: /* the guest queues and pushes */
				while (nr-- && !wire->front_full(&front_a)) {
					request = request_make(id++);
					wire->front_put(&front_a, &request);
					wire->front_put(&front_b, &request);
				}
				assert_int_equal(wire->front_push(&front_a),
						 wire->front_push(&front_b));
				break;
			case 1: /* the backend fetches */
				assert_false(wire->back_overflow(&back_b));
				while (nr--) {
					int ret = blkif_ring_pop(&ring, slot);

					assert_int_equal(ret, wire->back_get(&back_b));
					outstanding += (unsigned)ret;
				}
				break;
			case 2: /* answers */
				while (nr-- && outstanding) {
					response = (struct wire_response){id + nr, 1, -1};
					blkif_ring_put(&ring, response.id, 1, -1);
					wire->back_put(&back_b, &response);
					outstanding--;
				}
				break;
			case 3:
				/* ring.h leaves an empty push to its users; ours never notifies for one. */
				if (ring.rsp_prod_pvt == ring.rsp_prod) {
					assert_false(blkif_ring_publish(&ring));
					break;
				}
				assert_int_equal(blkif_ring_publish(&ring),
						 wire->back_push(&back_b));
				break;
			case 4: {
				bool more = wire->back_final_check(&back_b);

				assert_int_equal(blkif_ring_arm(&ring), more);
				/* The macro leaves req_event alone if it sees work at once. */
				blkif_put32(shared_b, 4, header_read(shared_a, 4));
				break;
			}
			default: /* the guest takes answers, and says when to be woken */
				while (nr--) {
					bool got = wire->front_get(&front_a, &response);

					assert_int_equal(got, wire->front_get(&front_b, &other));
					if (got)
						assert_int_equal(response.id, other.id);
				}
				assert_int_equal(wire->front_final_check(&front_a),
						 wire->front_final_check(&front_b));
			}
			assert_memory_equal(shared_a, shared_b, bytes);
		}
		assert_true(id > 500);
	}
}

/* ---- Two threads -------------------------------------------------------------------------------- */

#define THREAD_REQUESTS 200000u

struct duplex {
	const struct wire *wire;
	struct blkif_ring ring;
	struct wire_ring front;
	int to_backend_fd, to_frontend_fd; /* event channels */
	uint8_t *answered;		   /* by id */
	const char *failure;
};

static void event_send(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

/* An event that does not come within 20 s is a lost wakeup. */
static bool event_wait(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint64_t count;

	return poll(&poll_fd, 1, 20000) == 1 && read(fd, &count, sizeof(count)) == sizeof(count);
}

static void *frontend_run(void *arg)
{
	struct duplex *duplex = arg;
	const struct wire *wire = duplex->wire;
	uint32_t nr_sent = 0, nr_answered = 0, seed = 7;

	while (nr_answered < THREAD_REQUESTS) {
		struct wire_response response;
		unsigned burst = random_next(&seed) % 40;

		while (burst-- && nr_sent < THREAD_REQUESTS && !wire->front_full(&duplex->front)) {
			struct wire_request request = request_make(nr_sent++);

			wire->front_put(&duplex->front, &request);
		}
		if (wire->front_push(&duplex->front))
			event_send(duplex->to_backend_fd);
		while (wire->front_get(&duplex->front, &response)) {
			if (response.id >= THREAD_REQUESTS || duplex->answered[response.id] ||
			    response.operation != response.id % 3) {
				duplex->failure = "an answer that belongs to no request";
				return NULL;
			}
			duplex->answered[response.id] = 1;
			nr_answered++;
		}
		if (wire->front_full(&duplex->front) || nr_sent == THREAD_REQUESTS) {
			if (!wire->front_final_check(&duplex->front) &&
			    nr_answered < THREAD_REQUESTS && !event_wait(duplex->to_frontend_fd)) {
				duplex->failure = "the frontend was not woken";
				return NULL;
			}
		}
	}
	return NULL;
}

/* The backend's pass as the data path makes it: pop all, answer all, publish, arm, sleep. */
static const char *backend_run(struct duplex *duplex)
{
	struct blkif_ring *ring = &duplex->ring;
	uint64_t next = 0;

	for (;;) {
		uint8_t slot[BLKIF_SLOT_BYTES_MAX];
		int ret;

		while ((ret = blkif_ring_pop(ring, slot)) == 1) {
			uint64_t id = blkif_get64(slot, ring->abi->off_id);

			if (id != next++ || blkif_get64(slot, ring->abi->off_sector) != ~id)
				return "a request was lost, repeated or torn";
			blkif_ring_put(ring, id, slot[0], 0);
		}
		if (ret < 0)
			return "overflow on an honest ring";
		if (blkif_ring_publish(ring))
			event_send(duplex->to_frontend_fd);
		if (next == THREAD_REQUESTS)
			return NULL;
		if (!blkif_ring_arm(ring) && !event_wait(duplex->to_backend_fd))
			return "the backend was not woken";
	}
}

static void threads_run(size_t abi, unsigned order, uint32_t start)
{
	struct duplex duplex = {.wire = abis[abi].wire};
	const char *failure;
	pthread_t thread;

	ring_begin(&duplex.ring, &duplex.front, abi, order, start);
	duplex.to_backend_fd = eventfd(0, EFD_CLOEXEC);
	duplex.to_frontend_fd = eventfd(0, EFD_CLOEXEC);
	duplex.answered = calloc(1, THREAD_REQUESTS);
	assert_true(duplex.to_backend_fd >= 0 && duplex.to_frontend_fd >= 0 && duplex.answered);
	assert_int_equal(pthread_create(&thread, NULL, frontend_run, &duplex), 0);
	failure = backend_run(&duplex);
	pthread_join(thread, NULL);
	if (failure || duplex.failure)
		fail_msg("backend: %s; frontend: %s", failure ? failure : "fine",
			 duplex.failure ? duplex.failure : "fine");
	for (uint32_t id = 0; id < THREAD_REQUESTS; id++)
		assert_int_equal(duplex.answered[id], 1);
	free(duplex.answered);
	close(duplex.to_backend_fd);
	close(duplex.to_frontend_fd);
}

static void two_threads_one_page(void **state)
{
	(void)state;
	threads_run(0, 0, 0xffff0000u);
}

static void two_threads_x86_32_four_pages(void **state)
{
	(void)state;
	threads_run(1, 2, 0);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(requests_and_answers_pass),
		cmocka_unit_test(overflow),
		cmocka_unit_test(overflow_counts_unanswered),
		cmocka_unit_test(publish_nothing),
		cmocka_unit_test(notify_window),
		cmocka_unit_test(arm),
		cmocka_unit_test(same_as_the_macros),
		cmocka_unit_test(two_threads_one_page),
		cmocka_unit_test(two_threads_x86_32_four_pages),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
