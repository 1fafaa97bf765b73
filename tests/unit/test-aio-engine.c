// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The AIO engine against a kernel that misbehaves: the system calls are wrapped at link time, and a
 * script says what they answer.
 *
 * Owns: the wrappers and their scripts.
 * Trusts / does not trust: nothing.
 * Runs on: the test; waits.
 * Must not know: the driver above the engine, but for opening a file with it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "backend/log.h"
#include "tests/unit/driver-harness.h"

#define IMAGE_BYTES (64u << 10)
#define BLOCK 512u
#define DEPTH 8u

int __real_io_setup(int maxevents, io_context_t *ctxp);
int __real_io_submit(io_context_t ctx, long nr, struct iocb **iocbs);
int __real_io_getevents(io_context_t ctx, long min_nr, long nr, struct io_event *events,
			struct timespec *timeout);
int __real_fdatasync(int fd);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_io_setup(int maxevents, io_context_t *ctxp);
int __wrap_io_submit(io_context_t ctx, long nr, struct iocb **iocbs);
int __wrap_io_getevents(io_context_t ctx, long min_nr, long nr, struct io_event *events,
			struct timespec *timeout);
int __wrap_fdatasync(int fd);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);

/* What the next calls answer; all zero: the kernel. */
static struct {
	int setup_error;
	bool spoil_ring_magic;
	unsigned nr_setups;
	int setup_depth;

	/* io_submit(): one entry per call. > 0: take that many; < 0: that error; 0: all. */
	int submit_answers[64];
	unsigned nr_submit_answers;
	unsigned nr_submits;
	long submit_nr[256];
	int submit_always;	   /* after the entries; 0: the kernel */
	const void *poison_buffer; /* an iocb with this buffer fails with -EINVAL */
	bool no_fdsync;

	/* io_getevents(): these errors first; results of reads and writes are replaced in turn. */
	bool bend;
	long bend_results[16];
	unsigned nr_bends;
	unsigned nr_bent;
	int getevents_errors[8];
	unsigned nr_getevents_errors;
	unsigned nr_getevents;
	bool inject_foreign;

	int flush_result; /* of an FDSYNC in io_getevents(); 0: what the kernel says */
	int last_fd;	  /* of io_submit()'s first iocb */
	int fdatasync_error;
	unsigned nr_fdatasync_errors; /* so many; 0: all */
	int fdatasync_fd;
	unsigned nr_fdatasyncs;
	unsigned nr_pauses;
	uint64_t paused_ms;
	int thread_error;
} script;

int __wrap_io_setup(int maxevents, io_context_t *ctxp)
{
	int ret;

	script.nr_setups++;
	script.setup_depth = maxevents;
	if (script.setup_error)
		return script.setup_error;
	ret = __real_io_setup(maxevents, ctxp);
	/* Word 4 of the mapped ring is its magic; the kernel does not read it back. */
	if (!ret && script.spoil_ring_magic)
		((unsigned *)*ctxp)[4] ^= 1;
	return ret;
}

static bool iocb_is_bad(const struct iocb *iocb)
{
	return (script.poison_buffer && iocb->u.c.buf == script.poison_buffer) ||
	       (script.no_fdsync && iocb->aio_lio_opcode == IO_CMD_FDSYNC);
}

int __wrap_io_submit(io_context_t ctx, long nr, struct iocb **iocbs)
{
	unsigned call = script.nr_submits++;
	int answer = call < script.nr_submit_answers ? script.submit_answers[call]
						     : script.submit_always;

	if (call < 256)
		script.submit_nr[call] = nr;
	script.last_fd = iocbs[0]->aio_fildes;
	if (answer < 0)
		return answer;
	if (answer > 0 && answer < nr)
		nr = answer;
	for (long i = 0; i < nr; i++) {
		if (iocb_is_bad(iocbs[i])) {
			if (!i)
				return -EINVAL;
			nr = i;
		}
	}
	return __real_io_submit(ctx, nr, iocbs);
}

int __wrap_io_getevents(io_context_t ctx, long min_nr, long nr, struct io_event *events,
			struct timespec *timeout)
{
	unsigned call = script.nr_getevents++;
	int ret;

