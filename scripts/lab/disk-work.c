// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Works on a disk from inside a test guest: mixed load that checks its own data, and timed load.
 *
 * Owns: the device or file it is given. Trusts: nothing that it reads back.
 * Runs on: the test guests and dom0 of the emulated lab, statically linked; blocks.
 * Must not know: who serves the disk.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096u
#define BLOCKS_MAX 32u /* 128 KiB in one request */
#define DEPTH_MAX 64

static const char usage[] =
	"usage: disk-work check TARGET OFFSET_MIB SIZE_MIB THREADS REQUESTS SEED\n"
	"       disk-work bench TARGET read|write seq|rand BLOCK_KIB DEPTH SECONDS\n"
	"check: random requests of 4 to 128 KiB, flushes and discards; every byte read is compared with\n"
	"what was written. bench: prints MiB/s and requests/s.\n";

/* One thread's part of the target: nobody else writes there. */
struct part {
	pthread_t thread;
	int fd;
	bool block_device;
	uint64_t first_block;
	unsigned nr_blocks;
	unsigned nr_requests;
	uint64_t random;
	uint32_t *versions; /* of each block; 0: its content is not known */
	uint32_t version;
	unsigned nr_reads, nr_writes, nr_flushes, nr_discards;
	bool failed;
};

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (*end || end == text) {
		fprintf(stderr, "disk-work: '%s' is no number\n", text);
		exit(2);
	}
	return value;
}

static void *buffer_make(size_t size)
{
	void *buffer = NULL;

	if (posix_memalign(&buffer, BLOCK, size)) {
		fprintf(stderr, "disk-work: no memory\n");
		exit(1);
	}
	memset(buffer, 0, size);
	return buffer;
}

static uint64_t random_next(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static void block_fill(uint64_t *words, uint64_t block, uint32_t version)
{
	uint64_t state = block << 32 | version;

	for (unsigned i = 0; i < BLOCK / sizeof(*words); i++)
		words[i] = random_next(&state);
}

static bool part_fails(struct part *part, const char *what, uint64_t block, int error)
{
	printf("%s at block %llu: %s\n", what, (unsigned long long)block,
	       error ? strerror(error) : "the data is not what was written");
	part->failed = true;
	return false;
}

static bool part_write(struct part *part, unsigned at, unsigned count, uint8_t *buffer)
{
	uint64_t first = part->first_block + at;

	part->version++;
	for (unsigned i = 0; i < count; i++)
		block_fill((uint64_t *)(buffer + i * BLOCK), first + i, part->version);
	if (pwrite(part->fd, buffer, count * BLOCK, (off_t)(first * BLOCK)) !=
	    (ssize_t)(count * BLOCK))
		return part_fails(part, "write", first, errno ? errno : EIO);
	for (unsigned i = 0; i < count; i++)
		part->versions[at + i] = part->version;
	part->nr_writes++;
	return true;
}

static bool part_read(struct part *part, unsigned at, unsigned count, uint8_t *buffer)
{
	uint64_t first = part->first_block + at;
	uint64_t want[BLOCK / sizeof(uint64_t)];

	memset(buffer, 0xa5, count * BLOCK);
	if (pread(part->fd, buffer, count * BLOCK, (off_t)(first * BLOCK)) !=
	    (ssize_t)(count * BLOCK))
		return part_fails(part, "read", first, errno ? errno : EIO);
	for (unsigned i = 0; i < count; i++) {
		if (!part->versions[at + i])
			continue;
		block_fill(want, first + i, part->versions[at + i]);
		if (memcmp(want, buffer + i * BLOCK, BLOCK))
			return part_fails(part, "read", first + i, 0);
	}
	part->nr_reads++;
	return true;
}

/* What a discarded block holds is nobody's promise; its neighbours must keep their data. */
static bool part_discard(struct part *part, unsigned at, unsigned count)
{
	uint64_t range[2] = {(part->first_block + at) * BLOCK, (uint64_t)count * BLOCK};
	int err;

	if (part->block_device)
		err = ioctl(part->fd, BLKDISCARD, range);
	else
		err = fallocate(part->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)range[0], (off_t)range[1]);
	if (err)
		return part_fails(part, "discard", part->first_block + at, errno);
	memset(part->versions + at, 0, count * sizeof(*part->versions));
	part->nr_discards++;
	return true;
}

static bool part_flush(struct part *part)
{
	if (fsync(part->fd))
		return part_fails(part, "flush", 0, errno);
	part->nr_flushes++;
	return true;
}

static void *part_run(void *opaque)
{
	struct part *part = opaque;
	uint8_t *buffer = buffer_make(BLOCKS_MAX * BLOCK);
	bool good = true;

	for (unsigned i = 0; good && i < part->nr_requests; i++) {
		unsigned dice = (unsigned)(random_next(&part->random) % 100);
		unsigned count = 1 + (unsigned)(random_next(&part->random) % BLOCKS_MAX);
		unsigned at = (unsigned)(random_next(&part->random) % (part->nr_blocks - count));

		if (dice < 48)
			good = part_write(part, at, count, buffer);
		else if (dice < 93)
			good = part_read(part, at, count, buffer);
		else if (dice < 97)
			good = part_flush(part);
		else
			good = part_discard(part, at, count);
	}
	for (unsigned at = 0; good && at < part->nr_blocks; at += BLOCKS_MAX) {
		unsigned left = part->nr_blocks - at;

		good = part_read(part, at, left < BLOCKS_MAX ? left : BLOCKS_MAX, buffer);
	}
	free(buffer);
	return NULL;
}

