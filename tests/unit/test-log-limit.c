// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Log lines, and the budget of those that a guest can cause.
 *
 * Owns: nothing. Trusts: backend/log.h; faults.md P11 for why there is a budget. Runs on: the test.
 * Must not know: what is logged.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/log.h"
#include "tests/unit/unit.h"

static int real_stderr_fd, capture_fd;
static char captured[65536];

static int set_up(void **state)
{
	(void)state;
	real_stderr_fd = dup(STDERR_FILENO);
	capture_fd = memfd_create("log", MFD_CLOEXEC);
	if (real_stderr_fd < 0 || capture_fd < 0)
		return -1;
	dup2(capture_fd, STDERR_FILENO);
	unsetenv("JOURNAL_STREAM");
	log_init("test", "vbd 3/51712", LOG_LEVEL_INFO);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dup2(real_stderr_fd, STDERR_FILENO);
	close(real_stderr_fd);
	close(capture_fd);
	return 0;
}

/* What was logged since the last call; returns the number of lines. */
static unsigned lines_take(void)
{
	ssize_t len = pread(capture_fd, captured, sizeof(captured) - 1, 0);
	unsigned nr = 0;

	assert_true(len >= 0 && len < (ssize_t)sizeof(captured) - 1);
	captured[len] = '\0';
	assert_int_equal(ftruncate(capture_fd, 0), 0);
	lseek(capture_fd, 0, SEEK_SET);
	for (const char *at = captured; (at = strchr(at, '\n')); at++)
		nr++;
	return nr;
}

static void budget(void **state)
{
	struct log_limit limit = {0};
	uint64_t now_ns = 1000 * NSEC_PER_SEC;

	(void)state;
	clock_set_fake(now_ns);
	for (int i = 0; i < 1000; i++)
		log_limited(&limit, LOG_LEVEL_WARNING, "bad request %d", i);
	assert_int_equal(lines_take(), 10);
	assert_non_null(strstr(captured, "bad request 9\n"));
	/* Still the same window. */
	clock_set_fake(now_ns + 10 * NSEC_PER_SEC);
	log_limited(&limit, LOG_LEVEL_WARNING, "no");
	assert_int_equal(lines_take(), 0);
	/* The next one: first how many were dropped, then the line. */
	clock_set_fake(now_ns + 10 * NSEC_PER_SEC + 1);
	log_limited(&limit, LOG_LEVEL_WARNING, "yes");
	assert_int_equal(lines_take(), 2);
	assert_non_null(strstr(captured, "991 more"));
	assert_non_null(strstr(captured, "yes"));
	/* Nothing dropped in this window: no line about it in the one after. */
	clock_set_fake(now_ns + 60 * NSEC_PER_SEC);
	log_limited(&limit, LOG_LEVEL_WARNING, "yes");
	assert_int_equal(lines_take(), 1);
}

/* Two budgets do not share. */
static void budgets_are_separate(void **state)
{
	struct log_limit one = {0}, two = {0};

	(void)state;
	clock_set_fake(NSEC_PER_SEC);
	for (int i = 0; i < 100; i++)
		log_limit_pass(&one);
	assert_false(log_limit_pass(&one));
	assert_true(log_limit_pass(&two));
}

/* P11: under 100 lines and 64 KiB for a million bad requests, here within 60 s. */
static void a_million_bad_requests(void **state)
{
	struct log_limit limit = {0};
	uint64_t now_ns = 7 * NSEC_PER_SEC;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		clock_set_fake(now_ns += 60000);
		log_limited(&limit, LOG_LEVEL_WARNING,
			    "the guest sent a bad request: operation %u with %u segments (%s)", 255,
			    255, "malformed");
	}
	assert_true(lines_take() < 100);
}

static void threshold_and_subject(void **state)
{
	enum log_level level;

	(void)state;
	log_debug("quiet");
	assert_int_equal(lines_take(), 0);
	log_info("heard");
	assert_int_equal(lines_take(), 1);
	assert_non_null(strstr(captured, "vbd 3/51712: heard\n"));
	assert_non_null(strstr(captured, "info: "));
	assert_int_equal(log_level_parse("debug", &level), 0);
	assert_int_equal(level, LOG_LEVEL_DEBUG);
	assert_int_equal(log_level_parse("loud", &level), -EINVAL);
	assert_int_equal(log_level_parse("", &level), -EINVAL);
}

/* One line in, one line out: what a guest wrote cannot begin a new one, nor reach the terminal. */
static void control_characters(void **state)
{
	(void)state;
	log_error("protocol \"%s\"", "foo\n2026-01-01 error: forged\r\033[2J\x7f\t");
	assert_int_equal(lines_take(), 1);
	assert_null(strpbrk(captured, "\r\033\x7f\t"));
	assert_non_null(strstr(captured, "foo?2026"));
}

static void long_lines_are_cut(void **state)
{
	static char text[8000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	log_error("%s", text);
	assert_int_equal(lines_take(), 1);
	assert_true(strlen(captured) <= 2048);
	assert_int_equal(captured[strlen(captured) - 1], '\n');
}

/* systemd.exec(5): JOURNAL_STREAM counts only while stderr still is that stream. */
static void journal(void **state)
{
	(void)state;
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_init("test", "", LOG_LEVEL_INFO);
	log_warning("x");
	assert_int_equal(lines_take(), 1);
	assert_int_not_equal(captured[0], '<');
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(budget),
		CASE(budgets_are_separate),
		CASE(a_million_bad_requests),
		CASE(threshold_and_subject),
		CASE(control_characters),
		CASE(long_lines_are_cut),
		CASE(journal),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
