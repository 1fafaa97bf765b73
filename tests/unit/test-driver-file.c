// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Driver "file" at open: what cannot be served, what is said about it, locks, sizes, read-only.
 *
 * Owns: a scratch directory's worth of wrong images; wrappers of the calls that ask the kernel.
 * Trusts / does not trust: nothing.
 * Runs on: the test; waits up to 3 s for a lock where the lock is the point.
 * Must not know: the AIO engine.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/driver-harness.h"

#define WRITABLE DISK_OPEN_WRITABLE
#define NOBODY 65534

int __real_nanosleep(const struct timespec *wait, struct timespec *left);
int __real_statx(int fd, const char *path, int flags, unsigned mask, struct statx *stx);
int __real_fstat(int fd, struct stat *st);
int __real_open(const char *path, int flags, ...);
int __real_fdatasync(int fd);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);
int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *stx);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fdatasync(int fd);

static struct {
	bool fast_sleep;
	unsigned nr_sleeps;
	bool no_statx;
	uint32_t offset_align, memory_align; /* what statx() says; 0: the kernel */
	bool no_direct_io;		     /* statx() says so */
	dev_t dev;			     /* of fstat(); 0: the kernel */
	int open_error;
	unsigned open_flags; /* of the last O_DIRECT open */
	int fdatasync_error;
	unsigned nr_fdatasyncs;
} script;

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
	script.nr_sleeps++;
	return script.fast_sleep ? 0 : __real_nanosleep(wait, left);
}

int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *stx)
{
	uint32_t *words = (uint32_t *)stx;
	int ret;

	if (script.no_statx) {
		errno = ENOSYS;
		return -1;
	}
	ret = __real_statx(fd, path, flags, mask, stx);
	if (script.no_direct_io || script.offset_align) {
		stx->stx_mask |= 0x2000; /* STATX_DIOALIGN */
		words[0x98 / 4] = script.memory_align;
		words[0x9c / 4] = script.offset_align;
	}
	return ret;
}

int __wrap_fstat(int fd, struct stat *st)
{
	int ret = __real_fstat(fd, st);

	if (!ret && script.dev)
		st->st_dev = script.dev;
	return ret;
}

int __wrap_open(const char *path, int flags, ...)
{
	if (flags & O_DIRECT) {
		script.open_flags = (unsigned)flags;
		if (script.open_error) {
			errno = script.open_error;
			return -1;
		}
	}
	return __real_open(path, flags, 0666);
}

int __wrap_fdatasync(int fd)
{
	script.nr_fdatasyncs++;
	if (script.fdatasync_error) {
		errno = script.fdatasync_error;
		return -1;
	}
	return __real_fdatasync(fd);
}

/* Opening "file:@target" fails with @ret, and its message says each of @says (NULL-terminated). */
static void refused(const char *target, unsigned flags, int ret, ...)
{
	unsigned nr_fds = nr_open_fds();
	struct error error = {""};
	char spec[PATH_MAX + 512];
	struct disk *disk;
	const char *says;
	va_list ap;
	int got;

	snprintf(spec, sizeof(spec), "file:%s", target);
	got = disk_open(spec, flags, &disk, &error);
	if (got != ret)
		fail_msg("%s: %d (%s), not %d", target, got, error.text, ret);
	va_start(ap, ret);
	while ((says = va_arg(ap, const char *)))
		if (!strstr(error.text, says))
			fail_msg("'%s' does not say '%s'", error.text, says);
	va_end(ap);
	assert_null(strchr(error.text, '\n'));
	assert_true(strlen(error.text) < sizeof(error.text) - 1);
	assert_int_equal(nr_open_fds(), nr_fds);
	print_message("# %s\n", error.text);
}

static struct disk *opened(const char *target, unsigned flags)
{
	struct error error = {""};
	char spec[PATH_MAX + 8];
	struct disk *disk;

	snprintf(spec, sizeof(spec), "file:%s", target);
	if (disk_open(spec, flags, &disk, &error))
		fail_msg("%s", error.text);
	return disk;
}

static int reset(void **state)
{
	(void)state;
	memset(&script, 0, sizeof(script));
	script.fast_sleep = true;
	return 0;
}

/* A name next to image 3, which is made and taken away with it. */
static const char *beside(const char *suffix)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", scratch_image(3, 4096), suffix);
	unlink(path);
	return path;
}

