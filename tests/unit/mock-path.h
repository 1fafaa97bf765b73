/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Both ends of a data path for tests: a transport that is a list of requests, and a driver that finishes
 * what it is told to, when it is told to.
 *
 * Owns: struct mock_wire and struct mock_disk. Trusts: the test. Runs on: the test.
 * Must not know: rings, files.
 *
 * Both write what happens to them into one journal, a text such as
 *     "pop1 pop2 pop0 load submit1R submit2W kick reap store respond1 flush arm "
 * in which R, W, F name the operation that the driver saw.
 */
#ifndef VBDISK_TEST_MOCK_PATH_H
#define VBDISK_TEST_MOCK_PATH_H

#include "driver.h"
#include "transport.h"

#define MOCK_REQUESTS_MAX 8192
#define MOCK_DEPTH_MAX 64

struct mock_journal {
	char text[4096];
	bool off; /* long tests need counts only */
};

struct mock_request {
	enum request_op op;
	unsigned flags;
	int status; /* non-zero: what the decoder says of it */
	int resolve_status, load_status, store_status;
	uint64_t offset_bytes, len_bytes;
};

struct mock_wire {
	struct transport transport;
	struct transport_ops ops; /* a copy, so that a test may change flush_error_is_deadly */
	struct mock_journal *journal;

	struct mock_request requests[MOCK_REQUESTS_MAX]; /* id i is requests[i - 1] */
	unsigned nr_requests, nr_popped;
	unsigned
		room; /* so many requests popped and not responded to make pop() say -EAGAIN; 0: any */
	int pop_error; /* if not 0, pop() returns it when the list is at its end */
	void (*arm_hook)(struct mock_wire *wire); /* called by arm() once: a guest that is quick */
	bool (*more)(
		struct mock_wire *wire); /* called by pop() at the end: true if it added some */

	unsigned nr_answers[MOCK_REQUESTS_MAX]; /* by id - 1 */
	int answers[MOCK_REQUESTS_MAX];
	unsigned nr_answered, nr_responded, nr_unpublished;
	unsigned nr_load, nr_store, nr_flush, nr_arm, nr_disconnect, nr_free;
	bool armed;
	bool untouchable; /* from now on any call but disconnect and free fails the test */
	int event_fd;
	char data[MOCK_DEPTH_MAX][4096] __attribute__((aligned(4096)));
	struct iovec iov[MOCK_DEPTH_MAX];
};

struct mock_disk {
	struct disk disk;
	struct disk_queue queue;
	struct driver driver;
	struct mock_journal *journal;

	struct request_list submitted; /* in order, not finished */
	struct request_list done;      /* finished, not reaped */
	unsigned nr_held, nr_submitted, nr_unkicked, nr_kick, nr_queues;
	bool at_once; /* every request is finished by submit(), as a memory disk does */
	int at_once_status;
	int event_fd; /* -1, or what poll_fd() says */
};

void mock_wire_init(struct mock_wire *wire, struct mock_journal *journal, unsigned nr_slots);
/* Append a request; returns its id (1, 2, ...). */
unsigned mock_wire_add(struct mock_wire *wire, enum request_op op, unsigned flags);
/* The id of a request in the driver's hands. */
unsigned mock_request_id(const struct request *request);

void mock_disk_init(struct mock_disk *mock, struct mock_journal *journal);
/* Finish the request with this id with @status; the test fails if the driver does not have it. */
void mock_disk_finish(struct mock_disk *mock, unsigned id, int status);
bool mock_disk_has(struct mock_disk *mock, unsigned id);

#endif
