// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pool of data chunks: nothing is given out twice, and a shallow queue stays small.
 *
 * Owns: nothing. Trusts: data-memory.h (the contract). Runs on: the test. Must not know: rings.
 */
#include "config.h"

#include <sys/mman.h>
#include <unistd.h>

#include "backend/data-memory.h"
#include "tests/unit/unit.h"

#define NR_CHUNKS 64

static unsigned pages_resident(const void *memory, size_t bytes)
{
	static unsigned char resident[NR_CHUNKS * DATA_CHUNK_PAGES];
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	unsigned nr = 0;

	assert_true(bytes / page_bytes <= sizeof(resident));
	assert_int_equal(mincore((void *)(uintptr_t)memory, bytes, resident), 0);
	for (size_t i = 0; i < bytes / page_bytes; i++)
		nr += resident[i] & 1;
	return nr;
}

static void sizes(void **state)
{
	(void)state;
	assert_int_equal(DATA_CHUNK_BYTES, 65536);
	assert_int_equal(data_chunks_for(0), 0);
	assert_int_equal(data_chunks_for(1), 1);
	assert_int_equal(data_chunks_for(16), 1);
	assert_int_equal(data_chunks_for(17), 2);
	assert_int_equal(data_chunks_for(256), 16);
	assert_int_equal(data_chunks_for(4096), 256);
}

/* Random takes and gives: each chunk has one holder, and the count of the free ones is right. */
static void one_holder_each(void **state)
{
	struct data_memory memory;
	uint32_t held[8][16];
	unsigned nr_held[8] = {0}, nr_free = NR_CHUNKS, seed = 5;
	bool taken[NR_CHUNKS] = {false};

	(void)state;
	assert_int_equal(data_memory_init(&memory, NR_CHUNKS), 0);
	for (unsigned round = 0; round < 100000; round++) {
		unsigned who, nr;

		seed = seed * 1664525u + 1013904223u;
		who = seed >> 8 & 7;
		nr = 1 + (seed >> 12 & 15);
		if (nr_held[who]) {
			data_memory_give(&memory, nr_held[who], held[who]);
			for (unsigned i = 0; i < nr_held[who]; i++)
				taken[held[who][i]] = false;
			nr_free += nr_held[who];
			nr_held[who] = 0;
		} else if (nr <= nr_free) {
			data_memory_take(&memory, nr, held[who]);
			for (unsigned i = 0; i < nr; i++) {
				assert_true(held[who][i] < NR_CHUNKS);
				assert_false(taken[held[who][i]]);
				taken[held[who][i]] = true;
			}
			nr_held[who] = nr;
			nr_free -= nr;
		}
		assert_int_equal(data_memory_nr_free(&memory), nr_free);
	}
	data_memory_destroy(&memory);
}

/* What a queue of one request at a time touches is one chunk; what came back goes out in the same order, so
 * that neighbours stay neighbours. */
static void shallow_stays_small(void **state)
{
	struct data_memory memory;
	uint32_t first[3], again[3];

	(void)state;
	assert_int_equal(data_memory_init(&memory, NR_CHUNKS), 0);
	assert_int_equal(pages_resident(memory.chunks, NR_CHUNKS * DATA_CHUNK_BYTES), 0);
	for (unsigned i = 0; i < 1000; i++) {
		data_memory_take(&memory, 1, first);
		data_memory_page(&memory, first, i % DATA_CHUNK_PAGES)[i] = 1;
		data_memory_give(&memory, 1, first);
	}
	assert_int_equal(pages_resident(memory.chunks, NR_CHUNKS * DATA_CHUNK_BYTES),
			 DATA_CHUNK_PAGES);
	data_memory_take(&memory, 3, first);
	data_memory_give(&memory, 3, first);
	data_memory_take(&memory, 3, again);
	assert_memory_equal(first, again, sizeof(first));
	assert_ptr_equal(data_memory_page(&memory, first, 16),
			 data_memory_page(&memory, first, 15) + XEN_PAGE_SIZE);
	data_memory_destroy(&memory);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(one_holder_each),
		cmocka_unit_test(shallow_stays_small),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
