/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The blkif transport: a ring, its grants and its event channel as struct transport.
 *
 * Owns: the mapped ring pages, the bound port; the data is blkif-data.h's.
 * Trusts / does not trust: the guest, in nothing. Data travels by grant copy into private memory, so
 *   the guest cannot change it under a driver, and its death cannot hurt I/O in flight; but with persistent
 *   grants drivers work on the guest's pages.
 * Runs on: the queue's thread. attach makes hypercalls; disconnect and free may wait for a grace
 *   period, if pages of the guest were kept mapped; the rest never blocks.
 * Must not know: the disk, xenstore.
 */
#ifndef VBDISK_TRANSPORT_BLKIF_H
#define VBDISK_TRANSPORT_BLKIF_H

#include "backend/blkif-abi.h"
#include "error.h"
#include "transport.h"
#include "xen-ops.h"

#define BLKIF_RING_PAGES_MAX (1u << BLKIF_RING_ORDER_MAX)

/* Where the frontend says its ring is (its xenstore keys, range-checked by the reader). */
struct blkif_ring_params {
	const struct blkif_abi *abi;
	unsigned order; /* 1 << order pages */
	uint32_t grefs[BLKIF_RING_PAGES_MAX];
	uint32_t event_channel;

	/* What the frontend was offered. */
	bool barrier;		    /* WRITE_BARRIER; else it is unsupported */
	unsigned max_indirect;	    /* segments of an INDIRECT; 0: it is unsupported */
	unsigned persistent_grants; /* both ends agreed on persistent grants: keep at most so many
				     * mapped; 0: they did not, everything is copied */
	/* Memory for data in flight, at most; the rest of the ring waits. Never less than what the
	 * largest request needs. */
	size_t data_bytes_max;
};

/* Map the ring of domain @domid and bind its event channel through @host (the caller's, and used by
 * this transport alone until its free()). All memory for requests in flight is reserved here. 0 with
 * *@transport_out; -errno with @error: a bad grant reference or port, out of memory. */
int transport_blkif_attach(struct xen_host *host, uint32_t domid,
			   const struct blkif_ring_params *params, struct transport **transport_out,
			   struct error *error);

#endif
