// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Private memory for data in flight: chunks of 16 pages.
 *
 * Owns: one range of memory and which chunks of it are free.
 * Trusts / does not trust: the caller gives back what it took; nothing comes from outside.
 * Runs on: the queue's thread; never blocks.
 * Must not know: what the data is.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backend/data-memory.h"

void *memory_reserve(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* The first byte must not bring 2 MiB. A kernel that refuses has no huge pages. */
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

int data_memory_init(struct data_memory *memory, unsigned nr_chunks)
{
	*memory = (struct data_memory){.nr_chunks = nr_chunks};
	memory->chunks = memory_reserve(nr_chunks * DATA_CHUNK_BYTES);
	if (!memory->chunks)
		return -ENOMEM;
	memory->returned = calloc(nr_chunks, sizeof(*memory->returned));
	if (!memory->returned) {
		munmap(memory->chunks, nr_chunks * DATA_CHUNK_BYTES);
		return -ENOMEM;
	}
	return 0;
}

void data_memory_destroy(struct data_memory *memory)
{
	munmap(memory->chunks, memory->nr_chunks * DATA_CHUNK_BYTES);
	free(memory->returned);
}

void data_memory_take(struct data_memory *memory, unsigned nr, uint32_t *chunks_out)
{
	assert(nr <= data_memory_nr_free(memory));
	for (unsigned i = 0; i < nr; i++)
		chunks_out[i] = memory->nr_returned ? memory->returned[--memory->nr_returned]
						    : memory->nr_used++;
}

void data_memory_give(struct data_memory *memory, unsigned nr, const uint32_t *chunks)
{
	/* From the last to the first, so that they go out again in the same order: neighbours stay so. */
	while (nr--)
		memory->returned[memory->nr_returned++] = chunks[nr];
}