static int target_open(const char *path, bool *block_device)
{
	struct stat status;
	int fd = open(path, O_RDWR | O_DIRECT);

	if (fd < 0 || fstat(fd, &status)) {
		fprintf(stderr, "disk-work: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	*block_device = S_ISBLK(status.st_mode);
	return fd;
}

static int check_main(char **arguments)
{
	uint64_t offset_mib = number(arguments[1]), size_mib = number(arguments[2]);
	unsigned nr_parts = (unsigned)number(arguments[3]);
	unsigned nr_requests = (unsigned)number(arguments[4]);
	uint64_t seed = number(arguments[5]);
	unsigned nr_blocks = (unsigned)(size_mib * 256 / (nr_parts ? nr_parts : 1));
	unsigned reads = 0, writes = 0, flushes = 0, discards = 0, failures = 0;
	struct part *parts = calloc(nr_parts, sizeof(*parts));

	if (!parts || !nr_parts || nr_blocks <= BLOCKS_MAX) {
		fprintf(stderr, "disk-work: nothing to check in that range\n");
		return 2;
	}
	for (unsigned i = 0; i < nr_parts; i++) {
		struct part *part = &parts[i];

		part->fd = target_open(arguments[0], &part->block_device);
		part->first_block = offset_mib * 256 + (uint64_t)i * nr_blocks;
		part->nr_blocks = nr_blocks;
		part->nr_requests = nr_requests / nr_parts;
		part->random = seed * 1000 + i;
		part->version = (uint32_t)(seed << 20);
		part->versions = calloc(nr_blocks, sizeof(*part->versions));
		if (!part->versions || pthread_create(&part->thread, NULL, part_run, part)) {
			fprintf(stderr, "disk-work: no memory for thread %u\n", i);
			return 1;
		}
	}
	for (unsigned i = 0; i < nr_parts; i++) {
		pthread_join(parts[i].thread, NULL);
		reads += parts[i].nr_reads;
		writes += parts[i].nr_writes;
		flushes += parts[i].nr_flushes;
		discards += parts[i].nr_discards;
		failures += parts[i].failed;
	}
	printf("checked reads=%u writes=%u flushes=%u discards=%u failures=%u\n", reads, writes,
	       flushes, discards, failures);
	return failures ? 1 : 0;
}

struct bench {
	int fd;
	bool write, random;
	uint64_t block_bytes, nr_blocks, next, state;
	unsigned depth;
};

static void bench_aim(struct bench *bench, struct iocb *iocb)
{
	uint64_t block = bench->random ? random_next(&bench->state) : bench->next++;

	iocb->aio_offset = (int64_t)(block % bench->nr_blocks * bench->block_bytes);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int bench_run(struct bench *bench, double seconds)
{
	struct iocb iocbs[DEPTH_MAX] = {0}, *list[DEPTH_MAX];
	struct io_event events[DEPTH_MAX];
	aio_context_t context = 0;
	double begin, now;
	uint64_t done = 0;
	long count = bench->depth;

	if (syscall(SYS_io_setup, bench->depth, &context)) {
		perror("disk-work: io_setup");
		return 1;
	}
	for (unsigned i = 0; i < bench->depth; i++) {
		iocbs[i].aio_fildes = (uint32_t)bench->fd;
		iocbs[i].aio_lio_opcode = bench->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
		iocbs[i].aio_buf = (uintptr_t)buffer_make(bench->block_bytes);
		iocbs[i].aio_nbytes = bench->block_bytes;
		list[i] = &iocbs[i];
	}
	begin = seconds_now();
	do {
		for (long i = 0; i < count; i++)
			bench_aim(bench, list[i]);
		if (syscall(SYS_io_submit, context, count, list) != count) {
			perror("disk-work: io_submit");
			return 1;
		}
		count = syscall(SYS_io_getevents, context, 1, bench->depth, events, NULL);
		for (long i = 0; i < count; i++) {
			list[i] = (struct iocb *)(uintptr_t)events[i].obj;
			if (events[i].res != (int64_t)bench->block_bytes) {
				fprintf(stderr, "disk-work: a request ended with %lld\n",
					(long long)events[i].res);
				return 1;
			}
		}
		done += (uint64_t)(count > 0 ? count : 0);
		now = seconds_now();
	} while (count > 0 && now - begin < seconds);
	printf("bench MiB/s=%.2f IOPS=%.0f\n",
	       (double)(done * bench->block_bytes) / (now - begin) / (1 << 20),
	       (double)done / (now - begin));
	return count > 0 ? 0 : 1;
}

static int bench_main(char **arguments)
{
	struct bench bench = {.state = 1};
	bool block_device;
	off_t size;

	bench.fd = target_open(arguments[0], &block_device);
	bench.write = !strcmp(arguments[1], "write");
	bench.random = !strcmp(arguments[2], "rand");
	bench.block_bytes = number(arguments[3]) * 1024;
	bench.depth = (unsigned)number(arguments[4]);
	size = lseek(bench.fd, 0, SEEK_END);
	if (size > 0 && bench.block_bytes)
		bench.nr_blocks = (uint64_t)size / bench.block_bytes;
	if (!bench.nr_blocks || !bench.depth || bench.depth > DEPTH_MAX) {
		fprintf(stderr, "disk-work: depth is 1 to %d, and the target holds a block\n",
			DEPTH_MAX);
		return 2;
	}
	return bench_run(&bench, (double)number(arguments[5]));
}

int main(int argc, char **argv)
{
	if (argc == 8 && !strcmp(argv[1], "check"))
		return check_main(argv + 2);
	if (argc == 8 && !strcmp(argv[1], "bench"))
		return bench_main(argv + 2);
	fputs(usage, stderr);
	return 2;
}