static void names(void **state)
{
	char name[PATH_MAX];

	(void)state;
	refused("", WRITABLE, -EINVAL, "target=", NULL);
	refused("some/where.img", WRITABLE, -EINVAL, "some/where.img", "relative", "whole path",
		NULL);
	refused("./x", WRITABLE, -EINVAL, "relative", NULL);
	refused("vbdisk-no-such-device", WRITABLE, -ENOENT, "/dev/vbdisk-no-such-device", NULL);
	refused("/no/such/dir/x.img", WRITABLE, -ENOENT, "/no/such/dir/x.img: does not exist",
		"truncate -s", NULL);
	refused("/etc/passwd/x.img", WRITABLE, -ENOTDIR, "not a directory", NULL);
	memset(name, 'x', 300);
	name[0] = '/';
	name[300] = '\0';
	refused(name, WRITABLE, -ENAMETOOLONG, "too long (300 bytes)", NULL);
	memset(name, '/', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	refused(name, WRITABLE, -EISDIR, "directory", NULL);
}

static void kinds(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path;
	int fd;

	(void)state;
	refused("/", WRITABLE, -EISDIR, "/: is a directory", "image file", NULL);
	refused("/dev/null", WRITABLE, -ENOTBLK, "character device", NULL);
	refused("null", WRITABLE, -ENOTBLK, "/dev/null", NULL);

	/* Nobody at the other end: an open() would wait for ever. */
	path = beside(".fifo");
	assert_int_equal(mkfifo(path, 0666), 0);
	refused(path, WRITABLE, -EINVAL, "FIFO", NULL);
	refused(path, 0, -EINVAL, "FIFO", NULL);
	unlink(path);

	path = beside(".sock");
	if (strlen(path) < sizeof(address.sun_path)) {
		strcpy(address.sun_path, path);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		refused(path, WRITABLE, -EINVAL, "socket", NULL);
		close(fd);
		unlink(path);
	}

	path = beside(".loop");
	assert_int_equal(symlink(path, path), 0);
	refused(path, WRITABLE, -ELOOP, "circle", NULL);
	unlink(path);
}

static void sizes(void **state)
{
	static const struct {
		uint64_t size_bytes;
		const char *says;
	} wrong[] = {
		{1, "truncate -s 512 "},
		{511, "truncate -s 512 "},
		{513, "truncate -s 1024 "},
		{1000, "truncate -s 1024 "},
		{3 * 4096 + 511, "truncate -s 12800 "},
		{(3ull << 40) - 1, "truncate -s 3298534883328 "},
	};
	struct disk *disk;

	(void)state;
	refused(scratch_image(1, 0), WRITABLE, -EINVAL, "empty", "truncate -s", NULL);
	refused(scratch_image(1, 0), 0, -EINVAL, "empty", NULL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char number[32];

		snprintf(number, sizeof(number), "%llu bytes",
			 (unsigned long long)wrong[i].size_bytes);
		refused(scratch_image(1, wrong[i].size_bytes), WRITABLE, -EINVAL, number,
			"multiple of 512", wrong[i].says, NULL);
	}
	disk = opened(scratch_image(1, 512 * 3), WRITABLE);
	assert_int_equal(disk->limits.size_bytes, 512 * 3);
	disk->driver->close(disk);
}

/* What is offered stays a multiple of the block; nothing of it left is no size. */
static void sizes_are_asked_again(void **state)
{
	static const struct {
		off_t size_bytes;
		int ret;
		uint64_t refreshed_bytes;
	} cases[] = {
		{1 << 20, 0, 1 << 20}, {(1 << 20) + 512, 0, (1 << 20) + 512},
		{5000, 0, 4608},       {1023, 0, 512},
		{512, 0, 512},	       {511, -ENODATA, 0},
		{0, -ENODATA, 0},      {5ll << 40, 0, 5ull << 40},
	};
	const char *path = scratch_image(1, 65536);
	struct disk *disk = opened(path, WRITABLE);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t size_bytes = 0;

		assert_int_equal(truncate(path, cases[i].size_bytes), 0);
		assert_int_equal(disk->driver->refresh(disk, &size_bytes), cases[i].ret);
		assert_int_equal(size_bytes, cases[i].refreshed_bytes);
		assert_int_equal(disk->limits.size_bytes, 65536);
	}
	disk->driver->close(disk);
}

/* A queue opens the file once more; that may fail, and leaves nothing behind. */
static void no_description_for_a_queue(void **state)
{
	struct disk *disk = opened(scratch_image(1, 4096), WRITABLE);
	struct error error = {""};
	struct disk_queue *queue;
	unsigned nr_fds = nr_open_fds();

	(void)state;
	script.open_error = EMFILE;
	assert_int_equal(disk->driver->queue_create(disk, 4, &queue, &error), -EMFILE);
	assert_non_null(strstr(error.text, "Too many open files"));
	assert_int_equal(nr_open_fds(), nr_fds);
	script.open_error = 0;
	assert_int_equal(disk->driver->queue_create(disk, 4, &queue, &error), 0);
	disk->driver->queue_destroy(queue);
	disk->driver->close(disk);
}

