// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Discards of the file driver: which call is made, when, on whose thread, and what its answers mean; and
 * what is offered, from what the kernel tells about a file system or a device.
 *
 * Owns: its image; wrappers of the calls, a gate in fallocate(), a sysfs in strings.
 * Trusts / does not trust: nothing.
 * Runs on: the test; waits.
 * Must not know: how the helper thread is built.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "backend/log.h"
#include "drivers/discard.h"
#include "tests/unit/driver-harness.h"

#define IMAGE_BYTES (4ull << 30) /* sparse */
#define DEPTH 4u
#define MAX_CALLS 16u
#define DEVICE makedev(259, 7)

int __real_fallocate(int fd, int mode, off_t offset, off_t len);
int __real_fstat(int fd, struct stat *st);
int __real_fstatvfs(int fd, struct statvfs *fs);
int __real_io_submit(io_context_t ctx, long nr, struct iocb **iocbs);
int __real_ioctl(int fd, unsigned long op, ...);
FILE *__real_fopen(const char *path, const char *mode);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t len);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstatvfs(int fd, struct statvfs *fs);
int __wrap_io_submit(io_context_t ctx, long nr, struct iocb **iocbs);
int __wrap_ioctl(int fd, unsigned long op, ...);
FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);

struct call {
	int mode;
	uint64_t offset_bytes, len_bytes;
};

/* What a device has below /sys/dev/block/259:7; NULL: no such file. */
struct sysfs {
	const char *max, *granularity, *parent_max, *parent_granularity, *alignment;
};

/* What the next calls answer; all zero: the kernel. */
static struct {
	int errors[MAX_CALLS]; /* of fallocate() or BLKDISCARD, one per call; 0: it works */
	int error_always;
	struct call calls[MAX_CALLS];
	unsigned nr_calls;
	bool gated; /* each call says that it has begun, and waits until it may go on */
	pthread_t thread;

	unsigned long frsize;
	const struct sysfs *sysfs; /* every file is this device */
	unsigned long ioctl_op;
	bool no_fdsync;
	unsigned nr_full; /* so many times io_submit() has no room */
	int thread_error;
} script;

static sem_t begun, go_on;

static int discard_call(int mode, uint64_t offset_bytes, uint64_t len_bytes)
{
	unsigned call = script.nr_calls++;

	assert_true(call < MAX_CALLS);
	script.calls[call] = (struct call){mode, offset_bytes, len_bytes};
	script.thread = pthread_self();
	if (script.gated) {
		sem_post(&begun);
		sem_wait(&go_on);
	}
	errno = script.error_always ? script.error_always : script.errors[call];
	return errno ? -1 : 0;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t len)
{
	return discard_call(mode, (uint64_t)offset, (uint64_t)len)
		       ? -1
		       : __real_fallocate(fd, mode, offset, len);
}

int __wrap_fstat(int fd, struct stat *st)
{
	int ret = __real_fstat(fd, st);

	if (!ret && script.sysfs) {
		st->st_mode = S_IFBLK | 0660;
		st->st_rdev = DEVICE;
	}
	return ret;
}

int __wrap_fstatvfs(int fd, struct statvfs *fs)
{
	int ret = __real_fstatvfs(fd, fs);

	if (!ret && script.frsize)
		fs->f_frsize = script.frsize;
	return ret;
}

int __wrap_io_submit(io_context_t ctx, long nr, struct iocb **iocbs)
{
	if (script.nr_full) {
		script.nr_full--;
		return -EAGAIN;
	}
	if (script.no_fdsync && iocbs[0]->aio_lio_opcode == IO_CMD_FDSYNC)
		return -EINVAL;
	return __real_io_submit(ctx, nr, iocbs);
}

