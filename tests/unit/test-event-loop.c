// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event loop, stepped by hand under a fake clock.
 *
 * Owns: nothing. Trusts: backend/event-loop.h, whose promises these are. Runs on: the test.
 * Must not know: what the loop is for.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/event-loop.h"
#include "container.h"
#include "tests/unit/unit.h"

static struct loop *loop;
static uint64_t now_ns;

static void clock_advance(uint64_t by_ns)
{
	now_ns += by_ns;
	clock_set_fake(now_ns);
}

static int set_up(void **state)
{
	(void)state;
	now_ns = 5 * NSEC_PER_SEC;
	clock_set_fake(now_ns);
	return loop_create(&loop);
}

static int tear_down(void **state)
{
	(void)state;
	loop_destroy(loop);
	return 0;
}

/* ---- Descriptors -------------------------------------------------------------------------------- */

struct probe {
	struct loop_watch watch;
	unsigned nr_called;
	uint32_t events;
	void (*action)(struct probe *probe);
	struct probe *victim;
};

static void probe_ready(struct loop_watch *watch, uint32_t events)
{
	struct probe *probe = container_of(watch, struct probe, watch);

	probe->nr_called++;
	probe->events = events;
	if (probe->action)
		probe->action(probe);
}

static void probe_open(struct probe *probe)
{
	*probe = (struct probe){.watch.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
				.watch.ready = probe_ready};
	assert_true(probe->watch.fd >= 0);
	assert_int_equal(loop_watch(loop, &probe->watch, EPOLLIN), 0);
}

static void probe_fire(struct probe *probe)
{
	uint64_t one = 1;

	assert_int_equal(write(probe->watch.fd, &one, sizeof(one)), sizeof(one));
}

static void probe_close(struct probe *probe)
{
	loop_unwatch(loop, &probe->watch);
	close(probe->watch.fd);
}

static void watch_and_unwatch(void **state)
{
	struct probe probe;

	(void)state;
	probe_open(&probe);
	assert_int_equal(loop_step(loop, 0), 0);
	probe_fire(&probe);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(probe.events, EPOLLIN);
	assert_int_equal(loop_step(loop, 0), 1); /* level: still readable */
	loop_unwatch(loop, &probe.watch);
	loop_unwatch(loop, &probe.watch); /* idempotent */
	assert_int_equal(loop_step(loop, 0), 0);
	assert_int_equal(probe.nr_called, 2);
	assert_true(write(probe.watch.fd, &(uint64_t){1}, 8) == 8); /* it stays open */
	probe_close(&probe);
}

static void edge_triggered(void **state)
{
	struct probe probe;

	(void)state;
	probe_open(&probe);
	assert_int_equal(loop_rewatch(loop, &probe.watch, EPOLLIN | EPOLLET), 0);
	probe_fire(&probe);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(loop_step(loop, 0), 0);
	probe_fire(&probe);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(loop_rewatch(loop, &probe.watch, EPOLLOUT), 0);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(probe.events, EPOLLOUT);
	probe_close(&probe);
}

static void bad_descriptor(void **state)
{
	struct loop_watch watch = {.fd = -1, .ready = probe_ready};

	(void)state;
	assert_int_equal(loop_watch(loop, &watch, EPOLLIN), -EBADF);
	assert_false(watch.active);
	loop_unwatch(loop, &watch);
}

static void remove_self(struct probe *probe)
{
	loop_unwatch(loop, &probe->watch);
}

static void removal_of_oneself(void **state)
{
	struct probe probe;

	(void)state;
	probe_open(&probe);
	probe.action = remove_self;
	probe_fire(&probe);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(loop_step(loop, 0), 0);
	close(probe.watch.fd);
}

static struct probe *survivor;

static void remove_and_free_victim(struct probe *probe)
{
	probe_close(probe->victim);
	free(probe->victim);
	survivor = probe;
}

/* Two events are in hand; whichever handler comes first removes and frees the other's watch: the other's
 * event must not be delivered. (ASAN and valgrind see what would be touched.) */
