// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * struct xen_host over the real hypervisor: libxengnttab and libxenevtchn.
 *
 * Owns: the handles on /dev/xen/gntdev, gntalloc and evtchn; the only use of those two libraries.
 * Trusts / does not trust: the libraries' return values; a peer may fail any operation.
 * Runs on: one thread per handle; set-up operations make hypercalls, none sleeps.
 * Must not know: blkif, rings, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xenevtchn.h>
#include <xengnttab.h>
#include <xen/grant_table.h>

#include "container.h"
#include "xen-ops.h"

struct hypervisor {
	struct xen_host host;
	xengnttab_handle *gnttab; /* others' grants */
	xengntshr_handle *gntshr; /* our own; opened when first used */
	xenevtchn_handle *evtchn;
	xengnttab_grant_copy_segment_t *segments; /* nr_segments, from copy_reserve() */
	unsigned nr_segments;
};

static struct hypervisor *to_hypervisor(struct xen_host *host)
{
	return container_of(host, struct hypervisor, host);
}

/* The libraries report by errno; a failure must never turn into 0. */
static int error_from_errno(void)
{
	return errno ? -errno : -EIO;
}

static int hypervisor_map(struct xen_host *host, uint32_t domid, const uint32_t *grefs, unsigned nr,
			  bool writable, void **addr_out)
{
	struct hypervisor *xen = to_hypervisor(host);
	void *addr;

	/* The library takes the references without const, and does not write to them. */
	addr = xengnttab_map_domain_grant_refs(xen->gnttab, nr, domid, (uint32_t *)(uintptr_t)grefs,
					       PROT_READ | (writable ? PROT_WRITE : 0));
	if (!addr)
		return error_from_errno();
	*addr_out = addr;
	return 0;
}

static int hypervisor_unmap(struct xen_host *host, void *addr, unsigned nr)
{
	return xengnttab_unmap(to_hypervisor(host)->gnttab, addr, nr) ? error_from_errno() : 0;
}

