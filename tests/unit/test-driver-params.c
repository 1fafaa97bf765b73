// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How disks are named: the specification, its parameters, sizes; and what is said about wrong ones.
 *
 * Owns: nothing.
 * Trusts / does not trust: nothing.
 * Runs on: the test.
 * Must not know: what drivers do with requests.
 */
#include "config.h"

#include <errno.h>

#include "drivers/params.h"
#include "tests/unit/unit.h"

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"512", 512},
		{"64M", 64ull << 20},
		{"1G", 1ull << 30},
		{"3K", 3072},
		{"2T", 2ull << 40},
		{"18446744073709551615", UINT64_MAX},
		{"16777215T", 16777215ull << 40},
	};
	static const char *const bad[] = {
		"",
		"M",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1m",
		"1MB",
		"1.5G",
		"0x10",
		"18446744073709551616",
		"16777216T",
		"99999999999999999999G",
	};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(param_size(good[i].text, &bytes), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (param_size(bad[i], &bytes) != -EINVAL)
			fail_msg("'%s' was taken for a size", bad[i]);
}

static void counts(void **state)
{
	static const char *const bad[] = {"",	"0",  "11", "-3",
					  "+3", "3x", " 3", "99999999999999999999"};
	unsigned long count;

	(void)state;
	assert_int_equal(param_count("10", 1, 10, &count), 0);
	assert_int_equal(count, 10);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (param_count(bad[i], 1, 10, &count) != -EINVAL)
			fail_msg("'%s' was taken for a count", bad[i]);
}

static void parameters(void **state)
{
	const char *cursor = "size=1M,flag,empty=,last=a=b:rest,of=it";
	struct param param;

	(void)state;
	assert_int_equal(param_next(&cursor, ':', &param, NULL), 1);
	assert_string_equal(param.key, "size");
	assert_string_equal(param.value, "1M");
	assert_int_equal(param_next(&cursor, ':', &param, NULL), 1);
	assert_string_equal(param.key, "flag");
	assert_string_equal(param.value, "");
	assert_int_equal(param_next(&cursor, ':', &param, NULL), 1);
	assert_string_equal(param.key, "empty");
	assert_string_equal(param.value, "");
	assert_int_equal(param_next(&cursor, ':', &param, NULL), 1);
	assert_string_equal(param.key, "last");
	assert_string_equal(param.value, "a=b");
	assert_int_equal(param_next(&cursor, ':', &param, NULL), 0);
	assert_string_equal(cursor, ":rest,of=it");
}

static void broken_parameters(void **state)
{
	static const char *const bad[] = {
		",a=1",
		"=1",
		"a23456789012345678901234567890123=1",
		"a=12345678901234567890123456789012345678901234567890123456789012345",
	};
	struct param param;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *cursor = bad[i];

		assert_int_equal(param_next(&cursor, '\0', &param, NULL), -EINVAL);
	}
}

static void every_driver_is_found(void **state)
{
	(void)state;
	for (const struct driver *const *driver = driver_table; *driver; driver++) {
		assert_ptr_equal(driver_find((*driver)->name), *driver);
		assert_non_null((*driver)->description);
		assert_int_equal((*driver)->params_help[strlen((*driver)->params_help) - 1], '\n');
	}
	assert_null(driver_find("floppy"));
	assert_null(driver_find(""));
	assert_null(driver_find("aio"));
}

/* Wrong specifications of disks without storage; the ones about files are in test-driver-file.c. */
static void wrong_specs_are_refused(void **state)
{
	static const struct {
		const char *spec;
		int ret;
		const char *says;
	} specs[] = {
		{"", -EINVAL, "no disk is named"},
		{"/srv/disk.img", -EINVAL, "aio:/srv/disk.img"},
		{"memory", -EINVAL, "format is missing"},
		{"qcow2:/srv/disk.qcow2", -EOPNOTSUPP, "qemu-img convert"},
		{"vhd:/srv/disk.vhd", -EOPNOTSUPP, "vhd"},
		{"floppy:/dev/fd0", -EOPNOTSUPP, "'floppy'"},
		{":/dev/fd0", -EOPNOTSUPP, "''"},
		{"a-name-which-is-much-too-long-for-a-driver:x", -EOPNOTSUPP, "much-too-long"},
		{"memory:", -EINVAL, "size="},
		{"memory:size=0", -EINVAL, "size=0"},
		{"memory:size=1000", -EINVAL, "multiple"},
		{"memory:size=4608,block=4096", -EINVAL, "multiple"},
		{"memory:size=16777215T", -EINVAL, "size="},
		{"memory:size=8388607T", -ENOMEM, "smaller"},
		{"memory:size=64Q", -EINVAL, "64Q"},
		{"memory:size=1M,block=100", -EINVAL, "power of two"},
		{"memory:size=1M,block=131072", -EINVAL, "power of two"},
		{"null:size=1M,colour=blue", -EINVAL, "'colour'"},
		{"null:,", -EINVAL, "key=value"},
		{"fault:", -EINVAL, "below is missing"},
		{"fault:delay-ms=1", -EINVAL, "below is missing"},
		{"fault:delay-ms=x:memory:size=1M", -EINVAL, "delay-ms"},
		{"fault:op=trim:memory:size=1M", -EINVAL, "op cannot be 'trim'"},
		{"fault:errno=EWHAT:memory:size=1M", -EINVAL, "EWHAT"},
		{"fault:split=2:memory:size=1M", -EINVAL, "split"},
		{"fault:error-at=0:memory:size=1M", -EINVAL, "error-at"},
		{"fault:eror-at=1:memory:size=1M", -EINVAL, "'eror-at'"},
		{"fault::floppy:x", -EOPNOTSUPP, "'floppy'"},
		{"fault::/x", -EINVAL, "format is missing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		struct error error = {""};
		struct disk *disk;
		int ret = disk_open(specs[i].spec, DISK_OPEN_WRITABLE, &disk, &error);

		if (ret != specs[i].ret || !strstr(error.text, specs[i].says) ||
		    strchr(error.text, '\n'))
			fail_msg("'%s': %d '%s', not %d '...%s...'", specs[i].spec, ret, error.text,
				 specs[i].ret, specs[i].says);
		if (ret != -ENOMEM) /* nobody need listen */
			assert_int_equal(disk_open(specs[i].spec, 0, &disk, NULL), ret);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(counts),
		cmocka_unit_test(parameters),
		cmocka_unit_test(broken_parameters),
		cmocka_unit_test(every_driver_is_found),
		cmocka_unit_test(wrong_specs_are_refused),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
