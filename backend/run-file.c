// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Run files: one per VBD, held locked by the process that serves it.
 *
 * Owns: the files of the run directory, their locks and their text.
 * Trusts / does not trust: the run directory is root's; a file without a lock means nothing.
 * Runs on: the main thread; local file system calls only.
 * Must not know: xenstore, what a VBD does.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/run-file.h"

int run_dir_make(const char *dir)
{
	return mkdir(dir, 0755) && errno != EEXIST ? -errno : 0;
}

static int path_make(char *path, size_t size, const char *dir, const char *name)
{
	int len = snprintf(path, size, "%s/%s", dir, name);

	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

static int lock_holder(int fd, pid_t *holder_out)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_GETLK, &lock))
		return -errno;
	*holder_out = lock.l_type == F_UNLCK ? 0 : lock.l_pid;
	return 0;
}

/* Is the file we have open and locked still the one of that name? The last holder removes it. */
static bool still_named(int fd, const char *path)
{
	struct stat mine, named;

	return !fstat(fd, &mine) && !stat(path, &named) && mine.st_ino == named.st_ino &&
	       mine.st_dev == named.st_dev;
}

int run_file_hold(struct run_file *file, const char *dir, const char *name, pid_t *holder_out)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int err = path_make(file->path, sizeof(file->path), dir, name);

	if (err)
		return err;
	for (;;) {
		file->fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (file->fd < 0)
			return -errno;
		if (fcntl(file->fd, F_SETLK, &lock)) {
			err = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
			if (err == -EBUSY && lock_holder(file->fd, holder_out))
				*holder_out = 0;
			close(file->fd);
			return err;
		}
		if (still_named(file->fd, file->path))
			return 0;
		close(file->fd);
	}
}

int run_file_write(struct run_file *file, const char *text)
{
	size_t len = strlen(text);
	ssize_t written;

	if (ftruncate(file->fd, 0))
		return -errno;
	written = pwrite(file->fd, text, len, 0);
	if (written < 0)
		return -errno;
	return (size_t)written == len ? 0 : -ENOSPC;
}

void run_file_release(struct run_file *file)
{
	unlink(file->path);
	close(file->fd);
}

int run_file_holder(const char *dir, const char *name, pid_t *holder_out)
{
	char path[512];
	int fd, err = path_make(path, sizeof(path), dir, name);

	if (err)
		return err;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		*holder_out = 0;
		return errno == ENOENT ? 0 : -errno;
	}
	err = lock_holder(fd, holder_out);
	close(fd);
	return err;
}

static bool file_has_text(const char *path, const char *text)
{
	char found[RUN_FILE_TEXT_MAX];
	pid_t holder = 0;
	ssize_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return false;
	len = read(fd, found, sizeof(found));
	if (lock_holder(fd, &holder))
		holder = 0;
	close(fd);
	return holder && len == (ssize_t)strlen(text) && !memcmp(found, text, (size_t)len);
}

int run_file_find(const char *dir, const struct run_file *own, const char *text, char *name_out,
		  size_t size)
{
	DIR *entries = opendir(dir);
	struct dirent *entry;
	char path[512];
	int err = -ENOENT;

	if (!entries)
		return -errno;
	while (err && (entry = readdir(entries))) {
		if (entry->d_name[0] == '.' || path_make(path, sizeof(path), dir, entry->d_name) ||
		    (own && !strcmp(path, own->path)) || !file_has_text(path, text))
			continue;
		snprintf(name_out, size, "%s", entry->d_name);
		err = 0;
	}
	closedir(entries);
	return err;
}