static int hypervisor_copy_reserve(struct xen_host *host, unsigned nr_max)
{
	struct hypervisor *xen = to_hypervisor(host);
	xengnttab_grant_copy_segment_t *segments;

	if (nr_max <= xen->nr_segments)
		return 0;
	segments = realloc(xen->segments, nr_max * sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	xen->segments = segments;
	xen->nr_segments = nr_max;
	return 0;
}

/* xen/include/public/grant_table.h GNTST_* */
static int error_from_grant_status(int16_t status)
{
	switch (status) {
	case GNTST_okay:
		return 0;
	case GNTST_bad_domain:
		return -ESRCH;
	case GNTST_bad_gntref:
		return -EINVAL;
	case GNTST_permission_denied:
		return -EACCES;
	case GNTST_bad_page:
	case GNTST_bad_copy_arg:
		return -EFAULT;
	default:
		return -EIO;
	}
}

static void segment_fill(xengnttab_grant_copy_segment_t *segment, const struct xen_copy *piece,
			 uint32_t domid, enum xen_copy_direction direction)
{
	*segment = (xengnttab_grant_copy_segment_t){
		.len = piece->len_bytes,
		.flags = direction == XEN_COPY_FROM_PEER ? GNTCOPY_source_gref : GNTCOPY_dest_gref,
		/* What a segment says which the kernel never reached. */
		.status = GNTST_general_error,
	};
	union xengnttab_copy_ptr *peer = direction == XEN_COPY_FROM_PEER ? &segment->source
									 : &segment->dest;
	union xengnttab_copy_ptr *local = direction == XEN_COPY_FROM_PEER ? &segment->dest
									  : &segment->source;

	peer->foreign.ref = piece->gref;
	peer->foreign.offset = piece->offset_bytes;
	peer->foreign.domid = (uint16_t)domid;
	local->virt = piece->local;
}

static int hypervisor_copy(struct xen_host *host, uint32_t domid, enum xen_copy_direction direction,
			   struct xen_copy *pieces, unsigned nr)
{
	struct hypervisor *xen = to_hypervisor(host);
	int err = 0;

	if (nr > xen->nr_segments)
		err = -EINVAL;
	for (unsigned i = 0; !err && i < nr; i++)
		segment_fill(&xen->segments[i], &pieces[i], domid, direction);
	if (!err && xengnttab_grant_copy(xen->gnttab, nr, xen->segments))
		err = error_from_errno();
	for (unsigned i = 0; i < nr; i++)
		pieces[i].status = err ? err : error_from_grant_status(xen->segments[i].status);
	return err;
}

static int hypervisor_bind(struct xen_host *host, uint32_t domid, uint32_t remote_port,
			   uint32_t *port_out)
{
	int port = xenevtchn_bind_interdomain(to_hypervisor(host)->evtchn, domid, remote_port);

	if (port < 0)
		return error_from_errno();
	*port_out = (uint32_t)port;
	return 0;
}

static int gntshr_ensure(struct hypervisor *xen)
{
	if (!xen->gntshr)
		xen->gntshr = xengntshr_open(NULL, 0);
	return xen->gntshr ? 0 : error_from_errno();
}

static int hypervisor_share(struct xen_host *host, uint32_t domid, unsigned nr, bool writable,
			    uint32_t *grefs_out, void **addr_out)
{
	struct hypervisor *xen = to_hypervisor(host);
	int err = gntshr_ensure(xen);
	void *addr;

	if (err)
		return err;
	addr = xengntshr_share_pages(xen->gntshr, domid, (int)nr, grefs_out, writable);
	if (!addr)
		return error_from_errno();
	memset(addr, 0, (size_t)nr * XEN_PAGE_SIZE);
	*addr_out = addr;
	return 0;
}

static int hypervisor_unshare(struct xen_host *host, void *addr, unsigned nr)
{
	return xengntshr_unshare(to_hypervisor(host)->gntshr, addr, nr) ? error_from_errno() : 0;
}

static int hypervisor_alloc_unbound(struct xen_host *host, uint32_t domid, uint32_t *port_out)
{
	int port = xenevtchn_bind_unbound_port(to_hypervisor(host)->evtchn, domid);

	if (port < 0)
		return error_from_errno();
	*port_out = (uint32_t)port;
	return 0;
}

static int hypervisor_unbind(struct xen_host *host, uint32_t port)
{
	return xenevtchn_unbind(to_hypervisor(host)->evtchn, port) ? error_from_errno() : 0;
}

static int hypervisor_notify(struct xen_host *host, uint32_t port)
{
	return xenevtchn_notify(to_hypervisor(host)->evtchn, port) ? error_from_errno() : 0;
}

static int hypervisor_poll_fd(struct xen_host *host)
{
	return xenevtchn_fd(to_hypervisor(host)->evtchn);
}

static int hypervisor_pending(struct xen_host *host, uint32_t *port_out)
{
	int port = xenevtchn_pending(to_hypervisor(host)->evtchn);

	if (port < 0)
		return error_from_errno();
	*port_out = (uint32_t)port;
	return 0;
}

static int hypervisor_unmask(struct xen_host *host, uint32_t port)
{
	return xenevtchn_unmask(to_hypervisor(host)->evtchn, port) ? error_from_errno() : 0;
}

static void hypervisor_close(struct xen_host *host)
{
	struct hypervisor *xen = to_hypervisor(host);

	if (xen->gntshr)
		xengntshr_close(xen->gntshr);
	if (xen->gnttab)
		xengnttab_close(xen->gnttab);
	if (xen->evtchn)
		xenevtchn_close(xen->evtchn);
	free(xen->segments);
	free(xen);
}

static const struct xen_host_ops hypervisor_ops = {
	.map = hypervisor_map,
	.unmap = hypervisor_unmap,
	.copy_reserve = hypervisor_copy_reserve,
	.copy = hypervisor_copy,
	.bind = hypervisor_bind,
	.share = hypervisor_share,
	.unshare = hypervisor_unshare,
	.alloc_unbound = hypervisor_alloc_unbound,
	.unbind = hypervisor_unbind,
	.notify = hypervisor_notify,
	.poll_fd = hypervisor_poll_fd,
	.pending = hypervisor_pending,
	.unmask = hypervisor_unmask,
	.close = hypervisor_close,
};

static int evtchn_open(struct hypervisor *xen)
{
	int flags;

	xen->evtchn = xenevtchn_open(NULL, 0);
	if (!xen->evtchn)
		return error_from_errno();
	flags = fcntl(xenevtchn_fd(xen->evtchn), F_GETFL);
	if (flags < 0 || fcntl(xenevtchn_fd(xen->evtchn), F_SETFL, flags | O_NONBLOCK))
		return error_from_errno();
	return 0;
}

int xen_hypervisor_open(bool backend, struct xen_host **host_out, struct error *error)
{
	struct hypervisor *xen = calloc(1, sizeof(*xen));
	int err;

	if (!xen)
		return error_set(error, ENOMEM, "out of memory");
	xen->host.ops = &hypervisor_ops;
	err = evtchn_open(xen);
	if (err) {
		error_set(
			error, -err,
			"cannot open /dev/xen/evtchn: %s; is this a Xen host, and is the module xen-evtchn loaded?",
			strerror(-err));
		goto close;
	}
	if (backend) {
		xen->gnttab = xengnttab_open(NULL, 0);
		if (!xen->gnttab) {
			err = error_from_errno();
			error_set(
				error, -err,
				"cannot open /dev/xen/gntdev: %s; is this a Xen host, and is the module xen-gntdev loaded?",
				strerror(-err));
			goto close;
		}
	}
	*host_out = &xen->host;
	return 0;

close:
	hypervisor_close(&xen->host);
	return err;
}
