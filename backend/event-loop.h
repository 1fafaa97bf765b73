/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The event loop: descriptors, timers, signals and messages of one thread, one step at a time.
 *
 * Owns: an epoll instance, the list of watched descriptors, the list of timers, the mailbox.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: one thread per loop; only loop_post() and loop_unpost() may be called from others. Only
 *   loop_step() waits.
 * Must not know: what the descriptors mean.
 *
 * Handlers may add and remove watches and timers, their own included, while they run. Nothing is ever
 * called from inside an add or remove.
 */
#ifndef VBDISK_EVENT_LOOP_H
#define VBDISK_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <signal.h>
#include <sys/queue.h>

struct loop;

/* One watched descriptor; the caller owns the memory, and keeps it until loop_unwatch(). */
struct loop_watch {
	int fd;
	/* @events: EPOLLIN, EPOLLOUT, EPOLLHUP, ... */
	void (*ready)(struct loop_watch *watch, uint32_t events);
	LIST_ENTRY(loop_watch) link; /* the loop's */
	bool active;		     /* the loop's */
};

/* One-shot timer; the caller owns the memory, and keeps it until it fired or loop_timer_stop(). */
struct loop_timer {
	void (*expired)(struct loop_timer *timer);
	uint64_t due_ns;	     /* the loop's */
	LIST_ENTRY(loop_timer) link; /* the loop's */
	bool active;		     /* the loop's */
};

/* Something that another thread wants done on the loop's thread; the caller owns the memory, and keeps
 * it until it was delivered or loop_unpost(). */
struct loop_message {
	void (*deliver)(struct loop_message *message);
	STAILQ_ENTRY(loop_message) link; /* the loop's */
	bool posted;			 /* the loop's */
};

/* 0 or -errno. */
int loop_create(struct loop **loop_out);
void loop_destroy(struct loop *loop);

/* Watch @watch->fd (set, with ready(), by the caller) for @events (EPOLLIN, EPOLLOUT, EPOLLET).
 * 0 or -errno. */
int loop_watch(struct loop *loop, struct loop_watch *watch, uint32_t events);

/* Stop watching. Idempotent. The descriptor stays open. */
void loop_unwatch(struct loop *loop, struct loop_watch *watch);

/* Change what is watched for. 0 or -errno. */
int loop_rewatch(struct loop *loop, struct loop_watch *watch, uint32_t events);

/* (Re)arm @timer to expire @delay_ns from now by clock_now_ns(). Timers of one moment expire in the order
 * in which they were armed. */
void loop_timer_start(struct loop *loop, struct loop_timer *timer, uint64_t delay_ns);
void loop_timer_stop(struct loop_timer *timer);

/* Wait at most @timeout_ms (-1: for ever; also ended by the next timer) and call every handler that
 * is ready. Returns how many were called, or -errno. */
int loop_step(struct loop *loop, int timeout_ms);

/* Step until loop_stop(); not at all if it was called since the last run. 0 or -errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Let messages be posted to @loop; once, before the first of them. 0 or -errno. */
int loop_mailbox_open(struct loop *loop);

/* From any thread: have @message->deliver() called on the loop's thread. Messages are delivered in the
 * order in which they were posted; one that is still waiting is not posted twice. Everything written
 * before is seen by deliver(). */
void loop_post(struct loop *loop, struct loop_message *message);

/* From any thread: take @message back, if it was not delivered yet. */
void loop_unpost(struct loop *loop, struct loop_message *message);

/* Block the @nr signals in @signals for this process and deliver them to @received instead. The
 * descriptor is closed by loop_destroy(). 0 or -errno. Once per loop. */
int loop_signals(struct loop *loop, const int *signals, unsigned nr,
		 void (*received)(void *arg, int signal_number), void *arg);

#endif
