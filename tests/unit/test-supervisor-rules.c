// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The supervisor's rules, as a table and as a whole.
 *
 * Owns: nothing. Trusts: libxl's libxl__device_destroy() (who removes a backend directory: the toolstack in
 *   dom0, nobody in a driver domain), QEMU's xen_bus_type_enumerate() (whose devices are not ours).
 * Runs on: the test. Must not know: processes.
 */
#include "config.h"

#include "backend/supervisor-rules.h"
#include "tests/unit/unit.h"

#define MAX SUPERVISOR_MAX_FAILURES

struct row {
	const char *name;
	struct supervisor_view view;
	enum supervisor_action action;
};

/* exists, state, online, frontend_closed, advertised, ours, in_dom0, nr_failures */
static const struct row rows[] = {
	{"gone", {false, XENBUS_UNKNOWN, false, true, false, true, true, 0}, SUPERVISOR_FORGET},
	{"gone, never ours",
	 {false, XENBUS_UNKNOWN, false, true, false, false, false, 0},
	 SUPERVISOR_FORGET},
	{"new", {true, XENBUS_INITIALISING, true, false, false, false, true, 0}, SUPERVISOR_START},
	{"new, in a driver domain",
	 {true, XENBUS_INITIALISING, true, false, false, false, false, 0},
	 SUPERVISOR_START},
	{"died before it wrote a state",
	 {true, XENBUS_INITIALISING, true, false, false, true, true, 1},
	 SUPERVISOR_START},
	{"last try",
	 {true, XENBUS_INITIALISING, true, false, false, true, true, MAX - 1},
	 SUPERVISOR_START},
	{"crash loop ends",
	 {true, XENBUS_INITIALISING, true, false, false, true, true, MAX},
	 SUPERVISOR_CLOSE},
	{"crash loop stays ended",
	 {true, XENBUS_INITIALISING, true, false, false, true, true, 1000},
	 SUPERVISOR_CLOSE},
	/* Another backend's device: QEMU takes a node at state 1 to 2 and serves it. */
	{"InitWait, not ours",
	 {true, XENBUS_INIT_WAIT, true, false, true, false, true, 0},
	 SUPERVISOR_NOTHING},
	{"Connected, not ours",
	 {true, XENBUS_CONNECTED, true, false, true, false, true, 0},
	 SUPERVISOR_NOTHING},
	{"Closing, not ours",
	 {true, XENBUS_CLOSING, false, false, true, false, true, 0},
	 SUPERVISOR_NOTHING},
	/* A detach that overtook us: no backend had taken the VBD up, and libxl waits for a 6. */
	{"Closing, taken up by nobody",
	 {true, XENBUS_CLOSING, false, false, false, false, true, 0},
	 SUPERVISOR_CLOSE},
	{"Closing, taken up by nobody, but online",
	 {true, XENBUS_CLOSING, true, false, false, false, true, 0},
	 SUPERVISOR_NOTHING},
	{"Closed, not ours",
	 {true, XENBUS_CLOSED, false, true, true, false, false, 0},
	 SUPERVISOR_NOTHING},
	/* Ours, and its process died. */
	{"InitWait, ours",
	 {true, XENBUS_INIT_WAIT, true, false, true, true, true, 1},
	 SUPERVISOR_START},
	{"InitWait, ours, crash loop",
	 {true, XENBUS_INIT_WAIT, true, false, true, true, true, MAX},
	 SUPERVISOR_CLOSE},
	{"Connected, ours",
	 {true, XENBUS_CONNECTED, true, false, true, true, true, 1},
	 SUPERVISOR_CLOSE},
	{"Closing, ours",
	 {true, XENBUS_CLOSING, true, false, true, true, true, 1},
	 SUPERVISOR_CLOSE},
	{"garbage, ours",
	 {true, XENBUS_UNKNOWN, true, false, false, true, true, 0},
	 SUPERVISOR_CLOSE},
	/* Closed: in dom0 libxl removes it; deleting it there makes its wait fail. */
	{"Closed, dom0",
	 {true, XENBUS_CLOSED, false, true, true, true, true, 0},
	 SUPERVISOR_NOTHING},
	{"Closed, dom0, online",
	 {true, XENBUS_CLOSED, true, false, true, true, true, 0},
	 SUPERVISOR_NOTHING},
	{"Closed, driver domain, detached",
	 {true, XENBUS_CLOSED, false, true, true, true, false, 0},
	 SUPERVISOR_REMOVE},
	/* online stays 1 when a guest with a driver domain's disk is destroyed. */
	{"Closed, driver domain, guest destroyed",
	 {true, XENBUS_CLOSED, true, true, true, true, false, 0},
	 SUPERVISOR_REMOVE},
	{"Closed, driver domain, frontend lives",
	 {true, XENBUS_CLOSED, true, false, true, true, false, 0},
	 SUPERVISOR_NOTHING},
};

static void table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum supervisor_action action = supervisor_next(&rows[i].view);

		if (action != rows[i].action)
			fail_msg("%s: %d, should be %d", rows[i].name, action, rows[i].action);
	}
}

/* Rules that hold for every view. */
static void every_view(void **state)
{
	(void)state;
	for (int number = 0; number <= 6; number++)
		for (unsigned bits = 0; bits < 64; bits++)
			for (unsigned nr_failures = 0; nr_failures <= MAX + 1; nr_failures++) {
				struct supervisor_view view = {
					.exists = bits & 1,
					.state = (enum xenbus_state)number,
					.online = bits & 2,
					.frontend_closed = bits & 4,
					.advertised = bits & 32,
					.ours = bits & 8,
					.in_dom0 = bits & 16,
					.nr_failures = nr_failures,
				};
				enum supervisor_action action = supervisor_next(&view);

				/* A ring's requests died with its process: none is taken up again. */
				if (action == SUPERVISOR_START) {
					assert_true(view.state == XENBUS_INITIALISING ||
						    view.state == XENBUS_INIT_WAIT);
					assert_true(nr_failures < MAX);
				}
				/* Nobody else's device is touched once it is somebody's. */
				if (view.exists && !view.ours &&
				    view.state != XENBUS_INITIALISING &&
				    (view.advertised || view.state != XENBUS_CLOSING))
					assert_int_equal(action, SUPERVISOR_NOTHING);
				if (action == SUPERVISOR_REMOVE)
					assert_true(!view.in_dom0 && view.state == XENBUS_CLOSED);
				/* Closing leads to Closed, where it must not be closed again. */
				if (view.state == XENBUS_CLOSED)
					assert_int_not_equal(action, SUPERVISOR_CLOSE);
				assert_int_equal(action == SUPERVISOR_FORGET, !view.exists);
			}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(every_view),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
