// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The queues of a VBD on worker threads: every event reaches the main thread once, and whatever is asked of the
 * set reaches every queue.
 *
 * Owns: nothing. Trusts: backend/queue-set.h. Runs on: the test, and the workers. Must not know: rings, files.
 *
 * A mock wire or disk is touched by its queue's thread only, and by the test before the set is made and after
 * it has drained; between, the test talks to a queue by its event descriptors.
 */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/queue-set.h"
#include "tests/unit/mock-path.h"
#include "tests/unit/unit.h"

#define NR_QUEUES 4

/* One driver for all queues, whose requests finish at once, or when the test says so. */
struct slow_queue {
	struct disk_queue queue;
	struct request_list submitted;
	unsigned nr_submitted;
	int event_fd; /* written: finish what there is */
};

struct fixture {
	struct mock_journal journal;
	struct mock_wire wires[NR_QUEUES];
	struct transport *transports[NR_QUEUES];
	struct disk disk;
	struct slow_queue slow[NR_QUEUES];
	unsigned nr_slow;
	int flush_status;
	bool hold;
	struct loop *loop;
	struct queue_set *set;
	sem_t armed; /* a wire was armed: its queue has nothing more to do */
	unsigned nr_drained, nr_quiet, nr_resized, nr_trouble;
	enum dataplane_trouble trouble;
};

static struct fixture *fixture;

/* ---- The driver --------------------------------------------------------------------------------- */

static struct slow_queue *to_slow(struct disk_queue *queue)
{
	return (struct slow_queue *)queue;
}

static int slow_create(struct disk *disk, unsigned depth, struct disk_queue **queue_out,
		       struct error *error)
{
	struct slow_queue *slow = &fixture->slow[fixture->nr_slow];

	(void)depth;
	if (fixture->nr_slow == NR_QUEUES)
		return error_set(error, EMFILE, "enough");
	fixture->nr_slow++;
	slow->queue.disk = disk;
	TAILQ_INIT(&slow->submitted);
	*queue_out = &slow->queue;
	return 0;
}

static void slow_destroy(struct disk_queue *queue)
{
	assert_true(TAILQ_EMPTY(&to_slow(queue)->submitted));
	fixture->nr_slow--;
}

static void slow_submit(struct disk_queue *queue, struct request *request)
{
	request->status = request->op == REQUEST_FLUSH ? fixture->flush_status : 0;
	TAILQ_INSERT_TAIL(&to_slow(queue)->submitted, request, link);
	to_slow(queue)->nr_submitted++;
}

static void slow_kick(struct disk_queue *queue)
{
	(void)queue;
}

static int slow_poll_fd(struct disk_queue *queue)
{
	return to_slow(queue)->event_fd;
}

static unsigned slow_reap(struct disk_queue *queue, struct request_list *done)
{
	struct slow_queue *slow = to_slow(queue);
	struct request *request;
	uint64_t count;
	unsigned nr = 0;

	if (fixture->hold && read(slow->event_fd, &count, sizeof(count)) < 0)
		return 0;
	TAILQ_FOREACH(request, &slow->submitted, link)
		nr++;
	TAILQ_CONCAT(done, &slow->submitted, link);
	return nr;
}

static const struct driver slow_driver = {
	.name = "slow",
	.queue_create = slow_create,
	.queue_destroy = slow_destroy,
	.submit = slow_submit,
	.kick = slow_kick,
	.poll_fd = slow_poll_fd,
	.reap = slow_reap,
};

/* ---- The main thread ---------------------------------------------------------------------------- */

static void note_trouble(void *arg, enum dataplane_trouble trouble, int err)
{
	(void)arg;
	(void)err;
	fixture->trouble = trouble;
	fixture->nr_trouble++;
}

static void note_drained(void *arg)
{
	(void)arg;
	fixture->nr_drained++;
}

static void note_quiet(void *arg)
{
	(void)arg;
	fixture->nr_quiet++;
}

static void note_resized(void *arg)
{
	(void)arg;
	fixture->nr_resized++;
}

static const struct queue_set_events events = {note_trouble, note_drained, note_quiet, note_resized,
					       NULL};

