/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The gate: what a request must be before a driver may see it.
 *
 * Owns: the checks that depend on the disk only.
 * Trusts / does not trust: trusts nothing a guest can set; relies on the decoder that len_bytes is the
 *   sum of the iov and that the iov points to our own memory.
 * Runs on: the queue's thread; never blocks.
 * Must not know: any wire.
 */
#ifndef VBDISK_REQUEST_VALIDATE_H
#define VBDISK_REQUEST_VALIDATE_H

#include "driver.h"
#include "request.h"

/* 0, or why @request is refused: -EOPNOTSUPP (this disk cannot flush, or discard), -EROFS (a write or
 * discard on a read-only disk), -ERANGE (outside the disk), -EINVAL (a transfer that is empty, or not
 * aligned to the logical block). */
int request_validate(const struct request *request, const struct disk_limits *limits);

/* Cut a valid DISCARD to the whole granules within it, never beyond its range: what lies at its edges
 * stays as it is. REQUEST_SECURE is taken away where the disk does not have it (blkif.h: an optional
 * flag). False if no granule is left, and there is nothing to do. */
bool request_round(struct request *request, const struct disk_limits *limits);

#endif
