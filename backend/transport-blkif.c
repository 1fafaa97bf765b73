// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The blkif transport: a ring, its grants and its event channel as struct transport.
 *
 * Owns: the mapped ring pages, the bound port, and a private buffer for each request's data.
 * Trusts / does not trust: the guest, in nothing.
 * Runs on: the queue's thread. attach, disconnect and free make hypercalls; the rest never blocks.
 * Must not know: the disk, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backend/blkif-decode.h"
#include "backend/blkif-ring.h"
#include "backend/log.h"
#include "backend/transport-blkif.h"
#include "container.h"

#define REQUEST_BUFFER_BYTES ((size_t)BLKIF_MAX_SEGMENTS * XEN_PAGE_SIZE)

struct transport_blkif {
	struct transport transport;
	struct xen_host *host;
	uint32_t domid;
	uint32_t port;
	void *ring_pages; /* mapped from the guest; NULL once disconnected */
	unsigned nr_ring_pages;
	struct blkif_ring ring;
	struct blkif_offer offer;

	uint8_t *buffers;	 /* nr_slots * REQUEST_BUFFER_BYTES; pages appear when first used */
	struct xen_copy *pieces; /* of the batch being copied: nr_slots * BLKIF_MAX_SEGMENTS */
	struct log_limit copy_log, decode_log, event_log;
};

/* What the transport keeps with each request. */
struct blkif_scratch {
	struct blkif_request wire;
	struct iovec iov[BLKIF_MAX_SEGMENTS];
};

static struct transport_blkif *to_blkif(struct transport *transport)
{
	return container_of(transport, struct transport_blkif, transport);
}

/* A segment's data lies at the same offset within its page here as in the guest, so that a grant copy
 * is one piece per segment (gntdev cuts at page borders of either side). */
static void *segment_buffer(struct transport_blkif *blkif, const struct request *request,
			    unsigned idx, const struct blkif_segment *segment)
{
	return blkif->buffers + request->pool_idx * REQUEST_BUFFER_BYTES + idx * XEN_PAGE_SIZE +
	       segment->first_sector * BLKIF_SECTOR_BYTES;
}

static uint16_t segment_bytes(const struct blkif_segment *segment)
{
	return (uint16_t)((segment->last_sector - segment->first_sector + 1u) * BLKIF_SECTOR_BYTES);
}

/* Segments that follow each other in memory become one iovec. */
static void iov_build(struct transport_blkif *blkif, struct request *request,
		      struct blkif_scratch *scratch)
{
	struct iovec *last = NULL;

	request->iov = scratch->iov;
	request->nr_iov = 0;
	if (request->op == REQUEST_FLUSH)
		return;
	for (unsigned i = 0; i < scratch->wire.nr_segments; i++) {
		const struct blkif_segment *segment = &scratch->wire.segments[i];
		char *base = segment_buffer(blkif, request, i, segment);

		if (last && (char *)last->iov_base + last->iov_len == base) {
			last->iov_len += segment_bytes(segment);
		} else {
			last = &scratch->iov[request->nr_iov++];
			*last = (struct iovec){base, segment_bytes(segment)};
		}
	}
}

static int blkif_pop(struct transport *transport, struct request *request)
{
	struct transport_blkif *blkif = to_blkif(transport);
	struct blkif_scratch *scratch = request->transport_scratch;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];
	int ret = blkif_ring_pop(&blkif->ring, slot);

	if (ret <= 0)
		return ret;
	request->status = blkif_decode(blkif->ring.abi, &blkif->offer, slot, &scratch->wire);
	request->state = REQUEST_DECODED;
	if (request->status) {
		log_limited(&blkif->decode_log, LOG_LEVEL_WARNING,
			    "the guest sent a bad request: operation %u with %u segments (%s)",
			    scratch->wire.operation, scratch->wire.nr_segments,
			    request->status == -EOPNOTSUPP ? "not offered" : "malformed");
		return 1;
	}
	request->op = scratch->wire.op;
	request->flags = scratch->wire.flags;
	request->offset_bytes = scratch->wire.offset_bytes;
	request->len_bytes = scratch->wire.len_bytes;
	iov_build(blkif, request, scratch);
	return 1;
}