int __wrap_ioctl(int fd, unsigned long op, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, op);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (op == BLKDISCARD || op == BLKSECDISCARD) {
		const uint64_t *range = arg;

		script.ioctl_op = op;
		return discard_call(0, range[0], range[1]);
	}
	return __real_ioctl(fd, op, arg);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	const struct sysfs *sysfs = script.sysfs;
	const char *text = NULL;

	if (strncmp(path, "/sys/dev/block/", 15))
		return __real_fopen(path, mode);
	assert_non_null(sysfs);
	if (!strcmp(path, "/sys/dev/block/259:7/queue/discard_max_bytes"))
		text = sysfs->max;
	else if (!strcmp(path, "/sys/dev/block/259:7/queue/discard_granularity"))
		text = sysfs->granularity;
	else if (!strcmp(path, "/sys/dev/block/259:7/../queue/discard_max_bytes"))
		text = sysfs->parent_max;
	else if (!strcmp(path, "/sys/dev/block/259:7/../queue/discard_granularity"))
		text = sysfs->parent_granularity;
	else if (!strcmp(path, "/sys/dev/block/259:7/discard_alignment"))
		text = sysfs->alignment;
	else
		fail_msg("%s is asked for", path);
	errno = ENOENT;
	return text ? fmemopen((void *)(uintptr_t)text, strlen(text), "r") : NULL;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	return script.thread_error ? script.thread_error
				   : __real_pthread_create(thread, attr, start, arg);
}

static struct harness harness;
static const char *image_path;

static void image_open(void)
{
	char spec[5000];

	memset(&script, 0, sizeof(script));
	sem_init(&begun, 0, 0);
	sem_init(&go_on, 0, 0);
	image_path = scratch_image(1, IMAGE_BYTES);
	snprintf(spec, sizeof(spec), "file:%s", image_path);
	harness_open(&harness, spec, DISK_OPEN_WRITABLE, DEPTH);
	script.nr_calls = 0;
}

static void discard_submit(unsigned idx, uint64_t offset_bytes, uint64_t len_bytes)
{
	struct request *request = harness_request(&harness, idx, REQUEST_DISCARD, 0, 0, 0);

	request->offset_bytes = offset_bytes;
	request->len_bytes = len_bytes;
	harness_submit(&harness, request);
}

static int discard_run_through(uint64_t offset_bytes, uint64_t len_bytes)
{
	discard_submit(0, offset_bytes, len_bytes);
	harness_finish(&harness, 1);
	return harness.requests[0].status;
}

/* ---- The calls ---------------------------------------------------------------------------------- */

/* fallocate(2): PUNCH_HOLE needs KEEP_SIZE, and frees whole blocks. */
static void a_hole_is_punched(void **state)
{
	struct stat before, after;

	(void)state;
	image_open();
	assert_int_equal(harness_run(&harness, REQUEST_WRITE, 65536, 65536, 1), 0);
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), 0);
	assert_int_equal(stat(image_path, &before), 0);
	assert_int_equal(discard_run_through(65536, 65536), 0);
	assert_int_equal(script.nr_calls, 1);
	assert_int_equal(script.calls[0].mode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
	assert_int_equal(script.calls[0].offset_bytes, 65536);
	assert_int_equal(script.calls[0].len_bytes, 65536);
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), 0);
	assert_int_equal(stat(image_path, &after), 0);
	assert_int_equal(after.st_size, IMAGE_BYTES);
	assert_true(after.st_blocks < before.st_blocks);
	harness_close(&harness);
}

/* "Cannot" has many names, and is remembered: one call is enough. */
static void what_is_unsupported_is_not_tried_again(void **state)
{
	static const int errnums[] = {EOPNOTSUPP, ENOTSUP, ENOSYS, ENODEV, ENOTTY};

	(void)state;
	for (size_t i = 0; i < sizeof(errnums) / sizeof(errnums[0]); i++) {
		image_open();
		script.error_always = errnums[i];
		for (unsigned round = 0; round < 5; round++)
			assert_int_equal(discard_run_through(0, 4096), -EOPNOTSUPP);
		assert_int_equal(script.nr_calls, 1);
		harness_close(&harness);
	}
}

