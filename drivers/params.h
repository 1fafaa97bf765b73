/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Parameters of the form "key=value,key=value", sizes and counts.
 *
 * Owns: how parameters are spelt.
 * Trusts / does not trust: the text comes from an administrator; every number is checked.
 * Runs on: the main thread; never blocks.
 * Must not know: which parameters exist.
 */
#ifndef VBDISK_PARAMS_H
#define VBDISK_PARAMS_H

#include <stdint.h>

#include "driver.h"

/* One parameter; @value is "" when there is no '='. */
struct param {
	char key[32];
	char value[64];
};

/* Take the next parameter off *@cursor, which stops at the end of the text or at @end (':' or '\0').
 * Returns 1, 0 when there is none left, or -EINVAL (empty, or longer than a struct param holds) with
 * @error filled. */
int param_next(const char **cursor, char end, struct param *param, struct error *error);

/* "4096" "64M" "1G" (powers of 1024: K M G T) -> bytes. 0 or -EINVAL; no sign, no blanks, no
 * overflow. */
int param_size(const char *text, uint64_t *bytes_out);

/* A decimal number from @min to @max. 0 or -EINVAL. */
int param_count(const char *text, unsigned long min, unsigned long max, unsigned long *count_out);

/* Fill @limits from "size=SIZE[,block=BYTES]": the parameters of drivers which have no storage behind
 * them. 0 or -EINVAL with @error filled, which begins with @driver's name. */
int params_limits(const char *driver, const char *params, unsigned flags,
		  struct disk_limits *limits, struct error *error);

#define PARAMS_LIMITS_HELP                                                                         \
	"size=SIZE    bytes, or with a suffix K M G T; a multiple of the block\n"                  \
	"block=BYTES  logical block, a power of two from 512 to 65536 (default 512)\n"

#endif