/* The pieces of one request's data; returns how many. */
static unsigned pieces_add(struct transport_blkif *blkif, const struct request *request,
			   struct xen_copy *pieces)
{
	const struct blkif_scratch *scratch = request->transport_scratch;

	for (unsigned i = 0; i < scratch->wire.nr_segments; i++) {
		const struct blkif_segment *segment = &scratch->wire.segments[i];

		pieces[i] = (struct xen_copy){
			.local = segment_buffer(blkif, request, i, segment),
			.gref = segment->gref,
			.offset_bytes = (uint16_t)(segment->first_sector * BLKIF_SECTOR_BYTES),
			.len_bytes = segment_bytes(segment),
			.status = -EIO,
		};
	}
	return scratch->wire.nr_segments;
}

/* A request is good only if each of its pieces was copied. */
static void pieces_judge(struct transport_blkif *blkif, struct request *request,
			 const struct xen_copy *pieces)
{
	const struct blkif_scratch *scratch = request->transport_scratch;

	for (unsigned i = 0; i < scratch->wire.nr_segments; i++) {
		if (!pieces[i].status)
			continue;
		request->status = -EFAULT;
		log_limited(&blkif->copy_log, LOG_LEVEL_WARNING,
			    "cannot reach the guest's memory: grant %u of a request: %s",
			    pieces[i].gref, strerror(-pieces[i].status));
		return;
	}
}

/* One grant copy for every request of @op in @batch that is still good. */
static void batch_copy(struct transport_blkif *blkif, struct request_list *batch,
		       enum request_op op, enum xen_copy_direction direction)
{
	struct request *request;
	unsigned nr = 0;

	TAILQ_FOREACH(request, batch, link)
		if (request->op == op && !request->status)
			nr += pieces_add(blkif, request, blkif->pieces + nr);
	if (!nr)
		return;
	/* The call's own failure shows in each piece's status. */
	blkif->host->ops->copy(blkif->host, blkif->domid, direction, blkif->pieces, nr);
	nr = 0;
	TAILQ_FOREACH(request, batch, link) {
		const struct blkif_scratch *scratch = request->transport_scratch;

		if (request->op != op || request->status)
			continue;
		pieces_judge(blkif, request, blkif->pieces + nr);
		nr += scratch->wire.nr_segments;
	}
}

static void blkif_load(struct transport *transport, struct request_list *batch)
{
	batch_copy(to_blkif(transport), batch, REQUEST_WRITE, XEN_COPY_FROM_PEER);
}

static void blkif_store(struct transport *transport, struct request_list *batch)
{
	batch_copy(to_blkif(transport), batch, REQUEST_READ, XEN_COPY_TO_PEER);
}

static int16_t wire_status(int status)
{
	if (!status)
		return BLKIF_STATUS_OKAY;
	return status == -EOPNOTSUPP ? BLKIF_STATUS_EOPNOTSUPP : BLKIF_STATUS_ERROR;
}

static void blkif_respond(struct transport *transport, struct request *request)
{
	const struct blkif_scratch *scratch = request->transport_scratch;

	blkif_ring_put(&to_blkif(transport)->ring, scratch->wire.id, scratch->wire.operation,
		       wire_status(request->status));
}

static void blkif_flush(struct transport *transport)
{
	struct transport_blkif *blkif = to_blkif(transport);

	/* A port whose other end is gone cannot be notified; xenstore will tell us why soon. */
	if (blkif_ring_publish(&blkif->ring))
		blkif->host->ops->notify(blkif->host, blkif->port);
}

static bool blkif_arm(struct transport *transport)
{
	return blkif_ring_arm(&to_blkif(transport)->ring);
}

static int blkif_poll_fd(struct transport *transport)
{
	struct transport_blkif *blkif = to_blkif(transport);

	return blkif->host->ops->poll_fd(blkif->host);
}

static void blkif_acknowledge(struct transport *transport)
{
	struct transport_blkif *blkif = to_blkif(transport);
	uint32_t port;
	int err;

	/* One is enough: the descriptor stays readable while there are more. */
	if (blkif->host->ops->pending(blkif->host, &port))
		return;
	err = blkif->host->ops->unmask(blkif->host, port);
	if (err)
		log_limited(
			&blkif->event_log, LOG_LEVEL_ERROR,
			"cannot unmask event channel %u: %s; the guest may wait for ever: detach the disk",
			port, strerror(-err));
}

