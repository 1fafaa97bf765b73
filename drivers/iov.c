// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Moving along a request's iovec.
 *
 * Owns: nothing.
 * Trusts / does not trust: the caller passed request_validate(): the lengths add up.
 * Runs on: the queue's thread; never blocks.
 * Must not know: where the bytes come from or go to.
 */
#include "config.h"

#include <string.h>

#include "drivers/iov.h"

void iov_advance(struct request *request, uint64_t bytes)
{
	while (bytes >= request->iov->iov_len) {
		bytes -= request->iov->iov_len;
		request->iov++;
		request->nr_iov--;
	}
	request->iov->iov_base = (char *)request->iov->iov_base + bytes;
	request->iov->iov_len -= bytes;
}

/* Exactly one of @to and @from is memory. */
static void iov_copy(const struct iovec *iov, uint64_t skip_bytes, char *to, const char *from,
		     size_t bytes)
{
	for (; skip_bytes >= iov->iov_len; iov++)
		skip_bytes -= iov->iov_len;
	for (; bytes; iov++) {
		char *at = (char *)iov->iov_base + skip_bytes;
		size_t len = iov->iov_len - skip_bytes < bytes ? iov->iov_len - skip_bytes : bytes;

		if (to) {
			memcpy(to, at, len);
			to += len;
		} else {
			memcpy(at, from, len);
			from += len;
		}
		bytes -= len;
		skip_bytes = 0;
	}
}

void iov_gather(const struct request *request, uint64_t skip_bytes, void *memory, size_t bytes)
{
	iov_copy(request->iov, skip_bytes, memory, NULL, bytes);
}

void iov_scatter(const struct request *request, uint64_t skip_bytes, const void *memory,
		 size_t bytes)
{
	iov_copy(request->iov, skip_bytes, NULL, memory, bytes);
}
