// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate: what a request must be before a driver may see it.
 *
 * Owns: the checks that depend on the disk only.
 * Trusts / does not trust: trusts nothing a guest can set.
 * Runs on: the queue's thread; never blocks.
 * Must not know: any wire.
 */
#include "config.h"

#include <errno.h>

#include "backend/request-validate.h"

static bool is_aligned(uint64_t value, uint32_t power_of_two)
{
	return !(value & (power_of_two - 1));
}

/* Two comparisons without a sum, which could wrap. */
static int range_validate(const struct request *request, const struct disk_limits *limits)
{
	if (request->offset_bytes > limits->size_bytes ||
	    request->len_bytes > limits->size_bytes - request->offset_bytes)
		return -ERANGE;
	return 0;
}

static int data_validate(const struct request *request, const struct disk_limits *limits)
{
	int err = range_validate(request, limits);

	if (err)
		return err;
	if (!request->len_bytes)
		return -EINVAL;
	if (!is_aligned(request->offset_bytes, limits->logical_block_bytes))
		return -EINVAL;
	/* Direct I/O wants every piece aligned, in memory and in length. */
	for (unsigned i = 0; i < request->nr_iov; i++)
		if (!is_aligned(request->iov[i].iov_len, limits->logical_block_bytes) ||
		    !is_aligned((uintptr_t)request->iov[i].iov_base, limits->memory_align_bytes))
			return -EINVAL;
	return 0;
}

int request_validate(const struct request *request, const struct disk_limits *limits)
{
	switch (request->op) {
	case REQUEST_FLUSH:
		return limits->can_flush ? 0 : -EOPNOTSUPP;
	case REQUEST_WRITE:
		if (!limits->can_write)
			return -EROFS;
		if ((request->flags & (REQUEST_PREFLUSH | REQUEST_FUA)) && !limits->can_flush)
			return -EOPNOTSUPP;
		return data_validate(request, limits);
	case REQUEST_READ:
		return data_validate(request, limits);
	case REQUEST_DISCARD:
		if (!limits->can_write)
			return -EROFS;
		return limits->can_discard ? range_validate(request, limits) : -EOPNOTSUPP;
	case REQUEST_OPS:
		break;
	}
	return -EOPNOTSUPP;
}

bool request_round(struct request *request, const struct disk_limits *limits)
{
	uint64_t granularity = limits->discard_granularity_bytes;
	uint64_t first = request->offset_bytes, end = first + request->len_bytes;
	uint64_t origin = limits->discard_alignment_bytes;

	if (!limits->can_secure_discard)
		request->flags &= ~REQUEST_SECURE;
	first = first > origin
			? origin + (first - origin + granularity - 1) / granularity * granularity
			: origin;
	if (end <= first)
		return false;
	end = origin + (end - origin) / granularity * granularity;
	if (end <= first)
		return false;
	request->offset_bytes = first;
	request->len_bytes = end - first;
	return true;
}
