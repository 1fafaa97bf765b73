// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cache of mapped pages: never more than agreed, never unmapped while in use or before a grace period.
 *
 * Owns: nothing. Trusts: grant-cache.h (the contract); the fake host, which fails a page that is unmapped
 *   twice. Runs on: the test. Must not know: requests.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/clock.h"
#include "backend/grant-cache.h"
#include "tests/unit/fake-grace.h"
#include "tests/unit/fake-xen.h"
#include "tests/unit/unit.h"

#define NR_MAX 100
#define START_S 1000

static struct fake_xen fake;
static struct grant_cache cache;
static int stderr_fd;

static int set_up(void **state)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	fake_xen_init(&fake);
	memset(&fake_grace, 0, sizeof(fake_grace));
	clock_set_fake(START_S * NSEC_PER_SEC);
	stderr_fd = dup(STDERR_FILENO);
	dup2(null_fd, STDERR_FILENO);
	close(null_fd);
	return grant_cache_init(&cache, &fake.host, FAKE_DOMID, NR_MAX);
}

static int tear_down(void **state)
{
	(void)state;
	grant_cache_destroy(&cache);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	fake_xen_free(&fake);
	return 0;
}

static uint16_t pin(uint32_t gref)
{
	uint16_t idx = grant_cache_pin(&cache, gref);

	if (idx != GRANT_CACHE_MISS)
		assert_ptr_equal(grant_cache_addr(&cache, idx), fake_page(&fake, gref));
	return idx;
}

/* Pin and unpin; true if it was mapped. */
static bool use(uint32_t gref)
{
	uint16_t idx = pin(gref);

	if (idx != GRANT_CACHE_MISS)
		grant_cache_unpin(&cache, idx);
	return idx != GRANT_CACHE_MISS;
}

static void used_again(void **state)
{
	uint16_t first, second;

	(void)state;
	first = pin(5);
	second = pin(5);
	assert_int_equal(first, second);
	grant_cache_unpin(&cache, first);
	grant_cache_unpin(&cache, second);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(use(5));
	/* Same bucket, other pages. */
	for (unsigned i = 1; i < 50; i++)
		assert_true(use(5 + i * 128));
	assert_true(use(5));
	assert_int_equal(fake.nr_map_calls, 50);
	assert_int_equal(fake.nr_mapped, 50);
	assert_int_equal(fake_grace.nr_requests, 0);
}

/* A full cache: 5 % of the least recently used go, after a grace period; what asks meanwhile is copied. */
static void full_cache(void **state)
{
	(void)state;
	for (uint32_t gref = 0; gref < NR_MAX; gref++)
		assert_true(use(gref));
	assert_true(use(0)); /* now the most recently used */
	assert_false(use(500));
	assert_false(use(501));
	assert_int_equal(fake_grace.nr_requests, 1);
	assert_int_equal(fake.nr_unmap_calls, 0);
	assert_true(use(0));
	assert_true(use(6));
	assert_false(use(1)); /* on its way out */
	fake_grace.over = true;
	assert_true(use(502));
	assert_int_equal(fake.nr_unmap_calls, 5);
	for (uint32_t gref = 0; gref < NR_MAX; gref++)
		assert_int_equal(fake.nr_maps[gref], gref < 1 || gref > 5);
	/* Room for four more, then the next five: 7 to 11. */
	for (uint32_t gref = 503; gref < 507; gref++)
		assert_true(use(gref));
	assert_false(use(507));
	assert_int_equal(fake_grace.nr_requests, 2);
	fake_grace.over = true;
	assert_true(use(508));
	for (uint32_t gref = 0; gref < NR_MAX; gref++)
		assert_int_equal(fake.nr_maps[gref], gref < 1 || gref == 6 || gref > 11);
}

