// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event loop: descriptors, timers, signals and messages of one thread, one step at a time.
 *
 * Owns: an epoll instance, the list of watched descriptors, the list of timers, the mailbox.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: one thread per loop; the mailbox takes messages from any. Only loop_step() waits.
 * Must not know: what the descriptors mean.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/event-loop.h"
#include "container.h"

#define EVENTS_PER_STEP 16

LIST_HEAD(watch_list, loop_watch);
LIST_HEAD(timer_list, loop_timer);
STAILQ_HEAD(message_list, loop_message);

struct loop {
	int epoll_fd;
	bool stopped;
	struct watch_list watches;
	struct timer_list timers; /* by due time; of one moment: in the order of their arming */

	/* Events fetched in this step and not yet delivered; loop_unwatch() strikes entries out, so that
	 * a handler may remove (and free) a watch whose event is still in hand. */
	struct epoll_event events[EVENTS_PER_STEP];
	int nr_events;

	struct loop_watch signal_watch;
	void (*signal_received)(void *arg, int signal_number);
	void *signal_arg;

	struct loop_watch mail_watch;
	pthread_mutex_t mail_lock; /* the list, and each message's link and posted */
	struct message_list mail;
};

int loop_create(struct loop **loop_out)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->signal_watch.fd = -1;
	loop->mail_watch.fd = -1;
	STAILQ_INIT(&loop->mail);
	LIST_INIT(&loop->watches);
	LIST_INIT(&loop->timers);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		int err = -errno;

		free(loop);
		return err;
	}
	*loop_out = loop;
	return 0;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	if (loop->signal_watch.fd >= 0)
		close(loop->signal_watch.fd);
	if (loop->mail_watch.fd >= 0) {
		close(loop->mail_watch.fd);
		pthread_mutex_destroy(&loop->mail_lock);
	}
	close(loop->epoll_fd);
	free(loop);
}

int loop_watch(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event))
		return -errno;
	watch->active = true;
	LIST_INSERT_HEAD(&loop->watches, watch, link);
	return 0;
}

int loop_rewatch(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) ? -errno : 0;
}

void loop_unwatch(struct loop *loop, struct loop_watch *watch)
{
	if (!watch->active)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	LIST_REMOVE(watch, link);
	watch->active = false;
	for (int i = 0; i < loop->nr_events; i++)
		if (loop->events[i].data.ptr == watch)
			loop->events[i].data.ptr = NULL;
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, uint64_t delay_ns)
{
	struct loop_timer *before = NULL, *other;

	loop_timer_stop(timer);
	timer->due_ns = clock_now_ns() + delay_ns;
	timer->active = true;
	LIST_FOREACH(other, &loop->timers, link) {
		if (other->due_ns > timer->due_ns)
			break;
		before = other;
	}
	if (before)
		LIST_INSERT_AFTER(before, timer, link);
	else
		LIST_INSERT_HEAD(&loop->timers, timer, link);
}

void loop_timer_stop(struct loop_timer *timer)
{
	if (!timer->active)
		return;
	LIST_REMOVE(timer, link);
	timer->active = false;
}

