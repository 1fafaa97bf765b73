/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What we ask of a hypervisor: grants, event channels, and whether a domain lives.
 *
 * Owns: struct xen_host and its operations. Two implementations: the hypervisor
 *   (backend/xen-hypervisor.c over libxengnttab and libxenevtchn), and the embedded loopback host
 *   (loopback/xen-loopback.c), on which every test runs without Xen.
 * Trusts / does not trust: a peer may revoke a grant, close a port or die at any moment; operations
 *   then fail with an errno, they never kill the process.
 * Runs on: a handle belongs to one thread at a time. Set-up operations may block for a hypercall's
 *   time, hot ones (copy, notify, pending, unmask) do not sleep.
 * Must not know: blkif, rings, xenstore.
 */
#ifndef VBDISK_XEN_OPS_H
#define VBDISK_XEN_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

/* Size of a granted page on the wire (xen/include/public/grant_table.h), whatever the host's page. */
#define XEN_PAGE_SIZE 4096u

enum xen_copy_direction {
	XEN_COPY_FROM_PEER, /* granted page -> local memory */
	XEN_COPY_TO_PEER,   /* local memory -> granted page */
};

/* One piece of a grant copy; lies within one granted page. */
struct xen_copy {
	void *local;
	uint32_t gref;
	uint16_t offset_bytes; /* in the granted page; offset + len <= XEN_PAGE_SIZE */
	uint16_t len_bytes;
	int status; /* out: 0 or -errno, for this piece alone */
};

struct xen_host;

struct xen_host_ops {
	/* --- Backend side: somebody else's grants, somebody else's ports --- */

	/* Map @nr grants of domain @domid, in order, into one contiguous local range of @nr *
	 * XEN_PAGE_SIZE bytes. All or nothing: 0 with *@addr_out, or -errno. */
	int (*map)(struct xen_host *host, uint32_t domid, const uint32_t *grefs, unsigned nr,
		   bool writable, void **addr_out);

	/* Undo one map() whole: the same @addr and @nr. 0 or -errno. */
	int (*unmap)(struct xen_host *host, void *addr, unsigned nr);

	/* Announce that copy() will be called with up to @nr_max pieces: all memory is taken here.
	 * 0 or -ENOMEM. */
	int (*copy_reserve)(struct xen_host *host, unsigned nr_max);

	/* Perform @nr copies in one call. 0: look at each piece's status (a piece that was not attempted
	 * is failed, never 0). -errno: the whole call failed, every status is set too. */
	int (*copy)(struct xen_host *host, uint32_t domid, enum xen_copy_direction direction,
		    struct xen_copy *pieces, unsigned nr);

	/* Bind to @remote_port of @domid; *@port_out is ours, pending once right after the bind. */
	int (*bind)(struct xen_host *host, uint32_t domid, uint32_t remote_port,
		    uint32_t *port_out);

	/* --- Frontend side: our own pages and ports, offered to a peer (vbdisk-front) --- */

	/* Share @nr fresh zeroed pages with @domid: one contiguous local range in *@addr_out, their
	 * references in @grefs_out[nr]. 0 or -errno. */
	int (*share)(struct xen_host *host, uint32_t domid, unsigned nr, bool writable,
		     uint32_t *grefs_out, void **addr_out);

	/* Revoke and free one share() whole. 0 or -errno. */
	int (*unshare)(struct xen_host *host, void *addr, unsigned nr);

	/* A new port that @domid may bind to. 0 or -errno. */
	int (*alloc_unbound)(struct xen_host *host, uint32_t domid, uint32_t *port_out);

	/* --- Both sides: ports --- */

	/* Close a port got from bind() or alloc_unbound(). 0 or -errno. */
	int (*unbind)(struct xen_host *host, uint32_t port);

	/* Send an event through @port. 0 or -errno. */
	int (*notify)(struct xen_host *host, uint32_t port);

	/* Descriptor that is readable while a port is pending. Owned by the host handle. */
	int (*poll_fd)(struct xen_host *host);

	/* The next pending port, which is masked until unmask(). 0, -EAGAIN if there is none, -errno. */
	int (*pending)(struct xen_host *host, uint32_t *port_out);

	/* Let @port fire again. Look at the ring after this, not only before. 0 or -errno. */
	int (*unmask)(struct xen_host *host, uint32_t port);

	/* Release the handle and whatever is still mapped, shared or bound through it. */
	void (*close)(struct xen_host *host);
};

struct xen_host {
	const struct xen_host_ops *ops;
};

/* Open the real hypervisor's devices (/dev/xen/gntdev, gntalloc, evtchn). Each device is opened when
 * the first operation needs it, except that a backend (@backend true) opens gntdev and evtchn at
 * once, so that missing ones are reported now. 0 or -errno with @error. */
int xen_hypervisor_open(bool backend, struct xen_host **host_out, struct error *error);

/* Connect to the loopback host that runs in directory @dir as domain @domid (0 for a backend in
 * dom0). 0 or -errno with @error. */
int xen_loopback_open(const char *dir, uint32_t domid, struct xen_host **host_out,
		      struct error *error);

/* --- Whether a domain lives: asked by vbdiskd, on @releaseDomain --- */

enum xen_domain_state {
	XEN_DOMAIN_RUNNING,   /* alive, whatever its vCPUs do; also paused */
	XEN_DOMAIN_SUSPENDED, /* shut down with reason suspend: its image is about to move */
	XEN_DOMAIN_DEAD,      /* crashed, dying or gone: nothing will use its grants again */
};

struct xen_domains;

struct xen_domains_ops {
	/* 0 with *@state_out, or -errno if the host cannot say. */
	int (*state)(struct xen_domains *domains, uint32_t domid, enum xen_domain_state *state_out);
	void (*close)(struct xen_domains *domains);
};

struct xen_domains {
	const struct xen_domains_ops *ops;
};

/* libxenctrl's view (backend/xen-domains.c). -errno with @error where it does not match the running
 * hypervisor's interface version. */
int xen_hypervisor_domains_open(struct xen_domains **domains_out, struct error *error);

/* The loopback host's view. */
int xen_loopback_domains_open(const char *dir, struct xen_domains **domains_out,
			      struct error *error);

#endif
