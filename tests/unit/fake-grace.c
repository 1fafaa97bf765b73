// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Grace periods that end when the test says so.
 *
 * Owns: the knobs and counts. Trusts: the linker's --wrap. Runs on: the test. Must not know: who waits.
 */
#include "config.h"

#include "backend/grace.h"
#include "tests/unit/fake-grace.h"

struct fake_grace fake_grace;

void __wrap_grace_request(struct grace *grace);
bool __wrap_grace_over(struct grace *grace);
void __wrap_grace_wait(struct grace *grace);

void __wrap_grace_request(struct grace *grace)
{
	(void)grace;
	fake_grace.nr_requests++;
	fake_grace.over = false;
}

bool __wrap_grace_over(struct grace *grace)
{
	(void)grace;
	return fake_grace.over;
}

void __wrap_grace_wait(struct grace *grace)
{
	(void)grace;
	fake_grace.nr_waits++;
}
