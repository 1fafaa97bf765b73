/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A loopback host in a child process, for the tests that need one.
 *
 * Owns: a temporary directory and the child.
 * Trusts: everything. Runs on: the test. Must not know: what is tested.
 */
#ifndef VBDISK_TEST_LOOPBACK_HOST_H
#define VBDISK_TEST_LOOPBACK_HOST_H

#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loopback/host.h"
#include "loopback/toolstack.h"

struct test_host {
	char dir[64];
	pid_t pid;
	struct toolstack *toolstack;
};

/* Start a host with domains 1 and 2 (2: a driver domain), and connect its toolstack. */
static inline void test_host_start(struct test_host *host)
{
	struct error error = {""};
	int ready[2];
	char byte;

	strcpy(host->dir, "/tmp/vbdisk-unit-XXXXXX");
	assert_non_null(mkdtemp(host->dir));
	assert_int_equal(pipe(ready), 0);
	host->pid = fork();
	assert_true(host->pid >= 0);
	if (!host->pid) {
		struct loopback_server *server;
		int err;

		prctl(PR_SET_PDEATHSIG, SIGTERM); /* not even an aborted test leaves us behind */
		close(ready[0]);
		err = loopback_server_start(host->dir, &server, &error);
		if (err) {
			fprintf(stderr, "%s\n", error.text);
			_exit(1);
		}
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		close(ready[1]);
		err = loopback_server_run(server);
		loopback_server_stop(server);
		exit(err ? 1 : 0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_int_equal(toolstack_open(host->dir, &host->toolstack, &error), 0);
	assert_int_equal(toolstack_domain_create(host->toolstack, 1, false, &error), 0);
	assert_int_equal(toolstack_domain_create(host->toolstack, 2, true, &error), 0);
}

/* The host's audit, of everything but this test's own process. */
static inline unsigned test_host_findings(struct test_host *host)
{
	struct error error = {""};
	uint32_t own_pid = (uint32_t)getpid();
	unsigned nr_findings;
	FILE *null = fopen("/dev/null", "w");

	assert_non_null(null);
	assert_int_equal(
		toolstack_audit(host->toolstack, null, false, &own_pid, 1, &nr_findings, &error),
		0);
	fclose(null);
	return nr_findings;
}

/* One number of the audit, by its JSON name. */
static inline unsigned test_host_count(struct test_host *host, const char *name)
{
	struct error error = {""};
	char *text = NULL, key[64], *at;
	size_t size;
	unsigned nr_findings, count;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(toolstack_audit(host->toolstack, out, true, NULL, 0, &nr_findings, &error),
			 0);
	fclose(out);
	/* Totals come last; clients have counts of the same names before. */
	at = strstr(text, "\"findings\":");
	assert_non_null(at);
	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(at, key);
	assert_non_null(at);
	count = (unsigned)strtoul(at + strlen(key), NULL, 10);
	free(text);
	return count;
}

/* End the host; it must end well and leave nothing in its directory. */
static inline void test_host_stop(struct test_host *host)
{
	struct error error = {""};
	int status;

	assert_int_equal(toolstack_stop(host->toolstack, &error), 0);
	toolstack_close(host->toolstack);
	assert_int_equal(waitpid(host->pid, &status, 0), host->pid);
	assert_int_equal(status, 0);
	assert_int_equal(rmdir(host->dir), 0);
}

#endif
