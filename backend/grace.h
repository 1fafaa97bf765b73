/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Grace periods: when the kernel has surely let go of memory that an I/O used which we saw complete.
 *
 * Owns: the waiting, in a thread that is started when it is first needed.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: one thread calls; only grace_wait() blocks. The helper thread touches nothing but its own state.
 * Must not know: what the memory is.
 *
 * A completion can be visible to us before the kernel drops its references to the I/O's pages: the handler
 * that makes it visible drops them a little later. Unmapping a granted page in between breaks the kernel
 * (it defers the unmap, behind our back). Such handlers run in hard or soft interrupt context, which
 * synchronize_rcu() waits for; membarrier(MEMBARRIER_CMD_GLOBAL) is synchronize_rcu() for user space
 * (linux:kernel/sched/membarrier.c). A barrier that began after the completion was seen has therefore waited
 * for the end of the handler that made it visible.
 *
 * What RCU does not wait for is a handler in a kernel worker thread (file systems end some of their I/O
 * there) that is preempted between the two steps; and with a single CPU the barrier does nothing. So a
 * period also takes 50 ms at least. Where there is no such barrier (a kernel with nohz_full refuses it) it
 * takes 1 s.
 */
#ifndef VBDISK_GRACE_H
#define VBDISK_GRACE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

struct grace {
	pthread_t thread;
	bool has_thread;
	bool quit;    /* for the thread, with the next post of wanted */
	sem_t wanted; /* a period for the thread to sit out */
	int progress; /* atomic: enum grace_progress */
	uint64_t began_ns;
	bool fallback_said;
};

/* Costs nothing until the first request. */
void grace_init(struct grace *grace);
void grace_destroy(struct grace *grace);

/* A period begins now; the one before is over. */
void grace_request(struct grace *grace);

/* True once the period is over. */
bool grace_over(struct grace *grace);

/* A whole period, here and now: blocks, normally for less than 0.1 s. */
void grace_wait(struct grace *grace);

#endif
