// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A vbdisk process as its supervisor sees it: started or found, signalled, and its end noticed.
 *
 * Owns: the pidfd, which keeps naming this very process whatever happens to its number.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: vbdiskd's main thread; never blocks but for the time of a spawn.
 * Must not know: VBDs, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/child.h"
#include "container.h"

extern char **environ;

static int how_ended(int pidfd, bool adopted)
{
	siginfo_t info = {0};

	if (adopted || waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) || !info.si_pid)
		return CHILD_END_UNKNOWN;
	return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

/* A pidfd is readable once its process has ended. */
static void pidfd_ready(struct loop_watch *watch, uint32_t events)
{
	struct child *child = container_of(watch, struct child, watch);
	int how = how_ended(watch->fd, child->adopted);

	(void)events;
	child_forget(child);
	child->ended(child, how);
}

static int child_watch(struct child *child, struct loop *loop, pid_t pid, int pidfd, bool adopted)
{
	int err;

	child->watch.fd = pidfd;
	child->watch.ready = pidfd_ready;
	err = loop_watch(loop, &child->watch, EPOLLIN);
	if (err)
		return err;
	child->loop = loop;
	child->pid = pid;
	child->adopted = adopted;
	return 0;
}

static int spawn(pid_t *pid_out, char *const *argv)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	err = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	/* Whatever our own parent left open is nothing to a guest's disk. */
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (!err)
		err = posix_spawnattr_setsigmask(&attributes, &none);
	if (!err)
		err = posix_spawnattr_setsigdefault(&attributes, &all);
	if (!err)
		err = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
								    POSIX_SPAWN_SETSIGDEF |
								    POSIX_SPAWN_SETSID);
	if (!err)
		err = posix_spawn(pid_out, argv[0], &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int child_spawn(struct child *child, struct loop *loop, char *const *argv)
{
	pid_t pid;
	int pidfd, err = spawn(&pid, argv);

	if (err)
		return err;
	pidfd = pidfd_open(pid, 0);
	err = pidfd < 0 ? -errno : child_watch(child, loop, pid, pidfd, false);
	if (!err)
		return 0;
	/* A process that nobody watches must not be. It has not had time to do anything. */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (pidfd >= 0)
		close(pidfd);
	return err;
}

int child_adopt(struct child *child, struct loop *loop, pid_t pid,
		bool (*still_it)(void *arg, pid_t pid), void *arg)
{
	int pidfd = pidfd_open(pid, 0);
	int err;

	if (pidfd < 0)
		return -errno;
	err = still_it(arg, pid) ? child_watch(child, loop, pid, pidfd, true) : -ESRCH;
	if (err)
		close(pidfd);
	return err;
}

void child_signal(struct child *child, int signal_number)
{
	if (child->pid)
		pidfd_send_signal(child->watch.fd, signal_number, NULL, 0);
}

void child_forget(struct child *child)
{
	if (!child->pid)
		return;
	loop_unwatch(child->loop, &child->watch);
	close(child->watch.fd);
	child->pid = 0;
}
