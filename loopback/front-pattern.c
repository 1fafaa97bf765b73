// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The verify pattern: sectors that say what they are, so that a wrong one says what happened to it.
 *
 * Owns: the 512 bytes of a verify sector: little-endian words magic, sector, generation, seed, filler
 *   words, checksum.
 * Trusts / does not trust: nothing that comes back from a disk.
 * Runs on: any thread; never blocks.
 * Must not know: rings, jobs.
 */
#include "config.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "loopback/front-pattern.h"

#define MAGIC 0x746e6f7266646276ull /* "vbdfront" */
#define NR_WORDS (FRONT_SECTOR_BYTES / 8)

enum { WORD_MAGIC, WORD_SECTOR, WORD_GENERATION, WORD_SEED, WORD_FILLER, WORD_SUM = NR_WORDS - 1 };

uint64_t front_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Order matters in it, so that swapped halves show. */
static uint64_t words_sum(const uint64_t words[NR_WORDS])
{
	uint64_t sum = MAGIC;

	for (unsigned i = 0; i < WORD_SUM; i++) {
		sum = (sum ^ le64toh(words[i])) * 0x100000001b3ull;
		sum ^= sum >> 29;
	}
	return sum;
}

void front_pattern_fill(void *sector_data, const struct front_tag *tag)
{
	uint64_t words[NR_WORDS];
	uint64_t state = tag->sector ^ (tag->generation << 40) ^
			 (tag->seed * 0x9e3779b97f4a7c15ull);

	words[WORD_MAGIC] = htole64(MAGIC);
	words[WORD_SECTOR] = htole64(tag->sector);
	words[WORD_GENERATION] = htole64(tag->generation);
	words[WORD_SEED] = htole64(tag->seed);
	for (unsigned i = WORD_FILLER; i < WORD_SUM; i++)
		words[i] = htole64(front_random(&state));
	words[WORD_SUM] = htole64(words_sum(words));
	memcpy(sector_data, words, sizeof(words));
}

static int words_are_zero(const uint64_t words[NR_WORDS])
{
	for (unsigned i = 0; i < NR_WORDS; i++)
		if (words[i])
			return 0;
	return 1;
}

enum front_finding front_pattern_check(const void *sector_data, const struct front_tag *expected,
				       struct front_tag *seen)
{
	uint64_t words[NR_WORDS];

	memcpy(words, sector_data, sizeof(words));
	*seen = (struct front_tag){0};
	if (words_are_zero(words))
		return FRONT_LOST;
	if (le64toh(words[WORD_MAGIC]) != MAGIC)
		return FRONT_FOREIGN;
	*seen = (struct front_tag){
		.sector = le64toh(words[WORD_SECTOR]),
		.generation = le64toh(words[WORD_GENERATION]),
		.seed = le64toh(words[WORD_SEED]),
	};
	if (le64toh(words[WORD_SUM]) != words_sum(words))
		return FRONT_TORN;
	if (seen->seed != expected->seed)
		return FRONT_OTHER_SEED;
	if (seen->sector != expected->sector)
		return FRONT_MISDIRECTED;
	if (seen->generation < expected->generation)
		return FRONT_STALE;
	return seen->generation > expected->generation ? FRONT_FUTURE : FRONT_GOOD;
}

void front_pattern_describe(enum front_finding finding, const struct front_tag *expected,
			    const struct front_tag *seen, char *text, size_t size)
{
	static const char *const what[] = {
		[FRONT_GOOD] = "good",
		[FRONT_LOST] = "lost write: only zeroes",
		[FRONT_FOREIGN] = "foreign data: no verify pattern",
		[FRONT_TORN] = "torn or corrupt sector: the checksum is wrong",
		[FRONT_OTHER_SEED] = "lost write: data of another run",
		[FRONT_MISDIRECTED] = "misdirected write: data of another sector",
		[FRONT_STALE] = "lost write: data of an earlier generation",
		[FRONT_FUTURE] = "data of a generation not written yet",
	};
	int len = snprintf(text, size, "sector %llu: %s; expected generation %llu of seed %llu",
			   (unsigned long long)expected->sector, what[finding],
			   (unsigned long long)expected->generation,
			   (unsigned long long)expected->seed);

	if (finding == FRONT_LOST || finding == FRONT_FOREIGN || len < 0 || (size_t)len >= size)
		return;
	snprintf(text + len, size - (size_t)len, ", seen sector %llu generation %llu of seed %llu",
		 (unsigned long long)seen->sector, (unsigned long long)seen->generation,
		 (unsigned long long)seen->seed);
}
