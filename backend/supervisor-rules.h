/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The supervisor's rules: what to do about a VBD which no process serves.
 *
 * Owns: the rules, as one function without side effects.
 * Trusts / does not trust: states are the toolstack's and our own processes'.
 * Runs on: any thread; never blocks.
 * Must not know: how to do what it decides.
 */
#ifndef VBDISK_SUPERVISOR_RULES_H
#define VBDISK_SUPERVISOR_RULES_H

#include "xenstore/xenbus-state.h"

/* Starts that ended without bringing the VBD on; after these it is closed. */
#define SUPERVISOR_MAX_FAILURES 5

struct supervisor_view {
	bool exists;		 /* the backend directory is there */
	enum xenbus_state state; /* what it says */
	bool online;
	bool frontend_closed; /* the frontend is Closed, or its nodes are gone */
	bool advertised;      /* some backend has offered the disk: its `sectors` are there */
	bool ours;	      /* a process of ours has served it before */
	bool in_dom0;	      /* libxl removes the directory there, and only there */
	unsigned nr_failures;
};

enum supervisor_action {
	SUPERVISOR_NOTHING,
	SUPERVISOR_START, /* start a process */
	SUPERVISOR_CLOSE, /* say why, write state 6: the guest must not wait for a disk that is lost */
	SUPERVISOR_REMOVE, /* remove the backend directory (driver domains) */
	SUPERVISOR_FORGET, /* the VBD is gone */
};

enum supervisor_action supervisor_next(const struct supervisor_view *view);

#endif
