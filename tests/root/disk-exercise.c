// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open a disk and do to it what the arguments say, one after the other: for tests on real devices.
 *
 * Owns: one disk, one queue, a map of what was written successfully.
 * Trusts / does not trust: the arguments are a test's.
 * Runs on: its own thread; waits.
 * Must not know: what the disk is.
 *
 *   disk-exercise [-r] [-s] SPEC COMMAND...
 *     limits              print the limits
 *     discards            print the limits of discards
 *     refresh             print the size as it is now
 *     write FROM LEN SEED write a pattern; print how many requests went well, and the last error
 *     flush               flush; print the status
 *     discard FROM LEN    discard in one request; print the status
 *     verify SEED         read back every extent written successfully, and compare
 *     read FROM LEN       read; print how many requests went well, and the last error
 *     run COMMAND         run a shell command while the disk stays open
 *
 * -r opens read-only, -s with sectors of 512 bytes whatever the storage has. Exit status: 0 all was done (failed requests are printed, not fatal), 1 a
 * comparison or a command failed, 2 the disk could not be opened (the reason is on stderr).
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container.h"
#include "driver.h"
#include "drivers/params.h"

#define DEPTH 32u
#define UNIT_BYTES 65536u
#define WORDS_PER_SECTOR 64u

struct slot {
	struct request request;
	struct iovec iov;
	char *buffer;
};

static struct disk *disk;
static struct disk_queue *queue;
static struct slot slots[DEPTH];
static bool *written; /* per unit of the disk */

struct tally {
	unsigned long nr_ok, nr_failed, nr_wrong;
	int status;
};

static void die(const char *what)
{
	fprintf(stderr, "disk-exercise: %s\n", what);
	exit(1);
}

static void pattern_fill(uint64_t *words, uint64_t offset_bytes, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len / 8; i++)
		words[i] =
			(offset_bytes / 512 + i / WORDS_PER_SECTOR) * 0x9e3779b97f4a7c15ull + seed;
}

static bool pattern_check(const uint64_t *words, uint64_t offset_bytes, size_t len, uint64_t seed)
{
	uint64_t expected[512 / 8];

	for (size_t at = 0; at < len; at += 512) {
		pattern_fill(expected, offset_bytes + at, 512, seed);
		if (memcmp(words + at / 8, expected, 512))
			return false;
	}
	return true;
}

static void slot_finish(struct slot *slot, struct tally *tally, bool check, uint64_t seed)
{
	struct request *request = &slot->request;

	if (request->status) {
		tally->nr_failed++;
		tally->status = request->status;
	} else {
		tally->nr_ok++;
	}
	if (request->op == REQUEST_WRITE)
		written[request->offset_bytes / UNIT_BYTES] = !request->status;
	else if (check && !request->status &&
		 !pattern_check((uint64_t *)slot->buffer, request->offset_bytes, request->len_bytes,
				seed))
		tally->nr_wrong++;
	request->state = REQUEST_FREE;
}

/* Reap at least one of the requests in flight. */
static unsigned some_finish(struct tally *tally, bool check, uint64_t seed)
{
	struct request_list done = TAILQ_HEAD_INITIALIZER(done);
	struct pollfd pollfd = {.fd = disk->driver->poll_fd(queue), .events = POLLIN};
	struct request *request, *next;
	unsigned nr;

	while (!(nr = disk->driver->reap(queue, &done)))
		if (poll(&pollfd, 1, 10000) == 0)
			die("no completion for 10 s");
	for (request = TAILQ_FIRST(&done); request; request = next) {
		next = TAILQ_NEXT(request, link);
		slot_finish(container_of(request, struct slot, request), tally, check, seed);
	}
	return nr;
}

static struct slot *slot_get(void)
{
	for (unsigned i = 0; i < DEPTH; i++)
		if (slots[i].request.state == REQUEST_FREE)
			return &slots[i];
	return NULL;
}

static struct tally transfer(enum request_op op, uint64_t from, uint64_t end, bool check,
			     uint64_t seed)
{
	struct tally tally = {0};
	unsigned nr_in_flight = 0;

	while (from < end || nr_in_flight) {
		struct slot *slot;

		while (from < end && (slot = slot_get())) {
			struct request *request = &slot->request;
			uint64_t len = end - from < UNIT_BYTES ? end - from : UNIT_BYTES;

			if (!check || written[from / UNIT_BYTES]) {
				slot->iov = (struct iovec){slot->buffer, len};
				request->op = op;
				request->state = REQUEST_QUEUED;
				request->offset_bytes = from;
				request->len_bytes = len;
				request->iov = &slot->iov;
				request->nr_iov = 1;
				if (op == REQUEST_WRITE)
					pattern_fill((uint64_t *)slot->buffer, from, len, seed);
				disk->driver->submit(queue, request);
				nr_in_flight++;
			}
			from += len;
		}
		disk->driver->kick(queue);
		if (nr_in_flight)
			nr_in_flight -= some_finish(&tally, check, seed);
	}
	return tally;
}

