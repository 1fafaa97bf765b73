/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A worker: a thread with an event loop of its own, on which queues are served.
 *
 * Owns: the loop and the thread.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: functions on the main thread; what is watched on the loop, on the worker's.
 * Must not know: what it serves.
 */
#ifndef VBDISK_WORKER_H
#define VBDISK_WORKER_H

#include "backend/event-loop.h"
#include "error.h"

struct worker;

/* Make worker number @idx (its thread's name ends in it), on a thread that takes no signals. It does not
 * run yet: until worker_start() its loop belongs to the caller. 0 or -errno with @error. */
int worker_create(unsigned idx, struct worker **worker_out, struct error *error);

/* Its loop, with an open mailbox. */
struct loop *worker_loop(struct worker *worker);

/* Begin to run the loop. */
void worker_start(struct worker *worker);

/* End the thread and wait for that; the loop belongs to the caller again. Messages that were posted
 * before to a worker that was started are delivered. Idempotent. */
void worker_stop(struct worker *worker);

/* Stop and free. */
void worker_destroy(struct worker *worker);

#endif
