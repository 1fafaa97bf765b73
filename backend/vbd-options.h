/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What an administrator can choose about how a VBD is served: NAME=VALUE, given by `-o` for all disks, or
 * behind the target of one.
 *
 * Owns: the names, the ranges and the defaults.
 * Trusts / does not trust: the text comes from an administrator; every mistake is named.
 * Runs on: the main thread, at start; never blocks.
 * Must not know: how anything is done.
 */
#ifndef VBDISK_VBD_OPTIONS_H
#define VBDISK_VBD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

#define VBD_QUEUES_MAX 16

struct vbd_options {
	unsigned queues;	   /* offered to the guest, 1..VBD_QUEUES_MAX */
	unsigned workers;	   /* threads, at most; 0: the main thread serves */
	unsigned ring_order;	   /* offered; 1 << order pages */
	unsigned indirect;	   /* segments of an indirect request, at most; 0: not offered */
	bool indirect_chosen;	   /* by the administrator: not to be lowered */
	unsigned persistent;	   /* grants kept mapped per queue; 0: not offered */
	bool barrier;		   /* offer WRITE_BARRIER */
	bool discard;		   /* offer DISCARD where the storage has it */
	bool close_on_flush_error; /* else the VBD is held */
	bool native_sector;	   /* offer the storage's logical block, also when it is not 512 */
	unsigned resize_poll_s;	   /* look at the storage's size so often; 0: only when told to */
	uint64_t data_bytes;	   /* memory for data in flight per queue, at most */
};

/* Fill in the defaults, which depend on the number of CPUs. */
void vbd_options_init(struct vbd_options *options);

/* Take one "NAME=VALUE". 0 or -EINVAL with @error, which names the choices. */
int vbd_options_set(struct vbd_options *options, const char *text, struct error *error);

/* Take the options off the end of @params, which loses them: ",NAME=VALUE" as often as NAME is one of ours.
 * What is left is for a driver. A target which ends like that by nature is written with one more comma
 * behind it, which is taken off, too, and ends the options. 0 or -EINVAL with @error. */
int vbd_options_split(struct vbd_options *options, char *params, struct error *error);

/* A line per option, for --help and the manual. */
extern const char vbd_options_help[];

#endif