static void pinned_pages_stay(void **state)
{
	uint16_t idx[NR_MAX];

	(void)state;
	for (uint32_t gref = 0; gref < NR_MAX; gref++)
		idx[gref] = pin(gref);
	assert_int_equal(pin(500), GRANT_CACHE_MISS);
	assert_int_equal(fake_grace.nr_requests, 0);
	/* Nor does time end a use. */
	clock_set_fake((START_S + 1000) * NSEC_PER_SEC);
	assert_true(grant_cache_tidy(&cache));
	assert_int_equal(fake_grace.nr_requests, 0);
	grant_cache_unpin(&cache, idx[50]);
	assert_false(use(500));
	assert_int_equal(fake_grace.nr_requests, 1);
	fake_grace.over = true;
	assert_true(use(500));
	for (uint32_t gref = 0; gref < NR_MAX; gref++) {
		assert_int_equal(fake.nr_maps[gref], gref != 50);
		if (gref != 50)
			grant_cache_unpin(&cache, idx[gref]);
	}
}

static long resident_kib(void)
{
	FILE *in = fopen("/proc/self/statm", "r");
	long size, resident;

	assert_non_null(in);
	assert_int_equal(fscanf(in, "%ld %ld", &size, &resident), 2);
	fclose(in);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* G07: a fresh reference in each of 100 000 requests. */
static void fresh_references(void **state)
{
	unsigned nr_mapped = 0;
	long resident = 0;

	(void)state;
	for (uint32_t n = 0; n < 100000; n++) {
		if (n == 10000)
			resident = resident_kib();
		fake_grace.over |= !(n % 7);
		nr_mapped += use(n % FAKE_PAGES);
		assert_true(fake.nr_mapped <= NR_MAX);
		assert_int_equal(fake.nr_mapped, cache.nr_mapped);
	}
	assert_true(nr_mapped > 10000);
	assert_true(resident_kib() - resident < 1024); /* not 12 bytes for each */
}

/* G08: the host's limit is reached, then not any more. Each failure is a miss, and counted. */
static void maps_that_fail(void **state)
{
	(void)state;
	fake.map_error = -ENOSPC;
	for (uint32_t gref = 0; gref < 500; gref++)
		assert_false(use(gref));
	assert_int_equal(cache.nr_map_failures, 500);
	assert_int_equal(cache.nr_mapped, 0);
	fake.map_error = 1; /* G04: only 0 is success */
	assert_false(use(1));
	fake.map_error = 0;
	for (uint32_t gref = 0; gref < NR_MAX; gref++)
		assert_true(use(gref));
	assert_int_equal(cache.nr_map_failures, 501);
}

/* G15: counted, not tried again, nothing unmapped twice (the fake host sees to that). */
static void unmaps_that_fail(void **state)
{
	(void)state;
	for (uint32_t gref = 0; gref < NR_MAX; gref++)
		assert_true(use(gref));
	assert_false(use(500));
	fake_grace.over = true;
	fake.unmap_error = -EIO;
	assert_true(use(500));
	assert_int_equal(fake.nr_unmap_calls, 5);
	assert_int_equal(cache.nr_unmap_failures, 5);
	assert_true(use(501));
	grant_cache_release(&cache);
	assert_int_equal(fake.nr_unmap_calls, 5 + 97);
	assert_int_equal(cache.nr_unmap_failures, 5 + 97);
}

/* grant-cache.h: what was not used for 60 s goes. */
static void idle_pages(void **state)
{
	(void)state;
	assert_false(grant_cache_tidy(&cache));
	assert_true(use(1));
	assert_true(use(2));
	for (unsigned s = 1; s <= 59; s++) {
		clock_set_fake((START_S + s) * NSEC_PER_SEC);
		assert_true(grant_cache_tidy(&cache));
		assert_true(use(2));
	}
	assert_int_equal(fake_grace.nr_requests, 0);
	clock_set_fake((START_S + 60) * NSEC_PER_SEC);
	assert_true(grant_cache_tidy(&cache));
	assert_int_equal(fake_grace.nr_requests, 1);
	assert_int_equal(fake.nr_mapped, 2);
	assert_true(grant_cache_tidy(&cache));
	assert_int_equal(fake.nr_mapped, 2);
	fake_grace.over = true;
	assert_true(grant_cache_tidy(&cache));
	assert_int_equal(fake.nr_maps[1], 0);
	assert_int_equal(fake.nr_maps[2], 1);
	/* The last one, last used at 59 s. */
	clock_set_fake((START_S + 118) * NSEC_PER_SEC);
	assert_true(grant_cache_tidy(&cache));
	assert_int_equal(fake_grace.nr_requests, 1);
	clock_set_fake((START_S + 119) * NSEC_PER_SEC);
	assert_true(grant_cache_tidy(&cache));
	assert_int_equal(fake_grace.nr_requests, 2);
	fake_grace.over = true;
	assert_false(grant_cache_tidy(&cache));
	assert_int_equal(fake.nr_mapped, 0);
	/* A page that comes later is not as old as the last tidy(). */
	clock_set_fake((START_S + 1000) * NSEC_PER_SEC);
	assert_true(use(3));
	assert_true(grant_cache_tidy(&cache));
	assert_int_equal(fake_grace.nr_requests, 2);
}

/* All that is idle goes after one wait, a running period notwithstanding; what is in use at the end. */
static void released(void **state)
{
	uint16_t idx;

	(void)state;
	grant_cache_release(&cache);
	assert_int_equal(fake_grace.nr_waits, 0); /* nothing to wait for */
	for (uint32_t gref = 0; gref < NR_MAX - 1; gref++)
		assert_true(use(gref));
	idx = pin(700);
	assert_int_equal(pin(700), idx);
	assert_false(use(500));
	assert_int_equal(fake_grace.nr_requests, 1);
	grant_cache_release(&cache);
	assert_int_equal(fake_grace.nr_waits, 1);
	assert_int_equal(fake.nr_mapped, 1);
	assert_int_equal(fake.nr_maps[700], 1);
	grant_cache_release(&cache);
	assert_int_equal(fake_grace.nr_waits, 1);
	/* tear_down: destroy() unmaps it, whether unpinned or not. */
}

static void nothing_agreed(void **state)
{
	struct grant_cache none;

	(void)state;
	assert_int_equal(grant_cache_init(&none, &fake.host, FAKE_DOMID, 0), 0);
	assert_int_equal(grant_cache_pin(&none, 1), GRANT_CACHE_MISS);
	assert_false(grant_cache_tidy(&none));
	assert_int_equal(fake.nr_map_calls, 0);
	grant_cache_release(&none);
	grant_cache_destroy(&none);
}

/* Random uses, ends of uses, periods and failures: a pinned page is mapped, a page is mapped only once as
 * far as a lookup can tell, and the cap holds. */
static void random_walk(void **state)
{
	static unsigned nr_pins[300];
	static uint16_t idx[300];
	uint32_t seed = 3, now_s = START_S;

	(void)state;
	for (unsigned step = 0; step < 200000; step++) {
		uint32_t gref, dice;

		seed = seed * 1664525u + 1013904223u;
		gref = (seed >> 8) % 300;
		dice = (seed >> 20) % 100;
		fake.map_error = dice % 10 ? 0 : -ENOSPC;
		if (nr_pins[gref] && dice < 70) {
			grant_cache_unpin(&cache, idx[gref]);
			nr_pins[gref]--;
		} else if (dice < 90) {
			uint16_t got = pin(gref);

			if (nr_pins[gref])
				assert_int_equal(got, idx[gref]);
			if (got != GRANT_CACHE_MISS) {
				idx[gref] = got;
				nr_pins[gref]++;
			}
		} else if (dice < 95) {
			fake_grace.over = true;
		} else {
			clock_set_fake((now_s += dice % 4 * 5) * NSEC_PER_SEC);
			grant_cache_tidy(&cache);
		}
		assert_true(fake.nr_mapped <= NR_MAX);
		assert_int_equal(fake.nr_mapped, cache.nr_mapped);
		if (nr_pins[gref])
			assert_true(fake.nr_maps[gref] >= 1);
	}
	assert_true(fake.nr_unmap_calls > 1000);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(used_again),	CASE(full_cache),     CASE(pinned_pages_stay),
		CASE(fresh_references), CASE(maps_that_fail), CASE(unmaps_that_fail),
		CASE(idle_pages),	CASE(released),	      CASE(nothing_agreed),
		CASE(random_walk),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
