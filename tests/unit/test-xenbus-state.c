// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The xenbus state table: its rows one by one, then every view there can be.
 *
 * Owns: nothing. Trusts: what xen-blkback (drivers/block/xen-blkback/xenbus.c, frontend_changed()) and QEMU
 *   (hw/xen/xen-bus.c, xen_device_frontend_changed(), xen_device_backend_changed()) agree on, and libxl's
 *   device_disk_add() and libxl__device_destroy() for what a toolstack writes. Runs on: the test.
 * Must not know: how anything is done.
 */
#include "config.h"

#include <stdio.h>

#include "tests/unit/unit.h"
#include "xenstore/xenbus-state.h"

static const char *const action_names[] = {
	[XENBUS_NOTHING] = "NOTHING",	    [XENBUS_ADVERTISE] = "ADVERTISE",
	[XENBUS_CONNECT] = "CONNECT",	    [XENBUS_CLOSE] = "CLOSE",
	[XENBUS_DISCONNECT] = "DISCONNECT", [XENBUS_FINISH] = "FINISH",
	[XENBUS_VANISH] = "VANISH",
};

static const char *view_text(const struct xenbus_view *view)
{
	static char text[160];

	snprintf(text, sizeof(text), "backend %s, own %s, %s, frontend %s, %s",
		 view->backend_exists ? xenbus_state_name(view->backend) : "gone",
		 xenbus_state_name(view->own), view->online ? "online" : "offline",
		 xenbus_state_name(view->frontend), view->ring_attached ? "ring" : "no ring");
	return text;
}

/* ---- The table's rows --------------------------------------------------------------------------- */

struct row {
	const char *name;
	int backend; /* -1: gone */
	int own;
	bool online;
	int frontend;
	bool ring;
	enum xenbus_action action;
};

