// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The clock: monotonic nanoseconds, replaceable by a test.
 *
 * Owns: the fake time. Trusts: the kernel's monotonic clock. Runs on: any thread; never blocks.
 * Must not know: who asks.
 */
#include "config.h"

#include <stdbool.h>
#include <time.h>

#include "backend/clock.h"

static bool fake;
static uint64_t fake_now_ns;

uint64_t clock_now_ns(void)
{
	struct timespec now;

	if (fake)
		return fake_now_ns;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

void clock_set_fake(uint64_t now_ns)
{
	fake = true;
	fake_now_ns = now_ns;
}