static void beyond_32_bits(void **state)
{
	const uint64_t places[] = {0, 1ull << 32, 1ull << 41, (3ull << 40) - 512};
	struct harness harness;
	char spec[PATH_MAX + 8];

	(void)state;
	snprintf(spec, sizeof(spec), "file:%s", scratch_image(1, 3ull << 40));
	harness_open(&harness, spec, WRITABLE, 4);
	assert_int_equal(harness.disk->limits.size_bytes, 3ull << 40);
	for (unsigned i = 0; i < 4; i++) {
		memset(harness_buffer(&harness, i), 'a' + (int)i, 512);
		harness_submit(&harness,
			       harness_request(&harness, i, REQUEST_WRITE, places[i], 512, 1));
	}
	harness_finish(&harness, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(harness.requests[i].status, 0);
		assert_int_equal(harness_run(&harness, REQUEST_READ, places[i], 512, 1), 0);
		assert_int_equal(harness_buffer(&harness, 0)[511], 'a' + (int)i);
	}
	harness_close(&harness);
}

/* ---- What open() itself answers -------------------------------------------------------------------- */

static void open_errors(void **state)
{
	static const struct {
		int error, ret;
		const char *says, *cure;
	} errors[] = {
		{EACCES, -EACCES, "permission denied", "access=ro"},
		{EPERM, -EPERM, "immutable", "access=ro"},
		{EROFS, -EROFS, "read-only storage", "access=ro"},
		{ETXTBSY, -ETXTBSY, "program", "access=ro"},
		{EINVAL, -EOPNOTSUPP, "no direct I/O", "ext4, xfs"},
		{ENXIO, -ENXIO, "no device behind", "driver"},
		{ENOMEDIUM, -ENOMEDIUM, "no device behind", "medium"},
		{EAGAIN, -EBUSY, "lease", "fuser"},
		{EMFILE, -EMFILE, "cannot be opened", "Too many open files"},
		{EIO, -EIO, "cannot be opened", "Input/output error"},
	};
	const char *path;

	(void)state;
	path = scratch_image(1, 4096);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		script.open_error = errors[i].error;
		refused(path, WRITABLE, errors[i].ret, path, errors[i].says, errors[i].cure, NULL);
	}
	assert_true(script.open_flags & O_DIRECT && script.open_flags & O_CLOEXEC);
}

/* In a child without privileges: the file belongs to somebody else. */
static void permission(void **state)
{
	const char *path = scratch_image(1, 4096);
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(chmod(path, geteuid() ? 0400 : 0644), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct error error = {""};
		struct disk *disk;
		char spec[PATH_MAX + 8];

		if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY)))
			_exit(3);
		snprintf(spec, sizeof(spec), "file:%s", path);
		if (disk_open(spec, WRITABLE, &disk, &error) != -EACCES ||
		    !strstr(error.text, "permission denied for user"))
			_exit(1);
		if (access(path, R_OK)) /* a directory above is closed */
			_exit(0);
		if (disk_open(spec, 0, &disk, &error))
			_exit(2);
		disk->driver->close(disk);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void unflushable(void **state)
{
	const char *path = scratch_image(1, 4096);
	struct disk *disk;

	(void)state;
	script.fdatasync_error = EIO;
	refused(path, WRITABLE, -EIO, path, "cannot be flushed", NULL);
	/* Nothing is written, so nothing need be flushed. */
	script.nr_fdatasyncs = 0;
	disk = opened(path, 0);
	assert_int_equal(script.nr_fdatasyncs, 0);
	disk->driver->close(disk);
}

/* ---- Read-only ---------------------------------------------------------------------------------------- */

static void read_only_is_read_only(void **state)
{
	const char *path = scratch_image(1, 4096);
	struct harness harness;
	char spec[PATH_MAX + 8];

	(void)state;
	assert_int_equal(chmod(path, 0444), 0);
	snprintf(spec, sizeof(spec), "file:%s", path);
	harness_open(&harness, spec, 0, 1);
	assert_int_equal(script.open_flags & O_ACCMODE, O_RDONLY);
	assert_false(harness.disk->limits.can_write);
	/* Should a check above us ever miss a write, the kernel does not. */
	assert_int_equal(harness_run(&harness, REQUEST_WRITE, 0, 512, 1), -EBADF);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 0, 512, 1), 0);
	assert_int_equal(harness_buffer(&harness, 0)[0], 0);
	harness_close(&harness);
}