static const struct row rows[] = {
	/* new BE, online=1, state=1: open storage, write features, state=2 */
	{"new", 1, 1, true, 1, false, XENBUS_ADVERTISE},
	{"new, frontend there already", 1, 1, true, 3, false, XENBUS_ADVERTISE},
	{"new, frontend resumed", 1, 1, true, 4, false, XENBUS_ADVERTISE},
	{"new, frontend garbage", 1, 1, true, 0, false, XENBUS_ADVERTISE},
	{"new, frontend closing", 1, 1, true, 5, false, XENBUS_ADVERTISE},
	{"new, frontend nodes missing", 1, 1, true, 6, false, XENBUS_ADVERTISE},
	{"taken over in InitWait", 2, 1, true, 1, false, XENBUS_ADVERTISE},
	/* FE -> 1: if BE is 6 and online=1: state=2 (reconnect); else ignore */
	{"FE 1: reconnect", 6, 6, true, 1, false, XENBUS_ADVERTISE},
	{"FE 1: offline", 6, 6, false, 1, false, XENBUS_FINISH},
	{"FE 1: advertised", 2, 2, true, 1, false, XENBUS_NOTHING},
	{"FE 1: connected", 4, 4, true, 1, true, XENBUS_NOTHING},
	/* ... where 5, 6, 1 may have merged, so that BE is not 6 only because we have not looked */
	{"FE 1: Closing, with a ring", 5, 5, true, 1, true, XENBUS_DISCONNECT},
	{"FE 1: Closing, without", 5, 5, true, 1, false, XENBUS_DISCONNECT},
	/* ... and only if it is: a state which somebody else put there is not written over (vbd_nodes_advertise()
	 * would refuse, and the caller would try for ever) */
	{"FE 1: Closed, but the node says Closing", 5, 6, true, 1, false, XENBUS_NOTHING},
	{"FE 1: Closed, but the node says InitWait", 2, 6, true, 1, false, XENBUS_NOTHING},
	/* FE -> 2: ignore */
	{"FE 2", 2, 2, true, 2, false, XENBUS_NOTHING},
	{"FE 2 after Closed", 6, 6, true, 2, false, XENBUS_NOTHING},
	/* FE -> 3 or 4, BE not 4: connect */
	{"FE 3", 2, 2, true, 3, false, XENBUS_CONNECT},
	{"FE 4 (3 and 4 merged)", 2, 2, true, 4, false, XENBUS_CONNECT},
	{"FE 3 after Closed (6, 1, 3 merged)", 6, 6, true, 3, false, XENBUS_CONNECT},
	/* ... tear down any old ring first: 5, 6, 1, 3 merged while the ring was served in Closing */
	{"FE 3, old ring in Closing", 5, 5, true, 3, true, XENBUS_DISCONNECT},
	{"FE 4, old ring in Closing", 5, 5, true, 4, true, XENBUS_DISCONNECT},
	{"FE 3, but the node says Closing", 5, 2, true, 3, false, XENBUS_NOTHING},
	{"FE 3, Closed, but the node says InitWait", 2, 6, true, 3, false, XENBUS_NOTHING},
	/* ... but a connection that failed (Closing without a ring) is not tried again by itself */
	{"FE 3 after a failed connection", 5, 5, true, 3, false, XENBUS_NOTHING},
	/* FE -> 3 or 4, BE is 4: ignore */
	{"FE 3, connected", 4, 4, true, 3, true, XENBUS_NOTHING},
	{"FE 4, connected", 4, 4, true, 4, true, XENBUS_NOTHING},
	/* FE -> 5: state=5, and keep serving */
	{"FE 5", 4, 4, true, 5, true, XENBUS_CLOSE},
	{"FE 5 offline", 5, 4, false, 5, true, XENBUS_CLOSE},
	{"FE 5 before a ring", 2, 2, true, 5, false, XENBUS_CLOSE},
	{"FE 5, done", 5, 5, true, 5, true, XENBUS_NOTHING},
	{"FE 5 after Closed", 6, 6, true, 5, false, XENBUS_NOTHING},
	/* FE -> 6: drain, unbind, unmap, state=6; if online=0 the VBD's life ends */
	{"FE 6", 5, 5, true, 6, true, XENBUS_DISCONNECT},
	{"FE 6 at once (or its nodes are gone)", 4, 4, true, 6, true, XENBUS_DISCONNECT},
	{"FE 6 offline", 5, 5, false, 6, true, XENBUS_FINISH},
	{"FE 6 offline, toolstack has not said 5", 4, 4, false, 6, true, XENBUS_FINISH},
	{"FE 6, done", 6, 6, true, 6, false, XENBUS_NOTHING},
	{"FE 6, done, then offline", 6, 6, false, 6, false, XENBUS_FINISH},
	/* BE state -> 5 by the toolstack, online=0: if FE is not in {2,3,4,5}: 6 at once; else wait */
	{"toolstack 5, FE 1", 5, 2, false, 1, false, XENBUS_FINISH},
	{"toolstack 5, FE 0", 5, 2, false, 0, false, XENBUS_FINISH},
	{"toolstack 5, FE 2", 5, 2, false, 2, false, XENBUS_NOTHING},
	{"toolstack 5, FE 3", 5, 2, false, 3, false, XENBUS_NOTHING},
	{"toolstack 5, FE 4", 5, 4, false, 4, true, XENBUS_NOTHING},
	{"toolstack 5, FE 1 with a ring", 5, 4, false, 1, true, XENBUS_FINISH},
	{"toolstack 5, FE 6", 5, 4, false, 6, true, XENBUS_FINISH},
	{"toolstack 5 before we began, FE 1", 5, 1, false, 1, false, XENBUS_FINISH},
	{"toolstack 5 before we began, FE 3", 5, 1, false, 3, false, XENBUS_FINISH},
	{"toolstack 5 online: FE decides", 5, 4, true, 4, true, XENBUS_NOTHING},
	/* BE state -> 6 by the toolstack: drain, unmap, exit */
	{"toolstack 6", 6, 4, false, 4, true, XENBUS_VANISH},
	{"toolstack 6, online", 6, 4, true, 4, true, XENBUS_VANISH},
	{"toolstack 6 before a ring", 6, 2, false, 1, false, XENBUS_VANISH},
	/* BE gone: same */
	{"gone", -1, 4, false, 4, true, XENBUS_VANISH},
	{"gone before we began", -1, 1, false, 6, false, XENBUS_VANISH},
	{"gone after Closed", -1, 6, false, 6, false, XENBUS_VANISH},
	/* BE back at 1 though we wrote another: the next generation of this path */
	{"next generation", 1, 4, true, 1, true, XENBUS_VANISH},
	{"next generation after Closed", 1, 6, true, 1, false, XENBUS_VANISH},
};

