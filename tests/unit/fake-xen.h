/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A Xen host inside the test: an arena of pages which are its grants (reference n is page n), one event
 * channel, and knobs that make it fail.
 *
 * Owns: struct fake_xen. Trusts: the test. Runs on: the test. Must not know: rings.
 */
#ifndef VBDISK_TEST_FAKE_XEN_H
#define VBDISK_TEST_FAKE_XEN_H

#include "xen-ops.h"

#define FAKE_PAGES 16384
#define FAKE_DOMID 7
#define FAKE_REMOTE_PORT 11
#define FAKE_LOCAL_PORT 22

struct fake_xen {
	struct xen_host host;
	uint8_t *pages; /* FAKE_PAGES * XEN_PAGE_SIZE */
	bool revoked[FAKE_PAGES];

	/* Knobs. */
	int map_error, bind_error, reserve_error, unmap_error, unbind_error, notify_error;
	unsigned notify_error_times; /* so often only; 0: always */
	int copy_error;		     /* the whole call fails */
	unsigned fail_piece; /* the n-th piece of all copies fails (1 is the first); 0: none */
	unsigned fail_map;   /* so does the n-th call of map() */
	bool leave_status; /* a copy says it went well, and has done nothing, to no status either */
	/* Called after each piece that was copied from the guest: what the guest does meanwhile. */
	void (*after_piece)(struct fake_xen *fake, const struct xen_copy *piece);

	/* What is held, and what was done. */
	unsigned nr_mapped, nr_bound, nr_reserved;
	unsigned nr_copy_calls, nr_pieces, nr_notify, nr_unmask, nr_map_calls, nr_unmap_calls;
	unsigned nr_maps[FAKE_PAGES]; /* of each page, now */
	int event_fd;
};

/* All pages zeroed, nothing mapped. fake_xen_free() checks that nothing is left. */
void fake_xen_init(struct fake_xen *fake);
void fake_xen_free(struct fake_xen *fake);
uint8_t *fake_page(struct fake_xen *fake, uint32_t gref);

#endif
