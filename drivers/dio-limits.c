// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What an open file or block device is like for direct I/O: size, block sizes, memory alignment.
 *
 * Owns: the order in which the kernel is asked, and what is assumed when it does not say.
 * Trusts / does not trust: what the kernel says; numbers that make no sense are refused.
 * Runs on: the main thread, before the loop; may block.
 * Must not know: drivers, locks, guests.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drivers/dio-limits.h"
#include "drivers/path-format.h"

#define SECTOR_BYTES 512u
#define BLOCK_ASSUMED_BYTES 4096u
#define BLOCK_MAX_BYTES 65536u

/* statx() tells the alignment of direct I/O since Linux 6.1. The mask bit and the place of the two
 * words in the 256 bytes of struct statx are ABI (include/uapi/linux/stat.h); headers which are older
 * than that lack the names, so they are spelt out here. */
#define STATX_DIOALIGN_BIT 0x2000u
#define STATX_DIO_MEM_ALIGN_AT 0x98
#define STATX_DIO_OFFSET_ALIGN_AT 0x9c

struct dio_align {
	uint32_t offset_bytes;
	uint32_t memory_bytes;
};

int dio_limits_refuse(const char *path, struct error *error)
{
	return error_set(error, EOPNOTSUPP,
			 PATH_FORMAT
			 ": the file system has no direct I/O (O_DIRECT); move the image to "
			 "one that has it (ext4, xfs, a block device): buffered I/O is not "
			 "offered",
			 path);
}

static bool is_block_size(uint64_t bytes)
{
	return bytes >= SECTOR_BYTES && bytes <= BLOCK_MAX_BYTES && !(bytes & (bytes - 1));
}

static uint32_t word_at(const struct statx *stx, size_t at)
{
	uint32_t word;

	memcpy(&word, (const char *)stx + at, sizeof(word));
	return word;
}

/* 0, -EOPNOTSUPP (the kernel says: no direct I/O on this file), or -ENODATA (it does not say). */
static int align_by_statx(int fd, struct dio_align *align)
{
	struct statx stx;

	_Static_assert(sizeof(stx) == 256, "struct statx is 256 bytes in the kernel's ABI");
	memset(&stx, 0, sizeof(stx));
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN_BIT, &stx) ||
	    !(stx.stx_mask & STATX_DIOALIGN_BIT))
		return -ENODATA;
	align->memory_bytes = word_at(&stx, STATX_DIO_MEM_ALIGN_AT);
	align->offset_bytes = word_at(&stx, STATX_DIO_OFFSET_ALIGN_AT);
	if (!align->memory_bytes || !align->offset_bytes)
		return -EOPNOTSUPP;
	if (align->offset_bytes < SECTOR_BYTES)
		align->offset_bytes = SECTOR_BYTES;
	return 0;
}

/* The logical block of the device below file system @dev; 0 when there is none to be found (network
 * and memory file systems, and those over several devices). A partition has no queue of its own. */
static uint32_t block_by_sysfs(dev_t dev)
{
	static const char *const places[] = {"", "../"};
	unsigned long bytes = 0;
	char path[96];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%squeue/logical_block_size",
			 major(dev), minor(dev), places[i]);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%lu", &bytes) != 1)
			bytes = 0;
		fclose(file);
		break;
	}
	return (uint32_t)bytes;
}

/* Try whether 512 bytes can be read from an odd sector. In a hole that says little, so data is looked
 * for first. Only file systems come here which neither tell by statx() nor stand on one device. */
static uint32_t block_by_trial(int fd)
{
	uint32_t bytes = BLOCK_ASSUMED_BYTES;
	off_t data = lseek(fd, 0, SEEK_DATA);
	void *buffer;

	if (data < 0)
		data = 0;
	data -= data % BLOCK_ASSUMED_BYTES;
	if (posix_memalign(&buffer, BLOCK_ASSUMED_BYTES, SECTOR_BYTES))
		return bytes;
	if (pread(fd, buffer, SECTOR_BYTES, data + (off_t)SECTOR_BYTES) >= 0)
		bytes = SECTOR_BYTES;
	free(buffer);
	return bytes;
}

static int align_query(int fd, const struct stat *st, struct dio_align *align)
{
	int ret = align_by_statx(fd, align);
	int block_bytes = 0;

	if (ret != -ENODATA)
		return ret;
	if (S_ISBLK(st->st_mode)) {
		if (ioctl(fd, BLKSSZGET, &block_bytes))
			block_bytes = BLOCK_ASSUMED_BYTES;
		align->offset_bytes = (uint32_t)block_bytes;
	} else {
		align->offset_bytes = block_by_sysfs(st->st_dev);
		if (!align->offset_bytes)
			align->offset_bytes = block_by_trial(fd);
	}
	/* Kernels that do not tell want memory aligned like the offset (before 6.0), or less. */
	align->memory_bytes = align->offset_bytes;
	return 0;
}

