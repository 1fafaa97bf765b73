/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Moving along a request's iovec.
 *
 * Owns: nothing.
 * Trusts / does not trust: the caller passed request_validate(): the lengths add up.
 * Runs on: the queue's thread; never blocks.
 * Must not know: where the bytes come from or go to.
 */
#ifndef VBDISK_IOV_H
#define VBDISK_IOV_H

#include <stddef.h>

#include "request.h"

/* Drop the first @bytes of @request's iov; fewer than it holds. len_bytes and offset_bytes stay. */
void iov_advance(struct request *request, uint64_t bytes);

/* Copy @bytes of @request's iov, from its byte @skip_bytes on, to @memory; or from @memory. The iov
 * holds them. */
void iov_gather(const struct request *request, uint64_t skip_bytes, void *memory, size_t bytes);
void iov_scatter(const struct request *request, uint64_t skip_bytes, const void *memory,
		 size_t bytes);

#endif
