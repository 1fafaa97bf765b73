// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Grace periods: when the kernel has surely let go of memory that an I/O used which we saw complete.
 *
 * Owns: the waiting, in a thread that is started when it is first needed.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: one thread calls; only grace_wait() blocks. The helper thread touches nothing but its own state.
 * Must not know: what the memory is.
 */
#include "config.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/grace.h"
#include "backend/log.h"
#include "backend/thread.h"

#define LEAST_NS (50 * NSEC_PER_MSEC)
#define FALLBACK_NS NSEC_PER_SEC

enum grace_progress {
	GRACE_RUNNING,
	GRACE_PASSED, /* the barrier is through */
	GRACE_FAILED, /* there is no barrier: time alone has to do */
};

static enum grace_progress barrier_pass(void)
{
	return syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0) ? GRACE_FAILED : GRACE_PASSED;
}

static void *grace_thread(void *arg)
{
	struct grace *grace = arg;

	for (;;) {
		while (sem_wait(&grace->wanted))
			; /* EINTR */
		if (__atomic_load_n(&grace->quit, __ATOMIC_ACQUIRE))
			return NULL;
		__atomic_store_n(&grace->progress, barrier_pass(), __ATOMIC_RELEASE);
	}
}

void grace_init(struct grace *grace)
{
	*grace = (struct grace){0};
}

void grace_destroy(struct grace *grace)
{
	if (!grace->has_thread)
		return;
	/* It may be waking up for a barrier just now. */
	__atomic_store_n(&grace->quit, true, __ATOMIC_RELEASE);
	sem_post(&grace->wanted);
	pthread_join(grace->thread, NULL);
	sem_destroy(&grace->wanted);
	grace->has_thread = false;
}

static int helper_start(struct grace *grace)
{
	int err;

	sem_init(&grace->wanted, 0, 0);
	err = thread_start(&grace->thread, grace_thread, grace);
	if (err)
		sem_destroy(&grace->wanted);
	else
		grace->has_thread = true;
	return err;
}

static void fallback_say(struct grace *grace, const char *what)
{
	if (!grace->fallback_said)
		log_warning("%s: pages of the guest are unmapped 1 s after their last use", what);
	grace->fallback_said = true;
}

void grace_request(struct grace *grace)
{
	grace->began_ns = clock_now_ns();
	if (!grace->has_thread && helper_start(grace)) {
		fallback_say(grace, "cannot start a thread");
		__atomic_store_n(&grace->progress, GRACE_FAILED, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(&grace->progress, GRACE_RUNNING, __ATOMIC_RELAXED);
	sem_post(&grace->wanted);
}

bool grace_over(struct grace *grace)
{
	enum grace_progress progress = __atomic_load_n(&grace->progress, __ATOMIC_ACQUIRE);
	uint64_t elapsed_ns = clock_now_ns() - grace->began_ns;

	if (progress == GRACE_RUNNING)
		return false;
	if (progress == GRACE_PASSED)
		return elapsed_ns >= LEAST_NS;
	if (grace->has_thread)
		fallback_say(grace, "the kernel offers no membarrier");
	return elapsed_ns >= FALLBACK_NS;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = {(time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

void grace_wait(struct grace *grace)
{
	if (barrier_pass() == GRACE_PASSED) {
		sleep_ns(LEAST_NS);
	} else {
		fallback_say(grace, "the kernel offers no membarrier");
		sleep_ns(FALLBACK_NS);
	}
}