/* ---- Locks -------------------------------------------------------------------------------------------- */

struct holder {
	pid_t pid;
	int stop_fd;
};

/* Another process with @path open by @flags; returns once it has it. With @ends_after_ms it closes by
 * itself. */
static struct holder holder_start(const char *path, unsigned flags, int ends_after_ms)
{
	int ready[2], stop[2];
	struct holder holder;
	char byte;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(stop), 0);
	holder.pid = fork();
	assert_true(holder.pid >= 0);
	if (!holder.pid) {
		struct disk *disk;
		char spec[PATH_MAX + 8];

		close(stop[1]);
		snprintf(spec, sizeof(spec), "file:%s", path);
		if (disk_open(spec, flags, &disk, NULL) || write(ready[1], "x", 1) != 1)
			_exit(1);
		if (ends_after_ms)
			usleep((useconds_t)ends_after_ms * 1000);
		else if (read(stop[0], &byte, 1) < 0)
			_exit(1);
		disk->driver->close(disk);
		_exit(0);
	}
	close(ready[1]);
	close(stop[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	holder.stop_fd = stop[1];
	return holder;
}

static void holder_stop(struct holder *holder)
{
	int status;

	close(holder->stop_fd);
	assert_int_equal(waitpid(holder->pid, &status, 0), holder->pid);
	assert_int_equal(status, 0);
}

static void locks_between_processes(void **state)
{
	static const struct {
		unsigned first, second;
		bool conflict;
	} pairs[] = {
		{WRITABLE, WRITABLE, true},
		{WRITABLE, 0, true},
		{0, WRITABLE, true},
		{0, 0, false},
		{WRITABLE, WRITABLE | DISK_OPEN_SHARED, false},
		{WRITABLE | DISK_OPEN_SHARED, WRITABLE, false},
		{WRITABLE, DISK_OPEN_SHARED, false},
	};
	const char *path = scratch_image(1, 1 << 20);
	struct disk *disk;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct holder holder = holder_start(path, pairs[i].first, 0);

		script.nr_sleeps = 0;
		if (pairs[i].conflict) {
			refused(path, pairs[i].second, -EBUSY, path, "in use", "fuser -v",
				pairs[i].second & WRITABLE ? "writing" : "reading", NULL);
			assert_int_equal(script.nr_sleeps, 60); /* of 50 ms */
		} else {
			disk = opened(path, pairs[i].second);
			assert_int_equal(script.nr_sleeps, 0);
			disk->driver->close(disk);
		}
		holder_stop(&holder);
		disk = opened(path, WRITABLE);
		disk->driver->close(disk);
	}
}

/* Two VBDs of one process are two openers. */
static void locks_within_a_process(void **state)
{
	const char *path = scratch_image(1, 1 << 20);
	struct disk *disk;

	(void)state;
	disk = opened(path, WRITABLE);
	refused(path, WRITABLE, -EBUSY, "in use", NULL);
	close(__real_open(path, O_RDWR | O_CLOEXEC)); /* would drop a classic lock */
	refused(path, WRITABLE, -EBUSY, "in use", NULL);
	disk->driver->close(disk);
}

