/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The tree of xenstore nodes: values, permissions, quotas; a snapshot costs nothing.
 *
 * Owns: nodes. A tree is a version: nodes are shared between versions and copied when one of them
 *   changes, so that a transaction starts from a snapshot in no time and sees it unchanged.
 * Trusts / does not trust: paths are valid and absolute (the wire checks them); everything else
 * comes from guests, within the quotas. Runs on: one thread; never blocks. Must not know: messages,
 * connections, watches.
 */
#ifndef VBDISK_XENSTORED_TREE_H
#define VBDISK_XENSTORED_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREE_READ 1u
#define TREE_WRITE 2u

/* What a guest may have; domain 0 has no bounds. Figures of C xenstored's defaults. */
#define TREE_QUOTA_NODES 1000u	    /* owned by one domain */
#define TREE_QUOTA_NODE_BYTES 2048u /* value, names and permissions of one node */
#define TREE_QUOTA_PERMISSIONS 5u   /* entries of one node */

/* Entry 0 of a node names its owner, and what domains not listed may do; the owner may do all. */
struct tree_permission {
	uint32_t domid;
	uint32_t bits; /* TREE_READ | TREE_WRITE */
};

struct tree_node {
	unsigned nr_refs;
	/* Unique to this state of value, permissions and list of children. Never 0. */
	uint64_t generation;
	char *name;
	void *value;
	size_t value_len;
	struct tree_permission *permissions;
	unsigned nr_permissions;     /* at least 1 */
	struct tree_node **children; /* sorted by name */
	unsigned nr_children;
};

struct tree;

enum tree_change_kind {
	TREE_CHANGE_WRITE,
	TREE_CHANGE_MKDIR,
	TREE_CHANGE_REMOVE,
	TREE_CHANGE_PERMISSIONS
};

/* One change of one path. The pointers are borrowed. */
struct tree_change {
	enum tree_change_kind kind;
	const char *path;
	const void *value; /* WRITE */
	size_t value_len;
	const struct tree_permission *permissions; /* PERMISSIONS */
	unsigned nr_permissions;
};

/* A tree of one node, "/", of domain 0. NULL if there is no memory. */
struct tree *tree_create(void);

/* Another tree with the same content. NULL if there is no memory. */
struct tree *tree_snapshot(const struct tree *tree);

/* NULL is fine. */
void tree_free(struct tree *tree);

/* What @bits of @permissions a domain has. */
unsigned tree_permission_bits(const struct tree_permission *permissions, unsigned nr,
			      uint32_t domid);

/* The node at @path, whoever asks, or NULL. Valid until the tree changes. */
const struct tree_node *tree_find(const struct tree *tree, const char *path);

/* The node at @path for @domid, which needs @bits of it. 0, -ENOENT, or -EACCES: also where the
 * node is missing below one that the domain may not use. */
int tree_get(const struct tree *tree, uint32_t domid, const char *path, unsigned bits,
	     const struct tree_node **node_out);

/* Apply @change as @domid. *@changed_out: whether there was anything to do. 0, -ENOENT, -EACCES,
 * -EPERM (not the owner), -EINVAL (removal of the root), -ENOSPC (quota), -ENOMEM; then nothing
 * changed. */
int tree_apply(struct tree *tree, uint32_t domid, const struct tree_change *change,
	       bool *changed_out);

/* The nearest node above @path that exists: writes its path, of at most strlen(@path) bytes and a
 * NUL, into @ancestor. "/" has none: "/" itself. */
void tree_ancestor(const struct tree *tree, const char *path, char *ancestor);

/* Nodes owned by @domid, and nodes in all. */
unsigned tree_nr_nodes_of(const struct tree *tree, uint32_t domid);
unsigned tree_nr_nodes(const struct tree *tree);

#endif
