// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The three layouts of a blkif ring, as tables of offsets.
 *
 * Owns: the tables. Trusts / does not trust: a protocol name comes from the guest. Runs on: any thread;
 * never blocks. Must not know: what a field means.
 */
#include "config.h"

#include "backend/blkif-abi.h"
#include "xen-ops.h"

const struct blkif_abi blkif_abi_x86_64 = {
	.protocol = "x86_64-abi",
	.slot_bytes = 112,
	.off_id = 8,
	.off_sector = 16,
	.off_segments = 24,
	.off_nr_sectors = 24,
	.off_indirect_grefs = 28,
};

const struct blkif_abi blkif_abi_x86_32 = {
	.protocol = "x86_32-abi",
	.slot_bytes = 108,
	.off_id = 4,
	.off_sector = 12,
	.off_segments = 20,
	.off_nr_sectors = 20,
	.off_indirect_grefs = 24,
};

const struct blkif_abi blkif_abi_arm = {
	.protocol = "arm-abi",
	.slot_bytes = 112,
	.off_id = 8,
	.off_sector = 16,
	.off_segments = 24,
	.off_nr_sectors = 24,
	.off_indirect_grefs = 28,
};

#if defined(__arm__) || defined(__aarch64__)
#define ABI_DEFAULT blkif_abi_arm
#else
#define ABI_DEFAULT blkif_abi_x86_32
#endif

const struct blkif_abi *blkif_abi_find(const char *protocol)
{
	static const struct blkif_abi *const all[] = {&blkif_abi_x86_64, &blkif_abi_x86_32,
						      &blkif_abi_arm};

	if (!protocol)
		return &ABI_DEFAULT;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(protocol, all[i]->protocol))
			return all[i];
	return NULL;
}

unsigned blkif_abi_nr_slots(const struct blkif_abi *abi, unsigned order)
{
	unsigned fit = ((XEN_PAGE_SIZE << order) - BLKIF_RING_HEADER_BYTES) / abi->slot_bytes;
	unsigned nr = 1;

	while (nr * 2 <= fit)
		nr *= 2;
	return nr;
}
