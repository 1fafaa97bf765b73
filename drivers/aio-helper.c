// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The helper thread of an AIO queue: fdatasync() where the kernel's AIO has no FDSYNC, and a wake-up
 * after a delay when the kernel had no room and no completion will come to say that it has.
 *
 * Owns: one thread; requests between aio_helper_flush() and aio_helper_collect().
 * Trusts / does not trust: the file was checked at open; fdatasync() may fail like any storage.
 * Runs on: functions on the queue's thread, never block (the lock is never held over a system call
 *   that waits), but for create and destroy. The thread blocks in fdatasync().
 * Must not know: libaio, offsets, data.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "drivers/aio-helper.h"

struct aio_helper {
	pthread_t thread;
	int fd;
	int wake_fd;

	pthread_mutex_t lock; /* everything below */
	pthread_cond_t changed;
	struct request_list waiting;
	struct request_list finished;
	bool stop;
	bool wake_armed;
	bool wake_due;
	struct timespec wake_time; /* CLOCK_MONOTONIC */
};

/* The counter cannot overflow (aio-engine.c says why), so the write cannot fail. */
static void helper_signal(struct aio_helper *helper)
{
	uint64_t one = 1;
	ssize_t written = write(helper->wake_fd, &one, sizeof(one));

	assert(written == sizeof(one));
	(void)written;
}

/* One fdatasync() answers all requests that waited for it: it began after each of them was submitted,
 * and that is what they ask for. */
static void helper_flush_all(struct aio_helper *helper)
{
	struct request_list batch = TAILQ_HEAD_INITIALIZER(batch);
	struct request *request;
	int status;

	TAILQ_CONCAT(&batch, &helper->waiting, link);
	pthread_mutex_unlock(&helper->lock);
	do {
		status = fdatasync(helper->fd) ? -errno : 0;
	} while (status == -EINTR);
	TAILQ_FOREACH(request, &batch, link)
		request->status = status;
	pthread_mutex_lock(&helper->lock);
	TAILQ_CONCAT(&helper->finished, &batch, link);
	helper_signal(helper);
}

static void *helper_run(void *arg)
{
	struct aio_helper *helper = arg;

	pthread_mutex_lock(&helper->lock);
	while (!helper->stop) {
		if (!TAILQ_EMPTY(&helper->waiting)) {
			helper_flush_all(helper);
		} else if (!helper->wake_armed) {
			pthread_cond_wait(&helper->changed, &helper->lock);
		} else if (pthread_cond_timedwait(&helper->changed, &helper->lock,
						  &helper->wake_time) == ETIMEDOUT) {
			helper->wake_armed = false;
			helper->wake_due = true;
			helper_signal(helper);
		}
	}
	pthread_mutex_unlock(&helper->lock);
	return NULL;
}

/* The thread takes no signals: they belong to the main thread's loop. */
static int thread_start(struct aio_helper *helper)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&helper->thread, NULL, helper_run, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

int aio_helper_create(int fd, int wake_fd, struct aio_helper **helper_out)
{
	struct aio_helper *helper = calloc(1, sizeof(*helper));
	pthread_condattr_t attr;
	int ret;

	if (!helper)
		return -ENOMEM;
	helper->fd = fd;
	helper->wake_fd = wake_fd;
	TAILQ_INIT(&helper->waiting);
	TAILQ_INIT(&helper->finished);
	pthread_mutex_init(&helper->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&helper->changed, &attr);
	pthread_condattr_destroy(&attr);
	ret = thread_start(helper);
	if (ret) {
		pthread_cond_destroy(&helper->changed);
		pthread_mutex_destroy(&helper->lock);
		free(helper);
		return ret;
	}
	*helper_out = helper;
	return 0;
}

void aio_helper_destroy(struct aio_helper *helper)
{
	pthread_mutex_lock(&helper->lock);
	assert(TAILQ_EMPTY(&helper->waiting) && TAILQ_EMPTY(&helper->finished));
	helper->stop = true;
	pthread_cond_signal(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
	pthread_join(helper->thread, NULL);
	pthread_cond_destroy(&helper->changed);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
}

void aio_helper_flush(struct aio_helper *helper, struct request *request)
{
	pthread_mutex_lock(&helper->lock);
	TAILQ_INSERT_TAIL(&helper->waiting, request, link);
	pthread_cond_signal(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
}

void aio_helper_wake_after(struct aio_helper *helper, unsigned delay_ms)
{
	struct timespec due;

	/* Real time, not clock_now_ns(): a thread waits for it, and no test can make it step. */
	clock_gettime(CLOCK_MONOTONIC, &due);
	due.tv_sec += delay_ms / 1000;
	due.tv_nsec += (long)(delay_ms % 1000) * 1000000;
	if (due.tv_nsec >= 1000000000) {
		due.tv_nsec -= 1000000000;
		due.tv_sec++;
	}
	pthread_mutex_lock(&helper->lock);
	helper->wake_time = due;
	helper->wake_armed = true;
	helper->wake_due = false;
	pthread_cond_signal(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
}

bool aio_helper_collect(struct aio_helper *helper, struct request_list *finished,
			unsigned *nr_finished)
{
	struct request *request;
	bool wake_due;

	pthread_mutex_lock(&helper->lock);
	TAILQ_FOREACH(request, &helper->finished, link)
		(*nr_finished)++;
	TAILQ_CONCAT(finished, &helper->finished, link);
	wake_due = helper->wake_due;
	helper->wake_due = false;
	pthread_mutex_unlock(&helper->lock);
	return wake_due;
}
