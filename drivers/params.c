// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parameters of the form "key=value,key=value", sizes and counts.
 *
 * Owns: how parameters are spelt.
 * Trusts / does not trust: the text comes from an administrator; every number is checked.
 * Runs on: the main thread; never blocks.
 * Must not know: which parameters exist, but for the two of params_limits().
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/params.h"

#define PHYSICAL_BLOCK_BYTES 4096u

int param_next(const char **cursor, char end, struct param *param, struct error *error)
{
	const char stops[] = {',', end, '\0'};
	const char *text = *cursor;
	size_t len = strcspn(text, stops);
	const char *equals = memchr(text, '=', len);
	size_t key_len = equals ? (size_t)(equals - text) : len;
	size_t value_len = equals ? len - key_len - 1 : 0;

	if (!len && text[0] != ',')
		return 0;
	if (!key_len || key_len >= sizeof(param->key) || value_len >= sizeof(param->value))
		return error_set(error, EINVAL,
				 "'%.*s' is not a parameter; write key=value,key=value",
				 (int)(len < 100 ? len : 100), text);
	memcpy(param->key, text, key_len);
	param->key[key_len] = '\0';
	memcpy(param->value, text + len - value_len, value_len);
	param->value[value_len] = '\0';
	*cursor = text + len + (text[len] == ',');
	return 1;
}

/* strtoull() takes signs and leading blanks; nobody means those. */
static int digits_parse(const char *text, unsigned long long *number_out, const char **rest_out)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*number_out = strtoull(text, &rest, 10);
	*rest_out = rest;
	return errno ? -EINVAL : 0;
}

int param_size(const char *text, uint64_t *bytes_out)
{
	static const char suffixes[] = "KMGT";
	unsigned long long number;
	const char *rest, *suffix;
	unsigned shift = 0;

	if (digits_parse(text, &number, &rest))
		return -EINVAL;
	if (*rest) {
		suffix = strchr(suffixes, *rest);
		if (!suffix || rest[1])
			return -EINVAL;
		shift = 10 * (unsigned)(suffix - suffixes + 1);
	}
	if (number > UINT64_MAX >> shift)
		return -EINVAL;
	*bytes_out = (uint64_t)number << shift;
	return 0;
}

int param_count(const char *text, unsigned long min, unsigned long max, unsigned long *count_out)
{
	unsigned long long number;
	const char *rest;

	if (digits_parse(text, &number, &rest) || *rest || number < min || number > max)
		return -EINVAL;
	*count_out = (unsigned long)number;
	return 0;
}

int params_limits(const char *driver, const char *params, unsigned flags,
		  struct disk_limits *limits, struct error *error)
{
	uint64_t block_bytes = 512, size_bytes = 0;
	struct param param;
	int ret;

	while ((ret = param_next(&params, '\0', &param, error)) > 0) {
		uint64_t *number = !strcmp(param.key, "size")	 ? &size_bytes
				   : !strcmp(param.key, "block") ? &block_bytes
								 : NULL;

		if (!number)
			return error_set(error, EINVAL,
					 "%s: there is no parameter '%s'; there are size and block",
					 driver, param.key);
		if (param_size(param.value, number))
			return error_set(error, EINVAL,
					 "%s: %s='%s' is not a size; write a number, or one with a "
					 "suffix K, M, G or T",
					 driver, param.key, param.value);
	}
	if (ret < 0)
		return ret;
	if (block_bytes < 512 || block_bytes > 65536 || block_bytes & (block_bytes - 1))
		return error_set(error, EINVAL,
				 "%s: block=%llu is not a power of two from 512 to 65536", driver,
				 (unsigned long long)block_bytes);
	/* Offsets are signed in the system calls of other drivers; no disk is larger than they allow. */
	if (!size_bytes || size_bytes > INT64_MAX || size_bytes % block_bytes)
		return error_set(
			error, EINVAL,
			"%s: size=%llu must be given, and be a multiple of the block of %llu "
			"bytes, for example %s:size=64M",
			driver, (unsigned long long)size_bytes, (unsigned long long)block_bytes,
			driver);
	*limits = (struct disk_limits){
		.size_bytes = size_bytes,
		.logical_block_bytes = (uint32_t)block_bytes,
		.physical_block_bytes = block_bytes > PHYSICAL_BLOCK_BYTES ? (uint32_t)block_bytes
									   : PHYSICAL_BLOCK_BYTES,
		.memory_align_bytes = 1,
		.can_write = flags & DISK_OPEN_WRITABLE,
		.can_flush = true,
		.can_discard = flags & DISK_OPEN_WRITABLE,
		.discard_granularity_bytes = block_bytes > PHYSICAL_BLOCK_BYTES
						     ? (uint32_t)block_bytes
						     : PHYSICAL_BLOCK_BYTES,
	};
	return 0;
}
