// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the data of blkif requests lies, and how it gets there and back.
 *
 * Owns: the private memory of a ring's requests: their data, and the segment tables of indirect ones.
 * Trusts / does not trust: the guest, in nothing.
 * Runs on: the queue's thread. init and destroy may block briefly; the rest never blocks.
 * Must not know: the ring's slots, the disk, xenstore.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/param.h>

#include "backend/blkif-data.h"

/* Pieces of one grant copy: more are cut into several. The kernel makes a hypercall for each 16 of them
 * (linux:drivers/xen/gntdev.c GNTDEV_COPY_BATCH), so larger calls save nothing. */
#define COPY_PIECES_MAX 512u

/* ---- Memory ------------------------------------------------------------------------------------- */

static unsigned nr_indirect_pages(unsigned nr_segments)
{
	return (nr_segments + BLKIF_SEGMENTS_PER_INDIRECT_PAGE - 1) /
	       BLKIF_SEGMENTS_PER_INDIRECT_PAGE;
}

static size_t tables_bytes(const struct blkif_data *data)
{
	return (size_t)data->nr_slots * nr_indirect_pages(data->max_indirect) * XEN_PAGE_SIZE;
}

/* iov, segments, chunks and pages of one indirect request, in this order, which keeps each aligned. */
static size_t space_bytes(const struct blkif_data *data)
{
	size_t bytes = data->max_indirect * (sizeof(struct iovec) + sizeof(struct blkif_segment) +
					     sizeof(uint16_t)) +
		       data->nr_chunks_most * sizeof(uint32_t);

	return roundup(bytes, _Alignof(struct iovec));
}

static void payload_place_arrays(struct blkif_data *data, struct request *request)
{
	struct blkif_scratch *scratch = request->transport_scratch;
	struct blkif_payload *payload = &scratch->payload;

	if (scratch->wire.nr_indirect_pages) {
		uint8_t *space = data->spaces + request->pool_idx * space_bytes(data);

		payload->iov = (struct iovec *)space;
		payload->segments = (struct blkif_segment *)(payload->iov + data->max_indirect);
		payload->chunks = (uint32_t *)(payload->segments + data->max_indirect);
		payload->pages = (uint16_t *)(payload->chunks + data->nr_chunks_most);
	} else {
		payload->iov = payload->plain_iov;
		payload->segments = scratch->wire.segments;
		payload->chunks = &payload->plain_chunk;
		payload->pages = payload->plain_pages;
	}
}

/* Never less than lets a ring of plain requests be full (each takes one chunk, and needs room for the largest
 * when it is fetched); never more than lets a ring of the largest be full. */
static unsigned nr_chunks_choose(const struct blkif_data *data, size_t data_bytes_max)
{
	unsigned least = data->nr_slots + data->nr_chunks_most - 1;
	unsigned most = data->nr_slots * data->nr_chunks_most;

	return (unsigned)MAX(least, MIN(most, data_bytes_max / DATA_CHUNK_BYTES));
}

int blkif_data_init(struct blkif_data *data, struct xen_host *host, uint32_t domid,
		    const struct blkif_ring_params *params, unsigned nr_slots)
{
	unsigned max_segments = MAX(params->max_indirect, BLKIF_MAX_SEGMENTS);

	assert(params->max_indirect <= BLKIF_MAX_INDIRECT_SEGMENTS);
	*data = (struct blkif_data){
		.nr_slots = nr_slots,
		.max_indirect = params->max_indirect,
		.nr_chunks_most = data_chunks_for(max_segments),
	};
	if (copy_batch_init(&data->copy, host, domid,
			    MIN(nr_slots * max_segments, COPY_PIECES_MAX)))
		return -ENOMEM;
	if (data_memory_init(&data->memory, nr_chunks_choose(data, params->data_bytes_max)))
		goto destroy_copy;
	if (grant_cache_init(&data->cache, host, domid, params->persistent_grants))
		goto destroy_memory;
	if (!data->max_indirect)
		return 0;
	data->tables = memory_reserve(tables_bytes(data));
	if (!data->tables)
		goto destroy_cache;
	data->spaces = memory_reserve(nr_slots * space_bytes(data));
	if (!data->spaces)
		goto unmap_tables;
	return 0;

unmap_tables:
	munmap(data->tables, tables_bytes(data));
destroy_cache:
	grant_cache_destroy(&data->cache);
destroy_memory:
	data_memory_destroy(&data->memory);
destroy_copy:
	copy_batch_destroy(&data->copy);
	return -ENOMEM;
}

void blkif_data_destroy(struct blkif_data *data)
{
	if (data->max_indirect) {
		munmap(data->spaces, data->nr_slots * space_bytes(data));
		munmap(data->tables, tables_bytes(data));
	}
	grant_cache_destroy(&data->cache);
	data_memory_destroy(&data->memory);
	copy_batch_destroy(&data->copy);
}

bool blkif_data_has_room(const struct blkif_data *data)
{
	return data_memory_nr_free(&data->memory) >= data->nr_chunks_most;
}

/* ---- Segments ----------------------------------------------------------------------------------- */

static uint16_t segment_offset(const struct blkif_segment *segment)
{
	return (uint16_t)(segment->first_sector * BLKIF_SECTOR_BYTES);
}

static uint16_t segment_bytes(const struct blkif_segment *segment)
{
	return (uint16_t)((segment->last_sector - segment->first_sector + 1u) * BLKIF_SECTOR_BYTES);
}

static bool segment_is_mapped(const struct blkif_data *data, const struct blkif_payload *payload,
			      unsigned idx)
{
	return data->cache.nr_max && payload->pages[idx] != GRANT_CACHE_MISS;
}

