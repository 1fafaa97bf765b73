// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The xenbus state table of a block backend: from what both ends say to what is to be done.
 *
 * Owns: the rules, as one function without side effects.
 * Trusts / does not trust: the frontend's state is whatever a guest wrote.
 * Runs on: any thread; never blocks.
 * Must not know: how to do what it decides.
 */
#include "config.h"

#include "xenstore/xenbus-state.h"

/* Rules that come from our own directory: the toolstack speaks there. */
static bool toolstack_rules(const struct xenbus_view *view, enum xenbus_action *action)
{
	if (!view->backend_exists) {
		*action = XENBUS_VANISH;
		return true;
	}
	/* The same path with a fresh device in it: the next generation, which is another process's. */
	if (view->backend == XENBUS_INITIALISING && view->own != XENBUS_INITIALISING) {
		*action = XENBUS_VANISH;
		return true;
	}
	/* libxl gave up waiting for us, or destroys the domain: it removes the nodes next. */
	if (view->backend == XENBUS_CLOSED && view->own != XENBUS_CLOSED) {
		*action = XENBUS_VANISH;
		return true;
	}
	return false;
}

/* The toolstack has asked for the end (online=0): a frontend that may still close by itself is waited
 * for, any other is not. Before we have advertised anything, and once we are Closed, there is nothing
 * that a frontend could close. */
static bool frontend_may_close(const struct xenbus_view *view)
{
	return view->frontend >= XENBUS_INIT_WAIT && view->frontend <= XENBUS_CLOSING &&
	       view->own != XENBUS_INITIALISING && view->own != XENBUS_CLOSED;
}

/* The frontend begins: for the first time; or a new kernel, or the next boot stage, on the same device. */
static enum xenbus_action frontend_begins(const struct xenbus_view *view)
{
	if (view->own == XENBUS_INITIALISING)
		return XENBUS_ADVERTISE;
	if (!view->online)
		return XENBUS_NOTHING;
	/* It was Closing, and has been Closed before we looked again. */
	if (view->own == XENBUS_CLOSING)
		return XENBUS_DISCONNECT;
	return view->own == XENBUS_CLOSED && view->backend == XENBUS_CLOSED ? XENBUS_ADVERTISE
									    : XENBUS_NOTHING;
}

/* The frontend offers a ring. */
static enum xenbus_action frontend_offers(const struct xenbus_view *view)
{
	if (view->own == XENBUS_INITIALISING)
		return XENBUS_ADVERTISE;
	if (!view->online)
		return XENBUS_NOTHING;
	/* The ring we serve is the one from before its Closing; it has come back since we looked. */
	if (view->ring_attached && view->own == XENBUS_CLOSING)
		return XENBUS_DISCONNECT;
	/* A ring that could not be taken up is not tried again until the frontend has closed, and none is
	 * taken up over a state that somebody else wrote (the toolstack's 5). */
	if (view->ring_attached || view->own == XENBUS_CONNECTED || view->own == XENBUS_CLOSING ||
	    view->backend != view->own)
		return XENBUS_NOTHING;
	return XENBUS_CONNECT;
}

enum xenbus_action xenbus_next(const struct xenbus_view *view)
{
	enum xenbus_action action;

	if (toolstack_rules(view, &action))
		return action;
	if (!view->online && (view->backend == XENBUS_CLOSING || view->backend == XENBUS_CLOSED) &&
	    !frontend_may_close(view))
		return XENBUS_FINISH;

	switch (view->frontend) {
	case XENBUS_INITIALISING:
		return frontend_begins(view);
	case XENBUS_INITIALISED:
	case XENBUS_CONNECTED:
		return frontend_offers(view);
	case XENBUS_CLOSING:
		/* The disk is opened first, whatever a frontend says: it may come back without our seeing
		 * it begin. */
		if (view->own == XENBUS_INITIALISING)
			return XENBUS_ADVERTISE;
		/* Linux frontends still finish I/O in this state. */
		return view->own == XENBUS_CLOSING || view->own == XENBUS_CLOSED ? XENBUS_NOTHING
										 : XENBUS_CLOSE;
	case XENBUS_CLOSED:
		if (!view->online)
			return XENBUS_FINISH;
		if (view->own == XENBUS_INITIALISING)
			return XENBUS_ADVERTISE;
		return view->own == XENBUS_CLOSED ? XENBUS_NOTHING : XENBUS_DISCONNECT;
	default:
		return view->own == XENBUS_INITIALISING ? XENBUS_ADVERTISE : XENBUS_NOTHING;
	}
}

const char *xenbus_state_name(enum xenbus_state state)
{
	static const char *const names[] = {"Unknown",	 "Initialising", "InitWait", "Initialised",
					    "Connected", "Closing",	 "Closed"};

	return state <= XENBUS_CLOSED ? names[state] : "unknown";
}
