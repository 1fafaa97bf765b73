// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest on a fake Xen host: a frontend made of ring.h's macros against the blkif transport.
 *
 * Owns: struct guest. Trusts: the test; wire.h (the frontend). Runs on: the test. Must not know: the disk.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/blkif-guest.h"
#include "tests/unit/unit.h"

struct guest guest;

const struct guest_abi guest_abis[GUEST_ABIS] = {{&blkif_abi_x86_64, &wire_x86_64},
						 {&blkif_abi_x86_32, &wire_x86_32},
						 {&blkif_abi_arm, &wire_x86_64}};

struct blkif_ring_params guest_params(const struct blkif_abi *abi, unsigned order)
{
	struct blkif_ring_params params = {
		.abi = abi, .order = order, .event_channel = FAKE_REMOTE_PORT};

	for (unsigned i = 0; i < 1u << order; i++)
		params.grefs[i] = GUEST_RING_GREF + i;
	return params;
}

void guest_connect(size_t abi, const struct blkif_ring_params *params)
{
	struct error error;
	size_t size;

	guest.wire = guest_abis[abi].wire;
	guest.wire->front_init(&guest.front, fake_page(&guest.fake, GUEST_RING_GREF),
			       XEN_PAGE_SIZE << params->order, 0);
	assert_int_equal(transport_blkif_attach(&guest.fake.host, FAKE_DOMID, params,
						&guest.transport, &error),
			 0);
	assert_int_equal(guest.transport->nr_slots, 32u << params->order);
	size = request_pool_size(guest.transport->nr_slots, 0, guest.transport->ops->request_size);
	guest.pool_memory = calloc(1, size);
	assert_non_null(guest.pool_memory);
	request_pool_init(&guest.pool, guest.pool_memory, guest.transport->nr_slots, 0,
			  guest.transport->ops->request_size);
}

void guest_connect_as(size_t abi, unsigned order)
{
	struct blkif_ring_params params = guest_params(guest_abis[abi].abi, order);

	guest_connect(abi, &params);
}

void guest_disconnect(void)
{
	guest.transport->ops->free(guest.transport);
	free(guest.pool_memory);
	guest.pool_memory = NULL;
}

/* What the backend logs about its guests is its own business; a test's output is TAP. */
int guest_set_up(void **state)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	fake_xen_init(&guest.fake);
	guest.stderr_fd = dup(STDERR_FILENO);
	dup2(null_fd, STDERR_FILENO);
	close(null_fd);
	return 0;
}

int guest_tear_down(void **state)
{
	(void)state;
	dup2(guest.stderr_fd, STDERR_FILENO);
	close(guest.stderr_fd);
	fake_xen_free(&guest.fake);
	return 0;
}

void guest_put(uint8_t operation, uint64_t id, uint64_t sector, unsigned nr_segments,
	       const struct wire_segment *segments)
{
	struct wire_request request = {.operation = operation,
				       .nr_segments = (uint8_t)nr_segments,
				       .id = id,
				       .sector = sector};

	for (unsigned i = 0; segments && i < nr_segments && i < WIRE_MAX_SEGMENTS; i++)
		request.segments[i] = segments[i];
	guest.wire->front_put(&guest.front, &request);
}

struct request *guest_pop(void)
{
	struct request *request = request_pool_get(&guest.pool);
	int ret;

	if (!request)
		return NULL; /* the pool holds as many as the ring */
	request->state = REQUEST_DECODED;
	ret = guest.transport->ops->pop(guest.transport, request);
	if (ret == 1)
		return request;
	assert_true(ret == 0 || ret == -EAGAIN);
	request_pool_put(&guest.pool, request);
	return NULL;
}

/* Pop all there is into @batch; returns how many. */
unsigned guest_pop_all(struct request_list *batch)
{
	struct request *request;
	unsigned nr = 0;

	TAILQ_INIT(batch);
	guest.wire->front_push(&guest.front);
	while ((request = guest_pop())) {
		TAILQ_INSERT_TAIL(batch, request, link);
		nr++;
	}
	return nr;
}

void guest_respond_all(struct request_list *batch)
{
	struct request *request;

	while ((request = TAILQ_FIRST(batch))) {
		TAILQ_REMOVE(batch, request, link);
		request->state = REQUEST_DONE;
		guest.transport->ops->respond(guest.transport, request);
		request_pool_put(&guest.pool, request);
	}
	guest.transport->ops->flush(guest.transport);
}

void guest_answer_expect(uint64_t id, uint8_t operation, int16_t status)
{
	struct wire_response response;

	assert_true(guest.wire->front_get(&guest.front, &response));
	assert_int_equal(response.id, id);
	assert_int_equal(response.operation, operation);
	assert_int_equal(response.status, status);
}

struct request *guest_nth(struct request_list *batch, unsigned n)
{
	struct request *request = TAILQ_FIRST(batch);

	while (n--)
		request = TAILQ_NEXT(request, link);
	return request;
}

uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

uint8_t pattern(uint64_t id, size_t at)
{
	return (uint8_t)(id * 131 + at * 7 + at / 512);
}

/* Fill or check a request's iov, in order, as a driver would. */
void iov_fill(const struct request *request, uint64_t id)
{
	size_t at = 0;

	for (unsigned v = 0; v < request->nr_iov; v++)
		for (size_t i = 0; i < request->iov[v].iov_len; i++)
			((uint8_t *)request->iov[v].iov_base)[i] = pattern(id, at++);
}

void iov_check(const struct request *request, uint64_t id)
{
	size_t at = 0;

	for (unsigned v = 0; v < request->nr_iov; v++)
		for (size_t i = 0; i < request->iov[v].iov_len; i++)
			if (((uint8_t *)request->iov[v].iov_base)[i] != pattern(id, at++))
				fail_msg("write %lu differs at byte %zu", (unsigned long)id,
					 at - 1);
	assert_int_equal(at, request->len_bytes);
}

/* The guest's side of the same: its own pages, at the sectors it named. */
void shape_fill(const struct shape *shape, uint64_t id)
{
	size_t at = 0;

	for (unsigned i = 0; i < shape->nr; i++) {
		uint8_t *page = fake_page(&guest.fake, shape->segments[i].gref);

		for (size_t b = shape->segments[i].first * 512u;
		     b < (shape->segments[i].last + 1u) * 512u; b++)
			page[b] = pattern(id, at++);
	}
}

void shape_check(const struct shape *shape, uint64_t id)
{
	size_t at = 0;

	for (unsigned i = 0; i < shape->nr; i++) {
		const uint8_t *page = fake_page(&guest.fake, shape->segments[i].gref);

		for (size_t b = 0; b < XEN_PAGE_SIZE; b++) {
			bool inside = b >= shape->segments[i].first * 512u &&
				      b < (shape->segments[i].last + 1u) * 512u;
			uint8_t should = inside ? pattern(id, at++) : 0xa5;

			if (page[b] != should)
				fail_msg("read %lu: segment %u byte %zu is %02x, should be %02x",
					 (unsigned long)id, i, b, page[b], should);
		}
	}
}
