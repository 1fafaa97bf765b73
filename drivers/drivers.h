/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The drivers by name, for the table in driver.c.
 *
 * Owns: nothing.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: any thread.
 * Must not know: what a driver does.
 */
#ifndef VBDISK_DRIVERS_H
#define VBDISK_DRIVERS_H

#include "driver.h"

extern const struct driver fault_driver;
extern const struct driver file_driver;
extern const struct driver memory_driver;
extern const struct driver null_driver;

#endif
