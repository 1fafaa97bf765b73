/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A disk of 512-byte blocks on a disk of larger ones (4Kn): what a guest's partition table, boot
 * loader and old images want.
 *
 * Owns: the disk below it once it is open.
 * Trusts / does not trust: requests passed request_validate().
 * Runs on: open and close on the main thread; the rest on the queue's, never blocks.
 * Must not know: what is below.
 */
#ifndef VBDISK_SECTOR_EMULATION_H
#define VBDISK_SECTOR_EMULATION_H

#include "driver.h"

/* Make *@disk_out, with logical and memory blocks of 512 bytes, out of @lower, which it takes over
 * in every case. It has one queue, see sector-queue.c. 0; -ENOMEM, or -EOPNOTSUPP for blocks of
 * more than 256 KiB, with @error. */
int sector_emulation_open(struct disk *lower, struct disk **disk_out, struct error *error);

#endif
