// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reader of tests/vectors/.
 *
 * Owns: the form of the files. Trusts: the files, but says what line is wrong. Runs on: the test.
 * Must not know: what a vector means.
 */
#include "config.h"

#include <stdio.h>

#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"

/* "XX" or "XX*N" tokens. */
static void bytes_add(struct vector *vector, char *text)
{
	char *save = NULL;

	for (char *token = strtok_r(text, " ", &save); token; token = strtok_r(NULL, " ", &save)) {
		unsigned value, times = 1;
		int used = 0;

		if (sscanf(token, "%2x%n*%u%n", &value, &used, &times, &used) < 1 || token[used])
			fail_msg("%s: \"%s\" is neither XX nor XX*N", vector->name, token);
		while (times--) {
			if (vector->nr_bytes == sizeof(vector->slot))
				fail_msg("%s: more bytes than a slot has", vector->name);
			vector->slot[vector->nr_bytes++] = (uint8_t)value;
		}
	}
}

static void text_set(char *field, size_t size, const char *text)
{
	if (snprintf(field, size, "%s", text) >= (int)size)
		fail_msg("too long: %s", text);
}

/* "barrier" or "indirect N". */
static void offer_set(struct vector *vector, const char *text)
{
	if (!strcmp(text, "barrier"))
		vector->barrier = true;
	else if (sscanf(text, "indirect %u", &vector->max_indirect) != 1)
		fail_msg("%s: unknown offer \"%s\"", vector->name, text);
}

static void vector_check(const struct vector *vector, void (*check)(const struct vector *vector))
{
	if (!vector->abi)
		fail_msg("%s has no abi", vector->name);
	if (vector->nr_bytes != vector->abi->slot_bytes)
		fail_msg("%s has %u bytes, not a slot's %u", vector->name, vector->nr_bytes,
			 vector->abi->slot_bytes);
	check(vector);
}

static void line_take(struct vector *vector, char *line)
{
	char *text = strchr(line, ' ');

	if (!text)
		fail_msg("line without a value: %s", line);
	*text++ = '\0';
	if (!strcmp(line, "abi"))
		vector->abi = blkif_abi_find(text);
	else if (!strcmp(line, "slot"))
		bytes_add(vector, text);
	else if (!strcmp(line, "expect"))
		text_set(vector->expect, sizeof(vector->expect), text);
	else if (!strcmp(line, "segments"))
		text_set(vector->segments, sizeof(vector->segments), text);
	else if (!strcmp(line, "offer"))
		offer_set(vector, text);
	else if (!strcmp(line, "put"))
		text_set(vector->put, sizeof(vector->put), text);
	else
		fail_msg("unknown line: %s %s", line, text);
}

unsigned vectors_run(const char *file, void (*check)(const struct vector *vector))
{
	const char *top = getenv("top_srcdir");
	struct vector vector = {0};
	char path[512], line[512];
	unsigned nr = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/tests/vectors/%s", top ? top : ".", file);
	in = fopen(path, "r");
	if (!in)
		fail_msg("cannot open %s: set top_srcdir", path);
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		if (!line[0] || line[0] == '#')
			continue;
		if (strncmp(line, "vector ", 7)) {
			line_take(&vector, line);
			continue;
		}
		if (nr++)
			vector_check(&vector, check);
		memset(&vector, 0, sizeof(vector));
		text_set(vector.name, sizeof(vector.name), line + 7);
	}
	if (nr)
		vector_check(&vector, check);
	fclose(in);
	return nr;
}
