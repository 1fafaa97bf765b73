/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * As much of cmocka's interface as the unit tests use that tests/stress/cross runs: Debian has no cmocka
 * for a cross compiler.
 *
 * Owns: the TAP of one program. Trusts: the test. Runs on: the test. Must not know: what is tested.
 *
 * The first assertion that does not hold ends the program.
 */
#ifndef VBDISK_CROSS_CMOCKA_H
#define VBDISK_CROSS_CMOCKA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
};

#define cmocka_unit_test(function)                                                                 \
	{                                                                                          \
#function, function                                                                \
	}
#define cmocka_run_group_tests(cases, setup, teardown)                                             \
	cross_run(cases, sizeof(cases) / sizeof((cases)[0]))

static inline int cross_run(const struct CMUnitTest *cases, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		void *state = NULL;

		cases[i].run(&state);
		printf("ok %zu - %s\n", i + 1, cases[i].name);
		fflush(stdout);
	}
	return 0;
}

#define fail_msg(...)                                                                              \
	do {                                                                                       \
		printf("not ok - %s:%d: ", __FILE__, __LINE__);                                    \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
		exit(1);                                                                           \
	} while (0)

#define cross_assert(holds, text)                                                                  \
	do {                                                                                       \
		if (!(holds))                                                                      \
			fail_msg("%s", text);                                                      \
	} while (0)

#define assert_true(a) cross_assert((a), #a)
#define assert_false(a) cross_assert(!(a), "not " #a)
#define assert_null(a) cross_assert(!(a), #a " is NULL")
#define assert_non_null(a) cross_assert((a), #a " is not NULL")
#define assert_ptr_equal(a, b) cross_assert((const void *)(a) == (const void *)(b), #a " == " #b)
/* The conversions are cmocka's: a negative int equals itself as a larger unsigned number. */
#define assert_int_equal(a, b) cross_assert((uintmax_t)(a) == (uintmax_t)(b), #a " == " #b)
#define assert_int_not_equal(a, b) cross_assert((uintmax_t)(a) != (uintmax_t)(b), #a " != " #b)
#define assert_string_equal(a, b) cross_assert(!strcmp((a), (b)), #a " == " #b)
#define assert_memory_equal(a, b, n) cross_assert(!memcmp((a), (b), (n)), #a " == " #b)

#endif