/* The time to wait until the next timer, rounded up so that we never wake just before it. */
static int timeout_limit(struct loop *loop, int timeout_ms)
{
	struct loop_timer *earliest = LIST_FIRST(&loop->timers);
	uint64_t now_ns, wait_ms;

	if (!earliest)
		return timeout_ms;
	now_ns = clock_now_ns();
	if (earliest->due_ns <= now_ns)
		return 0;
	wait_ms = (earliest->due_ns - now_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	if (wait_ms > INT_MAX)
		wait_ms = INT_MAX;
	return timeout_ms < 0 || (int)wait_ms < timeout_ms ? (int)wait_ms : timeout_ms;
}

static int timers_run(struct loop *loop)
{
	uint64_t now_ns = clock_now_ns();
	struct loop_timer *timer;
	unsigned nr_due = 0;
	int nr_called = 0;

	/* Only as many as are due when we begin: a handler that re-arms its timer with 0 must not starve the
	 * rest. Handlers may stop timers, so the list is looked at anew for each. */
	LIST_FOREACH(timer, &loop->timers, link) {
		if (timer->due_ns > now_ns)
			break;
		nr_due++;
	}
	while (nr_due-- && (timer = LIST_FIRST(&loop->timers)) && timer->due_ns <= now_ns) {
		loop_timer_stop(timer);
		timer->expired(timer);
		nr_called++;
	}
	return nr_called;
}

int loop_step(struct loop *loop, int timeout_ms)
{
	int nr_called = 0;
	int nr = epoll_wait(loop->epoll_fd, loop->events, EVENTS_PER_STEP,
			    timeout_limit(loop, timeout_ms));

	if (nr < 0)
		return errno == EINTR ? 0 : -errno;
	loop->nr_events = nr;
	for (int i = 0; i < nr; i++) {
		struct loop_watch *watch = loop->events[i].data.ptr;

		if (!watch)
			continue;
		watch->ready(watch, loop->events[i].events);
		nr_called++;
	}
	loop->nr_events = 0;
	return nr_called + timers_run(loop);
}

int loop_run(struct loop *loop)
{
	int nr = 0;

	while (!loop->stopped && nr >= 0)
		nr = loop_step(loop, -1);
	loop->stopped = false;
	return nr < 0 ? nr : 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

/* ---- Messages ----------------------------------------------------------------------------------- */

static struct loop_message *message_take(struct loop *loop)
{
	struct loop_message *message;

	pthread_mutex_lock(&loop->mail_lock);
	message = STAILQ_FIRST(&loop->mail);
	if (message) {
		STAILQ_REMOVE_HEAD(&loop->mail, link);
		message->posted = false;
	}
	pthread_mutex_unlock(&loop->mail_lock);
	return message;
}

static void mail_ready(struct loop_watch *watch, uint32_t events)
{
	struct loop *loop = container_of(watch, struct loop, mail_watch);
	struct loop_message *message;
	uint64_t count;

	(void)events;
	/* Before the list is looked at, so that a message posted meanwhile makes it readable again. The
	 * read can only fail if nothing was posted since the last one. */
	if (read(watch->fd, &count, sizeof(count)) < 0)
		return;
	/* One at a time: a handler may take back, and free, messages behind its own. */
	while ((message = message_take(loop)))
		message->deliver(message);
}

int loop_mailbox_open(struct loop *loop)
{
	int err;

	loop->mail_watch.ready = mail_ready;
	loop->mail_watch.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->mail_watch.fd < 0)
		return -errno;
	err = loop_watch(loop, &loop->mail_watch, EPOLLIN);
	if (err) {
		close(loop->mail_watch.fd);
		loop->mail_watch.fd = -1;
		return err;
	}
	pthread_mutex_init(&loop->mail_lock, NULL);
	return 0;
}

void loop_post(struct loop *loop, struct loop_message *message)
{
	uint64_t one = 1;
	ssize_t written;

	pthread_mutex_lock(&loop->mail_lock);
	if (!message->posted) {
		message->posted = true;
		STAILQ_INSERT_TAIL(&loop->mail, message, link);
	}
	pthread_mutex_unlock(&loop->mail_lock);
	/* Full only after 2^64 - 2 messages that nobody took, and then it is readable all the same. */
	written = write(loop->mail_watch.fd, &one, sizeof(one));
	(void)written;
}

void loop_unpost(struct loop *loop, struct loop_message *message)
{
	pthread_mutex_lock(&loop->mail_lock);
	if (message->posted)
		STAILQ_REMOVE(&loop->mail, message, loop_message, link);
	message->posted = false;
	pthread_mutex_unlock(&loop->mail_lock);
}

/* ---- Signals ------------------------------------------------------------------------------------ */

static void signal_ready(struct loop_watch *watch, uint32_t events)
{
	struct loop *loop = container_of(watch, struct loop, signal_watch);
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof(info)) == sizeof(info))
		loop->signal_received(loop->signal_arg, (int)info.ssi_signo);
}

int loop_signals(struct loop *loop, const int *signals, unsigned nr,
		 void (*received)(void *arg, int signal_number), void *arg)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	for (unsigned i = 0; i < nr; i++)
		sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	loop->signal_watch.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (loop->signal_watch.fd < 0)
		return -errno;
	loop->signal_watch.ready = signal_ready;
	loop->signal_received = received;
	loop->signal_arg = arg;
	err = loop_watch(loop, &loop->signal_watch, EPOLLIN);
	if (err) {
		close(loop->signal_watch.fd);
		loop->signal_watch.fd = -1;
	}
	return err;
}
