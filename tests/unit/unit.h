/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What every unit test includes: cmocka with the headers it asks for, in the order it asks for.
 *
 * Owns: nothing. Trusts: everything. Runs on: the test. Must not know: what is tested.
 *
 * A test program is one file with a table of cases and
 *     int main(void) { ... return cmocka_run_group_tests(cases, NULL, NULL); }
 * Output is TAP by CMOCKA_MESSAGE_OUTPUT=TAP, which make check sets.
 */
#ifndef VBDISK_UNIT_H
#define VBDISK_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
