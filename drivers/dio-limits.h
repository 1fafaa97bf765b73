/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What an open file or block device is like for direct I/O: size, block sizes, memory alignment.
 *
 * Owns: the order in which the kernel is asked, and what is assumed when it does not say.
 * Trusts / does not trust: what the kernel says; numbers that make no sense are refused.
 * Runs on: the main thread, before the loop; may block.
 * Must not know: drivers, locks, guests.
 */
#ifndef VBDISK_DIO_LIMITS_H
#define VBDISK_DIO_LIMITS_H

#include "driver.h"

/* Fill size_bytes, logical_block_bytes, physical_block_bytes and memory_align_bytes of @limits for
 * @fd, a regular file or block device open with O_DIRECT; @path is for messages. 0 or -errno with
 * @error filled: empty, size not a multiple of 512 or of the block, no direct I/O. May block. */
int dio_limits_query(int fd, const char *path, struct disk_limits *limits, struct error *error);

/* Fill @error: no direct I/O on @path. Returns -EOPNOTSUPP. */
int dio_limits_refuse(const char *path, struct error *error);

/* The size now of the open file or block device @fd, in whole blocks of @block_bytes: 0, -ENODATA if there
 * is not one, or -errno. */
int dio_size_query(int fd, uint32_t block_bytes, uint64_t *size_bytes_out);

#endif
