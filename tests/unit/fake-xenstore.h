/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * libxenstore as a tree in the test's own memory: the xs_ functions that xenstore/store.c calls.
 *
 * Owns: the tree, watches and events, and the knobs that make calls fail. Trusts: the test. Runs on: the
 *   test. Must not know: VBDs.
 *
 * Linked in place of -lxenstore. One connection; its home is /local/domain/0. A transaction works on a copy
 * of the tree and fails with EAGAIN if anything was changed outside meanwhile.
 */
#ifndef VBDISK_TEST_FAKE_XENSTORE_H
#define VBDISK_TEST_FAKE_XENSTORE_H

#include <stdbool.h>

/* Forget the tree, all watches, events and knobs. */
void fake_store_reset(void);

/* What somebody else does: set and remove fire watches. @value is a text; NULL: none. */
void fake_store_set(const char *path, const char *value);
void fake_store_set_number(const char *path, unsigned long long value);
void fake_store_set_bytes(const char *path, const void *bytes, unsigned len);
void fake_store_remove(const char *path);
const char *fake_store_get(const char *path);
unsigned fake_store_nr_nodes(void);
unsigned fake_store_nr_calls(void);

struct fake_store_knobs {
	bool lost;		     /* every call fails as on a closed connection */
	const char *denied;	     /* reading this path is EACCES */
	unsigned nr_conflicts;	     /* so many commits fail with EAGAIN */
	void (*before_commit)(void); /* called once, within the next commit: somebody is quicker */
};
extern struct fake_store_knobs fake_store_knobs;

#endif
