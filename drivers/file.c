// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Driver "file": a raw image in a regular file, or a block device (a disk, a partition, an LVM volume),
 * by O_DIRECT and native AIO.
 *
 * Owns: one descriptor per disk, with its lock.
 * Trusts / does not trust: the path comes from the toolstack; whatever it names is looked at before it
 *   is opened, and everything that cannot be served faithfully is refused with its cure.
 * Runs on: open and close on the main thread; open may block, up to 3 s for a busy lock. The rest is
 *   the AIO engine's.
 * Must not know: guests, rings, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "container.h"
#include "drivers/aio-engine.h"
#include "drivers/dio-limits.h"
#include "drivers/discard.h"
#include "drivers/drivers.h"
#include "drivers/file-lock.h"
#include "drivers/path-format.h"

/* As long as for a lock (file-lock.c). */
#define CLAIM_TRIES 61
#define CLAIM_WAIT_MS 50

struct file_disk {
	struct disk disk;
	int fd;
};

/* A name without a slash is one in /dev, as the toolstack means it (xl: target=vg0/x, sda5). */
static int path_resolve(const char *params, char **path_out, struct error *error)
{
	const char *prefix = strchr(params, '/') ? "" : "/dev/";

	if (!*params)
		return error_set(error, EINVAL,
				 "no image is named: give the disk a target, for example "
				 "target=/srv/disk.img");
	if (!*prefix && params[0] != '/')
		return error_set(error, EINVAL,
				 PATH_FORMAT
				 ": the path is relative; write the whole path, from / on",
				 params);
	if (asprintf(path_out, "%s%s", prefix, params) < 0)
		return error_set(error, ENOMEM, PATH_FORMAT ": no memory", params);
	return 0;
}

static int open_refuse(const char *path, bool writable, int errnum, struct error *error)
{
	const char *instead = writable ? ", or attach it read-only (access=ro)" : "";

	switch (errnum) {
	case ENOENT:
		return error_set(error, errnum,
				 PATH_FORMAT
				 ": does not exist; create it (truncate -s 10G " PATH_FORMAT
				 ") or correct the disk's target",
				 path, path);
	case ENOTDIR:
		return error_set(error, errnum,
				 PATH_FORMAT ": a part of the path is not a directory; correct the "
					     "disk's target",
				 path);
	case EACCES:
		return error_set(error, errnum,
				 PATH_FORMAT
				 ": permission denied for user %u; give that user access to "
				 "the file and to every directory on the way%s",
				 path, (unsigned)geteuid(), instead);
	case EPERM:
		return error_set(error, errnum,
				 PATH_FORMAT
				 ": not permitted; look for the immutable attribute (lsattr, "
				 "chattr -i)%s",
				 path, instead);
	case EROFS:
		return error_set(error, errnum,
				 PATH_FORMAT ": is read-only storage; make it writable%s", path,
				 instead);
	case ETXTBSY:
		return error_set(error, errnum,
				 PATH_FORMAT
				 ": is in use as a program or as swap space; end that use%s",
				 path, instead);
	case ELOOP:
		return error_set(error, errnum,
				 PATH_FORMAT ": the symbolic links lead in a circle; correct them",
				 path);
	case ENAMETOOLONG:
		return error_set(error, errnum,
				 PATH_FORMAT
				 "...: the path is too long (%zu bytes); use a shorter one, "
				 "or a symbolic link",
				 path, strlen(path));
	case ENXIO:
	case ENODEV:
	case ENOMEDIUM:
		return error_set(error, errnum,
				 PATH_FORMAT
				 ": there is no device behind it (%s); load its driver or "
				 "put a medium in",
				 path, strerror(errnum));
	case EBUSY:
		return error_set(error, errnum,
				 PATH_FORMAT
				 ": in use: the device, its disk or a partition of it is mounted, "
				 "swap, a part of LVM, RAID or multipath, or another program has "
				 "claimed it; end that use (lsblk, fuser -v " PATH_FORMAT ")%s",
				 path, path, instead);
	case EAGAIN:
		return error_set(error, EBUSY,
				 PATH_FORMAT
				 ": in use: another process holds a lease on it (who it is: "
				 "fuser -v " PATH_FORMAT ")",
				 path, path);
	case EINVAL: /* the answer to O_DIRECT */
		return dio_limits_refuse(path, error);
	default:
		return error_set(error, errnum, PATH_FORMAT ": cannot be opened (%s)", path,
				 strerror(errnum));
	}
}

static int kind_check(const struct stat *st, const char *path, struct error *error)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFBLK:
		return 0;
	case S_IFDIR:
		return error_set(error, EISDIR,
				 PATH_FORMAT ": is a directory; name an image file in it", path);
	case S_IFIFO:
		return error_set(error, EINVAL,
				 PATH_FORMAT ": is a FIFO; name a raw image or a block device",
				 path);
	case S_IFCHR:
		return error_set(error, ENOTBLK,
				 PATH_FORMAT ": is a character device; name a raw image or a block "
					     "device",
				 path);
	case S_IFSOCK:
		return error_set(error, EINVAL,
				 PATH_FORMAT ": is a socket; name a raw image or a block device",
				 path);
	default:
		return error_set(error, EINVAL,
				 PATH_FORMAT ": is neither a file nor a block device; name one",
				 path);
	}
}

/* A device that somebody has claimed may be that of a VBD which is just closing. */
static int open_patiently(const char *path, int flags)
{
	const struct timespec wait = {.tv_nsec = CLAIM_WAIT_MS * 1000000L};
	int fd;

	for (unsigned tries = 0; tries < CLAIM_TRIES; tries++) {
		if (tries)
			nanosleep(&wait, NULL);
		do {
			fd = open(path, flags);
		} while (fd < 0 && errno == EINTR);
		if (fd >= 0 || errno != EBUSY)
			break;
	}
	return fd;
}

