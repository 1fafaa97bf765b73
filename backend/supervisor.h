/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The supervisor: one vbdisk process for each VBD of this backend domain.
 *
 * Owns: the list of VBDs and their processes.
 * Trusts / does not trust: the backend directories are the toolstack's, and trusted.
 * Runs on: vbdiskd's main thread; waits for xenstored only.
 * Must not know: rings, disks.
 */
#ifndef VBDISK_SUPERVISOR_H
#define VBDISK_SUPERVISOR_H

#include "backend/event-loop.h"
#include "error.h"
#include "xen-ops.h"
#include "xenstore/store.h"

#define SUPERVISOR_OPTIONS_MAX 64

struct supervisor_config {
	const char *vbdisk_path; /* the program to start */
	const char *run_dir;
	const char *loopback_dir;			 /* NULL: the hypervisor */
	const char *log_level;				 /* passed on */
	const char *vbd_options[SUPERVISOR_OPTIONS_MAX]; /* NAME=VALUE, passed on, in order */
	unsigned nr_vbd_options;
};

struct supervisor;

/* Watch the backend directories of our own domain, take up what is there: find running processes of an
 * earlier vbdiskd, start missing ones. @domains may be NULL: then the death of a domain is noticed from
 * its nodes alone. All stay the caller's. 0 or -errno with @error. */
int supervisor_create(struct loop *loop, struct store *store, struct xen_domains *domains,
		      const struct supervisor_config *config, struct supervisor **supervisor_out,
		      struct error *error);

/* How many VBDs have a process. */
unsigned supervisor_nr_processes(const struct supervisor *supervisor);

/* True if the connection to xenstore was lost (the loop is stopped then). */
bool supervisor_store_lost(const struct supervisor *supervisor);

/* Let go of everything; the processes go on serving. */
void supervisor_destroy(struct supervisor *supervisor);

#endif
