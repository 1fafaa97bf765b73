/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The rings of one frontend: from its keys in xenstore to queues that serve them.
 *
 * Owns: a host handle per ring, and the queues.
 * Trusts / does not trust: nothing of what the frontend says.
 * Runs on: the main thread; makes hypercalls and takes memory, does not wait for storage.
 * Must not know: xenbus states.
 */
#ifndef VBDISK_RINGS_H
#define VBDISK_RINGS_H

#include "backend/queue-set.h"
#include "backend/vbd-options.h"
#include "backend/vbd.h"
#include "xen-ops.h"
#include "xenstore/vbd-nodes.h"

struct rings {
	struct queue_set *queues; /* NULL while no ring is attached */
	struct xen_host *hosts[VBD_QUEUES_MAX];
	unsigned nr_hosts;
	unsigned max_indirect; /* segments this frontend should be told of; 0: none */
	char description[128]; /* for the log */
};

/* Read the frontend's keys, attach all its rings to @disk, and begin to serve them; @features and
 * @offered are what it was offered. Everything passed stays the caller's. 0; -errno with @error: an
 * impossible key, a grant or port that is none, out of memory; nothing is attached then. */
int rings_attach(struct rings *rings, struct loop *loop, struct vbd_nodes *nodes,
		 const struct vbd_config *config, const struct vbd_features *features,
		 struct disk *disk, const struct disk_limits *offered,
		 const struct queue_set_events *events, struct error *error);

/* Free everything; the queues are drained. Idempotent. */
void rings_release(struct rings *rings);

#endif
