/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The xenstore nodes of one VBD: their names, and how each is read and written.
 *
 * Owns: the spelling of every key of xen/include/public/io/blkif.h and of libxl's additions that a block
 *   backend reads or writes, and the rule that a state is only ever written over the life it belongs to.
 * Trusts / does not trust: the backend directory is the toolstack's, and trusted; everything in the
 *   frontend directory is the guest's: range-checked, never believed.
 * Runs on: the process's main thread; waits for xenstored only.
 * Must not know: rings, grants, drivers.
 */
#ifndef VBDISK_VBD_NODES_H
#define VBDISK_VBD_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "xenstore/store.h"
#include "xenstore/xenbus-state.h"

/* Which VBD: backend/<kind>/<domid>/<devid> in the backend domain's home. */
struct vbd_address {
	char kind[16]; /* "qdisk", "vbd3" */
	uint32_t domid;
	uint32_t devid;
};

/* Parse the tail "backend/<kind>/<domid>/<devid>" of @path, absolute or relative, perhaps with more
 * components behind it (a watch event). 0 or -EINVAL. */
int vbd_address_parse(const char *path, struct vbd_address *address);

#define VBD_PATH_MAX 256

/* Where a VBD's nodes are. Filled by vbd_nodes_open(). */
struct vbd_nodes {
	struct store *store;
	struct vbd_address address;
	char backend[VBD_PATH_MAX];   /* absolute */
	char frontend[VBD_PATH_MAX];  /* absolute */
	char error_dir[VBD_PATH_MAX]; /* relative to our home, where kernel backends report, too */
};

/* Find the nodes of the VBD at @path ("backend/qdisk/3/51712" or absolute). 0 or -errno with @error:
 * -EINVAL (no such form), -ENOENT (no such VBD). */
int vbd_nodes_open(struct vbd_nodes *nodes, struct store *store, const char *path,
		   struct error *error);

/* Watch what xenbus_next() looks at; events carry any token. 0 or -errno. */
int vbd_nodes_watch(struct vbd_nodes *nodes);

/* Fill in @view what xenstore knows: backend_exists, backend, online, frontend. 0 or -errno (the
 * connection failed; missing nodes are no failure). */
int vbd_nodes_read_view(struct vbd_nodes *nodes, struct xenbus_view *view);

/* What the toolstack wants served. */
struct vbd_disk_spec {
	char params[STORE_VALUE_MAX]; /* "aio:/path" */
	bool writable;
	bool cdrom;
	bool removable;
	bool discard; /* discard-enable: 0 only where the toolstack forbids it */
};

/* 0 or -errno with @error. */
int vbd_nodes_read_disk(struct vbd_nodes *nodes, struct vbd_disk_spec *spec, struct error *error);

/* Where the frontend says its rings are. */
#define VBD_RING_PAGES_MAX 16
#define VBD_QUEUE_KEYS_MAX 16
struct vbd_queue_keys {
	uint32_t grefs[VBD_RING_PAGES_MAX];
	uint32_t event_channel;
};
struct vbd_ring_keys {
	bool has_protocol;
	char protocol[32];
	bool persistent; /* it knows persistent grants */
	unsigned order;	 /* 1 << order pages in each ring */
	unsigned nr_queues;
	struct vbd_queue_keys queues[VBD_QUEUE_KEYS_MAX];
};

/* What a frontend may ask for, at most. */
struct vbd_ring_limits {
	unsigned order;
	unsigned queues; /* 1..VBD_QUEUE_KEYS_MAX */
};

/* Read the frontend's keys, as one snapshot. Spellings: ring-ref; ring-page-order with ring-ref0..;
 * ring-page-order=0 with either; num-ring-pages in place of ring-page-order. With
 * multi-queue-num-queues of 2 and more, ring references and event channel are in queue-0/, queue-1/ ...
 * (blkif.h, "Multi-queue support"). 0, -EINVAL with @error for missing or impossible values. */
int vbd_nodes_read_ring(struct vbd_nodes *nodes, const struct vbd_ring_limits *limits,
			struct vbd_ring_keys *keys, struct error *error);

/* What is advertised to the frontend. */
struct vbd_features {
	struct vbd_ring_limits rings;
	uint64_t nr_sectors512;
	uint32_t sector_bytes;
	uint32_t physical_sector_bytes;
	unsigned max_indirect; /* segments; 0: none */
	bool flush, barrier, persistent, discard, discard_secure;
	uint32_t discard_granularity_bytes, discard_alignment_bytes;
};

/* Does another backend of this domain (blkback) serve the block device @major:@minor, in a way that does not
 * go with ours (@writable)? Its hotplug script leaves the number in `physical-device` (xen
 * docs/misc/block-scripts.txt). 0 with the path of its directory in @path; -ENOENT; -errno. */
int vbd_nodes_find_device(struct vbd_nodes *nodes, unsigned major, unsigned minor, bool writable,
			  char *path, size_t size);

/* Write all features and state InitWait, if the backend directory still asks for @spec and is still
 * this device's (state @expected). 0; -ESTALE if it is not; -errno. */
int vbd_nodes_advertise(struct vbd_nodes *nodes, const struct vbd_disk_spec *spec,
			const struct vbd_features *features, enum xenbus_state expected);

/* The ring is served: write state Connected over @own, with what depends on the ring or may have changed
 * since it was advertised (size, indirect segments). As vbd_nodes_set_state(). */
int vbd_nodes_connect(struct vbd_nodes *nodes, const struct vbd_features *features,
		      enum xenbus_state own);

/* The disk has another size: write it and, if @own is Connected, that state once more, at which frontends
 * look again (blkif.h has no node for it; Linux blkback_changed()). As vbd_nodes_set_state(). */
int vbd_nodes_resize(struct vbd_nodes *nodes, uint64_t nr_sectors512, enum xenbus_state own);

/* Write @state over @own, the one we wrote last. Never brings back a removed directory, and never
 * overwrites what the toolstack wrote to end this life: -ESTALE then. 0 or -errno. */
int vbd_nodes_set_state(struct vbd_nodes *nodes, enum xenbus_state state, enum xenbus_state own);

/* Leave @text where a person, and tools that know kernel backends, look for it:
 * error/backend/<kind>/<domid>/<devid>/error. 0 or -errno. */
int vbd_nodes_report_error(struct vbd_nodes *nodes, const char *text);

#endif
