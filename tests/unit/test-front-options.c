// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line of vbdisk-front: what is taken, and how each mistake is named.
 *
 * Owns: nothing. Trusts: getopt. Runs on: the test. Must not know: jobs, connections.
 */
#include "config.h"

#include <errno.h>

#include "loopback/front-options.h"
#include "tests/unit/unit.h"

#define ARGS_MAX 32

static struct front_options options;
static struct error error;

/* Parse words separated by single spaces. */
static int parse(const char *line)
{
	static char words[512];
	char *argv[ARGS_MAX + 2] = {"vbdisk-front"}, *rest;
	int argc = 1;

	snprintf(words, sizeof(words), "%s", line);
	error.text[0] = '\0';
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = word;
	}
	return front_options_parse(&options, argc, argv, &error);
}

static void defaults(void **state)
{
	(void)state;
	assert_int_equal(parse("--job seq-read"), 0);
	assert_null(options.loopback_dir);
	assert_int_equal(options.connect.vdev, 51712);
	assert_int_equal(options.connect.ring_order, 0);
	assert_true(options.connect.timeout_ns == 30000000000ull);
	assert_int_equal(options.job.kind, FRONT_JOB_SEQ_READ);
	assert_int_equal(options.job.depth, 1);
	assert_int_equal(options.job.block_bytes, 4096);
	assert_int_equal(options.nr_rounds, 1);
}

static void values(void **state)
{
	(void)state;
	assert_int_equal(
		parse("--loopback dir --domid 3 --vdev xvdb1 --job=mixed --depth 300 --ring-page-order 4 "
		      "--block-size 44K --offset 1M --size 2G --verify --protocol none"),
		0);
	assert_string_equal(options.loopback_dir, "dir");
	assert_int_equal(options.domid, 3);
	assert_int_equal(options.connect.vdev, 51729);
	assert_int_equal(options.job.depth, 300);
	assert_int_equal(options.job.block_bytes, 45056);
	assert_true(options.job.offset_bytes == 1048576);
	assert_true(options.job.size_bytes == 2147483648ull);
	assert_null(options.connect.protocol);
	assert_int_equal(parse("--job mixed --protocol foo --depth 300"), 0);
	assert_string_equal(options.connect.protocol, "foo");
	assert_int_equal(options.job.depth, 32); /* what a ring of one page holds */
	assert_int_equal(parse("--hostile R07"), 0);
	assert_int_equal(parse("--hostile all --races 5"), 0);
	assert_int_equal(parse("--linger 3"), 0);
	assert_int_equal(parse("--help"), 0);
	assert_true(options.help);
}

static void mistakes(void **state)
{
	static const struct {
		const char *line, *named;
	} cases[] = {
		{"", "nothing to do"},
		{"--job", "--job needs a value"},
		{"--job nosuch", "--job=nosuch"},
		{"--nosuch", "--nosuch"},
		{"word --job flush", "\"word\""},
		{"--json=yes --job flush", "--json=yes"},
		{"--job flush --depth 0", "--depth=0"},
		{"--job flush --depth 1x", "--depth=1x"},
		{"--job flush --depth -1", "--depth=-1"},
		{"--job flush --block-size 48K", "11 segments"},
		{"--job flush --block-size 3M", "512 pages"},
		{"--job flush --indirect 11", "--indirect=11"},
		{"--job flush --queues 17", "--queues=17"},
		{"--linger 1 --expect-grow 3", "--expect-grow"},
		{"--job flush --block-size 0", "--block-size=0"},
		{"--job flush --block-size 1000", "multiples of 512"},
		{"--job flush --size 1Q", "--size=1Q"},
		{"--job flush --size 99999999999999999999", "--size="},
		{"--job flush --size 18014398509481984K", "--size="},
		{"--job flush --ring-page-order 5", "--ring-page-order=5"},
		{"--job flush --ring-ref-spelling x", "--ring-ref-spelling=x"},
		{"--job flush --vdev sda", "--vdev=sda"},
		{"--job flush --loopback d", "go together"},
		{"--job flush --domid 1", "go together"},
		{"--job flush --hostile r01", "either"},
		{"--hostile r99", "--hostile=r99"},
		{"--job seq-read --verify", "check what a job writes"},
		{"--job seq-write --verify --verify-only", "either"},
		{"--job seq-write --verify-only --runtime 3", "--count"},
		{"--job seq-write --any-generation", "--verify-only"},
		{"--job flush --timeout 0", "--timeout=0"},
		{"--job flush --reconnect 0", "--reconnect=0"},
		{"--job flush --log-level loud", "--log-level=loud"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i].line), -EINVAL);
		if (!strstr(error.text, cases[i].named))
			fail_msg("\"%s\" said: %s", cases[i].line, error.text);
	}
}

static void vdevs(void **state)
{
	static const struct {
		const char *name;
		unsigned vdev;
	} cases[] = {
		/* xen-vbd-interface(7): 202<<8 | disk<<4 | partition, 1<<28 | disk<<8 | partition */
		{"xvda", 51712},
		{"xvda1", 51713},
		{"xvdb", 51728},
		{"xvdp15", 51967},
		{"xvdq", (1u << 28) | 16 << 8},
		{"xvda16", (1u << 28) | 16},
		{"xvdaa", (1u << 28) | 26 << 8},
		{"51712", 51712},
	};
	static const char *const bad[] = {"",	    "xvd", "xvd1", "xvda256",
					  "xvda1b", "hda", "5x",   "4294967296"};
	unsigned vdev;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(front_vdev_parse(cases[i].name, &vdev), 0);
		assert_int_equal(vdev, cases[i].vdev);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(front_vdev_parse(bad[i], &vdev), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(values),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(vdevs),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