	if (call < script.nr_getevents_errors)
		return script.getevents_errors[call];
	if (script.inject_foreign) {
		script.inject_foreign = false;
		memset(events, 0, sizeof(*events));
		return 1;
	}
	ret = __real_io_getevents(ctx, min_nr, nr, events, timeout);
	for (int i = 0; i < ret && script.flush_result; i++)
		if (events[i].obj->aio_lio_opcode == IO_CMD_FDSYNC)
			events[i].res = (unsigned long)script.flush_result;
	for (int i = 0; i < ret && script.bend; i++) {
		if (events[i].obj->aio_lio_opcode == IO_CMD_FDSYNC)
			continue;
		if (script.nr_bent < script.nr_bends)
			events[i].res = (unsigned long)script.bend_results[script.nr_bent++];
	}
	return ret;
}

int __wrap_fdatasync(int fd)
{
	unsigned call = __atomic_fetch_add(&script.nr_fdatasyncs, 1, __ATOMIC_SEQ_CST);

	script.fdatasync_fd = fd;
	if (script.fdatasync_error &&
	    (!script.nr_fdatasync_errors || call < script.nr_fdatasync_errors)) {
		errno = script.fdatasync_error;
		return -1;
	}
	return __real_fdatasync(fd);
}

/* Nothing but a flush's pauses between tries happens while queues exist. */
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
	(void)left;
	script.nr_pauses++;
	script.paused_ms += (uint64_t)wait->tv_sec * 1000 + (uint64_t)wait->tv_nsec / 1000000;
	return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	return script.thread_error ? script.thread_error
				   : __real_pthread_create(thread, attr, start, arg);
}

static struct harness harness;
static const char *image_path;
static unsigned nr_fds_before;

/* Open an image with a known content: block i is full of i & 0xff. @magic_spoilt: io_getevents(). */
static void image_open(bool magic_spoilt)
{
	static char content[IMAGE_BYTES];
	char spec[5000];
	int fd;

	nr_fds_before = nr_open_fds();
	memset(&script, 0, sizeof(script));
	script.spoil_ring_magic = magic_spoilt;
	image_path = scratch_image(1, IMAGE_BYTES);
	snprintf(spec, sizeof(spec), "file:%s", image_path);
	for (unsigned i = 0; i < IMAGE_BYTES; i++)
		content[i] = (char)(i / BLOCK);
	fd = open(image_path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, IMAGE_BYTES), IMAGE_BYTES);
	assert_int_equal(__real_fdatasync(fd), 0);
	close(fd);
	harness_open(&harness, spec, DISK_OPEN_WRITABLE, DEPTH);
	assert_int_equal(script.setup_depth, DEPTH);
	script.nr_fdatasyncs = 0;
}

static void image_close(void)
{
	harness_close(&harness);
	assert_int_equal(nr_open_fds(), nr_fds_before);
}

static void reads_submit(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		harness_submit(&harness,
			       harness_request(&harness, i, REQUEST_READ, i * BLOCK, BLOCK, 1));
}

static void reads_are_right(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(harness.requests[i].status, 0);
		for (unsigned at = 0; at < BLOCK; at++)
			assert_int_equal((unsigned char)harness_buffer(&harness, i)[at], i);
	}
}

/* ---- Batches ----------------------------------------------------------------------------------- */

static void batch_is_one_submit(void **state)
{
	(void)state;
	image_open(false);
	reads_submit(DEPTH);
	assert_int_equal(script.nr_submits, 0);
	harness_finish(&harness, DEPTH);
	assert_int_equal(script.nr_submits, 1);
	assert_int_equal(script.submit_nr[0], DEPTH);
	reads_are_right(DEPTH);
	/* Nothing to do: no system call. */
	harness_kick(&harness);
	assert_int_equal(script.nr_submits, 1);
	assert_int_equal(script.nr_getevents, 0);
	image_close();
}

static void ring_needs_no_system_call(void **state)
{
	(void)state;
	image_open(false);
	for (unsigned round = 0; round < 500; round++) { /* the ring wraps several times */
		reads_submit(1 + round % DEPTH);
		harness_finish(&harness, 1 + round % DEPTH);
	}
	reads_are_right(4);
	assert_int_equal(script.nr_getevents, 0);
	image_close();
}

static void unknown_ring_takes_the_system_call(void **state)
{
	(void)state;
	image_open(true);
	for (unsigned round = 0; round < 500; round++) {
		reads_submit(1 + round % DEPTH);
		harness_finish(&harness, 1 + round % DEPTH);
	}
	reads_are_right(4);
	assert_true(script.nr_getevents > 0);
	image_close();
}