static void blkif_disconnect(struct transport *transport)
{
	struct transport_blkif *blkif = to_blkif(transport);
	int err;

	if (!blkif->ring_pages)
		return;
	err = blkif->host->ops->unbind(blkif->host, blkif->port);
	if (err)
		log_warning("cannot close event channel %u: %s", blkif->port, strerror(-err));
	err = blkif->host->ops->unmap(blkif->host, blkif->ring_pages, blkif->nr_ring_pages);
	if (err)
		log_error(
			"cannot unmap the ring: %s; the guest's page stays in use until this process ends",
			strerror(-err));
	blkif->ring_pages = NULL;
}

static void blkif_free(struct transport *transport)
{
	struct transport_blkif *blkif = to_blkif(transport);

	blkif_disconnect(transport);
	munmap(blkif->buffers, transport->nr_slots * REQUEST_BUFFER_BYTES);
	free(blkif->pieces);
	free(blkif);
}

static const struct transport_ops blkif_ops = {
	.name = "blkif",
	.request_size = sizeof(struct blkif_scratch),
	.poll_fd = blkif_poll_fd,
	.acknowledge = blkif_acknowledge,
	.pop = blkif_pop,
	.load = blkif_load,
	.store = blkif_store,
	.respond = blkif_respond,
	.flush = blkif_flush,
	.arm = blkif_arm,
	.disconnect = blkif_disconnect,
	.free = blkif_free,
	.flush_error_is_deadly = true,
};

int transport_blkif_attach(struct xen_host *host, uint32_t domid,
			   const struct blkif_ring_params *params, struct transport **transport_out,
			   struct error *error)
{
	struct transport_blkif *blkif = calloc(1, sizeof(*blkif));
	unsigned nr_slots = blkif_abi_nr_slots(params->abi, params->order);
	int err;

	if (!blkif)
		return error_set(error, ENOMEM, "out of memory");
	blkif->transport.ops = &blkif_ops;
	blkif->transport.nr_slots = nr_slots;
	blkif->host = host;
	blkif->domid = domid;
	blkif->offer.barrier = params->barrier;
	blkif->nr_ring_pages = 1u << params->order;
	blkif->pieces = calloc((size_t)nr_slots * BLKIF_MAX_SEGMENTS, sizeof(*blkif->pieces));
	blkif->buffers = mmap(NULL, nr_slots * REQUEST_BUFFER_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (blkif->buffers == MAP_FAILED) {
		err = error_set(error, ENOMEM, "out of memory for %u requests in flight", nr_slots);
		goto free_pieces;
	}
	if (!blkif->pieces || host->ops->copy_reserve(host, nr_slots * BLKIF_MAX_SEGMENTS)) {
		err = error_set(error, ENOMEM, "out of memory for %u requests in flight", nr_slots);
		goto free_buffers;
	}
	err = host->ops->map(host, domid, params->grefs, blkif->nr_ring_pages, true,
			     &blkif->ring_pages);
	if (err) {
		error_set(
			error, -err,
			"cannot map the ring of domain %u (%u pages, first grant reference %u): %s",
			domid, blkif->nr_ring_pages, params->grefs[0], strerror(-err));
		goto free_buffers;
	}
	err = host->ops->bind(host, domid, params->event_channel, &blkif->port);
	if (err) {
		error_set(error, -err, "cannot bind event channel %u of domain %u: %s",
			  params->event_channel, domid, strerror(-err));
		goto unmap_ring;
	}
	blkif_ring_init(&blkif->ring, params->abi, blkif->ring_pages, params->order);
	*transport_out = &blkif->transport;
	return 0;

unmap_ring:
	host->ops->unmap(host, blkif->ring_pages, blkif->nr_ring_pages);
free_buffers:
	munmap(blkif->buffers, nr_slots * REQUEST_BUFFER_BYTES);
free_pieces:
	free(blkif->pieces);
	free(blkif);
	return err;
}
