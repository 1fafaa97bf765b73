// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lock which keeps two VBDs of one host from writing one image.
 *
 * Owns: the kind of lock, and how long a busy one is waited for.
 * Trusts / does not trust: other programs need not lock at all; this is a convention among those who do.
 * Runs on: the main thread, before the loop; blocks up to 3 s.
 * Must not know: drivers, block sizes.
 *
 * Open-file-description locks: two opens conflict within one process too, and closing some other
 * descriptor of the file does not drop them. They cover bytes 0 to infinity, so holes and later growth
 * are included. They are kept per inode. The inode behind a block device is the one of the /dev node
 * that was opened, so /dev/vg/lv and /dev/dm-3 (one a link to the other) exclude each other, but a
 * second node made with mknod does not, nor does a disk exclude its partitions. That needs one place
 * per host where the device number is locked, for example a file /run/vbdisk/lock/MAJOR:MINOR.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "drivers/file-lock.h"
#include "drivers/path-format.h"

/* A VBD which is just closing (guest reboot, detach and attach) needs a moment to let go. */
#define LOCK_TRIES 61
#define LOCK_WAIT_MS 50

static int lock_try(int fd, int command, struct flock *lock, short type)
{
	int ret;

	do {
		*lock = (struct flock){.l_type = type, .l_whence = SEEK_SET};
		ret = fcntl(fd, command, lock) ? -errno : 0;
	} while (ret == -EINTR);
	return ret == -EACCES ? -EAGAIN : ret;
}

/* Which process holds a conflicting lock? Only classic locks have one; an OFD lock belongs to an open
 * file, and the kernel says -1. */
static int busy_report(int fd, short type, const char *path, struct error *error)
{
	const char *wanted = type == F_WRLCK ? "writing" : "reading";
	struct flock holder;

	if (!lock_try(fd, F_OFD_GETLK, &holder, type) && holder.l_type != F_UNLCK &&
	    holder.l_pid > 0)
		return error_set(error, EBUSY,
				 PATH_FORMAT
				 ": in use: process %d holds a lock, so it cannot be opened "
				 "for %s; detach it there, or end that process",
				 path, (int)holder.l_pid, wanted);
	return error_set(error, EBUSY,
			 PATH_FORMAT
			 ": in use: another process holds a lock, so it cannot be opened for "
			 "%s; detach it there first (who it is: fuser -v " PATH_FORMAT ")",
			 path, wanted, path);
}

int file_lock(int fd, bool writable, const char *path, struct error *error)
{
	const struct timespec wait = {.tv_nsec = LOCK_WAIT_MS * 1000000L};
	short type = writable ? F_WRLCK : F_RDLCK;
	struct flock lock;
	int ret;

	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		if (tries)
			nanosleep(&wait, NULL);
		ret = lock_try(fd, F_OFD_SETLK, &lock, type);
		if (ret != -EAGAIN)
			break;
	}
	switch (ret) {
	case 0:
		return 0;
	case -EAGAIN:
		return busy_report(fd, type, path, error);
	case -ENOLCK:
		return error_set(error, ENOLCK,
				 PATH_FORMAT
				 ": the file system gives no locks (on NFS: is the lock "
				 "service up?), so nothing would keep a second guest from "
				 "writing; make locks work",
				 path);
	default:
		return error_set(error, -ret, PATH_FORMAT ": cannot be locked (%s)", path,
				 strerror(-ret));
	}
}
