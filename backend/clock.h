/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The clock: monotonic nanoseconds, replaceable by a test.
 *
 * Owns: the notion of "now" for everything that waits or measures.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: any thread; never blocks.
 * Must not know: who asks.
 */
#ifndef VBDISK_CLOCK_H
#define VBDISK_CLOCK_H

#include <stdint.h>

#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MSEC 1000000ull

/* CLOCK_MONOTONIC in ns, or the fake time once a test has set one. */
uint64_t clock_now_ns(void);

/* From now on time stands still at @now_ns until it is set again (tests only). */
void clock_set_fake(uint64_t now_ns);

#endif