static void removal_of_anothers_pending_event(void **state)
{
	struct probe *first = malloc(sizeof(*first)), *second = malloc(sizeof(*second));

	(void)state;
	assert_true(first && second);
	probe_open(first);
	probe_open(second);
	first->action = second->action = remove_and_free_victim;
	first->victim = second;
	second->victim = first;
	probe_fire(first);
	probe_fire(second);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(survivor->nr_called, 1);
	probe_close(survivor);
	free(survivor);
}

/* A handler replaces another watch whose event is in hand by a fresh one in the same memory, with another
 * descriptor: that gets no stale event. */
static int replacement_fd;

static void replace_victim(struct probe *probe)
{
	struct probe *victim = probe->victim;

	loop_unwatch(loop, &probe->watch);
	loop_unwatch(loop, &victim->watch);
	close(victim->watch.fd);
	victim->watch.fd = replacement_fd;
	assert_int_equal(loop_watch(loop, &victim->watch, EPOLLIN), 0);
}

static void replacement_gets_no_stale_event(void **state)
{
	struct probe first, second;

	(void)state;
	replacement_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	probe_open(&first);
	probe_open(&second);
	first.action = second.action = replace_victim;
	first.victim = &second;
	second.victim = &first;
	probe_fire(&first);
	probe_fire(&second);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(loop_step(loop, 0), 0);
	assert_int_equal(first.nr_called + second.nr_called, 1);
	if (first.watch.active)
		probe_close(&first);
	else
		close(first.watch.fd);
	if (second.watch.active)
		probe_close(&second);
	else
		close(second.watch.fd);
}

/* More descriptors than one step fetches: all get their turn. */
static void many_descriptors(void **state)
{
	static struct probe probes[100];
	int nr = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		probe_open(&probes[i]);
		probe_fire(&probes[i]);
		probes[i].action = remove_self;
	}
	while (nr < 100) {
		int ret = loop_step(loop, 0);

		assert_true(ret > 0);
		nr += ret;
	}
	for (int i = 0; i < 100; i++) {
		assert_int_equal(probes[i].nr_called, 1);
		close(probes[i].watch.fd);
	}
}

/* ---- Timers ------------------------------------------------------------------------------------- */

struct tick {
	struct loop_timer timer;
	char letter;
	uint64_t again_ns; /* re-arm with this */
	bool rearms;
	struct tick *stops;
};

static char order[256];

static void tick_expired(struct loop_timer *timer)
{
	struct tick *tick = container_of(timer, struct tick, timer);
	size_t len = strlen(order);

	if (len < sizeof(order) - 1) {
		order[len] = tick->letter;
		order[len + 1] = '\0';
	}
	if (tick->rearms)
		loop_timer_start(loop, &tick->timer, tick->again_ns);
	if (tick->stops)
		loop_timer_stop(&tick->stops->timer);
}

static struct tick tick_make(char letter)
{
	return (struct tick){.timer.expired = tick_expired, .letter = letter};
}

static void order_expect(const char *text)
{
	assert_string_equal(order, text);
	order[0] = '\0';
}

static void timers_in_order(void **state)
{
	struct tick a = tick_make('a'), b = tick_make('b'), c = tick_make('c');

	(void)state;
	order[0] = '\0';
	loop_timer_start(loop, &b.timer, 20);
	loop_timer_start(loop, &c.timer, 30);
	loop_timer_start(loop, &a.timer, 10);
	assert_int_equal(loop_step(loop, 0), 0);
	clock_advance(9);
	assert_int_equal(loop_step(loop, 0), 0);
	clock_advance(1);
	assert_int_equal(loop_step(loop, 0), 1);
	order_expect("a");
	clock_advance(100);
	assert_int_equal(loop_step(loop, 0), 2);
	order_expect("bc");
	assert_int_equal(loop_step(loop, 0), 0); /* one shot */
}

/* Due at one moment: first armed, first called. */
static void timers_of_one_moment(void **state)
{
	struct tick a = tick_make('a'), b = tick_make('b'), c = tick_make('c');

	(void)state;
	order[0] = '\0';
	loop_timer_start(loop, &a.timer, 10);
	loop_timer_start(loop, &b.timer, 10);
	loop_timer_start(loop, &c.timer, 10);
	clock_advance(10);
	assert_int_equal(loop_step(loop, 0), 3);
	order_expect("abc");
}