static void table(void **state)
{
	unsigned nr_wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct xenbus_view view = {
			.backend_exists = row->backend >= 0,
			.backend = row->backend < 0 ? XENBUS_UNKNOWN
						    : (enum xenbus_state)row->backend,
			.own = (enum xenbus_state)row->own,
			.online = row->online,
			.frontend = (enum xenbus_state)row->frontend,
			.ring_attached = row->ring,
		};
		enum xenbus_action action = xenbus_next(&view);

		if (action != row->action) {
			print_error("# %s (%s): %s, should be %s\n", row->name, view_text(&view),
				    action_names[action], action_names[row->action]);
			nr_wrong++;
		}
	}
	assert_int_equal(nr_wrong, 0);
}

/* ---- Every view --------------------------------------------------------------------------------- */

/* Does xenstore still hold the life whose state we wrote last (vbd_nodes_set_state())? */
static bool is_stale(const struct xenbus_view *view)
{
	return !view->backend_exists ||
	       (view->backend == XENBUS_INITIALISING && view->own != XENBUS_INITIALISING) ||
	       (view->backend == XENBUS_CLOSED && view->own != XENBUS_CLOSED);
}

static void state_write(struct xenbus_view *view, enum xenbus_state to)
{
	if (!is_stale(view))
		view->backend = view->own = to;
}

/* Do what vbd.c does for @action; @found is the state that it found at its start. False: the life has
 * ended. */
static bool action_apply(struct xenbus_view *view, enum xenbus_action action,
			 enum xenbus_state found, bool can_connect)
{
	switch (action) {
	case XENBUS_NOTHING:
		return false;
	case XENBUS_ADVERTISE:
		/* vbd_nodes_advertise(): only over the state it expects. */
		if (view->backend_exists &&
		    view->backend == (view->own == XENBUS_INITIALISING ? found : view->own))
			view->backend = view->own = XENBUS_INIT_WAIT;
		else if (view->own == XENBUS_INITIALISING)
			return false; /* ends: not the VBD it was started for */
		return true;
	case XENBUS_CONNECT:
		view->ring_attached = can_connect;
		state_write(view, can_connect ? XENBUS_CONNECTED : XENBUS_CLOSING);
		return true;
	case XENBUS_CLOSE:
		state_write(view, XENBUS_CLOSING);
		return true;
	case XENBUS_DISCONNECT:
		view->ring_attached = false;
		state_write(view, XENBUS_CLOSED);
		return true;
	default:
		return false;
	}
}

static void invariants_check(const struct xenbus_view *view, enum xenbus_action action)
{
	const char *broken = NULL;

	if (action == XENBUS_CONNECT && view->ring_attached)
		broken = "connects over a ring";
	if (action == XENBUS_CONNECT && !view->online)
		broken = "connects what the toolstack has taken offline";
	/* The disk is opened by ADVERTISE: no other state may be written before. */
	if (view->own == XENBUS_INITIALISING &&
	    (action == XENBUS_CONNECT || action == XENBUS_CLOSE || action == XENBUS_DISCONNECT))
		broken = "goes on before the disk is open";
	if (action == XENBUS_CONNECT && view->frontend != XENBUS_INITIALISED &&
	    view->frontend != XENBUS_CONNECTED)
		broken = "connects to a frontend which has no ring";
	if (action == XENBUS_ADVERTISE && view->ring_attached)
		broken = "advertises with a ring";
	if (action == XENBUS_ADVERTISE && !view->online && view->backend == XENBUS_CLOSING)
		broken = "advertises what is being closed";
	if (action == XENBUS_ADVERTISE && view->own != XENBUS_INITIALISING &&
	    view->own != XENBUS_CLOSED)
		broken = "advertises in the middle of a life";
	if (action != XENBUS_VANISH && is_stale(view))
		broken = "goes on with a life that is not there";
	if (action == XENBUS_VANISH && !is_stale(view))
		broken = "leaves a life that goes on";
	if (action == XENBUS_FINISH && view->online)
		broken = "ends what the toolstack wants";
	if (action == XENBUS_DISCONNECT && view->own == XENBUS_CLOSED)
		broken = "disconnects twice";
	if (broken)
		fail_msg("%s %s: %s", action_names[action], broken, view_text(view));
}

