/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the driver tests share: a disk with a queue and a pool of requests, driven as the data path
 * drives it, and scratch images.
 *
 * Owns: everything in struct harness between open and close.
 * Trusts / does not trust: nothing: a completion that announces no edge fails the test after 10 s.
 * Runs on: the test; waits.
 * Must not know: which driver it drives.
 */
#ifndef VBDISK_DRIVER_HARNESS_H
#define VBDISK_DRIVER_HARNESS_H

#include <stdbool.h>

#include "driver.h"
#include "tests/unit/unit.h"

#define HARNESS_BUFFER_BYTES 65536u
#define HARNESS_MAX_IOV 64u

struct harness {
	struct disk *disk;
	struct disk_queue *queue;
	unsigned depth;
	int epoll_fd;
	struct request *requests; /* depth of them */
	struct iovec *iovs;	  /* HARNESS_MAX_IOV per request */
	char *scratch;
	char *buffers; /* HARNESS_BUFFER_BYTES per request, page-aligned */
	struct request_list done;
	unsigned nr_done;
};

/* Open @spec, a queue of @depth and as many requests. Fails the test if that fails. */
void harness_open(struct harness *harness, const char *spec, unsigned flags, unsigned depth);
void harness_close(struct harness *harness);

/* Another queue on an open disk, with its own requests; harness_close_queue() leaves the disk open. */
void harness_open_queue(struct harness *harness, struct disk *disk, unsigned depth);
void harness_close_queue(struct harness *harness);

char *harness_buffer(struct harness *harness, unsigned idx);

/* Request @idx, its buffer cut into @nr_iov parts at multiples of the logical block. */
struct request *harness_request(struct harness *harness, unsigned idx, enum request_op op,
				uint64_t offset_bytes, uint64_t len_bytes, unsigned nr_iov);

void harness_submit(struct harness *harness, struct request *request);

/* kick() and one reap(). */
void harness_kick(struct harness *harness);

/* reap() once; checks that the count is true and every request was one of ours, once. */
unsigned harness_reap(struct harness *harness);

/* True if poll_fd has a new edge within @timeout_ms. */
bool harness_edge(struct harness *harness, int timeout_ms);

/* Kick, then wait for edges until @nr requests are done in all; they leave the done list. */
void harness_finish(struct harness *harness, unsigned nr);

/* One request from submit to status. */
int harness_run(struct harness *harness, enum request_op op, uint64_t offset_bytes,
		uint64_t len_bytes, unsigned nr_iov);

/* Make a sparse image of @size_bytes in the working directory; the name is valid until the next call
 * with the same @idx (0..3). Removed at exit. */
const char *scratch_image(unsigned idx, uint64_t size_bytes);

/* True if the working directory has no O_DIRECT; prints the plan which says so. The whole program is
 * skipped, because cmocka's own skip() counts as a failure in its TAP output. */
bool scratch_skip_all(void);

/* Open descriptors of this process. */
unsigned nr_open_fds(void);

#endif