/* Look before opening: to open a FIFO waits for its other end, and to open some devices makes them
 * act. What was opened is checked again, should the name have been moved meanwhile; O_NONBLOCK is for
 * that case, and means nothing for files and disks afterwards.
 * A device that is to be written is claimed (O_EXCL): the kernel refuses that while a file system, swap,
 * device-mapper, md or another claimant has the device by any node, its disk, or a partition of it
 * (block/bdev.c, bd_prepare_to_claim()). A lock on a node sees the node only. */
static int path_open(const char *path, unsigned open_flags, int *fd_out, struct stat *st,
		     struct error *error)
{
	bool writable = open_flags & DISK_OPEN_WRITABLE;
	int flags = O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (writable ? O_RDWR : O_RDONLY);
	bool is_device;
	int fd, ret;

	if (stat(path, st))
		return open_refuse(path, writable, errno, error);
	ret = kind_check(st, path, error);
	if (ret)
		return ret;
	is_device = S_ISBLK(st->st_mode);
	if (is_device && writable && !(open_flags & DISK_OPEN_SHARED))
		flags |= O_EXCL;
	fd = open_patiently(path, flags);
	if (fd < 0)
		return open_refuse(path, writable, errno, error);
	if (fstat(fd, st))
		ret = open_refuse(path, writable, errno, error);
	else if (S_ISBLK(st->st_mode) != is_device)
		ret = error_set(error, EAGAIN,
				PATH_FORMAT ": was replaced while it was opened; try again", path);
	else
		ret = kind_check(st, path, error);
	if (ret)
		close(fd);
	else
		*fd_out = fd;
	return ret;
}

/* A read-only block device may be opened for writing; only each write fails. */
static int device_write_check(int fd, const struct stat *st, const char *path, struct error *error)
{
	int read_only = 0;

	if (S_ISBLK(st->st_mode) && !ioctl(fd, BLKROGET, &read_only) && read_only)
		return open_refuse(path, true, EROFS, error);
	return 0;
}

/* Someone else may have written through the page cache (a copy just made, QEMU's emulated disk while
 * the guest's firmware ran). Write that back and drop it, once, so that it can neither land on top of
 * our writes nor hide them. The same call proves that FLUSH works. */
static int cache_settle(int fd, const char *path, struct error *error)
{
	if (fdatasync(fd))
		return error_set(error, errno,
				 PATH_FORMAT
				 ": cannot be flushed (fdatasync: %s), so no write would be "
				 "safe; check the storage",
				 path, strerror(errno));
	/* Advice: what is still in use stays, and direct I/O keeps that coherent. */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static int file_prepare(int fd, const struct stat *st, const char *path, unsigned flags,
			struct disk_limits *limits, struct error *error)
{
	bool writable = flags & DISK_OPEN_WRITABLE;
	int ret = 0;

	/* First, so that everything below is found as the holder before us left it. */
	if (!(flags & DISK_OPEN_SHARED))
		ret = file_lock(fd, writable, path, error);
	if (!ret && writable)
		ret = device_write_check(fd, st, path, error);
	if (!ret)
		ret = dio_limits_query(fd, path, limits, error);
	if (!ret && writable)
		ret = cache_settle(fd, path, error);
	limits->can_write = writable;
	limits->can_flush = true;
	if (!ret && writable)
		discard_limits_query(fd, limits);
	return ret;
}

static int file_open(const char *params, unsigned flags, struct disk **disk_out,
		     struct error *error)
{
	struct file_disk *file;
	struct stat st;
	char *path;
	int ret = path_resolve(params, &path, error);

	if (ret)
		return ret;
	file = calloc(1, sizeof(*file));
	if (!file) {
		ret = error_set(error, ENOMEM, PATH_FORMAT ": no memory", path);
		goto out;
	}
	file->disk.driver = &file_driver;
	file->disk.request_size = aio_request_size();
	ret = path_open(path, flags, &file->fd, &st, error);
	if (ret)
		goto err_free;
	ret = file_prepare(file->fd, &st, path, flags, &file->disk.limits, error);
	if (ret)
		goto err_close;
	if (S_ISBLK(st.st_mode))
		file->disk.device = st.st_rdev;
	*disk_out = &file->disk;
	goto out;

err_close:
	close(file->fd);
err_free:
	free(file);
out:
	free(path);
	return ret;
}

static void file_close(struct disk *disk)
{
	struct file_disk *file = container_of(disk, struct file_disk, disk);

	close(file->fd);
	free(file);
}

static int file_sync(struct disk *disk)
{
	struct file_disk *file = container_of(disk, struct file_disk, disk);

	return file->disk.limits.can_write && fdatasync(file->fd) ? -errno : 0;
}

static int file_refresh(struct disk *disk, uint64_t *size_bytes_out)
{
	struct file_disk *file = container_of(disk, struct file_disk, disk);

	return dio_size_query(file->fd, disk->limits.logical_block_bytes, size_bytes_out);
}

static int file_queue_create(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
			     struct error *error)
{
	struct file_disk *file = container_of(disk, struct file_disk, disk);

	return aio_queue_create(disk, file->fd, depth, queue_out, error);
}

const struct driver file_driver = {
	.name = "file",
	.description = "a raw image file or a block device, by direct I/O",
	.params_help = "PATH  from the root; a name without a slash is one in /dev\n",
	.open = file_open,
	.close = file_close,
	.sync = file_sync,
	.refresh = file_refresh,
	.queue_create = file_queue_create,
	.queue_destroy = aio_queue_destroy,
	.submit = aio_queue_submit,
	.kick = aio_queue_kick,
	.poll_fd = aio_queue_poll_fd,
	.reap = aio_queue_reap,
};
