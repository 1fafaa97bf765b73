// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The supervisor's rules: what to do about a VBD which no process serves.
 *
 * Owns: the rules, as one function without side effects.
 * Trusts / does not trust: states are the toolstack's and our own processes'.
 * Runs on: any thread; never blocks.
 * Must not know: how to do what it decides.
 */
#include "config.h"

#include "backend/supervisor-rules.h"

enum supervisor_action supervisor_next(const struct supervisor_view *view)
{
	if (!view->exists)
		return SUPERVISOR_FORGET;
	switch (view->state) {
	case XENBUS_INITIALISING:
		return view->nr_failures < SUPERVISOR_MAX_FAILURES ? SUPERVISOR_START
								   : SUPERVISOR_CLOSE;
	case XENBUS_INIT_WAIT:
		/* Another backend's (a QEMU's) device, unless a process of ours died here. Before a
		 * frontend connects a new process can take it up. */
		if (!view->ours)
			return SUPERVISOR_NOTHING;
		return view->nr_failures < SUPERVISOR_MAX_FAILURES ? SUPERVISOR_START
								   : SUPERVISOR_CLOSE;
	case XENBUS_CLOSED:
		/* In a driver domain nobody else removes it. online stays 1 when a guest is destroyed. */
		return !view->in_dom0 && view->ours && (!view->online || view->frontend_closed)
			       ? SUPERVISOR_REMOVE
			       : SUPERVISOR_NOTHING;
	case XENBUS_CLOSING:
		/* Detached before anybody took it up: nobody else will write the 6 that libxl waits for. */
		return view->ours || (!view->online && !view->advertised) ? SUPERVISOR_CLOSE
									  : SUPERVISOR_NOTHING;
	default:
		/* The requests in its ring died with its process. */
		return view->ours ? SUPERVISOR_CLOSE : SUPERVISOR_NOTHING;
	}
}
