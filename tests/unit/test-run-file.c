// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Run files between two processes.
 *
 * Owns: a directory of its own. Trusts: backend/run-file.h; fcntl(2) for what a record lock is: the
 *   process's, gone with it or with any descriptor it closes. Runs on: the test and its children.
 * Must not know: VBDs.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/run-file.h"
#include "tests/unit/unit.h"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "run-file-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

/* Each test leaves the directory empty. */
static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* A process that holds a file: it says so on one pipe, and ends when the other says so. */
struct holder {
	pid_t pid;
	int go_fd;
};

static void holder_start(struct holder *holder, const char *name, const char *text)
{
	int ready[2], go[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	holder->pid = fork();
	if (!holder->pid) {
		struct run_file file;
		pid_t other;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		if (run_file_hold(&file, dir, name, &other) || run_file_write(&file, text) ||
		    write(ready[1], "r", 1) != 1)
			_exit(1);
		if (read(go[0], &byte, 1) < 0)
			_exit(2);
		run_file_release(&file);
		_exit(0);
	}
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	holder->go_fd = go[1];
}

static void holder_end(struct holder *holder)
{
	int status;

	assert_int_equal(write(holder->go_fd, "g", 1), 1);
	close(holder->go_fd);
	assert_int_equal(waitpid(holder->pid, &status, 0), holder->pid);
	assert_int_equal(status, 0);
}

static void holder_kill(struct holder *holder)
{
	kill(holder->pid, SIGKILL);
	waitpid(holder->pid, NULL, 0);
	close(holder->go_fd);
}

static bool file_exists(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

static void held_by_another(void **state)
{
	struct holder holder;
	struct run_file file;
	pid_t pid = -1;

	(void)state;
	assert_int_equal(run_file_holder(dir, "qdisk-1-2", &pid), 0);
	assert_int_equal(pid, 0); /* no such file: nobody */
	holder_start(&holder, "qdisk-1-2", "aio:/x");
	assert_int_equal(run_file_holder(dir, "qdisk-1-2", &pid), 0);
	assert_int_equal(pid, holder.pid);
	pid = -1;
	assert_int_equal(run_file_hold(&file, dir, "qdisk-1-2", &pid), -EBUSY);
	assert_int_equal(pid, holder.pid);
	/* Asking did not free it. */
	assert_int_equal(run_file_hold(&file, dir, "qdisk-1-2", &pid), -EBUSY);
	holder_end(&holder);
	assert_false(file_exists("qdisk-1-2"));
	assert_int_equal(run_file_hold(&file, dir, "qdisk-1-2", &pid), 0);
	run_file_release(&file);
}

/* kill -9 leaves the file and frees the lock. */
static void stale_file(void **state)
{
	struct holder holder;
	struct run_file file;
	pid_t pid = -1;
	char name[64];

	(void)state;
	holder_start(&holder, "qdisk-1-2", "aio:/x");
	holder_kill(&holder);
	assert_true(file_exists("qdisk-1-2"));
	assert_int_equal(run_file_holder(dir, "qdisk-1-2", &pid), 0);
	assert_int_equal(pid, 0);
	assert_int_equal(run_file_find(dir, NULL, "aio:/x", name, sizeof(name)), -ENOENT);
	assert_int_equal(run_file_hold(&file, dir, "qdisk-1-2", &pid), 0);
	run_file_release(&file);
}

static void find_by_text(void **state)
{
	struct holder one, two;
	char name[64] = "";

	(void)state;
	holder_start(&one, "qdisk-1-51712", "aio:/a");
	holder_start(&two, "qdisk-2-51712", "aio:/ab");
	assert_int_equal(run_file_find(dir, NULL, "aio:/ab", name, sizeof(name)), 0);
	assert_string_equal(name, "qdisk-2-51712");
	assert_int_equal(run_file_find(dir, NULL, "aio:/a", name, sizeof(name)), 0);
	assert_string_equal(name, "qdisk-1-51712");
	assert_int_equal(run_file_find(dir, NULL, "aio:/abc", name, sizeof(name)), -ENOENT);
	assert_int_equal(run_file_find(dir, NULL, "", name, sizeof(name)), -ENOENT);
	assert_int_equal(run_file_find("no-such-dir", NULL, "aio:/a", name, sizeof(name)), -ENOENT);
	holder_end(&one);
	holder_end(&two);
}

/* A record lock goes with any descriptor that its process closes: looking through the directory must not
 * cost the looker its own file. (vbdisk does that to name who has its image.) */
static void find_keeps_our_own_lock(void **state)
{
	struct run_file file;
	struct holder holder;
	char name[64];
	pid_t pid = -1;
	pid_t child;
	int status;

	(void)state;
	holder_start(&holder, "qdisk-2-51712", "aio:/other");
	assert_int_equal(run_file_hold(&file, dir, "qdisk-1-51712", &pid), 0);
	assert_int_equal(run_file_find(dir, &file, "aio:/other", name, sizeof(name)), 0);
	assert_string_equal(name, "qdisk-2-51712");
	assert_int_equal(run_file_find(dir, &file, "aio:/nobody", name, sizeof(name)), -ENOENT);
	/* Only another process can see whether we still have it. */
	child = fork();
	if (!child) {
		if (run_file_holder(dir, "qdisk-1-51712", &pid))
			_exit(2);
		_exit(pid == getppid() ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	run_file_release(&file);
	holder_end(&holder);
}

static void text_is_replaced(void **state)
{
	struct run_file file;
	pid_t pid;
	char path[128], text[64];
	FILE *in;

	(void)state;
	assert_int_equal(run_file_hold(&file, dir, "x", &pid), 0);
	assert_int_equal(run_file_write(&file, "a long text"), 0);
	assert_int_equal(run_file_write(&file, "short"), 0);
	/* Read by a child: to open and close it here would cost the lock. */
	snprintf(path, sizeof(path), "cat %s/x", dir);
	in = popen(path, "r");
	assert_non_null(fgets(text, sizeof(text), in));
	pclose(in);
	assert_string_equal(text, "short");
	run_file_release(&file);
}

/* Many processes take and release one name as fast as they can: at no moment do two hold it, although each
 * release removes the file under those that have just opened it. */
static void removal_race(void **state)
{
	enum { NR_CHILDREN = 4, NR_ROUNDS = 500 };
	char witness[128];

	(void)state;
	snprintf(witness, sizeof(witness), "%s.witness", dir);
	for (int i = 0; i < NR_CHILDREN; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int round = 0; round < NR_ROUNDS;) {
			struct run_file file;
			pid_t pid;
			int err = run_file_hold(&file, dir, "qdisk-1-2", &pid);

			if (err == -EBUSY)
				continue;
			/* mkdir() of a directory that is there: somebody else is inside. */
			if (err || mkdir(witness, 0700) || rmdir(witness))
				_exit(1);
			run_file_release(&file);
			round++;
		}
		_exit(0);
	}
	for (int i = 0; i < NR_CHILDREN; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_false(file_exists("qdisk-1-2"));
}

static void odd_names(void **state)
{
	struct run_file file;
	char name[600], path[128];
	pid_t pid;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(run_file_hold(&file, dir, name, &pid), -ENAMETOOLONG);
	assert_int_equal(run_file_holder(dir, name, &pid), -ENAMETOOLONG);
	assert_int_equal(run_file_hold(&file, "no-such-dir", "x", &pid), -ENOENT);
	/* A symbolic link in its place is not followed. */
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("../elsewhere", path), 0);
	assert_int_equal(run_file_hold(&file, dir, "link", &pid), -ELOOP);
	assert_int_equal(unlink(path), 0);
}

static void directory(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/run", dir);
	assert_int_equal(run_dir_make(path), 0);
	assert_int_equal(run_dir_make(path), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(run_dir_make("no-such-dir/run"), -ENOENT);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(held_by_another),	CASE(stale_file),
		CASE(find_by_text),	CASE(find_keeps_our_own_lock),
		CASE(text_is_replaced), CASE(removal_race),
		CASE(odd_names),	CASE(directory),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