static uint8_t *segment_local(const struct blkif_data *data, const struct blkif_payload *payload,
			      unsigned idx)
{
	uint8_t *page = segment_is_mapped(data, payload, idx)
				? grant_cache_addr(&data->cache, payload->pages[idx])
				: data_memory_page(&data->memory, payload->chunks, idx);

	return page + segment_offset(&payload->segments[idx]);
}

/* Find a place for each segment: the guest's own page where it is, or can be, mapped; a private one else. */
static void segments_place(struct blkif_data *data, struct blkif_payload *payload)
{
	if (!data->cache.nr_max)
		return;
	for (unsigned i = 0; i < payload->nr_segments; i++)
		payload->pages[i] = grant_cache_pin(&data->cache, payload->segments[i].gref);
	payload->nr_pages = payload->nr_segments;
}

/* Segments that follow each other in memory become one iovec. */
static void iov_build(struct blkif_data *data, struct request *request)
{
	struct blkif_scratch *scratch = request->transport_scratch;
	struct blkif_payload *payload = &scratch->payload;
	struct iovec *last = NULL;

	segments_place(data, payload);
	request->iov = payload->iov;
	for (unsigned i = 0; i < payload->nr_segments; i++) {
		uint8_t *base = segment_local(data, payload, i);

		if (last && (uint8_t *)last->iov_base + last->iov_len == base) {
			last->iov_len += segment_bytes(&payload->segments[i]);
		} else {
			last = &payload->iov[request->nr_iov++];
			*last = (struct iovec){base, segment_bytes(&payload->segments[i])};
		}
	}
}

void blkif_data_take(struct blkif_data *data, struct request *request)
{
	struct blkif_scratch *scratch = request->transport_scratch;
	struct blkif_payload *payload = &scratch->payload;

	payload->nr_segments = scratch->wire.nr_segments;
	payload->nr_chunks = data_chunks_for(payload->nr_segments);
	payload_place_arrays(data, request);
	data_memory_take(&data->memory, payload->nr_chunks, payload->chunks);
	if (!scratch->wire.nr_indirect_pages)
		iov_build(data, request);
}

void blkif_data_release(struct blkif_data *data, struct request *request)
{
	struct blkif_scratch *scratch = request->transport_scratch;
	struct blkif_payload *payload = &scratch->payload;

	for (unsigned i = 0; i < payload->nr_pages; i++)
		if (segment_is_mapped(data, payload, i))
			grant_cache_unpin(&data->cache, payload->pages[i]);
	data_memory_give(&data->memory, payload->nr_chunks, payload->chunks);
}

/* ---- Indirect segments -------------------------------------------------------------------------- */

static size_t table_bytes(const struct blkif_request *wire)
{
	return (size_t)wire->nr_segments * BLKIF_SEGMENT_BYTES;
}

static void table_fetch(struct blkif_data *data, struct request *request, uint8_t *table)
{
	const struct blkif_scratch *scratch = request->transport_scratch;
	size_t left_bytes = table_bytes(&scratch->wire);

	for (unsigned i = 0; i < scratch->wire.nr_indirect_pages; i++) {
		uint16_t len_bytes = (uint16_t)MIN(left_bytes, XEN_PAGE_SIZE);

		copy_batch_add(&data->copy, request, table + i * XEN_PAGE_SIZE,
			       scratch->wire.indirect_grefs[i], 0, len_bytes);
		left_bytes -= len_bytes;
	}
}

static void table_decode(struct blkif_data *data, struct request *request, const uint8_t *table)
{
	struct blkif_scratch *scratch = request->transport_scratch;

	if (request->status) /* the table could not be had */
		return;
	request->status = blkif_decode_segments(table, scratch->wire.nr_segments,
						scratch->payload.segments, &request->len_bytes);
	if (request->status)
		log_limited(
			&data->table_log, LOG_LEVEL_WARNING,
			"the guest sent a bad request: one of %u indirect segments is malformed",
			scratch->wire.nr_segments);
	else
		iov_build(data, request);
}

void blkif_data_resolve(struct blkif_data *data, struct request_list *batch)
{
	uint8_t *table = data->tables;
	struct request *request;

	if (!table) /* nothing of the kind was offered */
		return;
	copy_batch_begin(&data->copy, XEN_COPY_FROM_PEER);
	TAILQ_FOREACH(request, batch, link) {
		const struct blkif_scratch *scratch = request->transport_scratch;

		table_fetch(data, request, table);
		table += (size_t)scratch->wire.nr_indirect_pages * XEN_PAGE_SIZE;
	}
	copy_batch_run(&data->copy);
	table = data->tables;
	TAILQ_FOREACH(request, batch, link) {
		const struct blkif_scratch *scratch = request->transport_scratch;

		if (!scratch->wire.nr_indirect_pages)
			continue;
		table_decode(data, request, table);
		table += (size_t)scratch->wire.nr_indirect_pages * XEN_PAGE_SIZE;
	}
}

/* ---- Data --------------------------------------------------------------------------------------- */

void blkif_data_copy(struct blkif_data *data, struct request_list *batch, enum request_op op,
		     enum xen_copy_direction direction)
{
	struct request *request;

	copy_batch_begin(&data->copy, direction);
	TAILQ_FOREACH(request, batch, link) {
		const struct blkif_scratch *scratch = request->transport_scratch;
		const struct blkif_payload *payload = &scratch->payload;

		if (request->op != op || request->status)
			continue;
		for (unsigned i = 0; i < payload->nr_segments; i++) {
			const struct blkif_segment *segment = &payload->segments[i];

			if (segment_is_mapped(data, payload, i))
				continue;
			copy_batch_add(&data->copy, request, segment_local(data, payload, i),
				       segment->gref, segment_offset(segment),
				       segment_bytes(segment));
		}
	}
	copy_batch_run(&data->copy);
}
