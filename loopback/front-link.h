/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A frontend's link to one backend: the shared rings with their grants and event channels.
 *
 * Owns: the rings' pages, the ports, pages of data shared with the backend.
 * Trusts / does not trust: a backend under test, which may never answer.
 * Runs on: one thread; only front_link_wait() and front_link_take() wait, in epoll, never in a loop.
 * Must not know: xenstore, jobs.
 */
#ifndef VBDISK_FRONT_LINK_H
#define VBDISK_FRONT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/event-loop.h"
#include "error.h"
#include "loopback/front-ring.h"
#include "xen-ops.h"

#define FRONT_RING_PAGES_MAX (1u << BLKIF_RING_ORDER_MAX)

#define FRONT_QUEUES_MAX 16

/* One ring, with its own event channel (blkif.h, "Multi-queue support"). */
struct front_queue {
	struct front_ring ring;
	void *ring_pages;
	uint32_t grefs[FRONT_RING_PAGES_MAX];
	uint32_t port;
};

struct front_link {
	struct loop *loop;     /* the caller's */
	struct xen_host *host; /* the caller's */
	uint32_t peer;	       /* the backend's domain */
	bool open;
	unsigned nr_ring_pages; /* of each ring */
	unsigned nr_queues;
	struct front_queue queues[FRONT_QUEUES_MAX];
	struct loop_watch watch;

	/* Set from outside while a job runs: end in order; and: no more answers will come. */
	bool stop, peer_gone;

	/* Over all lives of the link. */
	uint64_t nr_notified, nr_events;
};

/* Pages shared with the backend, for data. */
struct front_pages {
	uint8_t *addr;
	uint32_t *grefs;
	unsigned nr;
};

/* Share the pages of @nr_queues rings, make ports that @peer may bind to, watch them in @loop. @link is
 * zeroed before its first life; @loop and @host outlive it. 0 or -errno with @error. */
int front_link_open(struct front_link *link, struct loop *loop, struct xen_host *host,
		    uint32_t peer, const struct blkif_abi *abi, unsigned order, unsigned nr_queues,
		    struct error *error);

/* Give it all up. Idempotent. 0, or the first -errno with @error: a page that cannot be revoked is
 * still in use by the backend. */
int front_link_close(struct front_link *link, struct error *error);

/* Publish what was put into the rings, and notify the backend where it asked for that. 0 or -errno. */
int front_link_kick(struct front_link *link);

/* Notify the backend about queue @idx, asked for or not. 0 or -errno. */
int front_link_notify(struct front_link *link, unsigned idx);

/* Sleep until something happens in the loop (an event from the backend, a xenstore event, a signal) or
 * @deadline_ns of clock_now_ns() has passed. 0, -ETIMEDOUT, -errno. */
int front_link_wait(struct front_link *link, uint64_t deadline_ns);

/* Take the next answer from the first ring, sleeping until @deadline_ns for it. 0, -ETIMEDOUT, -EPROTO, -ENOTCONN if the
 * backend has left, -errno. */
int front_link_take(struct front_link *link, struct front_response *response, uint64_t deadline_ns);

/* Share @nr zeroed pages with the backend. 0 or -errno with @error. */
int front_pages_share(struct front_link *link, unsigned nr, bool writable,
		      struct front_pages *pages, struct error *error);

/* Revoke and free @pages; idempotent. 0 or -errno. */
int front_pages_revoke(struct front_link *link, struct front_pages *pages);

#endif
