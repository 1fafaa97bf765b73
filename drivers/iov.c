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
