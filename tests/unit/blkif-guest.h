/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A guest on a fake Xen host: a frontend made of ring.h's macros against the blkif transport, which the test
 * drives as the data path would.
 *
 * Owns: the one guest. Trusts: the test. Runs on: the test. Must not know: the disk.
 */
#ifndef VBDISK_TEST_BLKIF_GUEST_H
#define VBDISK_TEST_BLKIF_GUEST_H

#include "backend/request-pool.h"
#include "backend/transport-blkif.h"
#include "tests/unit/fake-xen.h"
#include "tests/unit/wire.h"

#define GUEST_RING_GREF 8
#define GUEST_ABIS 3

struct guest {
	struct fake_xen fake;
	const struct wire *wire;
	struct wire_ring front;
	struct transport *transport;
	struct request_pool pool;
	void *pool_memory;
	int stderr_fd; /* the real one, while log lines are kept from the terminal */
};

extern struct guest guest;

struct guest_abi {
	const struct blkif_abi *abi;
	const struct wire *wire;
};

extern const struct guest_abi guest_abis[GUEST_ABIS];

/* cmocka's, for each case: a fresh host; what the backend logs is kept from the test's output. */
int guest_set_up(void **state);
int guest_tear_down(void **state);

/* Parameters of a ring of 1 << @order pages; nothing is offered. */
struct blkif_ring_params guest_params(const struct blkif_abi *abi, unsigned order);

/* Attach a transport to a fresh ring. */
void guest_connect(size_t abi, const struct blkif_ring_params *params);
void guest_connect_as(size_t abi, unsigned order);
void guest_disconnect(void); /* frees it */

/* The frontend puts a request into the ring. */
void guest_put(uint8_t operation, uint64_t id, uint64_t sector, unsigned nr_segments,
	       const struct wire_segment *segments);

/* The frontend finds this answer next. */
void guest_answer_expect(uint64_t id, uint8_t operation, int16_t status);

/* The next request, or NULL: there is none, or none that could be taken now. */
struct request *guest_pop(void);

/* Publish what was put, and pop all there is into @batch; returns how many. */
unsigned guest_pop_all(struct request_list *batch);

struct request *guest_nth(struct request_list *batch, unsigned n);
void guest_respond_all(struct request_list *batch);

/* Data that tells requests and bytes apart. */
uint8_t pattern(uint64_t id, size_t at);
uint32_t random_next(uint32_t *seed);

/* Fill or check a request's iov, in order, as a driver would. */
void iov_fill(const struct request *request, uint64_t id);
void iov_check(const struct request *request, uint64_t id);

/* The guest's side of the same: its own pages, at the sectors it named; bytes beside them are a5. */
struct shape {
	unsigned nr;
	struct wire_segment segments[WIRE_MAX_SEGMENTS];
};

void shape_fill(const struct shape *shape, uint64_t id);
void shape_check(const struct shape *shape, uint64_t id);

#endif
