/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * From a pointer to a member to its struct, type-checked.
 *
 * Owns: container_of(). Trusts: the caller. Runs on: any thread. Must not know: anything else.
 */
#ifndef VBDISK_CONTAINER_H
#define VBDISK_CONTAINER_H

#include <stddef.h>

#define container_of(ptr, type, member)                                                            \
	({                                                                                         \
		__typeof__(((type *)0)->member) *member_ptr = (ptr);                               \
		(type *)((char *)member_ptr - offsetof(type, member));                             \
	})

#endif