static void partial_submit_loses_nothing(void **state)
{
	static const int answers[] = {3, -EAGAIN, -EAGAIN};

	(void)state;
	for (int spoilt = 0; spoilt < 2; spoilt++) {
		image_open(spoilt);
		memcpy(script.submit_answers, answers, sizeof(answers));
		script.nr_submit_answers = 3;
		reads_submit(8);
		harness_finish(&harness, 8);
		reads_are_right(8);
		/* 3; EAGAIN; then one try per completion that was seen, no hot loop. */
		assert_in_range(script.nr_submits, 4, 8);
		image_close();
	}
}

static void one_by_one_submit(void **state)
{
	(void)state;
	image_open(false);
	script.submit_always = 1;
	reads_submit(DEPTH);
	harness_finish(&harness, DEPTH);
	reads_are_right(DEPTH);
	assert_int_equal(script.nr_submits, DEPTH);
	image_close();
}

static void no_room_and_nothing_in_flight(void **state)
{
	(void)state;
	image_open(false);
	for (unsigned i = 0; i < 5; i++)
		script.submit_answers[i] = -EAGAIN;
	script.nr_submit_answers = 5;
	reads_submit(4);
	harness_kick(&harness);
	assert_int_equal(harness.nr_done, 0);
	/* A caller that polls and kicks does not make it a hot loop: the back-off is waited for. */
	for (unsigned i = 0; i < 1000; i++)
		harness_kick(&harness);
	assert_in_range(script.nr_submits, 1, 5);
	harness_finish(&harness, 4);
	reads_are_right(4);
	image_close();
}

static void no_room_and_no_thread(void **state)
{
	(void)state;
	image_open(false);
	script.submit_always = -EAGAIN;
	script.thread_error = EAGAIN;
	reads_submit(4);
	harness_finish(&harness, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(harness.requests[i].status, -EAGAIN);
	script.submit_always = 0;
	reads_submit(4);
	harness_finish(&harness, 4);
	reads_are_right(4);
	image_close();
}

static void bad_request_fails_alone(void **state)
{
	(void)state;
	for (unsigned bad = 0; bad < DEPTH; bad++) {
		image_open(false);
		script.poison_buffer = harness_buffer(&harness, bad);
		reads_submit(DEPTH);
		harness_finish(&harness, DEPTH);
		assert_int_equal(harness.requests[bad].status, -EINVAL);
		harness.requests[bad].status = 0;
		script.poison_buffer = NULL;
		harness_submit(&harness,
			       harness_request(&harness, bad, REQUEST_READ, bad * BLOCK, BLOCK, 1));
		harness_finish(&harness, 1);
		reads_are_right(DEPTH);
		image_close();
	}
}

/* More than the depth at once breaks the contract, but loses nothing either. */
static void queue_smaller_than_the_batch(void **state)
{
	struct disk_queue *whole, *small;
	struct error error;

	(void)state;
	image_open(false);
	whole = harness.queue;
	assert_int_equal(harness.disk->driver->queue_create(harness.disk, 2, &small, &error), 0);
	harness.queue = small;
	reads_submit(DEPTH);
	harness.disk->driver->kick(small);
	while (harness.nr_done < DEPTH)
		harness_reap(&harness);
	reads_are_right(DEPTH);
	harness.disk->driver->queue_destroy(small);
	harness.queue = whole;
	image_close();
}

/* ---- Short transfers ---------------------------------------------------------------------------- */

struct bend {
	unsigned nr;
	long results[6];
	int status;
	unsigned nr_submits;
};

/* One transfer of 4 blocks in @nr_iov parts, whose completions are bent. */
static void bends_run(enum request_op op, const struct bend *bend, unsigned nr_iov)
{
	const uint64_t offset_bytes = op == REQUEST_READ ? 8 * BLOCK : 16 * BLOCK;
	struct request *request;

	script.bend = true;
	script.nr_bends = bend->nr;
	script.nr_bent = 0;
	script.nr_submits = 0;
	memcpy(script.bend_results, bend->results, sizeof(bend->results));
	request = harness_request(&harness, 0, op, offset_bytes, 4 * BLOCK, nr_iov);
	for (unsigned at = 0; at < 4 * BLOCK; at++)
		harness_buffer(&harness, 0)[at] = op == REQUEST_READ ? 0
								     : (char)(0x80 + at / BLOCK);
	harness_submit(&harness, request);
	harness_finish(&harness, 1);
	assert_int_equal(request->status, bend->status);
	assert_int_equal(request->len_bytes, 4 * BLOCK);
	assert_int_equal(request->offset_bytes, offset_bytes);
	assert_int_equal(script.nr_submits, bend->nr_submits);
	if (!bend->status && op == REQUEST_READ) {
		for (unsigned at = 0; at < 4 * BLOCK; at++)
			assert_int_equal(harness_buffer(&harness, 0)[at], 8 + at / BLOCK);
	} else if (!bend->status) {
		script.bend = false;
		assert_int_equal(harness_run(&harness, REQUEST_READ, offset_bytes, 4 * BLOCK, 1),
				 0);
		for (unsigned at = 0; at < 4 * BLOCK; at++)
			assert_int_equal((unsigned char)harness_buffer(&harness, 0)[at],
					 0x80 + at / BLOCK);
	}
}

static void short_transfers_go_on(void **state)
{
	static const struct bend bends[] = {
		{1, {3 * BLOCK}, 0, 2},
		{1, {4 * BLOCK - 100}, 0, 2},
		{3, {BLOCK, BLOCK, BLOCK}, 0, 4},
		{1, {2 * BLOCK + 1}, 0, 2},
		/* less than a block: all of it again, but not for ever */
		{1, {100}, 0, 2},
		{3, {100, 100, 100}, 0, 4},
		{4, {1, 1, 1, 1}, -EIO, 4},
		{2, {-EINTR, -EINTR}, 0, 3},
		{4, {-EINTR, -EINTR, -EINTR, -EINTR}, -EIO, 4},
		/* nothing moved, before and after something did */
		{1, {0}, -EIO, 1},
		{2, {BLOCK, 0}, -EIO, 2},
		/* more than asked */
		{1, {5 * BLOCK}, -EIO, 1},
		{2, {3 * BLOCK, 4 * BLOCK}, -EIO, 2},
		/* errors are final: no retry */
		{1, {-EIO}, -EIO, 1},
		{1, {-ENOSPC}, -ENOSPC, 1},
		{2, {BLOCK, -ENOSPC}, -ENOSPC, 2},
		{1, {-EAGAIN}, -EAGAIN, 1},
	};

	(void)state;
	image_open(true);
	for (size_t i = 0; i < sizeof(bends) / sizeof(bends[0]); i++) {
		for (unsigned nr_iov = 1; nr_iov <= 4; nr_iov++) {
			bends_run(REQUEST_READ, &bends[i], nr_iov);
			bends_run(REQUEST_WRITE, &bends[i], nr_iov);
		}
	}
	image_close();
}

/* No wrapper: the file really shrank under us. */
static void read_past_a_shrunk_file(void **state)
{
	(void)state;
	image_open(false);
	assert_int_equal(truncate(image_path, 2 * BLOCK), 0);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 0, 2 * BLOCK, 1), 0);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 0, 4 * BLOCK, 2), -EIO);
	assert_int_equal(harness_run(&harness, REQUEST_READ, 8 * BLOCK, BLOCK, 1), -EIO);
	image_close();
}

