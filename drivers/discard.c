// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Telling storage that a range is not wanted any more.
 *
 * Owns: which call does it for a file and for a device, and what sizes the storage takes.
 * Trusts / does not trust: what the kernel says; numbers that make no sense mean "not offered".
 * Runs on: the query on the main thread; the call on any, blocks as long as the storage takes.
 * Must not know: requests, queues.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "backend/log.h"
#include "drivers/discard.h"

/* What file systems allocate in, if they do not tell: all that we know have blocks of 4096 bytes by
 * default. One that says more than the maximum means the transfer it likes best (NFS does). */
#define FILE_BLOCK_BYTES 4096u
#define FILE_BLOCK_MAX_BYTES 65536u

/* A number of the device below sysfs; 0 if there is none. */
static unsigned long long device_number(dev_t device, const char *name)
{
	unsigned long long number = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(device), minor(device), name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%llu", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

/* Of the device's queue; a partition has none of its own, and its disk is the folder above. */
static unsigned long long queue_number(dev_t device, const char *name)
{
	unsigned long long number;
	char path[64];

	snprintf(path, sizeof(path), "queue/%s", name);
	number = device_number(device, path);
	if (number)
		return number;
	snprintf(path, sizeof(path), "../queue/%s", name);
	return device_number(device, path);
}

/* Documentation/ABI/stable/sysfs-block: discard_max_bytes is 0 for a device that cannot discard.
 * discard_alignment is where on the device (or the partition) a granule begins: Linux
 * block/blk-settings.c, queue_limit_discard_alignment(), counts from its first byte to there. */
static void device_query(dev_t device, struct disk_limits *limits)
{
	unsigned long long granularity, alignment;

	if (!queue_number(device, "discard_max_bytes"))
		return;
	granularity = queue_number(device, "discard_granularity");
	if (granularity < limits->logical_block_bytes)
		granularity = limits->logical_block_bytes;
	alignment = device_number(device, "discard_alignment") % granularity;
	if (granularity > UINT32_MAX || granularity % limits->logical_block_bytes ||
	    alignment % limits->logical_block_bytes) {
		log_info("the device discards in units of %llu bytes at %llu, which no guest can "
			 "be told: discard is not offered",
			 granularity, alignment);
		return;
	}
	limits->can_discard = true;
	limits->discard_granularity_bytes = (uint32_t)granularity;
	limits->discard_alignment_bytes = (uint32_t)alignment;
}

/* A punch frees whole blocks of the file system; parts of one are only filled with zeroes. */
static uint32_t file_granularity(int fd, uint32_t logical_block_bytes)
{
	struct statvfs fs;
	unsigned long block_bytes = fstatvfs(fd, &fs) ? 0 : fs.f_frsize;

	if (block_bytes < 512 || block_bytes > FILE_BLOCK_MAX_BYTES ||
	    block_bytes & (block_bytes - 1))
		block_bytes = FILE_BLOCK_BYTES;
	/* Both are powers of two, so the larger is a multiple of the other. */
	return block_bytes > logical_block_bytes ? (uint32_t)block_bytes : logical_block_bytes;
}

/* Whether holes can be punched is tried behind the end, where there is nothing to lose. */
static void file_query(int fd, const struct stat *st, struct disk_limits *limits)
{
	uint32_t granularity = file_granularity(fd, limits->logical_block_bytes);
	uint64_t behind = ((uint64_t)st->st_size + granularity) & ~((uint64_t)granularity - 1);

	if (discard_run(fd, behind, granularity, false))
		return;
	limits->can_discard = true;
	limits->discard_granularity_bytes = granularity;
	limits->discard_alignment_bytes = 0;
}

void discard_limits_query(int fd, struct disk_limits *limits)
{
	struct stat st;

	if (fstat(fd, &st))
		return;
	if (S_ISBLK(st.st_mode))
		device_query(st.st_rdev, limits);
	else
		file_query(fd, &st, limits);
}

static bool means_unsupported(int errnum)
{
	return errnum == EOPNOTSUPP || errnum == ENOTSUP || errnum == ENOSYS || errnum == ENODEV ||
	       errnum == ENOTTY;
}

int discard_run(int fd, uint64_t offset_bytes, uint64_t len_bytes, bool secure)
{
	uint64_t range[2] = {offset_bytes, len_bytes};
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	do {
		if (S_ISBLK(st.st_mode))
			ret = ioctl(fd, secure ? BLKSECDISCARD : BLKDISCARD, range);
		else
			ret = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)offset_bytes, (off_t)len_bytes);
	} while (ret && errno == EINTR);
	if (!ret)
		return 0;
	return means_unsupported(errno) ? -EOPNOTSUPP : -errno;
}
