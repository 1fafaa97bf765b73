// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker: a thread with an event loop of its own, on which queues are served.
 *
 * Owns: the loop and the thread.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: functions on the main thread; what is watched on the loop, on the worker's.
 * Must not know: what it serves.
 */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/log.h"
#include "backend/thread.h"
#include "backend/worker.h"
#include "container.h"

struct worker {
	struct loop *loop;
	pthread_t thread;
	sem_t start;
	bool started, ended;
	char name[16];
	struct loop_message stop;
};

static void stop_deliver(struct loop_message *message)
{
	loop_stop(container_of(message, struct worker, stop)->loop);
}

static void *worker_run(void *arg)
{
	struct worker *worker = arg;
	int err;

	pthread_setname_np(pthread_self(), worker->name);
	while (sem_wait(&worker->start))
		;
	err = loop_run(worker->loop);
	if (err)
		log_error("%s cannot wait for events: %s; its queues are not served any more",
			  worker->name, strerror(-err));
	return NULL;
}

int worker_create(unsigned idx, struct worker **worker_out, struct error *error)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	int err;

	if (!worker)
		return error_set(error, ENOMEM, "out of memory");
	snprintf(worker->name, sizeof(worker->name), "vbdisk-%u", idx);
	worker->stop.deliver = stop_deliver;
	sem_init(&worker->start, 0, 0);
	err = loop_create(&worker->loop);
	if (err) {
		error_set(error, -err, "cannot make an event loop: %s", strerror(-err));
		goto free_worker;
	}
	err = loop_mailbox_open(worker->loop);
	if (err) {
		error_set(error, -err, "cannot make an event loop: %s", strerror(-err));
		goto destroy_loop;
	}
	err = thread_start(&worker->thread, worker_run, worker);
	if (err) {
		error_set(error, -err, "cannot start a thread: %s", strerror(-err));
		goto destroy_loop;
	}
	*worker_out = worker;
	return 0;

destroy_loop:
	loop_destroy(worker->loop);
free_worker:
	sem_destroy(&worker->start);
	free(worker);
	return err;
}

struct loop *worker_loop(struct worker *worker)
{
	return worker->loop;
}

void worker_start(struct worker *worker)
{
	worker->started = true;
	sem_post(&worker->start);
}

void worker_stop(struct worker *worker)
{
	if (worker->ended)
		return;
	if (worker->started) {
		loop_post(worker->loop, &worker->stop);
	} else {
		loop_stop(worker->loop);
		sem_post(&worker->start);
	}
	pthread_join(worker->thread, NULL);
	worker->ended = true;
}

void worker_destroy(struct worker *worker)
{
	worker_stop(worker);
	loop_destroy(worker->loop);
	sem_destroy(&worker->start);
	free(worker);
}
