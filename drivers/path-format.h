/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * How a path is printed in an error: twice at most, and cut so that the cure still fits behind it.
 *
 * Owns: PATH_FORMAT. Trusts / does not trust: paths come from the toolstack; printed, not interpreted.
 * Runs on: any thread. Must not know: what is wrong with the path.
 */
#ifndef VBDISK_PATH_FORMAT_H
#define VBDISK_PATH_FORMAT_H

#define PATH_FORMAT "%.240s"

#endif