static void other_errors_are_told_and_forgotten(void **state)
{
	static const int errnums[] = {EIO, ENOSPC, EPERM, EBADF, ETIMEDOUT};

	(void)state;
	image_open();
	for (size_t i = 0; i < sizeof(errnums) / sizeof(errnums[0]); i++) {
		script.error_always = errnums[i];
		assert_int_equal(discard_run_through(0, 4096), -errnums[i]);
	}
	script.error_always = 0;
	assert_int_equal(discard_run_through(0, 4096), 0);
	assert_int_equal(script.nr_calls, 6);
	harness_close(&harness);
}

static void interruptions_are_gone_over(void **state)
{
	(void)state;
	image_open();
	script.errors[0] = script.errors[1] = EINTR;
	assert_int_equal(discard_run_through(4096, 8192), 0);
	assert_int_equal(script.nr_calls, 3);
	assert_int_equal(script.calls[2].offset_bytes, 4096);
	assert_int_equal(script.calls[2].len_bytes, 8192);
	harness_close(&harness);
}

static void without_a_thread_it_fails(void **state)
{
	(void)state;
	image_open();
	script.thread_error = EAGAIN;
	assert_int_equal(discard_run_through(0, 4096), -EAGAIN);
	script.thread_error = 0;
	assert_int_equal(discard_run_through(0, 4096), 0);
	harness_close(&harness);
}

/* ---- Long ones ---------------------------------------------------------------------------------- */

static void pieces_cover_the_range(void **state)
{
	const uint64_t first = 12288, len = (3ull << 30) - 4096;
	uint64_t at = first;

	(void)state;
	image_open();
	assert_int_equal(discard_run_through(first, len), 0);
	for (unsigned i = 0; i < script.nr_calls; i++) {
		assert_int_equal(script.calls[i].offset_bytes, at);
		assert_in_range(script.calls[i].len_bytes, 1, 1ull << 30);
		at += script.calls[i].len_bytes;
	}
	assert_int_equal(at, first + len);
	/* An error ends it; the next one begins at its own start. */
	script.nr_calls = 0;
	script.errors[1] = EIO;
	assert_int_equal(discard_run_through(first, len), -EIO);
	assert_int_equal(script.nr_calls, 2);
	assert_int_equal(discard_run_through(4096, 4096), 0);
	assert_int_equal(script.calls[2].offset_bytes, 4096);
	assert_int_equal(script.calls[2].len_bytes, 4096);
	harness_close(&harness);
}

/* The queue's thread never waits for it, reads pass it, and no answer comes before all is done. */
static void nobody_waits_for_it(void **state)
{
	(void)state;
	image_open();
	script.gated = true;
	discard_submit(0, 0, 1ull << 30);
	harness_kick(&harness);
	sem_wait(&begun);
	assert_false(pthread_equal(script.thread, pthread_self()));
	for (unsigned round = 0; round < 10; round++) {
		harness_submit(&harness, harness_request(&harness, 1, REQUEST_READ, 0, 4096, 1));
		harness_finish(&harness, 1);
		assert_int_equal(harness.requests[1].status, 0);
	}
	assert_int_equal(harness.requests[0].state, REQUEST_QUEUED);
	script.gated = false;
	sem_post(&go_on);
	harness_finish(&harness, 1);
	assert_int_equal(harness.requests[0].status, 0);
	harness_close(&harness);
}

/* Between two pieces, the flushes that wait have their turn. */
static void flushes_pass_between_pieces(void **state)
{
	(void)state;
	image_open();
	script.no_fdsync = true;
	script.gated = true;
	discard_submit(0, 0, 3ull << 30);
	harness_kick(&harness);
	sem_wait(&begun);
	harness_submit(&harness, harness_request(&harness, 1, REQUEST_FLUSH, 0, 0, 0));
	harness_kick(&harness);
	sem_post(&go_on);
	harness_finish(&harness, 1);
	assert_int_equal(harness.requests[1].status, 0);
	assert_int_equal(harness.requests[0].state, REQUEST_QUEUED);
	sem_wait(&begun);
	assert_int_equal(script.nr_calls, 2);
	script.gated = false;
	sem_post(&go_on);
	harness_finish(&harness, 1);
	assert_int_equal(harness.requests[0].status, 0);
	harness_close(&harness);
}

