// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The verify pattern: each kind of damage is found and named.
 *
 * Owns: nothing. Trusts: nothing. Runs on: the test. Must not know: jobs.
 */
#include "config.h"

#include "loopback/front-pattern.h"
#include "tests/unit/unit.h"

static const struct front_tag tag = {.sector = 1000, .generation = 5, .seed = 42};

/* What is found in a sector filled for @is that should be tag. */
static enum front_finding found(struct front_tag is)
{
	uint8_t data[FRONT_SECTOR_BYTES];
	struct front_tag seen;
	enum front_finding finding;

	front_pattern_fill(data, &is);
	finding = front_pattern_check(data, &tag, &seen);
	assert_true(seen.sector == is.sector);
	assert_true(seen.generation == is.generation);
	assert_true(seen.seed == is.seed);
	return finding;
}

static void whole_sectors(void **state)
{
	(void)state;
	assert_int_equal(found(tag), FRONT_GOOD);
	assert_int_equal(found((struct front_tag){1001, 5, 42}), FRONT_MISDIRECTED);
	assert_int_equal(found((struct front_tag){1001, 4, 42}), FRONT_MISDIRECTED);
	assert_int_equal(found((struct front_tag){1000, 4, 42}), FRONT_STALE);
	assert_int_equal(found((struct front_tag){1000, 6, 42}), FRONT_FUTURE);
	assert_int_equal(found((struct front_tag){1000, 5, 43}), FRONT_OTHER_SEED);
}

static void not_ours(void **state)
{
	uint8_t data[FRONT_SECTOR_BYTES] = {0};
	struct front_tag seen;

	(void)state;
	assert_int_equal(front_pattern_check(data, &tag, &seen), FRONT_LOST);
	memset(data, 0xff, sizeof(data));
	assert_int_equal(front_pattern_check(data, &tag, &seen), FRONT_FOREIGN);
	/* A lost head, a lost tail. */
	front_pattern_fill(data, &tag);
	memset(data, 0, 256);
	assert_int_equal(front_pattern_check(data, &tag, &seen), FRONT_FOREIGN);
	front_pattern_fill(data, &tag);
	memset(data + 256, 0, 256);
	assert_int_equal(front_pattern_check(data, &tag, &seen), FRONT_TORN);
}

/* The head of one generation with the tail of another, at every 8-byte cut. */
static void torn_between_generations(void **state)
{
	struct front_tag older = tag, seen;
	uint8_t new_data[FRONT_SECTOR_BYTES], data[FRONT_SECTOR_BYTES];

	(void)state;
	older.generation--;
	front_pattern_fill(new_data, &tag);
	for (unsigned cut = 8; cut < FRONT_SECTOR_BYTES; cut += 8) {
		enum front_finding finding;

		front_pattern_fill(data, &older);
		memcpy(data, new_data, cut);
		finding = front_pattern_check(data, &tag, &seen);
		/* Magic and sector are the same in both: up to there nothing was torn. */
		assert_int_equal(finding, cut <= 16 ? FRONT_STALE : FRONT_TORN);
	}
}

static void every_byte_counts(void **state)
{
	uint8_t data[FRONT_SECTOR_BYTES];
	struct front_tag seen;

	(void)state;
	for (unsigned i = 0; i < FRONT_SECTOR_BYTES; i++) {
		front_pattern_fill(data, &tag);
		data[i] ^= 0x10;
		assert_int_not_equal(front_pattern_check(data, &tag, &seen), FRONT_GOOD);
	}
}

static void description_names_all(void **state)
{
	struct front_tag seen = {.sector = 77, .generation = 3, .seed = 42};
	char text[256];

	(void)state;
	front_pattern_describe(FRONT_MISDIRECTED, &tag, &seen, text, sizeof(text));
	assert_string_equal(
		text,
		"sector 1000: misdirected write: data of another sector; expected generation 5 of seed 42, seen sector 77 generation 3 of seed 42");
	front_pattern_describe(FRONT_LOST, &tag, &seen, text, 20);
	assert_string_equal(text, "sector 1000: lost w");
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(whole_sectors),
		cmocka_unit_test(not_ours),
		cmocka_unit_test(torn_between_generations),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(description_names_all),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
