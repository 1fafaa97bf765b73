/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Starting a thread the way all of ours are: small, and without signals, which are the main thread's.
 *
 * Owns: nothing. Trusts: the caller. Runs on: any thread; does not wait. Must not know: what is run.
 */
#ifndef VBDISK_THREAD_H
#define VBDISK_THREAD_H

#include <pthread.h>

/* Run @run(@arg) on a new thread. 0 or -errno. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
