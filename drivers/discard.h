/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Telling storage that a range is not wanted any more.
 *
 * Owns: which call does it for a file and for a device, and what sizes the storage takes.
 * Trusts / does not trust: what the kernel says; numbers that make no sense mean "not offered".
 * Runs on: the query on the main thread; the call on any, blocks as long as the storage takes.
 * Must not know: requests, queues.
 */
#ifndef VBDISK_DISCARD_H
#define VBDISK_DISCARD_H

#include "driver.h"

/* Fill the discard members of @limits, whose other members are filled, for @fd, which is open for
 * writing. Nothing on the storage is changed. */
void discard_limits_query(int fd, struct disk_limits *limits);

/* Discard the range. 0; -EOPNOTSUPP if this storage cannot, in any of the ways it has to say so;
 * -errno. */
int discard_run(int fd, uint64_t offset_bytes, uint64_t len_bytes, bool secure);

#endif
