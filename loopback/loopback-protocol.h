/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the loopback host and its clients agree on: control messages and the layout of shared
 * memory.
 *
 * Owns: the messages of DIR/hypervisor (one SOCK_SEQPACKET packet each way per call), the layout of
 * a domain's arena (grant table and pages) and of the event memory (port states, fault knob).
 * Trusts / does not trust: shared memory may be scribbled on by any client; a reader can then see a
 *   wrong event or wrong data, but never leave the memory it mapped (all indices are checked, sizes
 *   are sealed).
 * Runs on: both ends. Must not know: xenstore, blkif.
 *
 * Both ends come from one build on one machine, so messages are plain structs in native byte order.
 */
#ifndef VBDISK_LOOPBACK_PROTOCOL_H
#define VBDISK_LOOPBACK_PROTOCOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "xen-ops.h"

#define LOOPBACK_SOCKET "hypervisor"
#define LOOPBACK_DOMID_MAX 0x7fefu /* below DOMID_FIRST_RESERVED of xen/include/public/xen.h */
#define LOOPBACK_MAP_MAX 4096u	   /* grants in one map() */
#define LOOPBACK_FDS_MAX 2u

/* The first member of each call is the operation; what the others mean:
 *
 * operation        request                              reply (status is 0 or -errno)
 * HELLO            domid: who calls; flag: wants events descriptors: event memory, own wake eventfd
 * GOODBYE          -                                    everything of this client is released
 * MAP              domid, nr, flag: writable, grefs[nr] id; descriptor: the domain's arena
 * UNMAP            id                                   -
 * ARENA            domid                                descriptor: the domain's arena
 * SHARE            domid: with whom, nr, flag: writable id, value: first of nr grefs; descriptor:
 * arena UNSHARE          id                                   - ALLOC_UNBOUND    domid: who may
 * bind                  value: port BIND             domid, id: remote port               value:
 * port UNBIND           id: port                             - PORT_PEER        id: port id:
 * generation, value: peer's port or 0; descriptor with a peer: its wake eventfd DOMAIN_STATE domid
 * value: enum xen_domain_state DOMAIN_CREATE    domid                                -
 * DOMAIN_INTRODUCE domid                                - (xenstore fires @introduceDomain)
 * DOMAIN_SUSPEND   domid                                - (xenstore fires @releaseDomain)
 * DOMAIN_RESUME    domid                                -
 * DOMAIN_DESTROY   domid                                - (xenstore fires @releaseDomain)
 * REFUSE_GRANT     id: the n-th next, nr: how many      -
 * AUDIT            flag: as JSON, nr, grefs[nr]: pids   value: findings; descriptor: the text
 *                  whose connections are no finding
 * STOP             -                                    the host ends after this reply
 */
enum loopback_operation {
	LOOPBACK_HELLO = 1,
	LOOPBACK_GOODBYE,
	LOOPBACK_MAP,
	LOOPBACK_UNMAP,
	LOOPBACK_ARENA,
	LOOPBACK_SHARE,
	LOOPBACK_UNSHARE,
	LOOPBACK_ALLOC_UNBOUND,
	LOOPBACK_BIND,
	LOOPBACK_UNBIND,
	LOOPBACK_PORT_PEER,
	LOOPBACK_DOMAIN_STATE,
	LOOPBACK_DOMAIN_CREATE,
	LOOPBACK_DOMAIN_INTRODUCE,
	LOOPBACK_DOMAIN_SUSPEND,
	LOOPBACK_DOMAIN_RESUME,
	LOOPBACK_DOMAIN_DESTROY,
	LOOPBACK_REFUSE_GRANT,
	LOOPBACK_AUDIT,
	LOOPBACK_STOP,
};

struct loopback_request {
	uint32_t operation;
	uint32_t domid;
	uint32_t id;
	uint32_t nr;
	uint32_t flag;
	uint32_t grefs[]; /* nr of them, for MAP and AUDIT only */
};

struct loopback_reply {
	int32_t status;
	uint32_t id;
	uint32_t value;
	uint32_t nr_fds; /* descriptors that travel with this packet */
};

