// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The blkif transport: a ring, its grants and its event channel as struct transport.
 *
 * Owns: the mapped ring pages, the bound port; the data is blkif-data.c's.
 * Trusts / does not trust: the guest, in nothing.
 * Runs on: the queue's thread. attach makes hypercalls; disconnect and free may wait for a grace
 *   period, if pages of the guest were kept mapped; the rest never blocks.
 * Must not know: the disk, xenstore.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "backend/blkif-data.h"
#include "backend/blkif-ring.h"
#include "backend/log.h"
#include "backend/transport-blkif.h"
#include "container.h"

struct transport_blkif {
	struct transport transport;
	struct xen_host *host;
	uint32_t domid;
	uint32_t port;
	void *ring_pages; /* mapped from the guest; NULL once disconnected */
	unsigned nr_ring_pages;
	struct blkif_ring ring;
	struct blkif_offer offer;

	struct blkif_data data;
	unsigned long nr_notify_failures;
	struct log_limit decode_log, event_log;
};

/* Of all connections: a guest can reconnect for ever. */
static struct log_limit notify_log;

/* A notification that could not be sent now. */
#define NOTIFY_TRIES 4

static struct transport_blkif *to_blkif(struct transport *transport)
{
	return container_of(transport, struct transport_blkif, transport);
}

static int blkif_pop(struct transport *transport, struct request *request)
{
	struct transport_blkif *blkif = to_blkif(transport);
	struct blkif_scratch *scratch = request->transport_scratch;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];
	int ret;

	/* Before it is decoded nobody knows how much the next request needs, and it cannot be put back. */
	if (!blkif_data_has_room(&blkif->data))
		return -EAGAIN;
	ret = blkif_ring_pop(&blkif->ring, slot);
	if (ret <= 0)
		return ret;
	request->nr_iov = 0;
	blkif_payload_init(&scratch->payload);
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
	blkif_data_take(&blkif->data, request);
	transport->untidy |= blkif->data.cache.nr_mapped != 0;
	return 1;
}

static void blkif_resolve(struct transport *transport, struct request_list *batch)
{
	struct transport_blkif *blkif = to_blkif(transport);

	blkif_data_resolve(&blkif->data, batch);
	transport->untidy |= blkif->data.cache.nr_mapped != 0;
}

static void blkif_load(struct transport *transport, struct request_list *batch)
{
	blkif_data_copy(&to_blkif(transport)->data, batch, REQUEST_WRITE, XEN_COPY_FROM_PEER);
}

static void blkif_store(struct transport *transport, struct request_list *batch)
{
	blkif_data_copy(&to_blkif(transport)->data, batch, REQUEST_READ, XEN_COPY_TO_PEER);
}

static int16_t wire_status(int status)
{
	if (!status)
		return BLKIF_STATUS_OKAY;
	return status == -EOPNOTSUPP ? BLKIF_STATUS_EOPNOTSUPP : BLKIF_STATUS_ERROR;
}

static void blkif_respond(struct transport *transport, struct request *request)
{
	struct transport_blkif *blkif = to_blkif(transport);
	const struct blkif_scratch *scratch = request->transport_scratch;

	blkif_ring_put(&blkif->ring, scratch->wire.id, scratch->wire.operation,
		       wire_status(request->status));
	blkif_data_release(&blkif->data, request);
}

/* An event that is lost here would be waited for: an error that passes is tried again. */
static int guest_notify(struct transport_blkif *blkif)
{
	unsigned nr_tries = 0;
	int err;

	do
		err = blkif->host->ops->notify(blkif->host, blkif->port);
	while ((err == -EAGAIN || err == -EINTR || err == -ENOMEM) && ++nr_tries < NOTIFY_TRIES);
	return err;
}

static void blkif_flush(struct transport *transport)
{
	struct transport_blkif *blkif = to_blkif(transport);
	int err;

	if (!blkif_ring_publish(&blkif->ring))
		return;
	err = guest_notify(blkif);
	/* The other end is gone; xenstore will tell us why soon. */
	if (err && !blkif->nr_notify_failures++)
		log_limited(&notify_log, LOG_LEVEL_WARNING,
			    "cannot notify the guest through event channel %u: %s", blkif->port,
			    strerror(abs(err)));
}

static bool blkif_tidy(struct transport *transport)
{
	transport->untidy = grant_cache_tidy(&to_blkif(transport)->data.cache);
	return transport->untidy;
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
	grant_cache_release(&blkif->data.cache);
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
	blkif_data_destroy(&blkif->data);
	free(blkif);
}

static const struct transport_ops blkif_ops = {
	.name = "blkif",
	.request_size = sizeof(struct blkif_scratch),
	.poll_fd = blkif_poll_fd,
	.acknowledge = blkif_acknowledge,
	.pop = blkif_pop,
	.resolve = blkif_resolve,
	.load = blkif_load,
	.store = blkif_store,
	.respond = blkif_respond,
	.flush = blkif_flush,
	.arm = blkif_arm,
	.tidy = blkif_tidy,
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
	blkif->offer = (struct blkif_offer){params->barrier, params->max_indirect};
	blkif->nr_ring_pages = 1u << params->order;
	if (blkif_data_init(&blkif->data, host, domid, params, nr_slots)) {
		err = error_set(error, ENOMEM, "out of memory for %u requests in flight", nr_slots);
		goto free_blkif;
	}
	err = host->ops->map(host, domid, params->grefs, blkif->nr_ring_pages, true,
			     &blkif->ring_pages);
	if (err) {
		error_set(
			error, -err,
			"cannot map the ring of domain %u (%u pages, first grant reference %u): %s",
			domid, blkif->nr_ring_pages, params->grefs[0], strerror(-err));
		goto destroy_data;
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
destroy_data:
	blkif_data_destroy(&blkif->data);
free_blkif:
	free(blkif);
	return err;
}
