/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The xenbus state table of a block backend: from what both ends say to what is to be done.
 *
 * Owns: the rules, as one function without side effects.
 * Trusts / does not trust: the frontend's state is whatever a guest wrote; anything unknown counts as
 *   "no news".
 * Runs on: any thread; never blocks.
 * Must not know: how to do what it decides.
 *
 * Source of the rules: what xen-blkback (drivers/block/xen-blkback/xenbus.c, frontend_changed()) and
 * QEMU (hw/xen/xen-bus.c) agree on; states are enum xenbus_state of xen/include/public/io/xenbus.h.
 */
#ifndef VBDISK_XENBUS_STATE_H
#define VBDISK_XENBUS_STATE_H

#include <stdbool.h>

enum xenbus_state {
	XENBUS_UNKNOWN = 0,
	XENBUS_INITIALISING = 1,
	XENBUS_INIT_WAIT = 2,
	XENBUS_INITIALISED = 3,
	XENBUS_CONNECTED = 4,
	XENBUS_CLOSING = 5,
	XENBUS_CLOSED = 6,
};

/* What xenstore says now, and what we know ourselves. */
struct xenbus_view {
	bool backend_exists;	    /* our `state` node is there */
	enum xenbus_state backend;  /* its value */
	enum xenbus_state own;	    /* the value that we wrote last */
	bool online;		    /* the toolstack wants the device to exist */
	enum xenbus_state frontend; /* XENBUS_CLOSED if its node is missing */
	bool ring_attached;	    /* we have the guest's ring */
};

enum xenbus_action {
	XENBUS_NOTHING,
	XENBUS_ADVERTISE,  /* write the features and state 2: ready for a frontend */
	XENBUS_CONNECT,	   /* read the frontend's keys, attach its ring, write state 4 */
	XENBUS_CLOSE,	   /* write state 5, and go on serving */
	XENBUS_DISCONNECT, /* let go of the ring, write state 6, stay for the next frontend */
	XENBUS_FINISH,	   /* let go of the ring, write state 6, and end */
	XENBUS_VANISH, /* let go of the ring, write nothing, and end: the nodes are gone, or belong
			    * to the toolstack or to the next generation of this device */
};

/* What to do next. After doing it the caller looks again. */
enum xenbus_action xenbus_next(const struct xenbus_view *view);

const char *xenbus_state_name(enum xenbus_state state);

#endif
