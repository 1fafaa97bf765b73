/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Reader of tests/vectors/: each file's head describes its form.
 *
 * Owns: vectors_run(). Trusts: the files, but says what line is wrong. Runs on: the test.
 * Must not know: what a vector means.
 */
#ifndef VBDISK_TEST_VECTORS_H
#define VBDISK_TEST_VECTORS_H

#include <stdbool.h>

#include "backend/blkif-abi.h"

struct vector {
	char name[64];
	const struct blkif_abi *abi;
	uint8_t slot[BLKIF_SLOT_BYTES_MAX];
	unsigned nr_bytes;
	bool barrier; /* offered */
	unsigned max_indirect;
	char expect[160];
	char segments[256];
	char put[64];
};

/* Read tests/vectors/@file below $top_srcdir (or the current directory) and call @check for each vector.
 * Returns how many there were; a file that cannot be read fails the test. */
unsigned vectors_run(const char *file, void (*check)(const struct vector *vector));

#endif
