// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Starting a thread the way all of ours are: small, and without signals, which are the main thread's.
 *
 * Owns: nothing. Trusts: the caller. Runs on: any thread; does not wait. Must not know: what is run.
 */
#include "config.h"

#include <signal.h>

#include "backend/thread.h"

/* None of them keeps anything big on its stack; a log line is the most. */
#define STACK_BYTES ((size_t)256 * 1024)

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}
