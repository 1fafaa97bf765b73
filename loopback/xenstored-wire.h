/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The xenstore server of the loopback host: messages, connections, watches.
 *
 * Owns: the sockets DIR/xenstored (domain 0) and DIR/xenstored-<domid>, their connections with
 * watches and transactions, the current tree. Trusts / does not trust: every byte may be hostile; a
 * malformed message ends its connection, nothing else. A guest that does not read its events is
 * disconnected. Runs on: the host's one thread, from its event loop; never blocks. Must not know:
 * grants, event channels, blkif.
 *
 * The protocol is that of xen/io/xs_wire.h and Xen's docs/misc/xenstore.txt, as C xenstored speaks
 * it.
 */
#ifndef VBDISK_XENSTORED_WIRE_H
#define VBDISK_XENSTORED_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/event-loop.h"
#include "error.h"

/* What a guest's connection may have (C xenstored's defaults). */
#define XENSTORED_QUOTA_WATCHES 128u
#define XENSTORED_QUOTA_TRANSACTIONS 10u

struct xenstored;

/* Serve @dir/xenstored from @loop. 0, or -errno with @error. */
int xenstored_start(struct loop *loop, const char *dir, struct xenstored **xenstored_out,
		    struct error *error);

/* Disconnect everybody, remove the sockets. NULL is fine. */
void xenstored_stop(struct xenstored *xenstored);

/* Open @dir/xenstored-@domid. 0 or -errno; fine if it is open. */
int xenstored_add_domain(struct xenstored *xenstored, uint32_t domid);

/* From now on the domain counts as introduced; fires @introduceDomain. */
void xenstored_introduce(struct xenstored *xenstored, uint32_t domid);

/* The domain stopped, or with @dead is gone: its socket and connections go. Fires @releaseDomain.
 */
void xenstored_release(struct xenstored *xenstored, uint32_t domid, bool dead);

/* Notice now which connections were closed by their other end. */
void xenstored_settle(struct xenstored *xenstored);

/* For the audit: one connection. */
struct xenstored_connection_info {
	uint32_t domid, pid;
	unsigned nr_watches, nr_transactions;
};

/* Call @show for each connection. */
void xenstored_connections(struct xenstored *xenstored,
			   void (*show)(void *arg, const struct xenstored_connection_info *info),
			   void *arg);

/* Nodes in all. */
unsigned xenstored_nr_nodes(struct xenstored *xenstored);

#endif