/* From each view, with both ends silent, to rest: within four steps, and by no action twice. */
static void every_view_comes_to_rest(void **state)
{
	static const enum xenbus_state owns[] = {XENBUS_INITIALISING, XENBUS_INIT_WAIT,
						 XENBUS_CONNECTED, XENBUS_CLOSING, XENBUS_CLOSED};
	unsigned reached[XENBUS_VANISH + 1] = {0}, nr_views = 0;

	(void)state;
	for (int backend = -1; backend <= 6; backend++)
		for (size_t own = 0; own < 5; own++)
			for (int frontend = 0; frontend <= 6; frontend++)
				for (unsigned bits = 0; bits < 16; bits++) {
					struct xenbus_view view = {
						.backend_exists = backend >= 0,
						.backend = backend < 0 ? XENBUS_UNKNOWN
								       : (enum xenbus_state)backend,
						.own = owns[own],
						.online = bits & 1,
						.frontend = (enum xenbus_state)frontend,
						.ring_attached = bits & 2,
					};
					enum xenbus_state found = bits & 8 ? XENBUS_INIT_WAIT
									   : XENBUS_INITIALISING;
					unsigned seen = 0, steps = 0;
					enum xenbus_action action;

					/* A ring is there from Connected to the end of Closing. */
					if (view.ring_attached != (view.own == XENBUS_CONNECTED) &&
					    view.own != XENBUS_CLOSING)
						continue;
					nr_views++;
					do {
						action = xenbus_next(&view);
						reached[action]++;
						invariants_check(&view, action);
						if (action != XENBUS_NOTHING &&
						    (seen & 1u << action))
							fail_msg("%s again and again: %s",
								 action_names[action],
								 view_text(&view));
						seen |= 1u << action;
						if (++steps > 5)
							fail_msg("no rest: %s", view_text(&view));
					} while (action_apply(&view, action, found, bits & 4));
				}
	assert_true(nr_views > 1000);
	for (int action = XENBUS_NOTHING; action <= XENBUS_VANISH; action++)
		if (!reached[action])
			fail_msg("%s is never reached", action_names[action]);
}

/* ---- Whole lives -------------------------------------------------------------------------------- */

/* Look, act, look again, until there is nothing to do; returns the last action that was not NOTHING. */
static enum xenbus_action settle(struct xenbus_view *view)
{
	enum xenbus_action last = XENBUS_NOTHING, action;

	do {
		action = xenbus_next(view);
		if (action != XENBUS_NOTHING)
			last = action;
	} while (action_apply(view, action, XENBUS_INITIALISING, true));
	return last;
}

static void frontend_says(struct xenbus_view *view, enum xenbus_state frontend,
			  enum xenbus_state backend)
{
	view->frontend = frontend;
	settle(view);
	if (view->own != backend || view->backend != backend)
		fail_msg("should be %s: %s", xenbus_state_name(backend), view_text(view));
}

static const struct xenbus_view fresh = {.backend_exists = true,
					 .backend = XENBUS_INITIALISING,
					 .own = XENBUS_INITIALISING,
					 .online = true,
					 .frontend = XENBUS_INITIALISING};

/* Boot, kexec twice (linux: xenbus_reset_frontend() waits for 5, 6 and 2), detach. */
static void life_with_reconnects(void **state)
{
	struct xenbus_view view = fresh;

	(void)state;
	settle(&view);
	assert_int_equal(view.own, XENBUS_INIT_WAIT);
	for (int boot = 0; boot < 3; boot++) {
		frontend_says(&view, XENBUS_INITIALISED, XENBUS_CONNECTED);
		assert_true(view.ring_attached);
		frontend_says(&view, XENBUS_CONNECTED, XENBUS_CONNECTED);
		frontend_says(&view, XENBUS_CLOSING, XENBUS_CLOSING);
		assert_true(view.ring_attached);
		frontend_says(&view, XENBUS_CLOSED, XENBUS_CLOSED);
		assert_false(view.ring_attached);
		frontend_says(&view, XENBUS_INITIALISING, XENBUS_INIT_WAIT);
	}
	frontend_says(&view, XENBUS_CONNECTED, XENBUS_CONNECTED);
	view.online = false;
	view.backend = XENBUS_CLOSING;
	assert_int_equal(settle(&view), XENBUS_NOTHING);
	view.frontend = XENBUS_CLOSING;
	assert_int_equal(settle(&view), XENBUS_CLOSE);
	view.frontend = XENBUS_CLOSED;
	assert_int_equal(settle(&view), XENBUS_FINISH);
}

