// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A queue in an event loop, between a mock transport and a mock driver.
 *
 * Owns: nothing. Trusts: backend/queue.h and the contracts it joins. Runs on: the test.
 * Must not know: rings, files.
 */
#include "config.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/queue.h"
#include "tests/unit/mock-path.h"
#include "tests/unit/unit.h"

struct fixture {
	struct mock_journal journal;
	struct mock_wire wire;
	struct mock_disk disk;
	struct loop *loop;
	struct queue *queue;
	unsigned nr_quiet, nr_drained, nr_trouble;
	bool destroy_when_drained;
};

static struct fixture fixture;

static void note_trouble(void *arg, enum dataplane_trouble trouble, int err)
{
	(void)arg;
	(void)trouble;
	(void)err;
	fixture.nr_trouble++;
}

static void note_drained(void *arg)
{
	(void)arg;
	fixture.nr_drained++;
	if (fixture.destroy_when_drained)
		queue_destroy(fixture.queue);
}

static void note_quiet(void *arg)
{
	(void)arg;
	fixture.nr_quiet++;
}

static const struct queue_events events = {note_trouble, note_drained, note_quiet, NULL};

static int set_up(void **state)
{
	struct error error;

	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	fixture.journal.off = true;
	mock_wire_init(&fixture.wire, &fixture.journal, 32);
	mock_disk_init(&fixture.disk, &fixture.journal);
	fixture.wire.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fixture.disk.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fixture.destroy_when_drained = true;
	if (loop_create(&fixture.loop))
		return -1;
	if (queue_create(&fixture.wire.transport, &fixture.disk.disk, &fixture.disk.disk.limits,
			 &events, &fixture.queue, &error))
		return -1;
	return queue_start(fixture.queue, fixture.loop, &error);
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(fixture.wire.nr_free, 1);
	assert_int_equal(fixture.disk.nr_queues, 0);
	loop_destroy(fixture.loop);
	close(fixture.wire.event_fd);
	close(fixture.disk.event_fd);
	return 0;
}

/* Step until nothing is ready. */
static void settle(void)
{
	for (int i = 0; i < 100; i++)
		if (!loop_step(fixture.loop, 0))
			return;
	fail_msg("the queue does not come to rest");
}

static void end(void)
{
	if (!fixture.nr_drained) {
		queue_stop(fixture.queue);
		settle();
	}
	assert_int_equal(fixture.nr_drained, 1);
}

static void guest_notify(void)
{
	uint64_t one = 1;

	assert_int_equal(write(fixture.wire.event_fd, &one, sizeof(one)), sizeof(one));
}

/* Requests that were there before the queue need no event; an idle queue is armed, and asleep. */
static void first_pass(void **state)
{
	(void)state;
	mock_wire_add(&fixture.wire, REQUEST_READ, 0);
	fixture.disk.at_once = true;
	settle();
	assert_int_equal(fixture.wire.nr_answered, 1);
	assert_true(fixture.wire.armed);
	assert_int_equal(loop_step(fixture.loop, 0), 0);
	end();
}

static void events_drive_it(void **state)
{
	(void)state;
	settle();
	mock_wire_add(&fixture.wire, REQUEST_READ, 0);
	settle();
	assert_int_equal(fixture.wire.nr_popped, 0);
	guest_notify();
	settle();
	assert_int_equal(fixture.disk.nr_submitted, 1);
	mock_disk_finish(&fixture.disk, 1, 0);
	settle();
	assert_int_equal(fixture.wire.nr_answered, 1);
	assert_int_equal(queue_stats(fixture.queue)->nr_reads, 1);
	end();
}

/* drained() comes once, after the last answer; the queue may be destroyed inside (set_up asks for it). */
static void stop_drains(void **state)
{
	(void)state;
	mock_wire_add(&fixture.wire, REQUEST_WRITE, 0);
	settle();
	queue_stop(fixture.queue);
	mock_wire_add(&fixture.wire, REQUEST_READ, 0);
	guest_notify();
	settle();
	assert_int_equal(fixture.nr_drained, 0);
	mock_disk_finish(&fixture.disk, 1, 0);
	settle();
	assert_int_equal(fixture.nr_drained, 1);
	assert_int_equal(fixture.wire.nr_answered, 1);
	assert_int_equal(fixture.wire.nr_popped, 1);
}

