/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The lock which keeps two VBDs of one host from writing one image.
 *
 * Owns: the kind of lock, and how long a busy one is waited for.
 * Trusts / does not trust: other programs need not lock at all; this is a convention among those who do.
 * Runs on: the main thread, before the loop; blocks up to 3 s.
 * Must not know: drivers, block sizes.
 */
#ifndef VBDISK_FILE_LOCK_H
#define VBDISK_FILE_LOCK_H

#include <stdbool.h>

#include "error.h"

/* Lock the whole of @fd, shared, or exclusively if @writable; close(fd) unlocks. 0 or -errno with
 * @error, which names @path, filled: -EBUSY (held by another for 3 s), -ENOLCK (no locks on this file
 * system), ... Blocks up to 3 s. */
int file_lock(int fd, bool writable, const char *path, struct error *error);

#endif
