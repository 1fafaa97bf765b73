/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Private memory for data in flight: chunks of 16 pages.
 *
 * Owns: one range of memory and which chunks of it are free. Pages appear when they are first written, and
 *   the chunk that came back last is given out first, so that a shallow queue stays in few, warm pages
 *   however many chunks there are. What a deep queue has once touched stays.
 * Trusts / does not trust: the caller gives back what it took; nothing comes from outside.
 * Runs on: the queue's thread; never blocks.
 * Must not know: what the data is.
 */
#ifndef VBDISK_DATA_MEMORY_H
#define VBDISK_DATA_MEMORY_H

#include <stdint.h>

#include "xen-ops.h"

#define DATA_CHUNK_PAGES 16u
#define DATA_CHUNK_BYTES ((size_t)DATA_CHUNK_PAGES * XEN_PAGE_SIZE)

struct data_memory {
	uint8_t *chunks; /* nr_chunks * DATA_CHUNK_BYTES */
	unsigned nr_chunks;
	unsigned nr_used;   /* chunks from here on were never given out */
	uint32_t *returned; /* stack of chunks that came back */
	unsigned nr_returned;
};

/* 0 or -ENOMEM. */
int data_memory_init(struct data_memory *memory, unsigned nr_chunks);
void data_memory_destroy(struct data_memory *memory);

/* Chunks that hold @nr_pages. */
static inline unsigned data_chunks_for(unsigned nr_pages)
{
	return (nr_pages + DATA_CHUNK_PAGES - 1) / DATA_CHUNK_PAGES;
}

static inline unsigned data_memory_nr_free(const struct data_memory *memory)
{
	return memory->nr_chunks - memory->nr_used + memory->nr_returned;
}

/* Take @nr chunks (there are as many free), name them in @chunks_out; give them back. */
void data_memory_take(struct data_memory *memory, unsigned nr, uint32_t *chunks_out);
void data_memory_give(struct data_memory *memory, unsigned nr, const uint32_t *chunks);

/* The @idx'th page of @chunks put side by side. */
static inline uint8_t *data_memory_page(const struct data_memory *memory, const uint32_t *chunks,
					unsigned idx)
{
	return memory->chunks + chunks[idx / DATA_CHUNK_PAGES] * DATA_CHUNK_BYTES +
	       idx % DATA_CHUNK_PAGES * XEN_PAGE_SIZE;
}

/* Zeroed memory of which pages appear when first written; NULL if there is none. munmap() frees it. */
void *memory_reserve(size_t bytes);

#endif