/* A request without memory. */
static int bare(enum request_op op, uint64_t from, uint64_t len)
{
	struct tally tally = {0};
	struct request *request = &slots[0].request;

	request->op = op;
	request->state = REQUEST_QUEUED;
	request->offset_bytes = from;
	request->len_bytes = len;
	request->nr_iov = 0;
	disk->driver->submit(queue, request);
	disk->driver->kick(queue);
	some_finish(&tally, false, 0);
	return tally.status;
}

static uint64_t number(const char *text)
{
	uint64_t value = 0;

	if (!text || param_size(text, &value))
		die("a number is missing");
	return value;
}

static void tally_print(const char *what, const struct tally *tally)
{
	printf("%s ok=%lu failed=%lu wrong=%lu status=%d\n", what, tally->nr_ok, tally->nr_failed,
	       tally->nr_wrong, tally->status);
	fflush(stdout);
}

/* Do one command; returns how many arguments it took. */
static int command_do(char **argv)
{
	const struct disk_limits *limits = &disk->limits;
	struct tally tally;

	if (!strcmp(argv[0], "limits")) {
		printf("limits size=%llu logical=%u physical=%u memory=%u write=%d flush=%d\n",
		       (unsigned long long)limits->size_bytes, limits->logical_block_bytes,
		       limits->physical_block_bytes, limits->memory_align_bytes, limits->can_write,
		       limits->can_flush);
		fflush(stdout);
		return 1;
	}
	if (!strcmp(argv[0], "discards")) {
		printf("discards can=%d secure=%d granularity=%u alignment=%u\n",
		       limits->can_discard, limits->can_secure_discard,
		       limits->discard_granularity_bytes, limits->discard_alignment_bytes);
		fflush(stdout);
		return 1;
	}
	if (!strcmp(argv[0], "refresh")) {
		uint64_t size_bytes = 0;
		int status = disk->driver->refresh(disk, &size_bytes);

		printf("refresh status=%d size=%llu\n", status, (unsigned long long)size_bytes);
		fflush(stdout);
		return 1;
	}
	if (!strcmp(argv[0], "discard")) {
		printf("discard status=%d\n",
		       bare(REQUEST_DISCARD, number(argv[1]), number(argv[2])));
		fflush(stdout);
		return 3;
	}
	if (!strcmp(argv[0], "flush")) {
		printf("flush status=%d\n", bare(REQUEST_FLUSH, 0, 0));
		fflush(stdout);
		return 1;
	}
	if (!strcmp(argv[0], "verify")) {
		tally = transfer(REQUEST_READ, 0, limits->size_bytes, true, number(argv[1]));
		tally_print(argv[0], &tally);
		if (tally.nr_wrong || tally.nr_failed)
			exit(1);
		return 2;
	}
	if (!strcmp(argv[0], "run")) {
		if (!argv[1] || system(argv[1]))
			die("a command failed");
		return 2;
	}
	if (!strcmp(argv[0], "read")) {
		tally = transfer(REQUEST_READ, number(argv[1]), number(argv[1]) + number(argv[2]),
				 false, 0);
		tally_print(argv[0], &tally);
		return 3;
	}
	if (!strcmp(argv[0], "write")) {
		uint64_t from = number(argv[1]);

		tally = transfer(REQUEST_WRITE, from, from + number(argv[2]), false,
				 number(argv[3]));
		tally_print(argv[0], &tally);
		return 4;
	}
	die("there is no such command");
	return 0;
}

int main(int argc, char **argv)
{
	unsigned flags = DISK_OPEN_WRITABLE;
	struct error error = {""};

	for (; argc > 1 && argv[1] && argv[1][0] == '-'; argv++) {
		if (!strcmp(argv[1], "-r"))
			flags &= ~DISK_OPEN_WRITABLE;
		if (!strcmp(argv[1], "-s"))
			flags |= DISK_OPEN_SECTOR_512;
	}
	if (argc < 2 || !argv[1])
		die("usage: disk-exercise [-r] [-s] SPEC COMMAND...");
	if (disk_open(argv[1], flags, &disk, &error) ||
	    disk->driver->queue_create(disk, DEPTH, &queue, &error)) {
		fprintf(stderr, "disk-exercise: %s\n", error.text);
		return 2;
	}
	written = calloc(disk->limits.size_bytes / UNIT_BYTES + 1, sizeof(*written));
	for (unsigned i = 0; i < DEPTH; i++) {
		slots[i].request.driver_scratch = calloc(1, disk->request_size + 16);
		if (!written || !slots[i].request.driver_scratch ||
		    posix_memalign((void **)&slots[i].buffer, 4096, UNIT_BYTES))
			die("no memory");
	}
	for (argv += 2; *argv;)
		argv += command_do(argv);
	disk->driver->queue_destroy(queue);
	disk->driver->close(disk);
	for (unsigned i = 0; i < DEPTH; i++) {
		free(slots[i].request.driver_scratch);
		free(slots[i].buffer);
	}
	free(written);
	return 0;
}