static void timer_rearm_and_stop(void **state)
{
	struct tick a = tick_make('a'), b = tick_make('b');

	(void)state;
	order[0] = '\0';
	loop_timer_start(loop, &a.timer, 10);
	loop_timer_start(loop, &a.timer, 50); /* the later word counts */
	clock_advance(20);
	assert_int_equal(loop_step(loop, 0), 0);
	loop_timer_start(loop, &b.timer, 40);
	a.stops = &b; /* due at the same step, stopped by the first */
	clock_advance(100);
	assert_int_equal(loop_step(loop, 0), 1);
	order_expect("a");
	loop_timer_stop(&b.timer); /* idempotent */
	assert_int_equal(loop_step(loop, 0), 0);
}

/* A timer that re-arms itself with 0 runs once a step, and keeps neither timers nor descriptors waiting. */
static void timer_that_never_rests(void **state)
{
	struct tick busy = tick_make('z'), other = tick_make('o');
	struct probe probe;

	(void)state;
	order[0] = '\0';
	busy.rearms = true;
	loop_timer_start(loop, &other.timer, 0);
	loop_timer_start(loop, &busy.timer, 0);
	probe_open(&probe);
	probe_fire(&probe);
	assert_int_equal(loop_step(loop, -1), 3);
	order_expect("oz");
	loop_timer_start(loop, &other.timer, 0);
	assert_int_equal(loop_step(loop, -1), 3);
	order_expect("zo");
	assert_int_equal(probe.nr_called, 2);
	loop_timer_stop(&busy.timer);
	probe_close(&probe);
}

/* A timer in the past is due now, however far the clock went. */
static void many_timers_at_once(void **state)
{
	static struct tick ticks[200];
	int nr = 0;

	(void)state;
	order[0] = '\0';
	for (int i = 0; i < 200; i++) {
		ticks[i] = tick_make('t');
		loop_timer_start(loop, &ticks[i].timer, (uint64_t)i);
	}
	clock_advance(3600 * NSEC_PER_SEC);
	for (int i = 0; i < 200 && nr < 200; i++)
		nr += loop_step(loop, -1);
	assert_int_equal(nr, 200);
}

/* ---- Signals, and running ----------------------------------------------------------------------- */

static int signals_seen[4];
static unsigned nr_signals;

static void signal_note(void *arg, int signal_number)
{
	assert_ptr_equal(arg, &nr_signals);
	signals_seen[nr_signals++ % 4] = signal_number;
	loop_stop(loop);
}

