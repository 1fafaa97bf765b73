// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The options of a VBD: defaults, ranges, and what is said about mistakes.
 *
 * Owns: nothing. Trusts: backend/vbd-options.h and its help text. Runs on: the test.
 * Must not know: what the options do.
 */
#include "config.h"

#include <errno.h>

#include "backend/vbd-options.h"
#include "tests/unit/unit.h"

static void defaults(void **state)
{
	struct vbd_options options;

	(void)state;
	vbd_options_init(&options);
	assert_true(options.queues >= 1 && options.queues <= VBD_QUEUES_MAX);
	assert_int_equal(options.workers, options.queues);
	assert_int_equal(options.ring_order, 4);
	assert_int_equal(options.indirect, 256);
	assert_false(options.indirect_chosen);
	assert_int_equal(options.persistent, 0);
	assert_false(options.barrier || options.close_on_flush_error || options.native_sector);
	assert_true(options.discard);
	assert_int_equal(options.resize_poll_s, 4);
	assert_true(options.data_bytes == 32u << 20);
}

static void good_ones(void **state)
{
	struct vbd_options options;
	struct error error;

	(void)state;
	vbd_options_init(&options);
	assert_int_equal(vbd_options_set(&options, "queues=16", &error), 0);
	assert_int_equal(vbd_options_set(&options, "workers=0", &error), 0);
	assert_int_equal(vbd_options_set(&options, "ring-order=0", &error), 0);
	assert_int_equal(vbd_options_set(&options, "indirect=64", &error), 0);
	assert_int_equal(vbd_options_set(&options, "persistent=352", &error), 0);
	assert_int_equal(vbd_options_set(&options, "barrier=1", &error), 0);
	assert_int_equal(vbd_options_set(&options, "discard=0", &error), 0);
	assert_int_equal(vbd_options_set(&options, "flush-failure=fail", &error), 0);
	assert_int_equal(vbd_options_set(&options, "sector=native", &error), 0);
	assert_int_equal(vbd_options_set(&options, "resize-poll=0", &error), 0);
	assert_int_equal(vbd_options_set(&options, "data-memory=1M", &error), 0);
	assert_int_equal(options.queues, 16);
	assert_int_equal(options.workers, 0);
	assert_int_equal(options.ring_order, 0);
	assert_int_equal(options.indirect, 64);
	assert_true(options.indirect_chosen);
	assert_int_equal(options.persistent, 352);
	assert_true(options.barrier && options.close_on_flush_error && options.native_sector);
	assert_false(options.discard);
	assert_int_equal(options.resize_poll_s, 0);
	assert_true(options.data_bytes == 1u << 20);
	/* The last one counts. */
	assert_int_equal(vbd_options_set(&options, "flush-failure=hold", &error), 0);
	assert_false(options.close_on_flush_error);
	assert_int_equal(vbd_options_set(&options, "indirect=0", &error), 0);
	assert_int_equal(options.indirect, 0);
}

static void mistakes(void **state)
{
	static const char *const rows[] = {
		"",
		"queues",
		"queues=",
		"queues=0",
		"queues=17",
		"queues=-1",
		"queues=2,3",
		"queues=2,",
		"=2",
		"workers=x",
		"ring-order=5",
		"indirect=11",
		"indirect=1",
		"indirect=257",
		"persistent=65537",
		"barrier=2",
		"barrier=yes",
		"discard=",
		"flush-failure=0",
		"sector=4096",
		"resize-poll=-1",
		"data-memory=1",
		"data-memory=2G",
		"unknown=1",
		"Queues=1",
	};
	struct vbd_options options, before;

	(void)state;
	vbd_options_init(&options);
	before = options;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error error = {""};

		if (vbd_options_set(&options, rows[i], &error) != -EINVAL)
			fail_msg("\"%s\" was taken", rows[i]);
		assert_true(error.text[0]);
		/* A boolean that was refused may have been touched; numbers not. */
		assert_int_equal(options.queues, before.queues);
		assert_int_equal(options.indirect, before.indirect);
	}
}

/* Every option the help text names is known. */
static void help_names_options(void **state)
{
	struct vbd_options options;
	const char *line = vbd_options_help;
	unsigned nr = 0;

	(void)state;
	vbd_options_init(&options);
	while (*line) {
		struct error error = {""};
		char name[64];

		if (sscanf(line, "%31[a-z-]=", name) == 1 && *line != ' ') {
			strcat(name, "=?");
			assert_int_equal(vbd_options_set(&options, name, &error), -EINVAL);
			if (strstr(error.text, "there is no"))
				fail_msg("%s", error.text);
			nr++;
		}
		line = strchr(line, '\n') + 1;
	}
	assert_int_equal(nr, 11);
}

/* Behind a target: taken off from the end, as long as the names are ours. */
static void behind_a_target(void **state)
{
	static const struct {
		const char *params, *target;
		int err;
	} rows[] = {
		{"aio:/srv/a.img", "aio:/srv/a.img", 0},
		{"aio:/srv/a.img,persistent=8", "aio:/srv/a.img", 0},
		{"aio:/srv/a.img,barrier=1,persistent=8", "aio:/srv/a.img", 0},
		{"aio:/srv/a,b c:d.img", "aio:/srv/a,b c:d.img", 0},
		{"aio:/srv/a,b=c.img,persistent=8", "aio:/srv/a,b=c.img", 0},
		{"aio:/srv/a,persistent=8,b.img", "aio:/srv/a,persistent=8,b.img", 0},
		{"memory:size=1M,block=4096,persistent=8", "memory:size=1M,block=4096", 0},
		/* A path that looks like an option, and one that ends in a comma. */
		{"aio:/srv/a,persistent=8,", "aio:/srv/a,persistent=8", 0},
		{"aio:/srv/a,,", "aio:/srv/a,", 0},
		{"aio:,persistent=8", "aio:", 0},
		{"persistent=8", "persistent=8", 0},
		{",persistent=8", "", 0},
		{"", "", 0},
		{"aio:/srv/a.img,persistent=x", NULL, -EINVAL},
		{"aio:/srv/a.img,discard=2,persistent=8", NULL, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool taken = strstr(rows[i].params, ",persistent=8") && rows[i].target &&
			     !strstr(rows[i].target, "persistent");
		struct vbd_options options;
		struct error error = {""};
		char params[128];

		vbd_options_init(&options);
		strcpy(params, rows[i].params);
		assert_int_equal(vbd_options_split(&options, params, &error), rows[i].err);
		if (rows[i].err) {
			assert_true(error.text[0]);
			continue;
		}
		assert_string_equal(params, rows[i].target);
		assert_int_equal(options.persistent, taken ? 8 : 0);
		assert_int_equal(options.barrier, strstr(rows[i].params, "barrier=1") != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(defaults),	   cmocka_unit_test(good_ones),
		cmocka_unit_test(mistakes),	   cmocka_unit_test(help_names_options),
		cmocka_unit_test(behind_a_target),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