/* A classic lock has an owner; he is named. Its range does not matter: ours is everything. */
static void lock_owner_is_named(void **state)
{
	const char *path = scratch_image(1, 1 << 20);
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 << 19, .l_len = 1};
	char number[32], byte;
	int ready[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int fd = __real_open(path, O_RDWR | O_CLOEXEC);

		close(ready[0]);
		if (fcntl(fd, F_SETLK, &lock) || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	snprintf(number, sizeof(number), "process %d ", (int)pid);
	refused(path, WRITABLE, -EBUSY, number, NULL);
	refused(path, 0, -EBUSY, number, NULL);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The one before us is just closing: wait for it instead of failing a reboot. */
static void lock_is_waited_for(void **state)
{
	const char *path = scratch_image(1, 1 << 20);
	struct holder holder;
	struct disk *disk;

	(void)state;
	script.fast_sleep = false;
	holder = holder_start(path, WRITABLE, 300);
	disk = opened(path, WRITABLE);
	assert_in_range(script.nr_sleeps, 1, 59);
	disk->driver->close(disk);
	holder_stop(&holder);
}

/* ---- Block sizes -------------------------------------------------------------------------------------- */

static void blocks_by_statx(void **state)
{
	static const struct {
		uint32_t offset_align, memory_align, logical, physical;
	} kernels[] = {
		{512, 512, 512, 4096},
		{4096, 4, 4096, 4096},
		{1, 1, 512, 4096}, /* a network file system */
		{65536, 512, 65536, 65536},
	};
	const char *path = scratch_image(1, 1 << 20);
	struct disk *disk;

	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		script.offset_align = kernels[i].offset_align;
		script.memory_align = kernels[i].memory_align;
		disk = opened(path, WRITABLE);
		assert_int_equal(disk->limits.logical_block_bytes, kernels[i].logical);
		assert_int_equal(disk->limits.physical_block_bytes, kernels[i].physical);
		assert_int_equal(disk->limits.memory_align_bytes, kernels[i].memory_align);
		disk->driver->close(disk);
	}
	script.offset_align = 4096;
	refused(scratch_image(1, 4096 + 512), WRITABLE, -EINVAL, "multiple of 4096",
		"storage below", "truncate -s 8192", NULL);
	script.offset_align = 3000;
	refused(scratch_image(1, 3000 * 512), WRITABLE, -EINVAL, "3000", NULL);
	script.offset_align = 1 << 20;
	refused(scratch_image(1, 1 << 20), WRITABLE, -EINVAL, "1048576", NULL);
	script.offset_align = script.memory_align = 0;
	script.no_direct_io = true;
	refused(scratch_image(1, 4096), WRITABLE, -EOPNOTSUPP, "no direct I/O", NULL);
}

/* Without statx()'s word: by the device, and where there is none, by trial. Here all three agree. */
static void blocks_without_statx(void **state)
{
	const char *path = scratch_image(1, 1 << 20);
	uint32_t logical;
	struct disk *disk;

	(void)state;
	disk = opened(path, WRITABLE);
	logical = disk->limits.logical_block_bytes;
	disk->driver->close(disk);

	script.no_statx = true;
	disk = opened(path, WRITABLE);
	assert_int_equal(disk->limits.logical_block_bytes, logical);
	assert_int_equal(disk->limits.memory_align_bytes, logical);
	disk->driver->close(disk);

	script.dev = 1; /* 0:1, as file systems without one device have it */
	disk = opened(path, WRITABLE);
	assert_int_equal(disk->limits.logical_block_bytes, logical);
	disk->driver->close(disk);
}

/* ---- Page cache --------------------------------------------------------------------------------------- */

/* What another process left in the page cache is on the disk when we open, and out of the cache. */
static void cache_is_settled(void **state)
{
	const char *path = scratch_image(1, 1 << 20);
	struct harness harness;
	char spec[PATH_MAX + 8];
	char data[4096], seen[4096];
	struct iovec part = {seen, sizeof(seen)};
	int fd;

	(void)state;
	fd = __real_open(path, O_RDWR | O_CLOEXEC);
	memset(data, 0x77, sizeof(data));
	assert_int_equal(pwrite(fd, data, sizeof(data), 8192), sizeof(data));
	snprintf(spec, sizeof(spec), "file:%s", path);
	harness_open(&harness, spec, WRITABLE, 1);
	assert_true(script.nr_fdatasyncs > 0);
	/* RWF_NOWAIT reads only what the page cache holds. */
	assert_int_equal(preadv2(fd, &part, 1, 8192, RWF_NOWAIT), -1);
	assert_true(errno == EAGAIN || errno == EOPNOTSUPP);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 8192, 4096, 1), 0);
	assert_memory_equal(harness_buffer(&harness, 0), data, 4096);
	close(fd);
	harness_close(&harness);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup(names, reset),
		cmocka_unit_test_setup(kinds, reset),
		cmocka_unit_test_setup(sizes, reset),
		cmocka_unit_test_setup(sizes_are_asked_again, reset),
		cmocka_unit_test_setup(no_description_for_a_queue, reset),
		cmocka_unit_test_setup(beyond_32_bits, reset),
		cmocka_unit_test_setup(open_errors, reset),
		cmocka_unit_test_setup(permission, reset),
		cmocka_unit_test_setup(unflushable, reset),
		cmocka_unit_test_setup(read_only_is_read_only, reset),
		cmocka_unit_test_setup(locks_between_processes, reset),
		cmocka_unit_test_setup(locks_within_a_process, reset),
		cmocka_unit_test_setup(lock_owner_is_named, reset),
		cmocka_unit_test_setup(lock_is_waited_for, reset),
		cmocka_unit_test_setup(blocks_by_statx, reset),
		cmocka_unit_test_setup(blocks_without_statx, reset),
		cmocka_unit_test_setup(cache_is_settled, reset),
	};

	if (scratch_skip_all())
		return 0;
	return cmocka_run_group_tests(cases, NULL, NULL);
}
