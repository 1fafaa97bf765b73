// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes as the supervisor sees them.
 *
 * Owns: nothing. Trusts: backend/child.h; pidfd_open(2), posix_spawn(3). Runs on: the test and its
 *   children. Must not know: VBDs.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/child.h"
#include "tests/unit/unit.h"

#define NOT_ENDED 9999

static struct loop *loop;
static int ended_how;
static unsigned nr_ended;

static void child_ended(struct child *child, int how)
{
	assert_int_equal(child->pid, 0); /* empty again */
	ended_how = how;
	nr_ended++;
}

static unsigned nr_fds(void)
{
	DIR *fds = opendir("/proc/self/fd");
	unsigned nr = 0;

	assert_non_null(fds);
	while (readdir(fds))
		nr++;
	closedir(fds);
	return nr;
}

static unsigned fds_before;
static bool known_fds[1024];

static int set_up(void **state)
{
	(void)state;
	fds_before = nr_fds();
	for (int fd = 0; fd < 1024; fd++)
		known_fds[fd] = fcntl(fd, F_GETFD) >= 0;
	ended_how = NOT_ENDED;
	nr_ended = 0;
	return loop_create(&loop);
}

/* No descriptor and no zombie is left by any test. */
static int tear_down(void **state)
{
	(void)state;
	loop_destroy(loop);
	assert_int_equal(nr_fds(), fds_before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return 0;
}

static void spawn(struct child *child, const char *script)
{
	char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)script, NULL};

	*child = (struct child){.ended = child_ended};
	assert_int_equal(child_spawn(child, loop, argv), 0);
	assert_true(child->pid > 0);
	assert_false(child->adopted);
}

static void wait_for_end(void)
{
	for (int i = 0; i < 100 && !nr_ended; i++)
		assert_true(loop_step(loop, 100) >= 0);
	assert_int_equal(nr_ended, 1);
	assert_int_equal(loop_step(loop, 0), 0);
}

static void exit_statuses(void **state)
{
	static const int statuses[] = {0, 1, 3, 255};

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct child child;
		char script[32];

		nr_ended = 0;
		snprintf(script, sizeof(script), "exit %d", statuses[i]);
		spawn(&child, script);
		wait_for_end();
		assert_int_equal(ended_how, statuses[i]);
	}
}

static void killed(void **state)
{
	struct child child;

	(void)state;
	spawn(&child, "kill -SEGV $$");
	wait_for_end();
	assert_int_equal(ended_how, -SIGSEGV);
	nr_ended = 0;
	spawn(&child, "exec sleep 1000");
	child_signal(&child, SIGTERM);
	wait_for_end();
	assert_int_equal(ended_how, -SIGTERM);
	child_signal(&child, SIGTERM); /* nobody there: no error, and nobody else is hit */
}

static void no_such_program(void **state)
{
	char *argv[] = {"/no/such/program", NULL};
	struct child child = {.ended = child_ended};

	(void)state;
	assert_int_equal(child_spawn(&child, loop, argv), -ENOENT);
	assert_int_equal(child.pid, 0);
	child_forget(&child);
}

/* A child starts clean: default signals, none blocked, nothing to read from, its own session. */
static void clean_start(void **state)
{
	/* posix_spawn() leaves the C library's own signals, 32 and 33, ignored. */
	static const char script[] =
		"test \"$(readlink /proc/$$/fd/0)\" = /dev/null || exit 11\n"
		"test \"$(awk '{print $6}' /proc/$$/stat)\" = $$ || exit 12\n"
		"exec awk '/^SigBlk/ && $2 !~ /^0*$/ {exit 13}"
		" /^SigIgn/ && $2 !~ /^0*(180000000)?$/ {exit 14}' /proc/self/status\n";
	sigset_t set, before;
	struct child child;

	(void)state;
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, &before);
	signal(SIGPIPE, SIG_IGN);
	spawn(&child, script);
	sigprocmask(SIG_SETMASK, &before, NULL);
	wait_for_end();
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(ended_how, 0);
}

/* Every descriptor that watching a child takes is closed in the next child (P16). */
static void close_on_exec(void **state)
{
	struct child child;
	unsigned nr_new = 0;

	(void)state;
	spawn(&child, "exec sleep 1000");
	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags < 0 || known_fds[fd])
			continue;
		nr_new++;
		assert_true(flags & FD_CLOEXEC);
	}
	assert_int_equal(nr_new, 2); /* the loop's epoll, the child's pidfd */
	child_signal(&child, SIGKILL);
	wait_for_end();
}

static bool yes(void *arg, pid_t pid)
{
	assert_int_equal(*(pid_t *)arg, pid);
	return true;
}

static bool no(void *arg, pid_t pid)
{
	(void)arg;
	(void)pid;
	return false;
}

/* Somebody else's process: its end is seen, not how. Here it is ours after all, so we reap it. */
static void adopt(void **state)
{
	struct child child = {.ended = child_ended};
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(child_adopt(&child, loop, pid, no, &pid), -ESRCH);
	assert_int_equal(child.pid, 0);
	assert_int_equal(child_adopt(&child, loop, pid, yes, &pid), 0);
	assert_true(child.adopted);
	assert_int_equal(child.pid, pid);
	assert_int_equal(loop_step(loop, 0), 0);
	child_signal(&child, SIGKILL);
	wait_for_end();
	assert_int_equal(ended_how, CHILD_END_UNKNOWN);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(child_adopt(&child, loop, pid, yes, &pid), -ESRCH);
}

/* Let go: it lives on, and its end calls nobody. */
static void forget(void **state)
{
	struct child child;
	pid_t pid;

	(void)state;
	spawn(&child, "exec sleep 1000");
	pid = child.pid;
	child_forget(&child);
	child_forget(&child); /* idempotent */
	assert_int_equal(kill(pid, 0), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(loop_step(loop, 0), 0);
	assert_int_equal(nr_ended, 0);
}

/* tear_down counts what is left of many (P02, P05). */
static void many(void **state)
{
	static struct child children[50];

	(void)state;
	for (int i = 0; i < 50; i++)
		spawn(&children[i], i & 1 ? "exit 7" : "kill -9 $$");
	for (int i = 0; i < 1000 && nr_ended < 50; i++)
		assert_true(loop_step(loop, 100) >= 0);
	assert_int_equal(nr_ended, 50);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(exit_statuses), CASE(killed), CASE(no_such_program), CASE(clean_start),
		CASE(close_on_exec), CASE(adopt),  CASE(forget),	  CASE(many),
	};

	int pidfd = pidfd_open(getpid(), 0);

	/* Linux 5.3 has it; valgrind 3.19 does not pass it on. */
	if (pidfd < 0 && errno == ENOSYS) {
		puts("1..0 # SKIP there is no pidfd_open(2) here");
		return 0;
	}
	close(pidfd);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