static void signals(void **state)
{
	static const int wanted[] = {SIGUSR1, SIGUSR2};
	sigset_t before, set;

	(void)state;
	nr_signals = 0;
	sigprocmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(loop_signals(loop, wanted, 2, signal_note, &nr_signals), 0);
	raise(SIGUSR2); /* its default would end us */
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(nr_signals, 1);
	assert_int_equal(signals_seen[0], SIGUSR2);
	raise(SIGUSR1);
	raise(SIGUSR2);
	loop_step(loop, 0);
	assert_int_equal(nr_signals, 3);
	sigprocmask(SIG_SETMASK, NULL, &set);
	assert_true(sigismember(&set, SIGUSR1));
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void stop_expired(struct loop_timer *timer)
{
	(void)timer;
	loop_stop(loop);
}

static void run_until_stop(void **state)
{
	struct loop_timer timer = {.expired = stop_expired};

	(void)state;
	loop_timer_start(loop, &timer, 0);
	assert_int_equal(loop_run(loop), 0);
	/* And again: one stop ends one run. */
	loop_timer_start(loop, &timer, 0);
	assert_int_equal(loop_run(loop), 0);
}

static unsigned nr_alarms;

static void alarm_expired(struct loop_timer *timer)
{
	(void)timer;
	nr_alarms++;
	loop_stop(loop);
}

/* vbdisk evaluates its VBD before it runs the loop, and vbdiskd steps once: the end may be decided there
 * already (a disk that cannot be opened, a signal). That stop must not get lost. */
static void stop_before_run(void **state)
{
	struct loop_timer alarm = {.expired = alarm_expired};

	(void)state;
	nr_alarms = 0;
	loop_timer_start(loop, &alarm, 0); /* would end a run that missed the stop */
	loop_stop(loop);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(nr_alarms, 0);
	loop_timer_stop(&alarm);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* ---- Messages ----------------------------------------------------------------------------------- */

struct numbered_message {
	struct loop_message message;
	unsigned number;
	struct numbered_message *takes_back;
};

static unsigned delivered[16], nr_delivered;

static void number_deliver(struct loop_message *message)
{
	struct numbered_message *numbered = (struct numbered_message *)message;

	delivered[nr_delivered++] = numbered->number;
	if (numbered->takes_back)
		loop_unpost(loop, &numbered->takes_back->message);
}

/* In order, once however often they were posted; a handler may take back those behind it. */
static void messages_in_order(void **state)
{
	struct numbered_message messages[4];

	(void)state;
	nr_delivered = 0;
	assert_int_equal(loop_mailbox_open(loop), 0);
	for (unsigned i = 0; i < 4; i++)
		messages[i] =
			(struct numbered_message){.message.deliver = number_deliver, .number = i};
	messages[0].takes_back = &messages[3];
	loop_post(loop, &messages[2].message);
	loop_post(loop, &messages[0].message);
	loop_post(loop, &messages[2].message);
	loop_post(loop, &messages[3].message);
	loop_post(loop, &messages[1].message);
	loop_unpost(loop, &messages[1].message);
	loop_unpost(loop, &messages[1].message);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(nr_delivered, 2);
	assert_int_equal(delivered[0], 2);
	assert_int_equal(delivered[1], 0);
	assert_int_equal(loop_step(loop, 0), 0);
	/* Delivered, and so it can be posted again. */
	loop_post(loop, &messages[2].message);
	assert_int_equal(loop_step(loop, 0), 1);
	assert_int_equal(nr_delivered, 3);
}

#define NR_POSTED 20000

struct poster {
	struct loop_message message;
	unsigned written; /* by the thread, before it posts */
	unsigned read;	  /* by the loop: must never be behind */
	pthread_t thread;
};

static void poster_deliver(struct loop_message *message)
{
	struct poster *poster = container_of(message, struct poster, message);

	poster->read = __atomic_load_n(&poster->written, __ATOMIC_RELAXED);
}

static void *poster_run(void *arg)
{
	struct poster *poster = arg;

	for (unsigned i = 1; i <= NR_POSTED; i++) {
		__atomic_store_n(&poster->written, i, __ATOMIC_RELAXED);
		loop_post(loop, &poster->message);
	}
	return NULL;
}

/* Whatever was written before a message was posted is seen once it was delivered: no last message is lost. */
static void messages_from_threads(void **state)
{
	struct poster posters[3];
	bool missing = true;

	(void)state;
	assert_int_equal(loop_mailbox_open(loop), 0);
	for (unsigned i = 0; i < 3; i++) {
		posters[i] = (struct poster){.message.deliver = poster_deliver};
		assert_int_equal(pthread_create(&posters[i].thread, NULL, poster_run, &posters[i]),
				 0);
	}
	while (missing) {
		assert_true(loop_step(loop, 10000) > 0); /* a lost wake-up is a time-out */
		missing = false;
		for (unsigned i = 0; i < 3; i++)
			missing |= posters[i].read != NR_POSTED;
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(posters[i].thread, NULL);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(watch_and_unwatch),
		CASE(edge_triggered),
		CASE(bad_descriptor),
		CASE(removal_of_oneself),
		CASE(removal_of_anothers_pending_event),
		CASE(replacement_gets_no_stale_event),
		CASE(many_descriptors),
		CASE(timers_in_order),
		CASE(timers_of_one_moment),
		CASE(timer_rearm_and_stop),
		CASE(timer_that_never_rests),
		CASE(many_timers_at_once),
		CASE(signals),
		CASE(run_until_stop),
		CASE(stop_before_run),
		CASE(messages_in_order),
		CASE(messages_from_threads),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