/* ---- Completions -------------------------------------------------------------------------------- */

static void getevents_errors_are_survived(void **state)
{
	static const int errors[] = {-EINTR, -EINTR, -EFAULT, -EINVAL};

	(void)state;
	image_open(true);
	memcpy(script.getevents_errors, errors, sizeof(errors));
	script.nr_getevents_errors = 4;
	reads_submit(4);
	harness.disk->driver->kick(harness.queue);
	while (harness.nr_done < 4)
		harness_reap(&harness);
	reads_are_right(4);
	image_close();
}

static void foreign_completion_is_ignored(void **state)
{
	(void)state;
	image_open(true);
	script.inject_foreign = true;
	reads_submit(4);
	harness.disk->driver->kick(harness.queue);
	while (harness.nr_done < 4)
		harness_reap(&harness);
	reads_are_right(4);
	image_close();
}

/* ---- Flush -------------------------------------------------------------------------------------- */

static void flush_goes_through_aio(void **state)
{
	(void)state;
	image_open(false);
	for (unsigned i = 0; i < DEPTH; i++)
		harness_submit(&harness, harness_request(&harness, i, REQUEST_FLUSH, 0, 0, 0));
	harness_finish(&harness, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(harness.requests[i].status, 0);
	assert_int_equal(script.nr_submits, 1);
	assert_int_equal(script.nr_fdatasyncs, 0);
	image_close();
}

static void flush_falls_back_to_a_thread(void **state)
{
	(void)state;
	image_open(false);
	script.no_fdsync = true;
	for (unsigned round = 0; round < 20; round++) {
		unsigned nr_before = script.nr_fdatasyncs;

		reads_submit(2);
		harness_submit(&harness, harness_request(&harness, 2, REQUEST_FLUSH, 0, 0, 0));
		harness_submit(&harness, harness_request(&harness, 3, REQUEST_FLUSH, 0, 0, 0));
		harness_finish(&harness, 4);
		reads_are_right(2);
		assert_int_equal(harness.requests[2].status, 0);
		assert_int_equal(harness.requests[3].status, 0);
		assert_true(script.nr_fdatasyncs > nr_before);
	}
	/* Its errors arrive, and each flush is a new try. */
	script.fdatasync_error = EIO;
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), -EIO);
	script.fdatasync_error = 0;
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), 0);
	image_close();
}