/* So does whoever waits for room in the kernel. */
static void the_wake_up_passes_between_pieces(void **state)
{
	const struct timespec longer_than_the_back_off = {.tv_nsec = 20000000};

	(void)state;
	image_open();
	script.gated = true;
	discard_submit(0, 0, 3ull << 30);
	harness_kick(&harness);
	sem_wait(&begun);
	script.nr_full = 1;
	harness_submit(&harness, harness_request(&harness, 1, REQUEST_READ, 0, 4096, 1));
	harness_kick(&harness);
	assert_int_equal(script.nr_full, 0);
	nanosleep(&longer_than_the_back_off, NULL);
	sem_post(&go_on);
	harness_finish(&harness, 1);
	assert_int_equal(harness.requests[1].status, 0);
	assert_int_equal(harness.requests[0].state, REQUEST_QUEUED);
	sem_wait(&begun);
	assert_int_equal(script.nr_calls, 2);
	script.gated = false;
	sem_post(&go_on);
	harness_finish(&harness, 1);
	harness_close(&harness);
}

/* ---- What is offered ----------------------------------------------------------------------------- */

static struct disk_limits limits_query(uint32_t logical_block_bytes)
{
	struct disk_limits limits = {.logical_block_bytes = logical_block_bytes};
	int fd = open(scratch_image(1, 1 << 20), O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	script.nr_calls = 0;
	discard_limits_query(fd, &limits);
	close(fd);
	return limits;
}

/* The block of the file system (statvfs(3), f_frsize), if it can be one. */
static void files_have_their_block(void **state)
{
	static const struct {
		unsigned long frsize;
		uint32_t logical, granularity;
	} cases[] = {
		{1024, 512, 1024}, {4096, 512, 4096},	 {65536, 512, 65536}, {1024, 4096, 4096},
		{1000, 512, 4096}, {1 << 20, 512, 4096}, {1, 512, 4096},
	};

	(void)state;
	memset(&script, 0, sizeof(script));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct disk_limits limits;

		script.frsize = cases[i].frsize;
		limits = limits_query(cases[i].logical);
		assert_true(limits.can_discard);
		assert_false(limits.can_secure_discard);
		assert_int_equal(limits.discard_granularity_bytes, cases[i].granularity);
		assert_int_equal(limits.discard_alignment_bytes, 0);
		/* It was tried where there is no data. */
		assert_int_equal(script.nr_calls, 1);
		assert_true(script.calls[0].offset_bytes >= 1 << 20);
		assert_int_equal(script.calls[0].mode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
	}
	script.error_always = EOPNOTSUPP;
	assert_false(limits_query(512).can_discard);
}

static void read_only_files_are_left_alone(void **state)
{
	char spec[5000];

	(void)state;
	memset(&script, 0, sizeof(script));
	snprintf(spec, sizeof(spec), "file:%s", scratch_image(1, 1 << 20));
	harness_open(&harness, spec, 0, 1);
	assert_false(harness.disk->limits.can_discard);
	assert_int_equal(script.nr_calls, 0);
	harness_close(&harness);
}

/* Linux Documentation/ABI/stable/sysfs-block: discard_max_bytes 0: no discard; discard_alignment: where,
 * within the device, a granule begins; -1 if that cannot be told (queue_limit_discard_alignment()). */
static void devices_are_asked(void **state)
{
	static const struct {
		struct sysfs sysfs;
		uint32_t logical;
		bool can_discard;
		uint32_t granularity, alignment;
	} cases[] = {
		{{"2147450880", "4096", NULL, NULL, "0"}, 512, true, 4096, 0},
		{{"2147450880", "512", NULL, NULL, "0"}, 4096, true, 4096, 0},
		{{"2147450880", "0", NULL, NULL, "0"}, 512, true, 512, 0},
		/* a thin pool of 256 KiB chunks, a RAID of three stripes of 64 KiB */
		{{"2147450880", "262144", NULL, NULL, "131072"}, 512, true, 262144, 131072},
		{{"2147450880", "196608", NULL, NULL, "65536"}, 512, true, 196608, 65536},
		{{"2147450880", "4096", NULL, NULL, "4096"}, 512, true, 4096, 0},
		{{"2147450880", "4096", NULL, NULL, NULL}, 512, true, 4096, 0},
		/* a partition */
		{{NULL, NULL, "1073741824", "65536", "32256"}, 512, true, 65536, 32256},
		{{NULL, NULL, "0", "65536", "0"}, 512, false, 0, 0},
		{{"0", "0", NULL, NULL, "0"}, 512, false, 0, 0},
		{{"0", "4096", NULL, NULL, "0"}, 512, false, 0, 0},
		{{NULL, NULL, NULL, NULL, NULL}, 512, false, 0, 0},
		{{"2147450880", "700", NULL, NULL, "0"}, 512, false, 0, 0},
		{{"2147450880", "6144", NULL, NULL, "0"}, 4096, false, 0, 0},
		{{"2147450880", "65536", NULL, NULL, "512"}, 4096, false, 0, 0},
		{{"2147450880", "65536", NULL, NULL, "100"}, 512, false, 0, 0},
		{{"2147450880", "65536", NULL, NULL, "-1"}, 512, false, 0, 0},
		{{"8589934592", "4294967296", NULL, NULL, "0"}, 512, false, 0, 0},
		{{"many", "4096", NULL, NULL, "0"}, 512, false, 0, 0},
	};

	(void)state;
	memset(&script, 0, sizeof(script));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct disk_limits limits;

		script.sysfs = &cases[i].sysfs;
		limits = limits_query(cases[i].logical);
		if (limits.can_discard != cases[i].can_discard ||
		    limits.discard_granularity_bytes != cases[i].granularity ||
		    limits.discard_alignment_bytes != cases[i].alignment)
			fail_msg("case %zu: %d, %u at %u", i, limits.can_discard,
				 limits.discard_granularity_bytes, limits.discard_alignment_bytes);
		assert_false(limits.can_secure_discard);
		assert_int_equal(script.nr_calls, 0); /* there may be data */
	}
}