/* Watches may merge: whatever part of a frontend's closing and coming back we get to see, it ends
 * connected again with a fresh ring, or waiting for it. */
static void merged_reconnects(void **state)
{
	static const enum xenbus_state path[] = {XENBUS_CLOSING, XENBUS_CLOSED, XENBUS_INITIALISING,
						 XENBUS_INITIALISED, XENBUS_CONNECTED};

	(void)state;
	/* Each subset of what is seen after Closing, whose ring we serve on. */
	for (unsigned subset = 1; subset < 32; subset += 2) {
		struct xenbus_view view = fresh;
		bool released = false;
		enum xenbus_state last = XENBUS_CLOSING;

		settle(&view);
		frontend_says(&view, XENBUS_CONNECTED, XENBUS_CONNECTED);
		for (int i = 0; i < 5; i++) {
			if (!(subset & 1u << i))
				continue;
			view.frontend = last = path[i];
			for (enum xenbus_action action = xenbus_next(&view);
			     action != XENBUS_NOTHING; action = xenbus_next(&view)) {
				released |= action == XENBUS_DISCONNECT;
				if (!action_apply(&view, action, XENBUS_INITIALISING, true))
					break;
			}
		}
		if (last == XENBUS_CLOSING)
			continue;
		if (!released)
			fail_msg("subset %#x keeps the old ring: %s", subset, view_text(&view));
		if (last == XENBUS_INITIALISING)
			assert_int_equal(view.own, XENBUS_INIT_WAIT);
		if (last >= XENBUS_INITIALISED && last <= XENBUS_CONNECTED)
			assert_int_equal(view.own, XENBUS_CONNECTED);
	}
}

/* libxl's destroy of a running guest: it writes 6 itself and removes the nodes (device_qemu_timeout()). */
static void destroy(void **state)
{
	struct xenbus_view view = fresh;

	(void)state;
	settle(&view);
	frontend_says(&view, XENBUS_CONNECTED, XENBUS_CONNECTED);
	view.online = false;
	view.backend = XENBUS_CLOSING;
	assert_int_equal(settle(&view), XENBUS_NOTHING);
	view.backend = XENBUS_CLOSED;
	assert_int_equal(settle(&view), XENBUS_VANISH);
}

/* A disk that cannot be attached to the ring: 5, then the frontend closes, and may try again. */
static void failed_connection(void **state)
{
	struct xenbus_view view = fresh;

	(void)state;
	settle(&view);
	view.frontend = XENBUS_INITIALISED;
	assert_int_equal(xenbus_next(&view), XENBUS_CONNECT);
	action_apply(&view, XENBUS_CONNECT, XENBUS_INITIALISING, false);
	assert_int_equal(view.own, XENBUS_CLOSING);
	assert_int_equal(settle(&view), XENBUS_NOTHING);
	frontend_says(&view, XENBUS_CLOSING, XENBUS_CLOSING);
	frontend_says(&view, XENBUS_CLOSED, XENBUS_CLOSED);
	frontend_says(&view, XENBUS_INITIALISING, XENBUS_INIT_WAIT);
	frontend_says(&view, XENBUS_INITIALISED, XENBUS_CONNECTED);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(xenbus_state_name(XENBUS_UNKNOWN), "Unknown");
	assert_string_equal(xenbus_state_name(XENBUS_CLOSED), "Closed");
	assert_string_equal(xenbus_state_name((enum xenbus_state)7), "unknown");
	assert_string_equal(xenbus_state_name((enum xenbus_state) - 1), "unknown");
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(every_view_comes_to_rest),
		cmocka_unit_test(life_with_reconnects),
		cmocka_unit_test(merged_reconnects),
		cmocka_unit_test(destroy),
		cmocka_unit_test(failed_connection),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