static void flush_without_a_thread_fails(void **state)
{
	(void)state;
	image_open(false);
	script.no_fdsync = true;
	script.thread_error = EAGAIN;
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), -EAGAIN);
	script.thread_error = 0;
	assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), 0);
	image_close();
}

static const int not_tried[] = {EAGAIN, EINTR, ENOMEM, ENOBUFS};
static const int final[] = {EIO, ENOSPC, EDQUOT, EROFS, ETIMEDOUT};

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* A flush which the kernel's AIO could not even begin is begun again by the helper, on the same file
 * description. */
static void flush_not_tried_is_tried_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR(not_tried); i++) {
		image_open(true);
		script.flush_result = -not_tried[i];
		assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), 0);
		assert_int_equal(script.nr_fdatasyncs, 1);
		assert_int_equal(script.fdatasync_fd, script.last_fd);
		image_close();

		image_open(true);
		script.flush_result = -EAGAIN;
		script.fdatasync_error = not_tried[i];
		script.nr_fdatasync_errors = 3;
		assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), 0);
		assert_int_equal(script.nr_fdatasyncs, 4);
		assert_int_equal(script.nr_pauses, 3);
		image_close();
	}
}

/* But not for ever: a guest waits. */
static void flush_is_given_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR(not_tried); i++) {
		image_open(true);
		script.flush_result = -EAGAIN;
		script.fdatasync_error = not_tried[i];
		assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), -not_tried[i]);
		assert_in_range(script.nr_fdatasyncs, 5, 50);
		assert_in_range(script.paused_ms, 1000, 3000);
		image_close();
	}
}

/* Linux Documentation/filesystems/vfs.rst, "Handling errors during writeback": a lost write is reported
 * once per open file description. A second try would be told that all is well. */
static void flush_that_lost_is_not_tried_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR(final); i++) {
		image_open(true);
		script.flush_result = -final[i];
		assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), -final[i]);
		assert_int_equal(script.nr_fdatasyncs, 0);
		/* Nor in the middle of tries. */
		script.flush_result = -EAGAIN;
		script.fdatasync_error = final[i];
		script.nr_fdatasync_errors = 1;
		assert_int_equal(harness_run(&harness, REQUEST_FLUSH, 0, 0, 0), -final[i]);
		assert_int_equal(script.nr_fdatasyncs, 1);
		assert_int_equal(script.nr_pauses, 0);
		image_close();
	}
}

/* ---- File descriptions -------------------------------------------------------------------------- */

static int queue_fd(struct disk_queue *queue)
{
	struct disk_queue *first = harness.queue;

	harness.queue = queue;
	harness_submit(&harness, harness_request(&harness, 0, REQUEST_READ, 0, BLOCK, 1));
	harness.disk->driver->kick(queue);
	while (!harness.nr_done)
		harness_reap(&harness);
	harness_finish(&harness, 1);
	harness.queue = first;
	return script.last_fd;
}

/* Descriptors of one description share their position. */
static void each_queue_has_its_description(void **state)
{
	struct disk_queue *queue;
	struct error error;
	struct disk *second;
	unsigned nr_fds;
	char spec[5000];
	int fds[2];

	(void)state;
	image_open(false);
	nr_fds = nr_open_fds();
	assert_int_equal(harness.disk->driver->queue_create(harness.disk, 2, &queue, &error), 0);
	fds[0] = queue_fd(harness.queue);
	fds[1] = queue_fd(queue);
	assert_int_equal(lseek(fds[0], 0x1000, SEEK_SET), 0x1000);
	assert_int_equal(lseek(fds[1], 0x2000, SEEK_SET), 0x2000);
	assert_int_equal(lseek(fds[0], 0, SEEK_CUR), 0x1000);
	for (unsigned i = 0; i < 2; i++) {
		int flags = fcntl(fds[i], F_GETFL);

		assert_int_equal(flags & O_ACCMODE, O_RDWR);
		assert_true(flags & O_DIRECT);
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
	}
	harness.disk->driver->queue_destroy(queue);
	assert_int_equal(nr_open_fds(), nr_fds);
	/* The lock is the disk's, and stays. */
	snprintf(spec, sizeof(spec), "file:%s", image_path);
	assert_int_equal(disk_open(spec, DISK_OPEN_WRITABLE, &second, &error), -EBUSY);
	image_close();
}

