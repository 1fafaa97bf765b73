/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What xl and libxl do to a block device, done to the loopback host.
 *
 * Owns: the nodes of domains and VBDs as libxl writes and removes them (names, values, order,
 *   permissions, transactions: Xen's tools/libs/light/libxl_disk.c and libxl_device.c).
 * Trusts / does not trust: what it reads below /libxl is its own; other nodes may hold anything.
 * Runs on: the thread of a command; waits for states by watches, at most for the time given.
 * Must not know: rings, grants.
 */
#ifndef VBDISK_LOOPBACK_TOOLSTACK_H
#define VBDISK_LOOPBACK_TOOLSTACK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"
#include "xen-ops.h"

#define TOOLSTACK_DOMID_MAX 0x7fefu

struct toolstack;

/* Connect to the host in @dir as domain 0 (sets XENSTORED_PATH of this process). 0, -errno. */
int toolstack_open(const char *dir, struct toolstack **toolstack_out, struct error *error);
void toolstack_close(struct toolstack *toolstack);

/* "xvda", "xvda1", "sdb", "hda", "d0p1", or a number, decimal or 0x...: the device's number (Xen's
 * docs/man/xen-vbd-interface.7). 0 or -EINVAL. */
int toolstack_vdev_parse(const char *text, uint32_t *vdev_out);

/* Create the domain, its nodes, and introduce it. With @driver_domain it may hold backends. */
int toolstack_domain_create(struct toolstack *toolstack, uint32_t domid, bool driver_domain,
			    struct error *error);

/* Close its VBDs as libxl does for a dead guest (qdisk: wait @grace_ms, write state 6; others: ask,
 * and wait for state 6 at most 10 s), remove its nodes and theirs, destroy it. With @keep_nodes
 * only the last. */
int toolstack_domain_destroy(struct toolstack *toolstack, uint32_t domid, bool keep_nodes,
			     unsigned grace_ms, struct error *error);

/* Shutdown with reason suspend, and back (suspend cancelled). */
int toolstack_domain_suspend(struct toolstack *toolstack, uint32_t domid, struct error *error);
int toolstack_domain_resume(struct toolstack *toolstack, uint32_t domid, struct error *error);
int toolstack_domain_state(struct toolstack *toolstack, uint32_t domid,
			   enum xen_domain_state *state_out, struct error *error);

struct toolstack_disk {
	uint32_t domid, backend_domid, vdev;
	const char *vdev_text; /* as the user wrote it */
	const char *kind;      /* "qdisk" or "vbd3" */
	const char *params;    /* "aio:/path" */
	bool writable, cdrom, direct_io_safe, no_discard;
};

/* Write the nodes of a new VBD. Waits for nobody. -EEXIST if there is one. */
int toolstack_attach(struct toolstack *toolstack, const struct toolstack_disk *disk,
		     struct error *error);

/* Ask the backend to close, wait for state 6, remove the nodes (of a backend in another domain:
 * wait until it removed them). -ETIMEDOUT: the nodes stay; with @force they go even so. */
int toolstack_detach(struct toolstack *toolstack, uint32_t domid, uint32_t vdev, bool force,
		     unsigned timeout_ms, struct error *error);

/* Wait until the VBD's backend (or frontend) has @state. -ETIMEDOUT. */
int toolstack_wait(struct toolstack *toolstack, uint32_t domid, uint32_t vdev, bool frontend,
		   unsigned state, unsigned timeout_ms, struct error *error);

/* Print the host's audit to @out. *@nr_findings_out: what is there beyond the base and the
 * processes of @ignored_pids. */
int toolstack_audit(struct toolstack *toolstack, FILE *out, bool json, const uint32_t *ignored_pids,
		    unsigned nr_ignored, unsigned *nr_findings_out, struct error *error);

/* Let the @nth next use of a grant fail, @count of them. */
int toolstack_refuse_grant(struct toolstack *toolstack, uint32_t nth, uint32_t count,
			   struct error *error);

/* End the host. */
int toolstack_stop(struct toolstack *toolstack, struct error *error);

#endif