static int size_query(int fd, const struct stat *st, const char *path, uint64_t *size_out,
		      struct error *error)
{
	*size_out = (uint64_t)st->st_size;
	if (S_ISBLK(st->st_mode) && ioctl(fd, BLKGETSIZE64, size_out))
		return error_set(error, errno,
				 PATH_FORMAT ": the device does not tell its size (%s)", path,
				 strerror(errno));
	return 0;
}

static uint32_t physical_query(int fd, const struct stat *st, uint32_t logical_bytes)
{
	unsigned int bytes = 0;

	if (S_ISBLK(st->st_mode)) {
		if (ioctl(fd, BLKPBSZGET, &bytes))
			bytes = 0;
	} else {
		/* The file system's block, but no more than a page: on network file systems st_blksize
		 * is a transfer size, and a guest would take it for a sector. */
		bytes = st->st_blksize < BLOCK_ASSUMED_BYTES ? (unsigned int)st->st_blksize
							     : BLOCK_ASSUMED_BYTES;
	}
	return is_block_size(bytes) && bytes > logical_bytes ? bytes : logical_bytes;
}

static int size_check(const struct stat *st, const char *path, uint64_t size_bytes,
		      uint32_t block_bytes, struct error *error)
{
	unsigned long long size = size_bytes, next = (size / block_bytes + 1) * block_bytes;

	if (!size)
		return S_ISBLK(st->st_mode)
			       ? error_set(error, ENOMEDIUM,
					   PATH_FORMAT
					   ": the device is empty (0 bytes); put a medium in, "
					   "or set the device up first",
					   path)
			       : error_set(error, EINVAL,
					   PATH_FORMAT
					   ": the image is empty (0 bytes); give it a size, "
					   "for example truncate -s 10G " PATH_FORMAT,
					   path, path);
	if (!(size % block_bytes))
		return 0;
	if (S_ISBLK(st->st_mode))
		return error_set(error, EINVAL,
				 PATH_FORMAT ": the size of %llu bytes is not a multiple of %u",
				 path, size, block_bytes);
	return error_set(error, EINVAL,
			 PATH_FORMAT
			 ": the size of %llu bytes is not a multiple of %u%s; enlarge the "
			 "image: truncate -s %llu " PATH_FORMAT,
			 path, size, block_bytes,
			 block_bytes == SECTOR_BYTES ? "" : ", the block of the storage below it",
			 next, path);
}

int dio_limits_query(int fd, const char *path, struct disk_limits *limits, struct error *error)
{
	struct dio_align align;
	uint64_t size_bytes;
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return error_set(error, errno, PATH_FORMAT ": cannot be looked at (fstat: %s)",
				 path, strerror(errno));
	ret = size_query(fd, &st, path, &size_bytes, error);
	if (ret)
		return ret;
	/* First against 512, which holds for every image: the message is simpler. */
	ret = size_check(&st, path, size_bytes, SECTOR_BYTES, error);
	if (ret)
		return ret;
	if (align_query(fd, &st, &align))
		return dio_limits_refuse(path, error);
	if (!is_block_size(align.offset_bytes) || align.memory_bytes & (align.memory_bytes - 1))
		return error_set(error, EINVAL,
				 PATH_FORMAT
				 ": direct I/O wants offsets aligned to %u and memory to %u "
				 "bytes, which no guest can be told; move the image to other "
				 "storage",
				 path, align.offset_bytes, align.memory_bytes);
	ret = size_check(&st, path, size_bytes, align.offset_bytes, error);
	if (ret)
		return ret;
	limits->size_bytes = size_bytes;
	limits->logical_block_bytes = align.offset_bytes;
	limits->physical_block_bytes = physical_query(fd, &st, align.offset_bytes);
	limits->memory_align_bytes = align.memory_bytes;
	return 0;
}

int dio_size_query(int fd, uint32_t block_bytes, uint64_t *size_bytes_out)
{
	uint64_t size_bytes;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	size_bytes = (uint64_t)st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, &size_bytes))
		return -errno;
	if (size_bytes < block_bytes)
		return -ENODATA;
	*size_bytes_out = size_bytes - size_bytes % block_bytes;
	return 0;
}
