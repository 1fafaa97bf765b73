/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The request pool: all requests of one queue, made at connect.
 *
 * Owns: the layout of requests and their scratch areas in memory which the caller hands in.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: the queue's thread; never blocks.
 * Must not know: what requests are for.
 *
 * The memory is the caller's so that it can live wherever the caller needs it (anonymous today; a memfd
 * that outlives the process for crash recovery).
 */
#ifndef VBDISK_REQUEST_POOL_H
#define VBDISK_REQUEST_POOL_H

#include <stddef.h>

#include "request.h"

struct request_pool {
	struct request_list free; /* last in, first out: recently used memory is warm */
	unsigned nr_requests;
	unsigned nr_free;
};

/* Bytes of memory for @nr requests with these scratch sizes. */
size_t request_pool_size(unsigned nr, size_t driver_size, size_t transport_size);

/* Lay out @nr requests in @memory: zeroed, 16-byte aligned, request_pool_size() bytes, and the caller's
 * until the pool is no longer used. */
void request_pool_init(struct request_pool *pool, void *memory, unsigned nr, size_t driver_size,
		       size_t transport_size);

/* A FREE request, or NULL if all are out. It comes back by request_pool_put(). */
struct request *request_pool_get(struct request_pool *pool);
void request_pool_put(struct request_pool *pool, struct request *request);

#endif
