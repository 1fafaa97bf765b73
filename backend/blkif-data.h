/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Where the data of blkif requests lies, and how it gets there and back.
 *
 * Owns: the private memory of a ring's requests: their data, and the segment tables of indirect ones; and the
 *   pages of the guest that stay mapped, if both ends agreed on persistent grants. Data in these is not
 *   copied: the driver works on the guest's own pages.
 * Trusts / does not trust: the guest, in nothing. A segment table is copied once, whole, and only the copy
 *   is looked at (XSA-155).
 * Runs on: the queue's thread. init and destroy may block briefly; the rest never blocks.
 * Must not know: the ring's slots, the disk, xenstore.
 *
 * A segment's data lies at the same offset within its page here as in the guest, so that a grant copy is one
 * piece per segment (gntdev cuts at page borders of either side).
 */
#ifndef VBDISK_BLKIF_DATA_H
#define VBDISK_BLKIF_DATA_H

#include "backend/blkif-decode.h"
#include "backend/copy-batch.h"
#include "backend/data-memory.h"
#include "backend/grant-cache.h"
#include "backend/transport-blkif.h"

struct blkif_data {
	struct data_memory memory;
	struct copy_batch copy;
	struct grant_cache cache; /* empty for ever without persistent grants */
	unsigned nr_slots;
	unsigned max_indirect;	 /* segments of an indirect request; 0: there are none */
	unsigned nr_chunks_most; /* chunks of the largest request */
	/* Of indirect requests; their pages appear when first used. */
	uint8_t *tables; /* copies of one batch's indirect pages */
	uint8_t *spaces; /* nr_slots * space_bytes(): the arrays of struct blkif_payload */
	struct log_limit table_log;
};

/* A request's data. The arrays are in here, or in the space of its pool_idx. */
struct blkif_payload {
	unsigned nr_segments;
	unsigned nr_chunks;
	struct blkif_segment *segments;
	struct iovec *iov;
	uint32_t *chunks;  /* segment i in page i of them, */
	uint16_t *pages;   /* or in this mapped page of the guest's (grant-cache.h), if it is one */
	unsigned nr_pages; /* how many of pages[] are known */

	struct iovec plain_iov[BLKIF_MAX_SEGMENTS];
	uint32_t plain_chunk;
	uint16_t plain_pages[BLKIF_MAX_SEGMENTS];
};

/* What the transport keeps with each request, as its transport_scratch. */
struct blkif_scratch {
	struct blkif_request wire;
	struct blkif_payload payload;
};

/* All memory is reserved here. 0 or -ENOMEM. */
int blkif_data_init(struct blkif_data *data, struct xen_host *host, uint32_t domid,
		    const struct blkif_ring_params *params, unsigned nr_slots);
void blkif_data_destroy(struct blkif_data *data);

/* True if the largest request there can be finds memory now. */
bool blkif_data_has_room(const struct blkif_data *data);

/* A request that has taken nothing yet. */
static inline void blkif_payload_init(struct blkif_payload *payload)
{
	payload->nr_chunks = 0;
	payload->nr_pages = 0;
}

/* Take memory for @request, decoded without an error (has_room() was true). Its iov is ready after this; an
 * indirect one's after resolve(). */
void blkif_data_take(struct blkif_data *data, struct request *request);

/* Fetch the tables of the indirect requests in @batch, and decode them. */
void blkif_data_resolve(struct blkif_data *data, struct request_list *batch);

/* Copy the data of each request of @op in @batch whose status is 0. */
void blkif_data_copy(struct blkif_data *data, struct request_list *batch, enum request_op op,
		     enum xen_copy_direction direction);

/* Give back what take() took, if it did. */
void blkif_data_release(struct blkif_data *data, struct request *request);

#endif
