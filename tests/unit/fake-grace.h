/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Grace periods that end when the test says so, in place of grace_request(), grace_over() and grace_wait().
 *
 * Owns: the knobs and counts. Trusts: the linker's --wrap. Runs on: the test. Must not know: who waits.
 */
#ifndef VBDISK_TEST_FAKE_GRACE_H
#define VBDISK_TEST_FAKE_GRACE_H

#include <stdbool.h>

struct fake_grace {
	bool over; /* the period is; a request begins a new one */
	unsigned nr_requests, nr_waits;
};

extern struct fake_grace fake_grace;

#endif
