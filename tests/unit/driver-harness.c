// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the driver tests share: a disk with a queue and a pool of requests, driven as the data path
 * drives it, and scratch images.
 *
 * Owns: everything in struct harness between open and close.
 * Trusts / does not trust: nothing: a completion that announces no edge fails the test after 10 s.
 * Runs on: the test; waits.
 * Must not know: which driver it drives.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/unit/driver-harness.h"

#define EDGE_TIMEOUT_MS 10000
#define NR_IMAGES 4

static char image_paths[NR_IMAGES][PATH_MAX];
static pid_t image_owner;

void harness_open_queue(struct harness *harness, struct disk *disk, unsigned depth)
{
	const struct driver *driver = disk->driver;
	size_t scratch_bytes = (disk->request_size + 15) & ~(size_t)15;
	struct error error = {""};
	int fd;

	memset(harness, 0, sizeof(*harness));
	TAILQ_INIT(&harness->done);
	harness->disk = disk;
	harness->depth = depth;
	if (driver->queue_create(disk, depth, &harness->queue, &error))
		fail_msg("queue_create: %s", error.text);
	assert_ptr_equal(harness->queue->disk, disk);
	harness->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(harness->epoll_fd >= 0);
	fd = driver->poll_fd(harness->queue);
	if (fd >= 0) {
		struct epoll_event event = {.events = EPOLLIN | EPOLLET};

		assert_int_equal(epoll_ctl(harness->epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
	}
	harness->requests = calloc(depth, sizeof(*harness->requests));
	harness->iovs = calloc(depth * HARNESS_MAX_IOV, sizeof(*harness->iovs));
	harness->scratch = calloc(depth, scratch_bytes + 16);
	assert_int_equal(posix_memalign((void **)&harness->buffers, 4096,
					(size_t)depth * HARNESS_BUFFER_BYTES),
			 0);
	memset(harness->buffers, 0xee, (size_t)depth * HARNESS_BUFFER_BYTES);
	for (unsigned i = 0; i < depth; i++)
		harness->requests[i].driver_scratch = harness->scratch + i * scratch_bytes;
}

void harness_close_queue(struct harness *harness)
{
	harness->disk->driver->queue_destroy(harness->queue);
	close(harness->epoll_fd);
	free(harness->requests);
	free(harness->iovs);
	free(harness->scratch);
	free(harness->buffers);
}

void harness_open(struct harness *harness, const char *spec, unsigned flags, unsigned depth)
{
	struct error error = {""};
	struct disk *disk;

	if (disk_open(spec, flags, &disk, &error))
		fail_msg("disk_open(%s): %s", spec, error.text);
	harness_open_queue(harness, disk, depth);
}

void harness_close(struct harness *harness)
{
	struct disk *disk = harness->disk;

	harness_close_queue(harness);
	disk->driver->close(disk);
}

char *harness_buffer(struct harness *harness, unsigned idx)
{
	return harness->buffers + (size_t)idx * HARNESS_BUFFER_BYTES;
}

struct request *harness_request(struct harness *harness, unsigned idx, enum request_op op,
				uint64_t offset_bytes, uint64_t len_bytes, unsigned nr_iov)
{
	uint64_t block_bytes = harness->disk->limits.logical_block_bytes;
	struct request *request = &harness->requests[idx];
	char *at = harness_buffer(harness, idx);
	uint64_t left_bytes = len_bytes;

	assert_in_range(idx, 0, harness->depth - 1);
	assert_in_range(nr_iov, 0, HARNESS_MAX_IOV);
	assert_in_range(len_bytes, 0, HARNESS_BUFFER_BYTES);
	assert_int_equal(request->state, REQUEST_FREE);
	request->op = op;
	request->state = REQUEST_DECODED;
	request->status = 0;
	request->offset_bytes = offset_bytes;
	request->len_bytes = len_bytes;
	request->iov = harness->iovs + (size_t)idx * HARNESS_MAX_IOV;
	request->nr_iov = nr_iov;
	for (unsigned i = 0; i < nr_iov; i++) {
		uint64_t part_bytes = len_bytes / nr_iov / block_bytes * block_bytes;

		if (i == nr_iov - 1)
			part_bytes = left_bytes;
		assert_true(part_bytes);
		request->iov[i].iov_base = at;
		request->iov[i].iov_len = part_bytes;
		at += part_bytes;
		left_bytes -= part_bytes;
	}
	return request;
}

void harness_submit(struct harness *harness, struct request *request)
{
	request->state = REQUEST_QUEUED;
	harness->disk->driver->submit(harness->queue, request);
}

unsigned harness_reap(struct harness *harness)
{
	struct request_list fresh = TAILQ_HEAD_INITIALIZER(fresh);
	size_t stride = (harness->disk->request_size + 15) & ~(size_t)15;
	unsigned nr = harness->disk->driver->reap(harness->queue, &fresh), nr_listed = 0;
	struct request *request;

	TAILQ_FOREACH(request, &fresh, link) {
		size_t idx = (size_t)(request - harness->requests);

		assert_in_range(idx, 0, harness->depth - 1);
		assert_int_equal(request->state, REQUEST_QUEUED);
		assert_ptr_equal(request->driver_scratch, harness->scratch + idx * stride);
		request->state = REQUEST_DONE;
		nr_listed++;
	}
	assert_int_equal(nr, nr_listed);
	TAILQ_CONCAT(&harness->done, &fresh, link);
	harness->nr_done += nr;
	return nr;
}

void harness_kick(struct harness *harness)
{
	harness->disk->driver->kick(harness->queue);
	harness_reap(harness);
}

bool harness_edge(struct harness *harness, int timeout_ms)
{
	struct epoll_event event;
	int ret;

	do {
		ret = epoll_wait(harness->epoll_fd, &event, 1, timeout_ms);
	} while (ret < 0 && errno == EINTR);
	return ret == 1;
}

void harness_finish(struct harness *harness, unsigned nr)
{
	struct request *request;

	harness_kick(harness);
	while (harness->nr_done < nr) {
		if (!harness_edge(harness, EDGE_TIMEOUT_MS))
			fail_msg("no edge: %u of %u done", harness->nr_done, nr);
		harness_reap(harness);
	}
	assert_int_equal(harness->nr_done, nr);
	TAILQ_FOREACH(request, &harness->done, link)
		request->state = REQUEST_FREE;
	TAILQ_INIT(&harness->done);
	harness->nr_done = 0;
}

int harness_run(struct harness *harness, enum request_op op, uint64_t offset_bytes,
		uint64_t len_bytes, unsigned nr_iov)
{
	struct request *request = harness_request(harness, 0, op, offset_bytes, len_bytes, nr_iov);

	harness_submit(harness, request);
	harness_finish(harness, 1);
	return request->status;
}

static void images_remove(void)
{
	if (getpid() != image_owner)
		return;
	for (unsigned i = 0; i < NR_IMAGES; i++)
		if (image_paths[i][0])
			unlink(image_paths[i]);
}

const char *scratch_image(unsigned idx, uint64_t size_bytes)
{
	char directory[PATH_MAX - 64];
	int fd;

	assert_in_range(idx, 0, NR_IMAGES - 1);
	if (!image_owner) {
		image_owner = getpid();
		atexit(images_remove);
	}
	assert_non_null(getcwd(directory, sizeof(directory)));
	snprintf(image_paths[idx], sizeof(image_paths[idx]), "%s/scratch-%d-%u.img", directory,
		 (int)getpid(), idx);
	unlink(image_paths[idx]);
	fd = open(image_paths[idx], O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size_bytes), 0);
	close(fd);
	return image_paths[idx];
}

bool scratch_skip_all(void)
{
	int fd = open(scratch_image(0, 4096), O_RDONLY | O_DIRECT | O_CLOEXEC);

	if (fd < 0) {
		printf("1..0 # SKIP no O_DIRECT in the working directory (%s)\n", strerror(errno));
		return true;
	}
	close(fd);
	return false;
}

unsigned nr_open_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned nr = 0;

	assert_non_null(directory);
	while (readdir(directory))
		nr++;
	closedir(directory);
	return nr;
}
