// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The helper thread of an AIO queue: what the kernel's AIO cannot do. fdatasync() where there is no
 * FDSYNC, or again where it could not be begun; discards; and a wake-up after a delay when the
 * kernel had no room and no completion will come to say that it has.
 *
 * Owns: one thread; requests between aio_helper_submit() and aio_helper_collect().
 * Trusts / does not trust: the file was checked at open; fdatasync() may fail like any storage.
 * Runs on: functions on the queue's thread, never block (the lock is never held over a system call
 *   that waits), but for create and destroy. The thread blocks in the
 *   system calls.
 * Must not know: libaio, offsets, data.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend/thread.h"
#include "drivers/aio-helper.h"
#include "drivers/discard.h"

/* A flush that could not be begun: about 2 s in all. */
#define FLUSH_TRIES 11
#define FLUSH_PAUSE_MS 200

/* Discards of hundreds of gigabytes take minutes; nobody waits for more than a piece of one. */
#define DISCARD_PIECE_BYTES (512ull << 20)

struct aio_helper {
	pthread_t thread;
	int fd;
	int wake_fd;

	pthread_mutex_t lock; /* everything below */
	pthread_cond_t changed;
	struct request_list flushes, discards; /* waiting */
	uint64_t discarded_bytes;	       /* of the first discard */
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

/* Errors which say that nothing was tried are worth another try. Any other one is final: Linux
 * tells of a write that was lost once, and a later success would prove nothing. */
static int flush_patiently(int fd)
{
	const struct timespec pause = {.tv_nsec = FLUSH_PAUSE_MS * 1000000};
	unsigned nr_tries = 0;

	while (fdatasync(fd)) {
		if (errno != EINTR && errno != EAGAIN && errno != ENOMEM && errno != ENOBUFS)
			return -errno;
		if (++nr_tries == FLUSH_TRIES)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* One fdatasync() answers all requests that waited for it: it began after each of them was submitted,
 * and that is what they ask for. */
static void helper_flush_all(struct aio_helper *helper)
{
	struct request_list batch = TAILQ_HEAD_INITIALIZER(batch);
	struct request *request;
	int status;

	TAILQ_CONCAT(&batch, &helper->flushes, link);
	pthread_mutex_unlock(&helper->lock);
	status = flush_patiently(helper->fd);
	TAILQ_FOREACH(request, &batch, link)
		request->status = status;
	pthread_mutex_lock(&helper->lock);
	TAILQ_CONCAT(&helper->finished, &batch, link);
	helper_signal(helper);
}

/* A piece of the first discard, which stays the first until it is done. */
static void helper_discard_piece(struct aio_helper *helper)
{
	struct request *request = TAILQ_FIRST(&helper->discards);
	uint64_t left_bytes = request->len_bytes - helper->discarded_bytes;
	uint64_t piece_bytes = left_bytes < DISCARD_PIECE_BYTES ? left_bytes : DISCARD_PIECE_BYTES;
	int status;

	pthread_mutex_unlock(&helper->lock);
	status = discard_run(helper->fd, request->offset_bytes + helper->discarded_bytes,
			     piece_bytes, request->flags & REQUEST_SECURE);
	pthread_mutex_lock(&helper->lock);
	helper->discarded_bytes += piece_bytes;
	if (!status && helper->discarded_bytes < request->len_bytes)
		return;
	helper->discarded_bytes = 0;
	request->status = status;
	TAILQ_REMOVE(&helper->discards, request, link);
	TAILQ_INSERT_TAIL(&helper->finished, request, link);
	helper_signal(helper);
}

/* Looked at in every turn: a long discard must not hold back who waits for room in the kernel. */
static void helper_wake_if_due(struct aio_helper *helper)
{
	struct timespec now;

	if (!helper->wake_armed)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < helper->wake_time.tv_sec ||
	    (now.tv_sec == helper->wake_time.tv_sec && now.tv_nsec < helper->wake_time.tv_nsec))
		return;
	helper->wake_armed = false;
	helper->wake_due = true;
	helper_signal(helper);
}

static void helper_await_work(struct aio_helper *helper)
{
	if (helper->wake_armed)
		pthread_cond_timedwait(&helper->changed, &helper->lock, &helper->wake_time);
	else
		pthread_cond_wait(&helper->changed, &helper->lock);
}

static void *helper_run(void *arg)
{
	struct aio_helper *helper = arg;

	pthread_mutex_lock(&helper->lock);
	while (!helper->stop) {
		/* A turn each: neither waits for all of the other. */
		if (!TAILQ_EMPTY(&helper->flushes))
			helper_flush_all(helper);
		if (!TAILQ_EMPTY(&helper->discards))
			helper_discard_piece(helper);
		else if (TAILQ_EMPTY(&helper->flushes))
			helper_await_work(helper);
		helper_wake_if_due(helper);
	}
	pthread_mutex_unlock(&helper->lock);
	return NULL;
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
	TAILQ_INIT(&helper->flushes);
	TAILQ_INIT(&helper->discards);
	TAILQ_INIT(&helper->finished);
	pthread_mutex_init(&helper->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&helper->changed, &attr);
	pthread_condattr_destroy(&attr);
	ret = thread_start(&helper->thread, helper_run, helper);
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
	assert(TAILQ_EMPTY(&helper->flushes) && TAILQ_EMPTY(&helper->discards) &&
	       TAILQ_EMPTY(&helper->finished));
	helper->stop = true;
	pthread_cond_signal(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
	pthread_join(helper->thread, NULL);
	pthread_cond_destroy(&helper->changed);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
}

void aio_helper_submit(struct aio_helper *helper, struct request *request)
{
	pthread_mutex_lock(&helper->lock);
	if (request->op == REQUEST_FLUSH)
		TAILQ_INSERT_TAIL(&helper->flushes, request, link);
	else
		TAILQ_INSERT_TAIL(&helper->discards, request, link);
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