static void devices_are_told_by_ioctl(void **state)
{
	static const struct sysfs sysfs = {0};
	int fd = open(scratch_image(1, 4096), O_RDWR | O_CLOEXEC);

	(void)state;
	memset(&script, 0, sizeof(script));
	script.sysfs = &sysfs;
	script.errors[0] = EINTR;
	assert_int_equal(discard_run(fd, 8192, 1 << 20, false), 0);
	assert_int_equal(script.ioctl_op, BLKDISCARD);
	assert_int_equal(script.nr_calls, 2);
	assert_int_equal(script.calls[1].offset_bytes, 8192);
	assert_int_equal(script.calls[1].len_bytes, 1 << 20);
	assert_int_equal(discard_run(fd, 0, 4096, true), 0);
	assert_int_equal(script.ioctl_op, BLKSECDISCARD);
	script.error_always = EREMOTEIO;
	assert_int_equal(discard_run(fd, 0, 4096, false), -EREMOTEIO);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(a_hole_is_punched),
		cmocka_unit_test(what_is_unsupported_is_not_tried_again),
		cmocka_unit_test(other_errors_are_told_and_forgotten),
		cmocka_unit_test(interruptions_are_gone_over),
		cmocka_unit_test(without_a_thread_it_fails),
		cmocka_unit_test(pieces_cover_the_range),
		cmocka_unit_test(nobody_waits_for_it),
		cmocka_unit_test(flushes_pass_between_pieces),
		cmocka_unit_test(the_wake_up_passes_between_pieces),
		cmocka_unit_test(files_have_their_block),
		cmocka_unit_test(read_only_files_are_left_alone),
		cmocka_unit_test(devices_are_asked),
		cmocka_unit_test(devices_are_told_by_ioctl),
	};

	if (scratch_skip_all())
		return 0;
	log_init("test-driver-discard", "", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