/* ---- AIO slots ---------------------------------------------------------------------------------- */

static void setup_refused(int answer, const char *says)
{
	struct disk_queue *queue;
	struct error error = {""};

	image_open(false);
	script.setup_error = answer;
	script.nr_setups = 0;
	assert_int_equal(harness.disk->driver->queue_create(harness.disk, DEPTH, &queue, &error),
			 answer);
	if (!strstr(error.text, says))
		fail_msg("'%s' does not say '%s'", error.text, says);
	assert_int_equal(script.nr_setups, answer == -EAGAIN ? 5 : 1);
	image_close();
}

static void setup_failures_name_the_cure(void **state)
{
	(void)state;
	setup_refused(-EAGAIN, "fs.aio-max-nr");
	setup_refused(-ENOSYS, "CONFIG_AIO");
	setup_refused(-EPERM, "sandbox");
	setup_refused(-ENOMEM, "Cannot allocate memory");
}

static long aio_nr(void)
{
	FILE *file = fopen("/proc/sys/fs/aio-nr", "re");
	long nr;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld", &nr), 1);
	fclose(file);
	return nr;
}

/* The counter is the whole host's, so others may move it meanwhile: one quiet moment in 50 will do. */
static void slots_charged_are_the_depth(void **state)
{
	struct disk_queue *queue;
	struct error error;

	(void)state;
	image_open(false);
	for (unsigned try = 0;; try++) {
		long before = aio_nr(), during, after;

		assert_int_equal(
			harness.disk->driver->queue_create(harness.disk, 32, &queue, &error), 0);
		during = aio_nr();
		harness.disk->driver->queue_destroy(queue);
		after = aio_nr();
		if (during - before == 32 && before == after)
			break;
		if (try == 50)
			fail_msg("fs.aio-nr: %ld before, %ld with a queue of 32, %ld after", before,
				 during, after);
	}
	image_close();
}

/* An idle queue with requests behind it makes no edge. */
static void idle_is_silent(void **state)
{
	(void)state;
	image_open(false);
	reads_submit(DEPTH);
	harness_finish(&harness, DEPTH);
	harness_edge(&harness,
		     0); /* completions that the last reap saw before their edge was taken */
	assert_false(harness_edge(&harness, 100));
	image_close();
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(batch_is_one_submit),
		cmocka_unit_test(ring_needs_no_system_call),
		cmocka_unit_test(unknown_ring_takes_the_system_call),
		cmocka_unit_test(partial_submit_loses_nothing),
		cmocka_unit_test(one_by_one_submit),
		cmocka_unit_test(no_room_and_nothing_in_flight),
		cmocka_unit_test(no_room_and_no_thread),
		cmocka_unit_test(bad_request_fails_alone),
		cmocka_unit_test(queue_smaller_than_the_batch),
		cmocka_unit_test(short_transfers_go_on),
		cmocka_unit_test(read_past_a_shrunk_file),
		cmocka_unit_test(getevents_errors_are_survived),
		cmocka_unit_test(foreign_completion_is_ignored),
		cmocka_unit_test(flush_goes_through_aio),
		cmocka_unit_test(flush_falls_back_to_a_thread),
		cmocka_unit_test(flush_without_a_thread_fails),
		cmocka_unit_test(flush_not_tried_is_tried_again),
		cmocka_unit_test(flush_is_given_up),
		cmocka_unit_test(flush_that_lost_is_not_tried_again),
		cmocka_unit_test(each_queue_has_its_description),
		cmocka_unit_test(setup_failures_name_the_cure),
		cmocka_unit_test(slots_charged_are_the_depth),
		cmocka_unit_test(idle_is_silent),
	};

	if (scratch_skip_all())
		return 0;
	log_init("test-aio-engine", "", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
