/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The xenbus side of a frontend: finds its VBD, connects and disconnects as Linux' blkfront does.
 *
 * Owns: the frontend's nodes in xenstore, the states it writes, the link while it is connected.
 * Trusts / does not trust: a backend under test, which may refuse, vanish, or never move.
 * Runs on: one thread; connect and disconnect sleep until the backend moves, or time is up.
 * Must not know: jobs, hostile rows.
 *
 *   FE 1, BE 2   share ring, make port, write keys and state 3 in one transaction
 *   BE 4         read the disk's properties, state 4
 *   ...
 *   state 5, BE 5 or 6, state 6, BE 6: only now has the backend let go; revoke and close
 *
 * Errors: -ECONNREFUSED the backend does not want to connect; -ETIMEDOUT; others as they come. Every one
 * comes with a text that names both ends' states.
 */
#ifndef VBDISK_FRONT_CONNECT_H
#define VBDISK_FRONT_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "loopback/front-link.h"
#include "xenstore/store.h"
#include "xenstore/xenbus-state.h"

#define FRONT_PATH_MAX 512

/* How the ring's grants are spelled in xenstore. */
enum front_spelling {
	FRONT_SPELLING_AUTO, /* ring-ref for one page, else ring-page-order and ring-ref0 ... */
	FRONT_SPELLING_REF0, /* ring-page-order always, ring-ref0 also for one page (Linux' way) */
	FRONT_SPELLING_REF,  /* ring-page-order 0 with ring-ref */
	FRONT_SPELLING_NUM_PAGES, /* num-ring-pages and ring-ref0 ... */
};

struct front_connect_config {
	unsigned vdev;
	unsigned ring_order;
	unsigned nr_queues;
	bool persistent; /* say that we keep our grants */
	enum front_spelling spelling;
	const char *protocol; /* text of the node; NULL: no node */
	uint64_t timeout_ns;  /* for each wait */
	/* One more key, written last; or, without a value, one that is left out. NULL: none. */
	const char *odd_key, *odd_value;
};

/* What the backend says about its disk. */
struct front_disk {
	uint64_t nr_sectors512;
	uint64_t sector_bytes;
	uint64_t info;
	bool flush, barrier, discard, discard_secure, persistent;
	uint64_t max_indirect_segments; /* 0: not offered */
	uint64_t discard_granularity_bytes, discard_alignment_bytes;
	uint64_t max_queues; /* 1: multi-queue is not offered */
};
#define FRONT_INFO_READONLY 4u /* blkif.h VDISK_READONLY */

struct front {
	struct front_link link;
	struct loop *loop;
	struct store *store;
	struct xen_host *host;
	struct front_connect_config config;
	char frontend[FRONT_PATH_MAX]; /* relative to our own domain */
	char backend[FRONT_PATH_MAX];
	uint32_t backend_domid;
	enum xenbus_state own;		 /* the state we wrote last */
	enum xenbus_state backend_state; /* as last seen; Closed when the node is missing */
	bool connected;
	struct loop_watch store_watch;
	struct front_disk disk;
	unsigned nr_resizes; /* of the disk, since we connected */
	uint64_t connect_us; /* how long the last front_connect() took */
};

/* Find the VBD @config->vdev of our own domain and watch its backend. @loop, @store and @host are the
 * caller's and outlive @front. 0 or -errno with @error. */
int front_open(struct front *front, struct loop *loop, struct store *store, struct xen_host *host,
	       const struct front_connect_config *config, struct error *error);

/* Connect, first resetting a device that an earlier frontend left behind. May be called again after
 * front_disconnect(). 0 or -errno with @error; front_disconnect() is due in both cases. */
int front_connect(struct front *front, struct error *error);

/* Close in order and let go of everything. Idempotent. 0 or -errno with @error; grants and port are
 * given up in any case. */
int front_disconnect(struct front *front, struct error *error);

/* Stop watching. After front_disconnect(). */
void front_close(struct front *front);

/* "xvda", "xvdb1", "51712" -> V (xen-vbd-interface(7)). 0 or -EINVAL. */
int front_vdev_parse(const char *text, unsigned *vdev_out);

#endif