/* --- A domain's arena: a sealed memfd --- */

#define LOOPBACK_NR_GREFS 32768u /* what a domain of real Xen can grant with 64 table frames */
#define LOOPBACK_FIRST_GREF 8u	 /* 0..7 are reserved, as in Xen */

#define LOOPBACK_GRANT_VALID 1u
#define LOOPBACK_GRANT_WRITABLE 2u
#define LOOPBACK_GRANT_PEER_SHIFT 16 /* the domain that may use it, above the flags */

/* Head of the arena; the page of gref N follows at LOOPBACK_ARENA_HEAD_BYTES + N * XEN_PAGE_SIZE.
 * Written by the host only. */
struct loopback_arena {
	_Atomic uint32_t dead; /* the domain is gone; a new one of this number has another arena */
	uint8_t pad[XEN_PAGE_SIZE - sizeof(uint32_t)];
	_Atomic uint32_t grants[LOOPBACK_NR_GREFS];
};

#define LOOPBACK_ARENA_HEAD_BYTES sizeof(struct loopback_arena)
#define LOOPBACK_ARENA_BYTES (LOOPBACK_ARENA_HEAD_BYTES + (size_t)LOOPBACK_NR_GREFS * XEN_PAGE_SIZE)

_Static_assert(LOOPBACK_ARENA_HEAD_BYTES % XEN_PAGE_SIZE == 0,
	       "granted pages must be page aligned");

/* Where the page of @gref begins within the arena. */
static inline size_t loopback_page_offset(uint32_t gref)
{
	return LOOPBACK_ARENA_HEAD_BYTES + (size_t)gref * XEN_PAGE_SIZE;
}

/* --- The event memory: one sealed memfd for the whole host --- */

#define LOOPBACK_NR_PORTS 4096u /* port 0 is never used */

#define LOOPBACK_PORT_PENDING 1u
#define LOOPBACK_PORT_MASKED 2u

/* A port of its own cache line: two queues never share one. */
struct loopback_port {
	_Atomic uint32_t state;	     /* PENDING by the sender, MASKED by the owner */
	_Atomic uint32_t generation; /* moved on by the host whenever the peer changes */
	uint8_t pad[64 - 2 * sizeof(uint32_t)];
};

struct loopback_events {
	/* The fault knob: while refuse_left > 0, uses of a grant count refuse_countdown down; from
	 * 1 on they are refused. */
	_Atomic int32_t refuse_countdown;
	_Atomic int32_t refuse_left;
	uint8_t pad[64 - 2 * sizeof(int32_t)];
	struct loopback_port ports[LOOPBACK_NR_PORTS];
};

/* Whether this use of a grant is one that the fault knob refuses. Any process; never blocks. */
static inline bool loopback_grant_refused(struct loopback_events *events)
{
	if (atomic_load_explicit(&events->refuse_left, memory_order_relaxed) <= 0)
		return false;
	if (atomic_fetch_sub(&events->refuse_countdown, 1) > 1)
		return false;
	return atomic_fetch_sub(&events->refuse_left, 1) > 0;
}

/* Fill @address with the path "@dir/@name". 0 or -ENAMETOOLONG. */
int loopback_address(const char *dir, const char *name, struct sockaddr_un *address);

/* One call: send @request with its @request->nr grefs where the operation has them, wait for
 * *@reply. Received descriptors go to @fds[0..LOOPBACK_FDS_MAX), -1 where there is none; the caller
 * closes them. 0 or the reply's status, or -ENOTCONN if the host is gone, -errno. Blocks until the
 * host answers. */
int loopback_call(int socket_fd, const struct loopback_request *request,
		  struct loopback_reply *reply, int fds[LOOPBACK_FDS_MAX]);

/* Connect to the host in @dir and say that we are domain @domid; with @wants_events fds[0] is the
 * event memory, fds[1] the eventfd that wakes us. The control socket, or -errno with @error. */
int loopback_hello(const char *dir, uint32_t domid, bool wants_events, int fds[LOOPBACK_FDS_MAX],
		   struct error *error);

#endif
