// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Grace periods: not over before the barrier is, nor before the time; and what happens without a barrier.
 *
 * Owns: membarrier() and pthread_create() as the backend sees them (--wrap). Trusts: grace.h (the contract),
 *   membarrier(2). Runs on: the test. Must not know: what is waited for.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/grace.h"
#include "tests/unit/unit.h"

static struct {
	bool real;	  /* the kernel's barrier; else it ends when the test says so */
	int result_errno; /* of a barrier that is not real; 0: it passes */
	bool no_threads;
	sem_t release;	  /* lets one barrier go on */
	int nr_barriers;  /* atomic: begun */
	sigset_t signals; /* blocked in the thread that began the last */
} knobs;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

long __wrap_syscall(long number, ...)
{
	va_list ap;
	int command, flags;

	/* membarrier(2): GLOBAL waits for all processes' threads; no other call is made through syscall(). */
	assert(number == __NR_membarrier);
	va_start(ap, number);
	command = va_arg(ap, int);
	flags = va_arg(ap, int);
	va_end(ap);
	assert(command == MEMBARRIER_CMD_GLOBAL && flags == 0);
	pthread_sigmask(SIG_BLOCK, NULL, &knobs.signals);
	__atomic_add_fetch(&knobs.nr_barriers, 1, __ATOMIC_SEQ_CST);
	if (knobs.real)
		return __real_syscall(number, command, flags);
	while (sem_wait(&knobs.release))
		;
	errno = knobs.result_errno;
	return errno ? -1 : 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	return knobs.no_threads ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

static int nr_barriers(void)
{
	return __atomic_load_n(&knobs.nr_barriers, __ATOMIC_SEQ_CST);
}

static void barriers_expect(int nr)
{
	for (int i = 0; i < 5000 && nr_barriers() != nr; i++)
		usleep(1000);
	assert_int_equal(nr_barriers(), nr);
}

static bool over_soon(struct grace *grace)
{
	for (int i = 0; i < 5000; i++) {
		if (grace_over(grace))
			return true;
		usleep(1000);
	}
	return false;
}

static int set_up(void **state)
{
	(void)state;
	memset(&knobs, 0, sizeof(knobs));
	return sem_init(&knobs.release, 0, 0);
}

/* With the kernel's own barrier. grace.h: 50 ms at least. First of all, while the clock is real. */
static void real_periods(void **state)
{
	struct grace grace;
	uint64_t began_ns;

	(void)state;
	knobs.real = true;
	grace_init(&grace);
	for (int i = 1; i <= 3; i++) {
		began_ns = clock_now_ns();
		grace_request(&grace);
		assert_false(grace_over(&grace));
		assert_true(over_soon(&grace));
		assert_true(clock_now_ns() - began_ns >= 50 * NSEC_PER_MSEC);
		assert_int_equal(nr_barriers(), i);
	}
	/* Signals are the main thread's business. */
	assert_true(sigismember(&knobs.signals, SIGTERM) == 1);
	began_ns = clock_now_ns();
	grace_wait(&grace);
	assert_true(clock_now_ns() - began_ns >= 50 * NSEC_PER_MSEC);
	assert_int_equal(nr_barriers(), 4);
	grace_destroy(&grace);
}

/* Whatever time passes, a period is not over before its barrier; and the other way round. */
static void both_are_needed(void **state)
{
	struct grace grace;

	(void)state;
	clock_set_fake(100 * NSEC_PER_SEC);
	grace_init(&grace);
	grace_request(&grace);
	barriers_expect(1);
	clock_set_fake(200 * NSEC_PER_SEC);
	assert_false(grace_over(&grace));
	sem_post(&knobs.release);
	assert_true(over_soon(&grace));

	grace_request(&grace);
	assert_false(grace_over(&grace)); /* the one before says nothing about this one */
	sem_post(&knobs.release);
	barriers_expect(2);
	usleep(20000);
	assert_false(grace_over(&grace));
	clock_set_fake(200 * NSEC_PER_SEC + 49 * NSEC_PER_MSEC);
	assert_false(grace_over(&grace));
	clock_set_fake(200 * NSEC_PER_SEC + 50 * NSEC_PER_MSEC);
	assert_true(over_soon(&grace));
	grace_destroy(&grace);
}

/* What grace.h promises without a barrier, and one line that says so. */
static void fallback_check(void)
{
	char path[] = "/tmp/test-grace-XXXXXX", text[4096] = "";
	int file = mkstemp(path), stderr_fd = dup(STDERR_FILENO);
	struct grace grace;

	assert_true(file >= 0);
	unlink(path);
	dup2(file, STDERR_FILENO);
	grace_init(&grace);
	for (uint64_t s = 1000; s < 1030; s += 10) {
		clock_set_fake(s * NSEC_PER_SEC);
		grace_request(&grace);
		sem_post(&knobs.release);
		usleep(20000);
		assert_false(grace_over(&grace));
		clock_set_fake((s + 1) * NSEC_PER_SEC - 1);
		assert_false(grace_over(&grace));
		clock_set_fake((s + 1) * NSEC_PER_SEC);
		assert_true(over_soon(&grace));
	}
	grace_destroy(&grace);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	close(file);
	assert_non_null(strstr(text, "1 s after their last use"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* membarrier(2): EINVAL with nohz_full, ENOSYS on a kernel without it. */
static void no_barrier(void **state)
{
	(void)state;
	knobs.result_errno = EINVAL;
	fallback_check();
}

static void no_thread(void **state)
{
	(void)state;
	knobs.no_threads = true;
	fallback_check();
	assert_int_equal(nr_barriers(), 0);
}

/* Nothing is started before it is needed; a period that still runs does not keep destroy() for ever. */
static void begin_and_end(void **state)
{
	struct grace grace;

	(void)state;
	grace_init(&grace);
	assert_false(grace.has_thread);
	grace_destroy(&grace);
	grace_init(&grace);
	grace_request(&grace);
	assert_true(grace.has_thread);
	barriers_expect(1);
	sem_post(&knobs.release);
	grace_destroy(&grace);
	assert_int_equal(nr_barriers(), 1);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup(real_periods, set_up),
		cmocka_unit_test_setup(both_are_needed, set_up),
		cmocka_unit_test_setup(no_barrier, set_up),
		cmocka_unit_test_setup(no_thread, set_up),
		cmocka_unit_test_setup(begin_and_end, set_up),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
