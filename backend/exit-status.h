/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Exit statuses of vbdisk and vbdiskd: what a script, or vbdiskd, can tell from how a process ended.
 *
 * Owns: the numbers; the manual pages list the same.
 * Trusts / does not trust: nothing. Runs on: anywhere. Must not know: who exits.
 */
#ifndef VBDISK_EXIT_STATUS_H
#define VBDISK_EXIT_STATUS_H

enum vbdisk_exit {
	VBDISK_EXIT_OK = 0,	 /* the VBD's life ended as it should */
	VBDISK_EXIT_FAILURE = 1, /* the operating system refused something */
	VBDISK_EXIT_USAGE = 2,	 /* bad command line */
	VBDISK_EXIT_UNSERVABLE =
		3,		/* this disk cannot be served; the VBD was closed and says why */
	VBDISK_EXIT_NO_XEN = 4, /* no xenstore or no hypervisor to talk to */
	VBDISK_EXIT_TAKEN = 5,	/* another process serves this VBD (or is this daemon) already */
	VBDISK_EXIT_NOT_STARTABLE = 6, /* no such VBD, or one that is past its beginning */
};

#endif
