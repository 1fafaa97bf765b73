/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A vbdisk process as its supervisor sees it: started or found, signalled, and its end noticed.
 *
 * Owns: the pidfd, which keeps naming this very process whatever happens to its number.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: vbdiskd's main thread; never blocks but for the time of a spawn.
 * Must not know: VBDs, xenstore.
 */
#ifndef VBDISK_CHILD_H
#define VBDISK_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "backend/event-loop.h"

struct child {
	pid_t pid;    /* 0: none */
	bool adopted; /* not our child: how it ends cannot be known, only that it did */
	struct loop *loop;
	struct loop_watch watch;
	/* The process has ended: exit status >= 0, or -signal, or CHILD_END_UNKNOWN. The child is empty
	 * again when this is called. */
	void (*ended)(struct child *child, int how);
};

#define CHILD_END_UNKNOWN 256

/* Start @argv (NULL-terminated, argv[0] is a path) in a session of its own, with stdin from /dev/null
 * and default signals, so that it outlives us. 0 or -errno. */
int child_spawn(struct child *child, struct loop *loop, char *const *argv);

/* Take up the running process @pid. @still_it is asked after the process is pinned, to exclude that the
 * number went to another process meanwhile. 0, -ESRCH if it has ended, -errno. */
int child_adopt(struct child *child, struct loop *loop, pid_t pid,
		bool (*still_it)(void *arg, pid_t pid), void *arg);

/* Send a signal; a process that has just ended is no error. */
void child_signal(struct child *child, int signal_number);

/* Let go of the process, which goes on. */
void child_forget(struct child *child);

#endif
