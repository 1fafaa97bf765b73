// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The request pool: all requests of one queue, made at connect.
 *
 * Owns: the layout of requests and their scratch areas in memory which the caller hands in.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: the queue's thread; never blocks.
 * Must not know: what requests are for.
 */
#include "config.h"

#include <assert.h>

#include "backend/request-pool.h"

static size_t align16(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

static size_t stride(size_t driver_size, size_t transport_size)
{
	return align16(sizeof(struct request)) + align16(driver_size) + align16(transport_size);
}

size_t request_pool_size(unsigned nr, size_t driver_size, size_t transport_size)
{
	return nr * stride(driver_size, transport_size);
}

void request_pool_init(struct request_pool *pool, void *memory, unsigned nr, size_t driver_size,
		       size_t transport_size)
{
	char *at = memory;

	TAILQ_INIT(&pool->free);
	pool->nr_requests = nr;
	pool->nr_free = nr;
	for (unsigned i = 0; i < nr; i++) {
		struct request *request = (struct request *)at;

		request->pool_idx = i;
		request->driver_scratch = at + align16(sizeof(*request));
		request->transport_scratch = (char *)request->driver_scratch + align16(driver_size);
		request->state = REQUEST_FREE;
		TAILQ_INSERT_TAIL(&pool->free, request, link);
		at += stride(driver_size, transport_size);
	}
}

struct request *request_pool_get(struct request_pool *pool)
{
	struct request *request = TAILQ_FIRST(&pool->free);

	if (!request)
		return NULL;
	TAILQ_REMOVE(&pool->free, request, link);
	pool->nr_free--;
	return request;
}

void request_pool_put(struct request_pool *pool, struct request *request)
{
	assert(request->state != REQUEST_FREE);
	request->state = REQUEST_FREE;
	TAILQ_INSERT_HEAD(&pool->free, request, link);
	pool->nr_free++;
}
