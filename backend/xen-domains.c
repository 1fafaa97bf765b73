// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether a domain lives, asked of the real hypervisor.
 *
 * Owns: the only use of libxenctrl.
 * Trusts / does not trust: the hypervisor.
 * Runs on: vbdiskd's main thread; one hypercall per question.
 * Must not know: VBDs, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xenctrl.h>

#include "container.h"
#include "xen-ops.h"

struct hypervisor_domains {
	struct xen_domains domains;
	xc_interface *xc;
};

/* XEN_DOMCTL_getdomaininfo (xen/include/public/domctl.h): the shutdown reason lies in the flags. */
static enum xen_domain_state state_from_flags(uint32_t flags)
{
	uint32_t reason = (flags >> XEN_DOMINF_shutdownshift) & XEN_DOMINF_shutdownmask;

	if (flags & XEN_DOMINF_dying)
		return XEN_DOMAIN_DEAD;
	if (!(flags & XEN_DOMINF_shutdown))
		return XEN_DOMAIN_RUNNING;
	/* A domain that is shut down is not dying yet: the toolstack may preserve or resume it, and takes
	 * its devices away when it does not. */
	return reason == SHUTDOWN_suspend ? XEN_DOMAIN_SUSPENDED : XEN_DOMAIN_RUNNING;
}

static int hypervisor_domain_state(struct xen_domains *domains, uint32_t domid,
				   enum xen_domain_state *state_out)
{
	struct hypervisor_domains *xen = container_of(domains, struct hypervisor_domains, domains);
	xc_domaininfo_t info;
	/* Returns the first existing domain at or after domid: another one means ours is gone. */
	int nr = xc_domain_getinfolist(xen->xc, domid, 1, &info);

	if (nr < 0)
		return errno ? -errno : -EIO;
	*state_out = nr == 1 && info.domain == domid ? state_from_flags(info.flags)
						     : XEN_DOMAIN_DEAD;
	return 0;
}

static void hypervisor_domains_close(struct xen_domains *domains)
{
	struct hypervisor_domains *xen = container_of(domains, struct hypervisor_domains, domains);

	xc_interface_close(xen->xc);
	free(xen);
}

static const struct xen_domains_ops hypervisor_domains_ops = {
	.state = hypervisor_domain_state,
	.close = hypervisor_domains_close,
};

int xen_hypervisor_domains_open(struct xen_domains **domains_out, struct error *error)
{
	struct hypervisor_domains *xen = calloc(1, sizeof(*xen));
	enum xen_domain_state state;
	int err;

	if (!xen)
		return error_set(error, ENOMEM, "out of memory");
	xen->domains.ops = &hypervisor_domains_ops;
	xen->xc = xc_interface_open(NULL, NULL, XC_OPENFLAG_NON_REENTRANT);
	if (!xen->xc) {
		err = errno ? -errno : -EIO;
		free(xen);
		return error_set(error, -err, "cannot open the hypervisor's control interface: %s",
				 strerror(-err));
	}
	/* Ask once, so that a hypervisor of another interface version is noticed now. */
	err = hypervisor_domain_state(&xen->domains, 0, &state);
	if (err) {
		hypervisor_domains_close(&xen->domains);
		return error_set(
			error, -err,
			"the hypervisor does not answer libxenctrl: %s; was vbdiskd built for another Xen release?",
			strerror(-err));
	}
	*domains_out = &xen->domains;
	return 0;
}
