/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The verify pattern: sectors that say what they are, so that a wrong one says what happened to it.
 *
 * Owns: the 512 bytes of a verify sector: who wrote it (seed), where it belongs (sector), which write of
 *   that place it was (generation), a filler that depends on all three, and a checksum over everything.
 * Trusts / does not trust: nothing that comes back from a disk.
 * Runs on: any thread; never blocks.
 * Must not know: rings, jobs.
 */
#ifndef VBDISK_FRONT_PATTERN_H
#define VBDISK_FRONT_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define FRONT_SECTOR_BYTES 512u

enum front_finding {
	FRONT_GOOD,
	FRONT_LOST,	   /* only zeroes: the write never arrived */
	FRONT_FOREIGN,	   /* no sector of ours at all */
	FRONT_TORN,	   /* begins as ours, checksum wrong: parts of different writes */
	FRONT_OTHER_SEED,  /* of another run: the write of this run never arrived */
	FRONT_MISDIRECTED, /* belongs to another place */
	FRONT_STALE,	   /* an earlier write to this place: the last one was lost */
	FRONT_FUTURE,	   /* a later generation than was ever written */
};

struct front_tag {
	uint64_t sector;
	uint64_t generation; /* 1 for the first write */
	uint64_t seed;
};

/* Fill @sector_data (FRONT_SECTOR_BYTES, any alignment) for @tag. */
void front_pattern_fill(void *sector_data, const struct front_tag *tag);

/* What @sector_data holds, compared with @expected; *@seen is the tag found (all 0 where there is
 * none to be had). */
enum front_finding front_pattern_check(const void *sector_data, const struct front_tag *expected,
				       struct front_tag *seen);

/* One line into @text: what is wrong with the sector that should be @expected. */
void front_pattern_describe(enum front_finding finding, const struct front_tag *expected,
			    const struct front_tag *seen, char *text, size_t size);

/* The next number of a reproducible sequence (splitmix64); *@state is the seed. */
uint64_t front_random(uint64_t *state);

#endif