static void abandon_lets_go_first(void **state)
{
	(void)state;
	mock_wire_add(&fixture.wire, REQUEST_WRITE, 0);
	settle();
	queue_abandon(fixture.queue);
	assert_int_equal(fixture.wire.nr_disconnect, 1);
	settle();
	assert_int_equal(fixture.nr_drained, 0);
	mock_disk_finish(&fixture.disk, 1, 0);
	settle();
	assert_int_equal(fixture.nr_drained, 1);
	assert_int_equal(fixture.wire.nr_answered, 0);
}

/* A shutdown that waits for storage, and then the guest dies. */
static void abandon_after_stop(void **state)
{
	(void)state;
	mock_wire_add(&fixture.wire, REQUEST_WRITE, 0);
	settle();
	queue_stop(fixture.queue);
	settle();
	queue_abandon(fixture.queue);
	mock_disk_finish(&fixture.disk, 1, 0);
	settle();
	assert_int_equal(fixture.nr_drained, 1);
	assert_int_equal(fixture.wire.nr_answered, 0);
}

/* quiet() comes once nothing is in flight; serving goes on before and after. */
static void quiesce(void **state)
{
	(void)state;
	mock_wire_add(&fixture.wire, REQUEST_WRITE, 0);
	settle();
	queue_quiesce(fixture.queue);
	settle();
	assert_int_equal(fixture.nr_quiet, 0);
	mock_disk_finish(&fixture.disk, 1, 0);
	settle();
	assert_int_equal(fixture.nr_quiet, 1);
	mock_wire_add(&fixture.wire, REQUEST_READ, 0);
	guest_notify();
	settle();
	mock_disk_finish(&fixture.disk, 2, 0);
	settle();
	assert_int_equal(fixture.wire.nr_answered, 2);
	assert_int_equal(fixture.nr_quiet, 1);
	queue_quiesce(fixture.queue);
	settle();
	assert_int_equal(fixture.nr_quiet, 2);
	end();
}

/* quiet() must not take the place of the pass that was due: neither of the first one ... */
static void quiesce_before_the_first_pass(void **state)
{
	(void)state;
	mock_wire_add(&fixture.wire, REQUEST_READ, 0);
	fixture.disk.at_once = true;
	queue_quiesce(fixture.queue);
	settle();
	assert_int_equal(fixture.nr_quiet, 1);
	assert_int_equal(fixture.wire.nr_answered, 1);
	assert_true(fixture.wire.armed);
	end();
}

static bool flood(struct mock_wire *wire)
{
	if (wire->nr_requests == 3000)
		return false;
	mock_wire_add(wire, REQUEST_READ, 0);
	return true;
}

/* ... nor of the one that a used-up budget put off: those requests have been announced already. */
static void quiesce_under_a_flood(void **state)
{
	(void)state;
	settle();
	fixture.disk.at_once = true;
	fixture.wire.more = flood;
	guest_notify();
	assert_true(loop_step(fixture.loop, 0) > 0);
	assert_true(fixture.wire.nr_answered < 3000);
	queue_quiesce(fixture.queue);
	settle();
	assert_int_equal(fixture.nr_quiet, 1);
	assert_int_equal(fixture.wire.nr_answered, 3000);
	assert_true(fixture.wire.armed);
	end();
}

/* R01: a broken ring's events cost nothing. */
static void broken_ring_sleeps(void **state)
{
	(void)state;
	fixture.wire.pop_error = -EPROTO;
	settle();
	assert_int_equal(fixture.nr_trouble, 1);
	guest_notify();
	for (int i = 0; i < 10; i++)
		assert_int_equal(loop_step(fixture.loop, 0), 0);
	end();
}

/* A queue that cannot be started is destroyed, with its transport, and leaves nothing. */
static void start_fails(void **state)
{
	static struct mock_wire wire;
	struct mock_disk disk;
	struct queue *queue = NULL;
	struct error error;

	(void)state;
	mock_wire_init(&wire, &fixture.journal, 32);
	mock_disk_init(&disk, &fixture.journal);
	wire.event_fd = -1; /* cannot be watched */
	assert_int_equal(queue_create(&wire.transport, &disk.disk, &disk.disk.limits, &events,
				      &queue, &error),
			 0);
	assert_int_equal(queue_start(queue, fixture.loop, &error), -EBADF);
	queue_destroy(queue);
	assert_int_equal(wire.nr_free, 1);
	assert_int_equal(disk.nr_queues, 0);
	end();
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(first_pass),
		CASE(events_drive_it),
		CASE(stop_drains),
		CASE(abandon_lets_go_first),
		CASE(abandon_after_stop),
		CASE(quiesce),
		CASE(quiesce_before_the_first_pass),
		CASE(quiesce_under_a_flood),
		CASE(broken_ring_sleeps),
		CASE(start_fails),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
