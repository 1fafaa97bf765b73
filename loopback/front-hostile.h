/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Hostile mode: what a broken or malicious guest does, and the answers a backend owes it.
 *
 * Owns: one function per row of the table of known faults, TAP output with one line per assertion.
 * Trusts / does not trust: a backend under test, in nothing.
 * Runs on: the main thread; sleeps for answers. A racing row has one more thread, which scribbles on
 *   the shared ring while the row lasts.
 * Must not know: options, jobs.
 */
#ifndef VBDISK_FRONT_HOSTILE_H
#define VBDISK_FRONT_HOSTILE_H

#include <stdbool.h>
#include <stdio.h>

#include "error.h"
#include "loopback/front-connect.h"

/* Whether @row is the name of a row, of a group ("grants"), or "all". */
bool front_hostile_known(const char *row);

/* One line per row: name and what it does. */
void front_hostile_list(FILE *out);

/* Run the row or rows @row means on the opened @front: connects, misbehaves, checks, disconnects; TAP goes to
 * @tap. @nr_races: rounds of racing rows. After each row a good READ must be answered. 0: all as
 * expected; -EILSEQ: some assertion failed; else -errno with @error: could not connect, and so on. */
int front_hostile_run(struct front *front, const char *row, unsigned nr_races, FILE *tap,
		      struct error *error);

#endif