static void event_send(int fd)
{
	uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

/* Run the main loop until *@count is @want; real time, since other threads have to run. */
static void await(const unsigned *count, unsigned want)
{
	uint64_t until_ns = clock_now_ns() + 20 * NSEC_PER_SEC;

	while (*count < want && clock_now_ns() < until_ns)
		assert_true(loop_step(fixture->loop, 100) >= 0);
	assert_int_equal(*count, want);
}

/* Nothing more comes. */
static void main_settle(void)
{
	for (int i = 0; i < 5; i++)
		loop_step(fixture->loop, 10);
}

static void note_armed(struct mock_wire *wire)
{
	(void)wire;
	sem_post(&fixture->armed);
}

/* Until each queue has done all it can. What the workers wrote before is seen. */
static void await_armed(void)
{
	uint64_t until_ns = clock_now_ns() + 20 * NSEC_PER_SEC;

	for (unsigned nr = 0; nr < NR_QUEUES;) {
		if (!sem_trywait(&fixture->armed))
			nr++;
		else
			assert_true(loop_step(fixture->loop, 1) >= 0);
		assert_true(clock_now_ns() < until_ns);
	}
}

static int set_up(void **state)
{
	static struct fixture memory;

	(void)state;
	memset(&memory, 0, sizeof(memory));
	fixture = &memory;
	fixture->journal.off = true;
	fixture->disk = (struct disk){
		.driver = &slow_driver,
		.limits = {.size_bytes = 64u << 20,
			   .logical_block_bytes = 512,
			   .physical_block_bytes = 512,
			   .memory_align_bytes = 1,
			   .can_write = true,
			   .can_flush = true},
	};
	for (unsigned i = 0; i < NR_QUEUES; i++) {
		mock_wire_init(&fixture->wires[i], &fixture->journal, 32);
		fixture->wires[i].event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		fixture->slow[i].event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		fixture->wires[i].arm_hook = note_armed;
		fixture->transports[i] = &fixture->wires[i].transport;
	}
	sem_init(&fixture->armed, 0, 0);
	return loop_create(&fixture->loop) || loop_mailbox_open(fixture->loop);
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(fixture->nr_slow, 0);
	for (unsigned i = 0; i < NR_QUEUES; i++) {
		close(fixture->wires[i].event_fd);
		close(fixture->slow[i].event_fd);
	}
	sem_destroy(&fixture->armed);
	loop_destroy(fixture->loop);
	return 0;
}

static void set_begin(unsigned nr_workers)
{
	struct error error;

	assert_int_equal(queue_set_create(fixture->loop, nr_workers, fixture->transports, NR_QUEUES,
					  &fixture->disk, &fixture->disk.limits, &events,
					  &fixture->set, &error),
			 0);
}

static void set_end(void)
{
	if (!fixture->nr_drained) {
		queue_set_stop(fixture->set);
		await(&fixture->nr_drained, 1);
	}
	main_settle();
	assert_int_equal(fixture->nr_drained, 1);
	queue_set_destroy(fixture->set);
	for (unsigned i = 0; i < NR_QUEUES; i++)
		assert_int_equal(fixture->wires[i].nr_free, 1);
}

static void serve_all(unsigned nr_workers)
{
	struct dataplane_stats stats;

	for (unsigned i = 0; i < NR_QUEUES; i++)
		for (unsigned j = 0; j < 1000; j++)
			mock_wire_add(&fixture->wires[i], REQUEST_READ, 0);
	set_begin(nr_workers);
	/* More than the budget of one run (16 passes of at most 32 requests): it takes several turns. */
	await_armed();
	queue_set_quiesce(fixture->set);
	await(&fixture->nr_quiet, 1);
	queue_set_stop(fixture->set);
	await(&fixture->nr_drained, 1);
	stats = queue_set_stats(fixture->set);
	assert_int_equal(stats.nr_reads, NR_QUEUES * 1000);
	set_end();
	for (unsigned i = 0; i < NR_QUEUES; i++)
		assert_int_equal(fixture->wires[i].nr_answered, 1000);
}

static void a_worker_each(void **state)
{
	(void)state;
	serve_all(NR_QUEUES);
}

static void shared_workers(void **state)
{
	(void)state;
	serve_all(3);
}

static void more_workers_than_queues(void **state)
{
	(void)state;
	serve_all(NR_QUEUES + 5);
}

static void no_workers(void **state)
{
	(void)state;
	serve_all(0);
}

/* drained() is told once, when the last queue has drained. */
static void the_last_one_counts(void **state)
{
	(void)state;
	fixture->hold = true;
	for (unsigned i = 0; i < NR_QUEUES; i++)
		mock_wire_add(&fixture->wires[i], REQUEST_WRITE, 0);
	set_begin(NR_QUEUES);
	await_armed();
	queue_set_abandon(fixture->set);
	for (unsigned i = 0; i < NR_QUEUES; i++) {
		main_settle();
		assert_int_equal(fixture->nr_drained, 0);
		event_send(fixture->slow[i].event_fd);
	}
	await(&fixture->nr_drained, 1);
	set_end();
	for (unsigned i = 0; i < NR_QUEUES; i++) {
		assert_int_equal(fixture->wires[i].nr_disconnect, 1);
		assert_int_equal(fixture->wires[i].nr_answered, 0);
	}
}

/* A resize is done when every queue works by it. */
static void resize_reaches_all(void **state)
{
	(void)state;
	fixture->disk.limits.size_bytes = 4096;
	for (unsigned i = 0; i < NR_QUEUES; i++) {
		mock_wire_add(&fixture->wires[i], REQUEST_READ, 0);
		fixture->wires[i].requests[0].offset_bytes = 4096;
	}
	set_begin(2);
	await_armed();
	queue_set_resize(fixture->set, 8192);
	await(&fixture->nr_resized, 1);
	for (unsigned i = 0; i < NR_QUEUES; i++) {
		mock_wire_add(&fixture->wires[i], REQUEST_READ, 0);
		fixture->wires[i].requests[1].offset_bytes = 4096;
		fixture->wires[i].arm_hook = note_armed;
		event_send(fixture->wires[i].event_fd);
	}
	await_armed();
	set_end();
	for (unsigned i = 0; i < NR_QUEUES; i++) {
		assert_int_equal(fixture->wires[i].answers[0], -ERANGE);
		assert_int_equal(fixture->wires[i].answers[1], 0);
	}
}

/* A flush that fails on one queue ends all trust in the disk, on every queue. */
static void one_failed_flush_is_everybodys(void **state)
{
	(void)state;
	fixture->flush_status = -EIO;
	mock_wire_add(&fixture->wires[2], REQUEST_FLUSH, 0);
	set_begin(NR_QUEUES);
	await(&fixture->nr_trouble, 1);
	assert_int_equal(fixture->trouble, DATAPLANE_FLUSH_FAILED);
	set_end();
	assert_int_equal(fixture->wires[2].nr_answered, 0);
	assert_int_equal(fixture->nr_trouble, 1);
}

static void a_broken_ring_is_told(void **state)
{
	(void)state;
	fixture->wires[1].pop_error = -EPROTO;
	set_begin(NR_QUEUES);
	await(&fixture->nr_trouble, 1);
	assert_int_equal(fixture->trouble, DATAPLANE_RING_BROKEN);
	set_end();
}

/* A queue that cannot be made, or watched: none of the others is left, and every transport is freed. */
static void creation_is_undone(void **state)
{
	struct error error;

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < NR_QUEUES; i++)
			fixture->wires[i].nr_free = 0;
		if (round == 0)
			fixture->nr_slow = 2; /* the third is refused */
		if (round == 1) {
			close(fixture->wires[3].event_fd);
			fixture->wires[3].event_fd = -1; /* the fourth cannot be watched */
		}
		assert_true(queue_set_create(fixture->loop, 2, fixture->transports, NR_QUEUES,
					     &fixture->disk, &fixture->disk.limits, &events,
					     &fixture->set, &error) < 0);
		for (unsigned i = 0; i < NR_QUEUES; i++)
			assert_int_equal(fixture->wires[i].nr_free, 1);
		if (round == 0)
			fixture->nr_slow = 0;
	}
	fixture->wires[3].event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(a_worker_each),
		CASE(shared_workers),
		CASE(more_workers_than_queues),
		CASE(no_workers),
		CASE(the_last_one_counts),
		CASE(resize_reaches_all),
		CASE(one_failed_flush_is_everybodys),
		CASE(a_broken_ring_is_told),
		CASE(creation_is_undone),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
